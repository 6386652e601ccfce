"""Readers of scikit-learn's Pipeline, ColumnTransformer and transformers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.errors import UnsupportedModel
from ifonly.models.read import Read
from ifonly.models.reading.source import Column, Source
from ifonly.models.reading.transforms import apply_transformer, transforms
from ifonly.models.registry import read_estimator, reads

__all__: list[str] = []


@reads("sklearn", "Pipeline")
def read_pipeline(pipeline: Any, source: Source) -> Read:
    """Each step in turn; the last one is the estimator."""
    for name, step in pipeline.steps[:-1]:
        source = replace(apply_transformer(step, source.within(name)), where=source.where)
    name, last = pipeline.steps[-1]
    return read_estimator(last, source.within(name))


@transforms("sklearn", "Pipeline")
def transform_pipeline(pipeline: Any, source: Source) -> Sequence[Column]:
    """Each step in turn."""
    for name, step in pipeline.steps:
        source = replace(apply_transformer(step, source.within(name)), where=source.where)
    return source.columns


@transforms("sklearn", "ColumnTransformer")
def transform_columns(transformer: Any, source: Source) -> Sequence[Column]:
    """Each part on its own columns; the output is put together in the order scikit-learn uses."""
    names = [str(n) for n in getattr(transformer, "feature_names_in_", [c.name for c in source.columns])]
    n_out = max((s.stop for s in transformer.output_indices_.values()), default=0)
    out: list[Column | None] = [None] * n_out
    for name, part, selected in transformer.transformers_:
        place = transformer.output_indices_.get(name, slice(0, 0))
        picked = [source.columns[i] for i in _positions(selected, names)]
        if (isinstance(part, str) and part == "drop") or not picked:
            continue  # a part without columns is never fitted
        inner = _select(source, picked, transformer, _positions(selected, names)).within(name)
        after = apply_transformer(part, inner)
        for k, (i, column) in enumerate(zip(range(place.start, place.stop), after.columns, strict=True)):
            out[i] = replace(column, branch=(after.evaluate, k))
    return [c for c in out if c is not None]


def _positions(selected: Any, names: Sequence[str]) -> list[int]:
    if callable(selected):
        raise UnsupportedModel("The ColumnTransformer is not fitted: its column selection is still a function.")
    if isinstance(selected, slice):
        if isinstance(selected.start, str) or isinstance(selected.stop, str):
            first = names.index(selected.start) if selected.start is not None else 0
            last = names.index(selected.stop) if selected.stop is not None else len(names) - 1
            return list(range(first, last + 1))
        return list(range(len(names)))[selected]
    items = [selected] if isinstance(selected, (str, int, np.integer)) else list(selected)
    if items and all(isinstance(s, (bool, np.bool_)) for s in items):
        return [i for i, s in enumerate(items) if s]
    return [names.index(s) if isinstance(s, str) else int(s) for s in items]


def _select(source: Source, picked: Sequence[Column], transformer: Any, positions: Sequence[int]) -> Source:
    """Return the part of a source that one branch of a ColumnTransformer sees."""
    del transformer

    def evaluate(U: FloatArray) -> Any:
        Z = source.evaluate(U)
        return Z.iloc[:, list(positions)] if hasattr(Z, "iloc") else Z[:, list(positions)]

    return replace(source, columns=tuple(picked), evaluate=evaluate)


@transforms("sklearn", "StandardScaler")
def standard(scaler: Any, source: Source) -> Sequence[Column]:
    """``(x - mean) / scale``."""
    n = len(source.columns)
    mean = np.zeros(n) if scaler.mean_ is None or not scaler.with_mean else scaler.mean_
    scale = np.ones(n) if scaler.scale_ is None else scaler.scale_
    return _affine(source, 1.0 / scale, -mean / scale)


@transforms("sklearn", "MinMaxScaler")
def min_max(scaler: Any, source: Source) -> Sequence[Column]:
    """``x * scale + min``; with ``clip`` it is monotone only."""
    columns = _affine(source, scaler.scale_, scaler.min_)
    if scaler.clip:
        return [replace(c, weights=None, why="clipped by MinMaxScaler(clip=True)") for c in columns]
    return columns


@transforms("sklearn", "MaxAbsScaler")
def max_abs(scaler: Any, source: Source) -> Sequence[Column]:
    """``x / scale``."""
    return _affine(source, 1.0 / scaler.scale_, np.zeros(len(source.columns)))


@transforms("sklearn", "RobustScaler")
def robust(scaler: Any, source: Source) -> Sequence[Column]:
    """``(x - center) / scale``."""
    n = len(source.columns)
    center = np.zeros(n) if scaler.center_ is None else scaler.center_
    scale = np.ones(n) if scaler.scale_ is None else scaler.scale_
    return _affine(source, 1.0 / scale, -center / scale)


def _affine(source: Source, factor: npt.ArrayLike, shift: npt.ArrayLike) -> list[Column]:
    factors, shifts = np.asarray(factor, dtype=np.float64), np.asarray(shift, dtype=np.float64)
    return [c.scaled(float(a), float(b)) for c, a, b in zip(source.columns, factors, shifts, strict=True)]


@transforms("sklearn", "OneHotEncoder", "OrdinalEncoder", "TargetEncoder")
def encoder(transformer: Any, source: Source) -> Sequence[Column]:
    """A table from level to value for each output column, measured through the fitted encoder itself."""
    for column in source.columns:
        for j in column.features:
            if isinstance(source.schema.features[j], Numeric):
                name = source.schema.names[j]
                raise UnsupportedModel(
                    f"{source.where}{type(transformer).__name__} encodes the numeric column {name!r} level by level, "
                    f"so its values are categories. Say so: Schema.infer(X, categorical=[{name!r}])."
                )
    return _measured(transformer, source)


def _measured(transformer: Any, source: Source) -> list[Column]:
    """Return output columns of a column-wise encoder of categorical inputs as tables over the levels."""

    def out(U: FloatArray) -> FloatArray:
        Z = transformer.transform(source.evaluate(U))
        Z = Z.toarray() if hasattr(Z, "toarray") else Z
        return np.asarray(Z, dtype=np.float64)

    def asked(U: FloatArray, features: Sequence[int]) -> FloatArray:
        try:
            return out(U)
        except ValueError as error:
            raise _refused_level(transformer, source, features, error) from error

    features = sorted(set().union(*(c.features for c in source.columns)))
    base = asked(source.base[None, :], features)[0]
    names = _names_out(transformer, len(base))
    owner: list[set[int]] = [set() for _ in base]
    weights = np.zeros((len(base), source.schema.width))
    for group in source.level_groups(features):
        try:
            tables = source.each(group, out(source.vary_levels(*group)))
        except ValueError:  # one by one, to name the feature whose level is refused
            tables = {j: asked(source.vary_levels(j), [j]) for j in group}
        for j, table in tables.items():
            same = (table == table[0]) | (np.isnan(table) & np.isnan(table[0]))
            for k in np.flatnonzero(~same.all(axis=0)):
                owner[k].add(j)
                weights[k, source.schema.slice(j)] = table[:, k]
    return [
        Column(names[k], frozenset(owner[k]), weights[k], 0.0 if owner[k] else float(base[k])) for k in range(len(base))
    ]


def _refused_level(transformer: Any, source: Source, features: Sequence[int], error: ValueError) -> UnsupportedModel:
    """Return the refusal of an encoder that was fitted on rows without a level of one of these features."""
    names = " or ".join(repr(source.schema.names[j]) for j in features)
    example = source.schema.names[features[0]]
    return UnsupportedModel(
        f"{source.where}{type(transformer).__name__} refuses a level of {names} that the schema knows ({error}). "
        f"Drop levels that never occur, X[{example!r}] = X[{example!r}].cat.remove_unused_categories(), or fit it "
        "with handle_unknown='ignore'."
    )


def _names_out(transformer: Any, n: int) -> list[str]:
    try:
        return [str(name) for name in transformer.get_feature_names_out()]
    except (AttributeError, ValueError):
        return [f"column {k}" for k in range(n)]


@transforms("sklearn", "SimpleImputer")
def imputer(transformer: Any, source: Source) -> Sequence[Column]:
    """Without missing values: the columns it keeps, unchanged, and indicators that stay 0."""
    marker = transformer.missing_values
    if not pd.isna(marker):
        raise UnsupportedModel(
            f"{source.where}SimpleImputer(missing_values={marker!r}) replaces an ordinary value, which is a jump. Turn "
            "that value into NaN in the data, and let the imputer look for NaN."
        )
    invalid = np.array([s is None or (isinstance(s, float) and np.isnan(s)) for s in transformer.statistics_])
    kept = [c for c, empty in zip(source.columns, invalid, strict=True) if not empty or transformer.keep_empty_features]
    indicator = transformer.indicator_
    flags = 0 if indicator is None else len(indicator.features_)
    zero = [Column(f"missing indicator {k}", frozenset(), np.zeros(source.schema.width)) for k in range(flags)]
    return [*kept, *zero]


@transforms("sklearn", "PCA", "IncrementalPCA", "TruncatedSVD", "FactorAnalysis")
def projection(transformer: Any, source: Source) -> Sequence[Column]:
    """``(x - mean) @ components'``, divided by the deviations when it whitens."""
    A, b = source.affine(type(transformer).__name__)
    if type(transformer).__name__ == "FactorAnalysis":
        raise UnsupportedModel(f"{source.where}FactorAnalysis is not read. The nearest linear map that is: PCA.")
    components = np.asarray(transformer.components_)
    mean = getattr(transformer, "mean_", None)
    shifted = b if mean is None else b - mean
    if getattr(transformer, "whiten", False):
        components = components / np.sqrt(transformer.explained_variance_)[:, None]
    return _combined(components, A, shifted, source, type(transformer).__name__)


