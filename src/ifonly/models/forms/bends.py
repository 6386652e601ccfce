"""Univariate curves in a program: chains of polygons that hold the graph and touch it at every breakpoint.

A smooth function has no exact mixed-integer linear form. Between two breakpoints, where its curvature keeps one sign,
its graph lies in the polygon of its chord and its tangents. With ``p_i = (t_i, f(t_i))``, further vertices ``v_ik`` and

    (s, y) = p_0 + sum_i [e_i (p_{i+1} - p_i) + sum_k g_ik (v_ik - p_i)],
    e_i + sum_k g_ik <= b_{i-1},    b_i <= e_i,    b_i in {0, 1},    b_{-1} = 1,

``b_i`` says that the chain has been walked past breakpoint ``i + 1``. This is the incremental model (Markowitz and
Manne 1957) carried over from segments to polygons; its linear relaxation is the convex hull of the chain (Vielma 2015).
It may admit a ``y`` off the curve, never exclude one on it, and is exact at the breakpoints, so breakpoints added where
a solution was refused lead to the optimum. Piecewise-linear functions are held exactly, at their own knots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.program.mip import Affine, Mip
from ifonly.runtime.tuning import DEFAULT
from ifonly.tolerances import CHAINED_ROUNDING, ON_BREAKPOINT, TINY

__all__ = [
    "EXP",
    "EXPM1",
    "LOG_SIGMOID",
    "SIGMOID",
    "SOFTPLUS",
    "SQUARE",
    "Bend",
    "Broken",
    "Smooth",
    "chain",
    "sigmoid",
    "tangent_corners",
]


class Bend(Protocol):
    """A function of one number that a chain of polygons can hold."""

    def __call__(self, s: FloatArray) -> FloatArray:
        """Return the function's values."""
        ...

    def span(self, low: float, high: float) -> tuple[float, float]:
        """Return its least and greatest value on an interval."""
        ...

    def breakpoints(self, low: float, high: float, pieces: int) -> FloatArray:
        """Return about `pieces + 1` points from `low` to `high` between which the polygons are thin."""
        ...

    def corners(self, a: float, b: float) -> FloatArray:
        """Return what the polygon of the graph between two breakpoints has beside its ends, shape (n, 2)."""
        ...

    def around(self, s: float, known: FloatArray, pieces: int) -> FloatArray:
        """Return breakpoints that make the chain exact at `s`; none when it already is."""
        ...


@dataclass(frozen=True, eq=False)
class Smooth:
    """A differentiable function whose curvature changes sign at the `inflections` only.

    Attributes
    ----------
    function, derivative
        The function and its slope.
    inflections
        Where it turns from convex to concave or back.
    turns
        Where its slope changes sign; none for a monotone function.
    scale
        The length over which its slope changes noticeably.
    closely
        Share of that within which it is held closely around a refused point.
    bending
        Parts of which its bending is added up.
    undo
        The inverse of a function that rises, not a number where it has none.
    """

    function: Callable[[FloatArray], FloatArray]
    derivative: Callable[[FloatArray], FloatArray]
    inflections: tuple[float, ...] = ()
    turns: tuple[float, ...] = ()
    scale: float = 1.0
    closely: float = DEFAULT.forms.closely
    bending: int = DEFAULT.forms.bending
    undo: Callable[[FloatArray], FloatArray] | None = None

    def __call__(self, s: FloatArray) -> FloatArray:
        """Return the function's values."""
        return np.asarray(self.function(s))

    def span(self, low: float, high: float) -> tuple[float, float]:
        """Return its least and greatest value on an interval: at an end or at a turn."""
        at = np.array([low, high, *(t for t in self.turns if low < t < high)])
        values = self(at)
        return float(values.min()), float(values.max())

    def breakpoints(self, low: float, high: float, pieces: int) -> FloatArray:
        """Spread breakpoints evenly over ``integral sqrt |f''|``, which makes the largest error least.

        On a piece of length ``h`` chord and curve differ by at most ``h^2 |f''| / 8`` (de Boor 1978, chapter III).
        """
        parts = max(self.bending, 1)
        grid, step = np.linspace(low, high, parts + 1), (high - low) / parts
        bending = np.concatenate([[0.0], np.cumsum(np.sqrt(np.abs(np.diff(self.derivative(grid))) * step))])
        total = float(bending[-1])
        least, most = self.span(low, high)
        # the 8 is that of the error above
        needed = total / np.sqrt(8.0 * CHAINED_ROUNDING * max(most - least, TINY))
        n = int(max(1, min(pieces, np.ceil(needed))))
        even = np.interp(np.linspace(0.0, total, n + 1)[1:-1], bending, grid)
        return np.unique([low, high, *even, *(t for t in self.inflections if low < t < high)])

    def corners(self, a: float, b: float) -> FloatArray:
        """Return where the tangents at both ends and in the middle cross, in order."""
        at = np.array([a, 0.5 * (a + b), b])
        return tangent_corners(at, self(at), np.asarray(self.derivative(at)))

    def around(self, s: float, known: FloatArray, pieces: int) -> FloatArray:  # noqa: ARG002 - the protocol
        """Return `s` and a point on either side, since the next answer is most often near."""
        if known.size and float(np.abs(known - s).min()) <= ON_BREAKPOINT * self.scale:
            return np.empty(0)
        return s + self.scale * self.closely * np.array([-1.0, 0.0, 1.0])


