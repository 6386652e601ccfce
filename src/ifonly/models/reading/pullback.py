"""Thresholds on what an estimator receives, pulled back to raw units by bisection, exact to the last float."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.errors import UnsupportedModel
from ifonly.models.reading.source import Column, Source
from ifonly.runtime.warning_filters import silenced
from ifonly.tolerances import FLOAT32_ROOM, FLOAT64_ROOM, ROUNDING, SMALLEST_THRESHOLD

__all__ = ["Below", "Split", "pull_back"]

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Below = Callable[[FloatArray, FloatArray], BoolArray]
Holds = Callable[[FloatArray, IntArray], BoolArray]  # at some values, each for the threshold of a given number


@dataclass(frozen=True, eq=False)
class Split:
    """A tree split in raw units: ``x_j <= cut`` for a numeric feature, ``level in left`` for a categorical one.

    `constant` is set when the split does not depend on the input at all. `swap` says that the left child is taken
    when the raw predicate is *false* (a decreasing transform). `missing` says whether the comparison holds for what
    the estimator receives when the feature is missing, None when it then receives a missing value too. `absent_levels`
    are the levels for which the estimator receives a missing value. `further` are cuts beyond which the split turns,
    and turns again: it holds on every other interval, as behind a step function that goes up and down.
    """

    feature: int
    cut: float = np.nan
    left_levels: BoolArray | None = None
    swap: bool = False
    constant: bool | None = None
    missing: bool | None = None
    absent_levels: BoolArray | None = None
    further: tuple[float, ...] = ()


def pull_back(source: Source, column: int, thresholds: FloatArray, below: Below) -> list[Split]:
    """Return the raw split of each ``below(z_column, threshold)``.

    Parameters
    ----------
    source
        What the estimator receives.
    column
        Which column of the source is compared.
    thresholds
        The framework's thresholds on that column.
    below
        The framework's own comparison, e.g. ``float32(z) <= threshold``; must hold below some z and fail above.
    """
    c = source.columns[column]
    if not len(thresholds):
        return []  # no transformer takes an empty table
    if not c.features:
        return _fixed(source, column, thresholds, below)
    cells = None if c.monotone else source.cells(column)
    if cells is not None:
        return _stepped(source, column, *cells, thresholds, below)
    if c.turns and len(c.features) == 1:
        return _turning(source, column, min(c.features), thresholds, below)
    if len(c.features) > 1 or not c.monotone:
        names = ", ".join(repr(source.schema.names[k]) for k in sorted(c.features))
        raise UnsupportedModel(
            f"{source.where}a tree splits on column {c.name!r}, which mixes or bends {names} "
            f"({c.why or 'a linear map'}). Trees can be read behind any monotone transform of single columns."
        )
    (j,) = c.features
    if not isinstance(source.schema.features[j], Numeric):
        z = source.at_levels(j, column)
        missing = _when_missing(source, j, column, thresholds, below)
        sides = [below(z, np.full(len(z), t)) for t in thresholds]
        return [
            Split(j, left_levels=left, missing=m, absent_levels=np.isnan(z))
            for left, m in zip(sides, missing, strict=True)
        ]
    return _numeric(source, j, column, thresholds, below)


def _stepped(
    source: Source, column: int, j: int, cuts: FloatArray, values: FloatArray, thresholds: FloatArray, below: Below
) -> list[Split]:
    """Return the splits on a column that is constant on cells: where the comparison turns from cell to cell."""
    missing = _when_missing(source, j, column, thresholds, below)
    out = []
    for t, m in zip(thresholds, missing, strict=True):
        holds = below(values, np.full(len(values), t))
        turns = cuts[holds[1:] != holds[:-1]]
        if not turns.size:
            out.append(Split(j, constant=bool(holds[0]), missing=m))
            continue
        further = tuple(float(c) for c in turns[1:])
        out.append(Split(j, cut=float(turns[0]), swap=not holds[0], missing=m, further=further))
    return out


def _turning(source: Source, column: int, j: int, thresholds: FloatArray, below: Below) -> list[Split]:
    """Return the splits on a column that rises and falls between its turns: every piece is bisected, all at once."""
    c, feature = source.columns[column], source.schema.features[j]
    assert isinstance(feature, Numeric)

    def z(x: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"), silenced():
            return source.values(source.vary(j, x), column)

    first, last = _reach(source, c, j, z)
    inner = [t for t in c.turns if first < t < last]
    begin = np.array([first, *(_next(feature, t) for t in inner)])
    end = np.maximum(np.array([*inner, last]), begin)
    # One row per piece, one column per threshold.
    at_begin, at_end = (np.array([below(np.full(len(thresholds), v), thresholds) for v in z(x)]) for x in (begin, end))
    piece, which = np.nonzero(at_begin != at_end)
    limit = thresholds[which]
    swap = ~at_begin[piece, which]
    cut = _bisect(source, j, lambda x, k: below(z(x), limit[k]), swap, begin[piece], end[piece])
    near = (
        _near(lambda x, t: below(z(x), t), cut, limit, swap, source.tuning.neighbours) if feature.step is None else {}
    )
    turns: list[list[float]] = [[] for _ in thresholds]
    for i in range(len(begin)):
        if i > 0:
            for k in np.flatnonzero(at_end[i - 1] != at_begin[i]):
                turns[k].append(float(end[i - 1]))
        for place in np.flatnonzero(piece == i):
            turns[which[place]] += near.get(int(place), [float(cut[place])])
    missing = _when_missing(source, j, column, thresholds, below)
    return [
        Split(j, cut=own[0], swap=not at_begin[0, k], missing=missing[k], further=tuple(own[1:]))
        if own
        else Split(j, constant=bool(at_begin[0, k]), missing=missing[k])
        for k, own in enumerate(turns)
    ]


def _near(holds: Below, cut: FloatArray, limit: FloatArray, swap: BoolArray, reach: int) -> dict[int, list[float]]:
    """Return all turns among the floats next to each cut: rounding may turn a comparison back once or twice there."""
    if not cut.size:
        return {}
    places = _ordered(cut)[:, None] + np.arange(-reach, reach + 1)
    flat = np.ascontiguousarray(places.reshape(-1))
    table = holds(_unordered(flat), np.repeat(limit, places.shape[1])).reshape(places.shape) != swap[:, None]
    out = {}
    for k in np.flatnonzero(table[:, 0] & ~table[:, -1]):
        at = np.flatnonzero(table[k, 1:] != table[k, :-1])
        out[int(k)] = [float(x) for x in _unordered(places[k, at])]
    return out


def _next(feature: Numeric, x: float) -> float:
    """Return the admissible value after `x`."""
    return float(np.nextafter(x, np.inf)) if feature.step is None else feature.snap(x + feature.step)


def _when_missing(source: Source, j: int, column: int, thresholds: FloatArray, below: Below) -> list[bool | None]:
    """Say whether each comparison holds when feature `j` is missing, None when the framework sends NaN its own way."""
    z = source.when_missing(j, column)
    if np.isnan(z):
        return [None] * len(thresholds)
    return [bool(h) for h in below(np.full(len(thresholds), z), thresholds)]


def _fixed(source: Source, column: int, thresholds: FloatArray, below: Below) -> list[Split]:
    """Return the splits on a column that depends on no value, at most on whether one feature is missing."""
    z = source.values(source.base[None, :], column)
    holds = below(np.repeat(z, len(thresholds)), thresholds)
    owners = source.flagged(column)
    if len(owners) != 1:
        return [Split(feature=0, constant=bool(h), missing=bool(h)) for h in holds]
    (j,) = owners
    missing = _when_missing(source, j, column, thresholds, below)
    if isinstance(source.schema.features[j], Numeric):
        return [Split(j, constant=bool(h), missing=m) for h, m in zip(holds, missing, strict=True)]
    levels = source.schema.features[j].width
    return [Split(j, left_levels=np.full(levels, h), missing=m) for h, m in zip(holds, missing, strict=True)]


def _numeric(source: Source, j: int, column: int, thresholds: FloatArray, below: Below) -> list[Split]:
    c = source.columns[column]

    def z(x: FloatArray) -> FloatArray:
        if c.identity:
            return _as_stored(source, j, x)
        with np.errstate(all="ignore"), silenced():
            return source.values(source.vary(j, x), column)

    def holds(x: FloatArray, k: IntArray) -> BoolArray:
        with np.errstate(over="ignore"):
            return below(z(x), thresholds[k])

    first, last = _reach(source, c, j, z)
    low, high = np.full(len(thresholds), first), np.full(len(thresholds), last)
    at_low, at_high = _both(holds, low, high)
    swap = ~at_low & at_high
    high = np.where(at_low == at_high, low, high)
    low, high = _bracket(source, c, j, _last_below(below, thresholds), holds, swap, low, high)
    cut = _bisect(source, j, holds, swap, low, high)
    missing = _when_missing(source, j, column, thresholds, below)
    return [
        Split(feature=j, constant=bool(at_low[k]), missing=missing[k])
        if at_low[k] == at_high[k]
        else Split(feature=j, cut=float(cut[k]), swap=bool(swap[k]), missing=missing[k])
        for k in range(len(thresholds))
    ]


def _both(holds: Holds, low: FloatArray, high: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Return whether each predicate holds at its low and at its high value, by one call."""
    numbers = np.arange(len(low))
    both = holds(np.concatenate([low, high]), np.concatenate([numbers, numbers]))
    return both[: len(low)], both[len(low) :]


