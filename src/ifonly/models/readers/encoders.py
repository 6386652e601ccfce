"""Readers of category_encoders and feature_engine: encoders as tables over levels, discretisers as steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ifonly.data.schema import Numeric
from ifonly.errors import UnsupportedModel
from ifonly.models.reading.source import Column, Source
from ifonly.models.reading.stepwise import Jumps, table_columns
from ifonly.models.reading.transforms import transforms

__all__: list[str] = []


@transforms(
    "category_encoders",
    *("BackwardDifferenceEncoder", "BaseNEncoder", "BinaryEncoder", "CatBoostEncoder", "CountEncoder", "GLMMEncoder"),
    *("GrayEncoder", "HashingEncoder", "HelmertEncoder", "JamesSteinEncoder", "LeaveOneOutEncoder", "MEstimateEncoder"),
    *("OneHotEncoder", "OrdinalEncoder", "PolynomialEncoder", "QuantileEncoder", "RankHotEncoder", "SumEncoder"),
    *("SummaryEncoder", "TargetEncoder", "WOEEncoder"),
)
def category_encoder(transformer: Any, source: Source) -> Sequence[Column]:
    """A table from level to value for each column that comes out of an encoded one; the others go through."""
    return _encoded(transformer, source, list(transformer.cols))


@transforms(
    "feature_engine",
    *("CountFrequencyEncoder", "DecisionTreeEncoder", "MeanEncoder", "OneHotEncoder", "OrdinalEncoder"),
    *("StringSimilarityEncoder", "WoEEncoder"),
)
def feature_engine_encoder(transformer: Any, source: Source) -> Sequence[Column]:
    """A table from level to value for each column that comes out of an encoded one; the others go through."""
    return _encoded(transformer, source, list(transformer.variables_))


@transforms("feature_engine", "RareLabelEncoder")
def rare_labels(transformer: Any, source: Source) -> Sequence[Column]:
    """Labels for labels: what comes out still needs an encoder."""
    return [
        replace(c, weights=None, why="a text category", labels=True, identity=False, branch=None)
        if name in transformer.variables_
        else c
        for name, c in zip(_received(source), source.columns, strict=True)
    ]


@transforms(
    "feature_engine",
    *("ArbitraryDiscretiser", "EqualFrequencyDiscretiser", "EqualWidthDiscretiser", "GeometricWidthDiscretiser"),
)
def discretiser(transformer: Any, source: Source) -> Sequence[Column]:
    """The number of the bin, whose upper edge belongs to it; the other columns go through."""
    names = _received(source)
    jumps, kept = {}, {}
    for i, name in enumerate(names):
        if name in transformer.variables_:
            jumps[i] = Jumps(at=transformer.binner_dict_[name], after=transformer.binner_dict_[name])
        else:
            kept[i] = i
    return table_columns(transformer, source, jumps, names=[str(n) for n in names], kept=kept)


def _received(source: Source) -> list[Any]:
    """Return the names of the received columns; places where an array is received."""
    Z = source.evaluate(source.base[None, :])
    return list(getattr(Z, "columns", range(len(source.columns))))


def _encoded(transformer: Any, source: Source, encoded: list[Any]) -> Sequence[Column]:
    received = _received(source)
    known = {name: i for i, name in enumerate(received)}
    for name in encoded:
        for j in source.columns[known[name]].features if name in known else ():
            if isinstance(source.schema.features[j], Numeric):
                raise UnsupportedModel(
                    f"{source.where}{type(transformer).__name__} encodes the numeric column {name!r} level by level, so "
                    f"its values are categories. Say so: Schema.infer(X, categorical=[{source.schema.names[j]!r}])."
                )
    out = transformer.transform(source.evaluate(source.base[None, :]))
    names = list(out.columns) if hasattr(out, "columns") else list(transformer.get_feature_names_out())
    if len(names) != np.shape(out)[1]:
        names = [f"column {k}" for k in range(np.shape(out)[1])]
    kept = {k: known[name] for k, name in enumerate(names) if name in known and name not in encoded}
    return table_columns(transformer, source, {}, names=[str(n) for n in names], kept=kept)