@transforms("sklearn", "LinearDiscriminantAnalysis")
def discriminant(transformer: Any, source: Source) -> Sequence[Column]:
    """``(x - xbar) @ scalings`` with the first components kept."""
    A, b = source.affine("LinearDiscriminantAnalysis")
    if transformer.solver == "svd":
        b = b - transformer.xbar_
    components = transformer.scalings_[:, : transformer._max_components].T
    return _combined(components, A, b, source, "LinearDiscriminantAnalysis")


def _combined(components: FloatArray, A: FloatArray, b: FloatArray, source: Source, who: str) -> list[Column]:
    out = []
    for k, row in enumerate(np.asarray(components, dtype=np.float64)):
        parts: Iterable[frozenset[int]] = (c.features for c, r in zip(source.columns, row, strict=True) if r != 0)
        features = frozenset().union(*parts)
        out.append(Column(f"{who.lower()}{k}", features, row @ A, float(row @ b), why=f"mixed by {who}"))
    return out


@transforms(
    "sklearn",
    *("VarianceThreshold", "SelectKBest", "SelectPercentile", "SelectFpr", "SelectFdr", "SelectFwe"),
    *("SelectFromModel", "RFE", "RFECV", "SequentialFeatureSelector", "GenericUnivariateSelect"),
)
def selection(transformer: Any, source: Source) -> Sequence[Column]:
    """The columns it keeps."""
    return [c for c, kept in zip(source.columns, transformer.get_support(), strict=True) if kept]