def _bisect(source: Source, j: int, holds: Holds, swap: BoolArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the last admissible value at which the predicate (swapped: its negation) still holds.

    A call of a transformer takes milliseconds however few values it is given, so several steps are taken by one: all
    values that the next steps could come to are asked for, and the steps are then taken among them.
    """
    feature = source.schema.features[j]
    assert isinstance(feature, Numeric)
    step = feature.step
    if step is None:
        left, right, back = _ordered(low), _ordered(high), _unordered
    else:
        left, right = (np.floor(low / step).astype(np.int64), np.ceil(high / step).astype(np.int64))

        def back(k: IntArray) -> FloatArray:
            return np.round(k * step, feature.precision or 0)

    while (wide := np.flatnonzero(right > left + 1)).size:
        steps = max(int(np.log2(source.tuning.bisected_rows / wide.size + 1.0)), 1)
        middles = _midpoints(left[wide], right[wide], steps)
        true = holds(back(middles.reshape(-1)), np.repeat(wide, middles.shape[1])).reshape(middles.shape)
        left[wide], right[wide] = _descended(left[wide], right[wide], middles, true != swap[wide, None], steps)
    return back(left)


def _midpoints(left: IntArray, right: IntArray, steps: int) -> IntArray:
    """Return all middles that so many bisections of each interval can come to, as a binary heap per interval.

    The halves of the interval of middle ``i`` have the middles ``2 i + 1`` (the left one) and ``2 i + 2``.
    """
    level, out = [(left, right)], []
    for _ in range(steps):
        below: list[tuple[IntArray, IntArray]] = []
        for a, b in level:
            middle = (a & b) + ((a ^ b) >> 1)
            out.append(middle)
            below += [(a, middle), (middle, b)]
        level = below
    return np.stack(out, axis=1)


def _descended(
    left: IntArray, right: IntArray, middles: IntArray, true: BoolArray, steps: int
) -> tuple[IntArray, IntArray]:
    """Return the intervals after so many bisections, whose middles and their predicates are known."""
    rows, at = np.arange(len(left)), np.zeros(len(left), dtype=np.int64)
    for _ in range(steps):
        middle, holds, wide = middles[rows, at], true[rows, at], right > left + 1
        left, right = np.where(wide & holds, middle, left), np.where(wide & ~holds, middle, right)
        at = 2 * at + 1 + holds
    return left, right


def _bracket(
    source: Source,
    c: Column,
    j: int,
    last: FloatArray,
    holds: Holds,
    swap: BoolArray,
    low: FloatArray,
    high: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return a narrower bracket around the affine guess of each cut, where the predicate confirms it.

    `last` is the last value of the column for which each comparison holds; the guess is off by rounding only.
    """
    slope = 0.0 if c.weights is None else float(c.weights[source.schema.starts[j]])
    if slope == 0.0:
        return low, high
    guess = np.clip((last - c.constant) / slope, low, high)
    size = np.maximum(np.abs(guess), np.abs(last / slope)) + abs(c.constant / slope)
    for room in (FLOAT64_ROOM * size, FLOAT32_ROOM * size + ROUNDING):
        near_low, near_high = np.maximum(guess - room, low), np.minimum(guess + room, high)
        at_low, at_high = _both(holds, near_low, near_high)
        low = np.where(at_low != swap, np.maximum(low, near_low), low)
        high = np.where(at_high == swap, np.minimum(high, near_high), high)
        if bool((high - low <= 2.0 * room).all()):
            break
    return low, high


def _as_stored(source: Source, j: int, x: FloatArray) -> FloatArray:
    """Return values as the user's column dtype stores them."""
    feature = source.schema.features[j]
    assert isinstance(feature, Numeric)
    if feature.precision is not None:
        x = np.round(x, feature.precision)
    if isinstance(feature.dtype, np.dtype) and feature.dtype.kind == "f":
        return x.astype(feature.dtype).astype(np.float64)
    return x


def _reach(source: Source, c: Column, j: int, z: Callable[[FloatArray], FloatArray]) -> tuple[float, float]:
    """Return how far below and above its bounds feature `j` is looked at: as far as its transform is defined."""
    feature = source.schema.features[j]
    assert isinstance(feature, Numeric)
    if c.reach is not None:
        return c.reach
    floating = isinstance(feature.dtype, np.dtype) and feature.dtype.kind == "f"
    if c.identity and floating and feature.step is None:
        last = float(np.finfo(feature.dtype).max) / 4.0  # so that differences are finite too
        return -last, last
    # Without a size of its own, a constant 0, a feature is looked at in units of 1.
    far = source.tuning.far * (max(abs(feature.lower), abs(feature.upper), feature.upper - feature.lower) or 1.0)
    low, high = -far, far
    if isinstance(feature.dtype, np.dtype) and feature.dtype.kind in "iu":
        kept = np.iinfo(feature.dtype)
        low, high = max(low, float(kept.min)), min(high, float(kept.max))
    return _last_defined(z, feature.lower, low), _last_defined(z, feature.upper, high)


def _last_defined(z: Callable[[FloatArray], FloatArray], end: float, far: float) -> float:
    """Return how far from one end of its bounds a transform is defined, up to `far`, by bisection.

    Rows may lie beyond the bounds, and logarithms and powers end between the bounds and `far`.
    """
    if _is_defined(z, far):
        return far
    inside, outside = end, far
    while abs(outside - inside) > FLOAT32_ROOM * abs(far - end):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if _is_defined(z, middle) else (inside, middle)
    return inside


def _is_defined(z: Callable[[FloatArray], FloatArray], value: float) -> bool:
    """Whether a transform has a finite value there; some refuse with an error what others make infinite."""
    try:
        return bool(np.isfinite(4.0 * z(np.array([value])))[0])  # so that differences are finite too
    except ValueError:
        return False


def _last_below(below: Below, thresholds: FloatArray) -> FloatArray:
    """Return the last float for which each comparison holds, by bisection near the threshold itself."""
    finite = np.isfinite(thresholds)  # a tree may split missing values from all others at infinity
    room = np.where(finite, FLOAT32_ROOM * np.abs(thresholds) + SMALLEST_THRESHOLD, 0.0)
    low, high = thresholds - room, thresholds + room
    if not (below(low, thresholds)[finite].all() and not below(high, thresholds)[finite].any()):
        return thresholds
    left, right = _ordered(low), _ordered(high)
    while bool((right > left + 1).any()):
        middle = (left & right) + ((left ^ right) >> 1)
        true_side = below(_unordered(middle), thresholds)
        left, right = np.where(true_side, middle, left), np.where(true_side, right, middle)
    return _unordered(left)


def _ordered(x: FloatArray) -> IntArray:
    """Map floats to integers of the same order, so that bisection reaches neighbouring floats."""
    bits = x.view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _unordered(k: IntArray) -> FloatArray:
    bits = np.where(k >= 0, k, np.int64(-(2**63)) - k)
    return np.ascontiguousarray(bits).view(np.float64)