def tangent_corners(at: FloatArray, value: FloatArray, slope: FloatArray) -> FloatArray:
    """Return where the tangents at neighbouring points of a graph cross, in order."""
    kept = []
    for i, k in pairwise(range(len(at))):
        turn, width = slope[k] - slope[i], at[k] - at[i]
        if abs(turn) * width <= CHAINED_ROUNDING * max(abs(value[-1] - value[0]), TINY):
            continue
        away = np.clip((slope[k] * width - (value[k] - value[i])) / turn, 0.0, width)
        kept.append((at[i] + away, value[i] + slope[i] * away))
    return np.array(kept).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Broken:
    """A continuous function that is linear between the knots ``(xs, ys)`` and constant outside them."""

    xs: FloatArray
    ys: FloatArray

    def __call__(self, s: FloatArray) -> FloatArray:
        """Interpolate, as `numpy.interp` and scikit-learn's isotonic regression do."""
        return np.asarray(np.interp(s, self.xs, self.ys))

    def span(self, low: float, high: float) -> tuple[float, float]:
        """Return its least and greatest value on an interval: at an end or at a knot."""
        values = self(np.array([low, high, *self._inside(low, high)]))
        return float(values.min()), float(values.max())

    def _inside(self, low: float, high: float) -> FloatArray:
        return self.xs[(self.xs > low) & (self.xs < high)]

    def breakpoints(self, low: float, high: float, pieces: int) -> FloatArray:
        """Return the knots; of too many, those that split the thickest polygon first."""
        knots = np.array([low, *self._inside(low, high), high])
        values = self(knots)
        chosen = [0, len(knots) - 1]
        while len(chosen) < min(pieces + 1, len(knots)):
            worst = max(((*_farthest(knots, values, i, k), i, k) for i, k in pairwise(chosen)), key=lambda w: w[0])
            if worst[0] <= 0.0:
                break
            chosen = sorted([*chosen, worst[1]])
        return knots[chosen]

    def corners(self, a: float, b: float) -> FloatArray:
        """Return the knots between, of which the hull is made."""
        inside = self._inside(a, b)
        return np.column_stack([inside, self(inside)])

    def around(self, s: float, known: FloatArray, pieces: int) -> FloatArray:
        """Return the knots on both sides of `s`: between them the chain is exact."""
        if len(self.xs) < pieces:
            return np.empty(0)
        k = int(np.searchsorted(self.xs, s))
        near = self.xs[max(k - 2, 0) : k + 2]
        return near if not np.isin(near, known).all() else np.empty(0)


def _farthest(x: FloatArray, y: FloatArray, i: int, k: int) -> tuple[float, int]:
    """Return how far, and where, the knots strictly between two are from their chord."""
    if k - i < 2:
        return 0.0, i
    off = np.abs(y[i + 1 : k] - (y[i] + (y[k] - y[i]) * (x[i + 1 : k] - x[i]) / (x[k] - x[i])))
    at = int(np.argmax(off))
    return float(off[at]), i + 1 + at


