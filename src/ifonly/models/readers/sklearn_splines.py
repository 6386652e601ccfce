"""Reader of scikit-learn's SplineTransformer: curves for linear models, thresholds between turns for trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ifonly.data.schema import Numeric
from ifonly.errors import UnsupportedModel
from ifonly.models.forms.polynomials import Polynomials
from ifonly.models.reading.source import Column, Source
from ifonly.models.reading.stepwise import Jumps, as_floats, table_columns
from ifonly.models.reading.transforms import transforms
from ifonly.tolerances import DUST

__all__: list[str] = []

_SAME = DUST


@transforms("sklearn", "SplineTransformer")
def splines(transformer: Any, source: Source) -> Sequence[Column]:
    """Per input column its B-splines: steps where the degree is 0, else piecewise polynomials of an affine column."""
    if transformer.extrapolation == "periodic":
        raise UnsupportedModel(
            f"{source.where}SplineTransformer(extrapolation='periodic') repeats itself for ever. Choose 'constant', "
            "'linear' or 'continue'."
        )
    names = [str(n) for n in transformer.get_feature_names_out([c.name for c in source.columns])]
    if transformer.degree == 0:
        knots = {i: Jumps(at=s.t[1:-1]) for i, s in enumerate(transformer.bsplines_)}
        return table_columns(transformer, source, knots, names=names)
    out: list[Column] = []
    for i, spline in enumerate(transformer.bsplines_):
        n = spline.c.shape[1] - (not transformer.include_bias)
        out += [_basis(transformer, source, i, k, names[len(out) + k]) for k in range(n)]
    _check(transformer, source, out)
    return out


def _check(transformer: Any, source: Source, columns: Sequence[Column]) -> None:
    """Compare the pieces with the transformer itself, within and beyond the bounds of every feature."""
    for j in sorted(set().union(*(c.features for c in columns))):
        feature = source.schema.features[j]
        assert isinstance(feature, Numeric)
        room = 0.0 if transformer.extrapolation == "error" else feature.upper - feature.lower
        x = np.linspace(feature.lower - room, feature.upper + room, source.tuning.spline_probes)
        x = np.unique([feature.snap(float(v)) for v in x])
        U = source.vary(j, x)
        said = as_floats(transformer.transform(source.evaluate(U)), "SplineTransformer")
        for k, c in enumerate(columns):
            if c.curve is None or c.features != {j}:
                continue
            inner, function = c.curve
            assert inner.weights is not None
            off = np.abs(function(U @ inner.weights + inner.constant) - said[:, k])
            if off.max() > _SAME * max(1.0, np.abs(said[:, k]).max()):
                raise UnsupportedModel(
                    f"{source.where}SplineTransformer does not continue {c.name!r} beyond its knots as it says, near "
                    f"{feature.name!r} = {x[int(off.argmax())]:.6g} (scikit-learn, degree=1 with extrapolation='linear' and "
                    "several columns). Use extrapolation='constant', or one SplineTransformer per column."
                )


def _basis(transformer: Any, source: Source, i: int, k: int, name: str) -> Column:
    """Return one basis function of one column."""
    column, spline = source.columns[i], transformer.bsplines_[i]
    why = "a spline of SplineTransformer"
    if not column.features:
        value = float(transformer.transform(source.evaluate(source.base[None, :]))[0, k])
        return Column(name, frozenset(), np.zeros(source.schema.width), value)
    if len(column.features) > 1 or not isinstance(source.schema.features[min(column.features)], Numeric):
        names = ", ".join(repr(source.schema.names[j]) for j in sorted(column.features))
        raise UnsupportedModel(
            f"{source.where}SplineTransformer bends column {column.name!r} of {names}. Use it on single numeric columns, "
            "before they are mixed."
        )
    function = Polynomials.of_spline(spline.t, spline.c[:, k], spline.k, transformer.extrapolation)
    turns = Jumps(after=[float(t) for t in function.turns]).cuts(source, i)
    straight = column.weights is not None and not column.steps
    return Column(
        name,
        column.features,
        None,
        why=why,
        monotone=False,
        curve=(column, function) if straight else None,
        turns=tuple(float(t) for t in turns),
    )