@transforms("sklearn", "PowerTransformer", "QuantileTransformer")
def monotone(transformer: Any, source: Source) -> Sequence[Column]:
    """Bent but monotone: trees pull their thresholds back through it."""
    return [_bent(c, type(transformer).__name__) for c in source.columns]


def _bent(column: Column, who: str) -> Column:
    return replace(column, weights=None, why=f"bent by {who}", identity=False)


_INCREASING = frozenset({"log", "log1p", "log2", "log10", "sqrt", "cbrt", "exp", "expm1", "arcsinh", "tanh"})


@transforms("sklearn", "FunctionTransformer")
def function(transformer: Any, source: Source) -> Sequence[Column]:
    """The identity, or a NumPy function known to be monotone."""
    if transformer.func is None:
        return source.columns
    name = getattr(transformer.func, "__name__", "")
    if name not in _INCREASING or transformer.kw_args:
        raise UnsupportedModel(
            f"{source.where}FunctionTransformer with {name or 'a function'!r}: only the identity and NumPy's "
            f"{', '.join(sorted(_INCREASING))} are known to be monotone. Use one of those; or, if each column is a "
            "function of one column, say so: function.column_wise = True, 'monotone' or 'affine'; or move the step out of "
            "the Pipeline into the data."
        )
    return [_bent(c, f"FunctionTransformer({name})") for c in source.columns]