def sigmoid(s: FloatArray) -> FloatArray:
    """Return ``1 / (1 + exp(-s))``, as scikit-learn computes it."""
    from scipy.special import expit  # noqa: PLC0415 - slow to import

    return np.asarray(expit(s))


def _sigmoid_slope(s: FloatArray) -> FloatArray:
    return np.asarray(sigmoid(s) * sigmoid(-s))


def _softplus(s: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp(0.0, s))


def _double(s: FloatArray) -> FloatArray:
    return np.asarray(2.0 * s)


def _log_sigmoid(s: FloatArray) -> FloatArray:
    return np.asarray(-np.logaddexp(0.0, -s))


def _log_sigmoid_slope(s: FloatArray) -> FloatArray:
    return np.asarray(sigmoid(-s))


def _logit(p: FloatArray) -> FloatArray:
    return np.asarray(np.log(p) - np.log1p(-p))


def _inverse_log_sigmoid(y: FloatArray) -> FloatArray:
    return np.asarray(-np.log(np.expm1(-y)))


def _inverse_softplus(y: FloatArray) -> FloatArray:
    return np.asarray(y + np.log(-np.expm1(-y)))


SIGMOID = Smooth(sigmoid, _sigmoid_slope, inflections=(0.0,), undo=_logit)
LOG_SIGMOID = Smooth(_log_sigmoid, _log_sigmoid_slope, undo=_inverse_log_sigmoid)
SOFTPLUS = Smooth(_softplus, sigmoid, undo=_inverse_softplus)
EXP = Smooth(np.exp, np.exp, undo=np.log)
EXPM1 = Smooth(np.expm1, np.exp, undo=np.log1p)
SQUARE = Smooth(np.square, _double, turns=(0.0,))


def chain(mip: Mip, inner: Affine, bend: Bend, at: FloatArray, name: str = "curve") -> Affine:
    """Add the chain of polygons over the breakpoints `at`, which span all values of `inner`; return ``y``."""
    value = bend(at)
    n = len(at) - 1
    corners = [bend.corners(float(a), float(b)) for a, b in pairwise(at)]
    piece = np.repeat(np.arange(n, dtype=np.int64), [len(c) for c in corners])
    vertices = np.concatenate(corners) if len(piece) else np.empty((0, 2))
    end = mip.columns(n, 0.0, 1.0, name=f"{name}_walked")
    side = mip.columns(len(piece), 0.0, 1.0, name=f"{name}_beside")
    past = mip.columns(n - 1, 0.0, 1.0, integer=True, name=f"{name}_past")
    columns = np.concatenate([end, side])
    along = Affine(columns, np.concatenate([np.diff(at), vertices[:, 0] - at[piece]]), float(at[0]))
    # x = a_0 + sum_i (a_{i+1} - a_i) e_i + sum_ik (p_ik - a_i) g_ik
    mip.row(inner - along, 0.0, 0.0)
    _order(mip, end, side, past, piece)
    return Affine(columns, np.concatenate([np.diff(value), vertices[:, 1] - value[piece]]), float(value[0]))


def _order(mip: Mip, end: IntArray, side: IntArray, past: IntArray, piece: IntArray) -> None:
    """Add ``e_i + sum_k g_ik <= b_{i-1}`` and ``b_i <= e_i``."""
    n = len(end)
    each = np.arange(n, dtype=np.int64)
    row = np.concatenate([each, piece, each[1:]])
    column = np.concatenate([end, side, past])
    weight = np.concatenate([np.ones(n + len(piece)), -np.ones(n - 1)])
    # e_i + sum_k g_ik <= b_{i-1}: a piece is entered only when the one before it is walked (b_{-1} = 1)
    mip.rows(row, column, weight, -np.inf, np.where(each == 0, 1.0, 0.0), n)
    if n > 1:
        pairs = np.concatenate([each[:-1], each[:-1]])
        both = np.concatenate([past, end[:-1]])
        # b_i <= e_i: past a piece only at its end
        mip.rows(pairs, both, np.concatenate([np.ones(n - 1), -np.ones(n - 1)]), -np.inf, 0.0, n - 1)
