"""Reader of scikit-learn's KBinsDiscretizer: steps for linear models, monotone columns for trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.errors import UnsupportedModel
from ifonly.models.reading.pullback import pull_back
from ifonly.models.reading.source import Column, Source
from ifonly.models.reading.transforms import transforms

__all__: list[str] = []


@transforms("sklearn", "KBinsDiscretizer")
def bins(transformer: Any, source: Source) -> Sequence[Column]:
    """Per input column its bin number, or one 0/1 column per bin; edges are pulled back to raw units.

    ``bin(x) = number of edges <= x``, so ``[bin = k] = [x < e_{k+1}] - [x < e_k]`` and the bin number is the number of
    edges minus the number of those above ``x``.
    """
    out: list[Column] = []
    for i, (column, edges) in enumerate(zip(source.columns, transformer.bin_edges_, strict=True)):
        codes = replace(source, columns=(_code(column),), evaluate=_codes(source, i, edges[1:-1]))
        indicators = _indicators(codes, len(edges) - 1)
        if transformer.encode == "ordinal":
            out.append(_number(column, indicators, source.schema.width))
        else:
            out += indicators
    return out


def _code(column: Column) -> Column:
    return replace(column, weights=None, identity=False, steps={})


def _codes(source: Source, i: int, inner: FloatArray) -> Any:
    """Return the bin number of one input column, compared as `KBinsDiscretizer.transform` compares."""

    def evaluate(U: FloatArray) -> FloatArray:
        return np.searchsorted(inner, source.values(U, i), side="right").astype(np.float64)[:, None]

    return evaluate


def _indicators(codes: Source, n: int) -> list[Column]:
    """Return the 0/1 column of each bin."""
    (column,), width = codes.columns, codes.schema.width
    if len(column.features) > 1 or not column.monotone:
        names = ", ".join(repr(codes.schema.names[j]) for j in sorted(column.features))
        raise UnsupportedModel(
            f"{codes.where}KBinsDiscretizer bins column {column.name!r}, which mixes {names} ({column.why}). Bin "
            "single columns, before they are mixed."
        )
    zero = np.zeros(width)
    if not column.features or not isinstance(codes.schema.features[min(column.features)], Numeric):
        return [_table(codes, column, k) for k in range(n)]
    (j,) = column.features
    below = pull_back(codes, 0, np.arange(n - 1, dtype=np.float64) + 0.5, np.less_equal)
    out = []
    for k in range(n):
        constant, steps = 0.0, dict[tuple[int, float], float]()
        for edge, sign in ((k, 1.0), (k - 1, -1.0)):
            if not 0 <= edge < n - 1:
                constant += sign * float(edge >= 0)
            elif below[edge].constant is not None:
                constant += sign * float(bool(below[edge].constant))
            else:
                turn = -sign if below[edge].swap else sign
                constant += sign if below[edge].swap else 0.0
                steps[j, below[edge].cut] = steps.get((j, below[edge].cut), 0.0) + turn
        ends = k in (0, n - 1)
        name, why = f"{column.name} bin {k}", "stepped by KBinsDiscretizer"
        out.append(Column(name, frozenset({j}), zero, constant, why, monotone=ends, steps=steps))
    return out


def _table(codes: Source, column: Column, k: int) -> Column:
    """Return the indicator of a bin of a categorical column: a table over its levels."""
    weights = np.zeros(codes.schema.width)
    if not column.features:
        at = float(codes.evaluate(codes.base[None, :])[0, 0])
        return Column(f"{column.name} bin {k}", frozenset(), weights, float(at == k))
    (j,) = column.features
    weights[codes.schema.slice(j)] = codes.evaluate(codes.vary_levels(j))[:, 0] == k
    return Column(f"{column.name} bin {k}", column.features, weights)


def _number(column: Column, indicators: Sequence[Column], width: int) -> Column:
    """Return the bin number as a sum of indicators, over a canonical vector of so many entries."""
    steps: dict[tuple[int, float], float] = {}
    if not indicators:  # bins narrower than 1e-8 are merged, until none is left: transform gives 0
        return Column(f"bin of {column.name}", frozenset(), np.zeros(width), 0.0)
    weights, constant = np.zeros_like(indicators[0].weights), 0.0
    for k, bin_k in enumerate(indicators):
        assert bin_k.weights is not None
        weights = weights + k * bin_k.weights
        constant += k * bin_k.constant
        for key, w in bin_k.steps.items():
            steps[key] = steps.get(key, 0.0) + k * w
    why = "stepped by KBinsDiscretizer"
    return Column(f"bin of {column.name}", column.features, weights, constant, why, steps=steps)
