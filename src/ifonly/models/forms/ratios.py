"""Planes above shares of scores: a softmax, and positive functions divided by their sum.

A row ``f = sum_k c_k g_k / sum_k g_k`` of shares is bounded in two ways. From the corner of the box where it is largest it
falls at least as fast as its derivatives say. And with ``v`` its value at some scores and ``M = sum_k (c_k - v) g_k`` it is
``v + M / sum_k g_k``, a convex function of ``M`` once the sum is replaced by its least or its largest value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.form import Form
from ifonly.models.forms.bends import EXP, Bend
from ifonly.models.forms.envelopes import envelope, reached, secants
from ifonly.models.forms.planes import Need, Rows, kept, size_of
from ifonly.models.forms.propagate import Bounds
from ifonly.runtime.tuning import DEFAULT
from ifonly.tolerances import CHAINED_ROUNDING, ROUNDING, TINY

__all__ = ["SharesStep", "SoftmaxStep"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SoftmaxStep:
    """Shares ``exp(s_k) / sum_m exp(s_m)``, over all differences ``d[k, m] = s_k - s_m``, row by row."""

    under: tuple[Form, ...]
    n: int

    def bounds(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Return ``1 / sum_m exp(d[m, k])`` at the ends of the differences."""
        low, high = (b.reshape(-1, self.n, self.n) for b in (low, high))
        lower, upper = (np.exp(-np.logaddexp.reduce(b, axis=1)) for b in (high, low))
        return lower * (1.0 - CHAINED_ROUNDING), np.minimum(upper * (1.0 + CHAINED_ROUNDING), 1.0)

    def narrowed(self, own: Bounds, given: Bounds, need: Need) -> Bounds:  # noqa: ARG002 - sums say more than single shares
        """Return the leads at which ``sum_k (c_k - v) exp(d[k, a]) >= 0``, as ``sum_k c_k p_k >= v``, for a class ``a`` each.

        What the other classes add at most bounds what one of them may take away; `a` is the class with the largest ``c``.
        """
        n = self.n
        low, high = np.full((2, len(given[0]), n, n), -np.inf)
        high = -high
        each = np.arange(len(low))
        for c, v in zip(need.slopes.transpose(1, 0, 2), need.least.T, strict=True):
            first = c.argmax(axis=1)
            with np.errstate(
                over="ignore", invalid="ignore", divide="ignore"
            ):  # infinite, or no number: nothing is known
                least, most = (np.exp(b.reshape(-1, n, n)[each, :, first]) for b in given)
                weights = c - v[:, None]
                adds = weights * np.where(weights > 0.0, most, least)
                others = _others(adds) + CHAINED_ROUNDING * _others((np.abs(c) + np.abs(v)[:, None]) * most)
                end = np.log(others / -weights)
                end = np.where(weights < 0.0, end + CHAINED_ROUNDING * (1.0 + np.abs(end)), np.inf)
            end[each, first] = np.inf
            high[each, :, first] = np.fmin(high[each, :, first], end)
        low = np.maximum(low, -high.transpose(0, 2, 1))
        return low.reshape(len(low), -1), high.reshape(len(low), -1)

    def rows(self, rows: Rows, low: FloatArray, high: FloatArray, at: FloatArray | None = None) -> Rows:
        """Bound rows by their derivatives: ``d f / d s_j = p_j (c_j - f)`` for ``f = sum_k c_k p_k``.

        Scores count from that of the class with the largest weight. At the corner where ``f`` is largest, classes with a
        larger weight than ``f`` are at their upper ends, all others at their lower ends. A score whose derivative has either
        sign in the box has slope 0: whatever it is, with the others at the corner ``f`` is no larger than there.
        """
        c = rows.slopes
        first = c.argmax(axis=2)
        low, high = (_columns(b.reshape(-1, self.n, self.n), first) for b in (low, high))
        least, most = _share_bounds(low, high)
        corner, value = self._corner(c, low, high)
        up, down = np.maximum(c, 0.0), np.minimum(c, 0.0)
        f_low = np.maximum((up * least + down * most).sum(axis=2), c.min(axis=2))[:, :, None]
        f_high = value[:, :, None]
        room = CHAINED_ROUNDING * np.abs(c).sum(axis=2)
        rise, fall = c - f_high - room[:, :, None], c - f_low + room[:, :, None]  # least and most of c_j - f
        middle = _shares(0.5 * (low + high))
        if at is None:
            slopes = np.where(corner == high, np.maximum(least * rise, 0.0), np.minimum(least * fall, 0.0))
            constant = value - (slopes * corner).sum(axis=2)
        else:
            middle = _columns(at.reshape(-1, self.n, self.n), first)
            steepest = np.maximum(least * fall, most * fall), np.minimum(least * rise, most * rise)
            slopes, above = _chords(low, high, middle, *steepest)
            constant = (c * _shares(middle)).sum(axis=2) + above
            slopes, constant = self._better(c, (low, high, middle), (slopes, constant))
            middle = _shares(middle)
            corner = np.maximum(np.abs(low), np.abs(high))
        constant = constant + room * (1.0 + np.abs(slopes * corner).sum(axis=2))
        lean = middle * (rows.lean - (rows.lean * middle).sum(axis=2)[:, :, None])
        return Rows(self._placed(slopes, first), rows.constant + constant, self._placed(lean, first))

    def _corner(self, c: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the corner of a box at which ``sum_k c_k p_k`` is largest, and its value there."""
        rank = np.argsort(np.argsort(-c, axis=2), axis=2)
        at, value = low, (c * _shares(low)).sum(axis=2)
        for k in range(self.n):
            ends = np.where(rank <= k, high, low)
            said = (c * _shares(ends)).sum(axis=2)
            at = np.where((said > value)[:, :, None], ends, at)
            value = np.maximum(said, value)
        return at, value

    def _better(
        self, c: FloatArray, box: tuple[FloatArray, FloatArray, FloatArray], plane: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return a plane, or that of the ratio of exponentials where it is lower in the middle."""
        low, high, middle = box
        shape = low.shape
        flat = [np.clip(part, -DEFAULT.forms.far, DEFAULT.forms.far).reshape(-1, shape[2]) for part in box]
        lines = [a.reshape(shape) for a in envelope(EXP, *(part.ravel() for part in flat))]
        ends = [np.exp(part).reshape(shape) for part in flat]
        slopes, constant = _over_sum(c, *ends, *lines)
        near = (np.abs(low).max(axis=2) < DEFAULT.forms.far) & (np.abs(high).max(axis=2) < DEFAULT.forms.far)
        lower = near & (constant + (slopes * middle).sum(axis=2) < plane[1] + (plane[0] * middle).sum(axis=2))
        return np.where(lower[:, :, None], slopes, plane[0]), np.where(lower, constant, plane[1])

    def _placed(self, slopes: FloatArray, first: IntArray) -> FloatArray:
        """Return slopes of ``s_j - s_first`` at the places of these differences."""
        out = np.zeros((*slopes.shape[:2], self.n, self.n))
        np.put_along_axis(out, first[:, :, None, None], slopes[:, :, :, None], axis=3)
        return out.reshape(*slopes.shape[:2], -1)


@dataclass(frozen=True, eq=False)
class SharesStep:
    """Shares ``g(s_k) / sum_m g(s_m)`` of a positive and increasing function, over the scores themselves."""

    under: tuple[Form, ...]
    bend: Bend

    def bounds(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Return the shares with one score at an end and the others at the other end."""
        least, most = self._ends(low, high)
        lower, upper = least / (_others(most) + least), most / (_others(least) + most)
        return lower * (1.0 - CHAINED_ROUNDING), np.minimum(upper * (1.0 + CHAINED_ROUNDING), 1.0)

    def _ends(self, low: FloatArray, high: FloatArray) -> Bounds:
        return np.maximum(self.bend(low) * (1.0 - ROUNDING), TINY), self.bend(high) * (1.0 + ROUNDING) + TINY

    def narrowed(self, own: Bounds, given: Bounds, need: Need) -> Bounds:  # noqa: ARG002 - sums say more than single shares
        """Return the scores at which ``sum_k (c_k - v) g_k >= 0``, as the shares add up to ``v`` at least."""
        least, most = self._ends(*given)
        weights = need.slopes - need.least[:, :, None]
        size = (np.abs(need.slopes) + np.abs(need.least)[:, :, None]) @ most[:, :, None]
        rows = Rows(weights, CHAINED_ROUNDING * size[:, :, 0], weights)
        left = kept(rows, least, most, np.arange(least.shape[1]))
        ends = np.maximum(left.low, least), np.minimum(left.high, most)
        low, high = reached(self.bend, ends[0].ravel(), ends[1].ravel())
        return low.reshape(least.shape), high.reshape(least.shape)

    def rows(self, rows: Rows, low: FloatArray, high: FloatArray, at: FloatArray | None = None) -> Rows:
        """Bound ``sum_k c_k g_k / sum_m g_m``: by its derivatives ``(c_j - f) / sum g`` from a corner, or as a ratio."""
        c, (least, most) = rows.slopes, self._ends(low, high)
        shape = low.shape
        size = np.abs(c).sum(axis=2)
        if at is not None:
            lines = [a.reshape(shape)[:, None] for a in envelope(self.bend, low.ravel(), high.ravel(), at.ravel())]
            slopes, constant = _over_sum(c, least[:, None], most[:, None], self.bend(at)[:, None], *lines)
            steep = 0.5 * (lines[0] + lines[2])
        else:
            flat = (a.ravel() for a in (low, high, self.bend(low), self.bend(high)))
            above, below, chord = (a.reshape(shape)[:, None] for a in secants(self.bend, *flat))
            value, up = _largest_ratio(c, least[:, None], most[:, None])
            f_low = np.maximum(
                (c * np.where(c > 0.0, *(b[:, None] for b in self.bounds(low, high)))).sum(axis=2), c.min(axis=2)
            )
            total = most.sum(axis=1)[:, None, None]
            room = CHAINED_ROUNDING * size[:, :, None]
            rise = np.maximum(c - value[:, :, None] - room, 0.0) / total * above
            fall = np.minimum(c - f_low[:, :, None] + room, 0.0) / total * below
            slopes = np.where(up, rise, fall)
            constant = value - (slopes * np.where(up, high[:, None], low[:, None])).sum(axis=2)
            steep = chord
        shares = self.bend(0.5 * (low + high) if at is None else at)[:, None]
        whole = shares.sum(axis=2, keepdims=True)
        lean = (rows.lean - (rows.lean * shares).sum(axis=2, keepdims=True) / whole) / whole * steep
        far = np.abs(slopes) @ size_of(low, high)[:, :, None]
        return Rows(
            slopes, rows.constant + constant + CHAINED_ROUNDING * (size + np.abs(constant) + far[:, :, 0]), lean
        )


# -- parts -----------------------------------------------------------------------------------------------------------
def _columns(differences: FloatArray, first: IntArray) -> FloatArray:
    """Return ``d[:, first]`` per box and row, from differences per box."""
    return np.asarray(differences[np.arange(len(first))[:, None], :, first])


def _chords(
    low: FloatArray, high: FloatArray, at: FloatArray, rise: FloatArray, fall: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return slopes of the chords of ``max(rise (s - at), fall (s - at))``, and what they are at 0, all added up."""
    width = np.maximum(high - low, TINY)
    right, left = np.maximum(high - at, 0.0) / width, np.maximum(at - low, 0.0) / width
    slopes = rise * right + fall * left
    return slopes, np.asarray((np.maximum(rise - fall, 0.0) * right * left * width - slopes * at).sum(axis=2))


def _largest_ratio(c: FloatArray, least: FloatArray, most: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the largest ``sum_k c_k g_k / sum_k g_k`` for positive ``g`` in a box, and which ``g`` are at their upper ends.

    Those are the ones whose weight is larger than the ratio itself.
    """
    rank = np.argsort(np.argsort(-c, axis=2), axis=2)
    value, upper = np.full(c.shape[:2], -np.inf), np.zeros(c.shape, dtype=np.bool_)
    for k in range(c.shape[2]):
        up = rank <= k
        g = np.where(up, most, least)
        ratio = (c * g).sum(axis=2) / g.sum(axis=2)
        upper = np.where((ratio > value)[:, :, None], up, upper)
        value = np.maximum(value, ratio)
    return value, upper


def _over_sum(
    c: FloatArray,
    least: FloatArray,
    most: FloatArray,
    at: FloatArray,
    above: FloatArray,
    over: FloatArray,
    below: FloatArray,
    under: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return a plane above ``f = sum_k c_k g_k / sum_k g_k``, near ``g = at``, for ``g`` between lines of the scores.

    With ``v = f(at)`` and ``M = sum_k (c_k - v) g_k``, ``f = v + M / sum g``; and ``M / sum g`` is at most ``M`` over the
    least sum where ``M > 0``, and over the largest where ``M < 0``: a convex function of ``M``, below its chord.
    """
    v = (c * at).sum(axis=2) / at.sum(axis=2)
    weights = c - v[:, :, None]
    smallest, largest = least.sum(axis=2), most.sum(axis=2)
    low = (weights * np.where(weights > 0.0, least, most)).sum(axis=2)
    high = (weights * np.where(weights > 0.0, most, least)).sum(axis=2)
    width = np.maximum(high - low, TINY)
    mixed = (low < 0.0) & (high > 0.0)
    rate = np.where(
        mixed, (high / smallest - low / largest) / width, np.where(high > 0.0, 1.0 / smallest, 1.0 / largest)
    )
    rest = np.where(mixed, high / smallest - rate * high, 0.0)
    gains = weights > 0.0
    slopes = rate[:, :, None] * weights * np.where(gains, above, below)
    constant = v + rest + rate * (weights * np.where(gains, over, under)).sum(axis=2)
    return slopes, np.asarray(constant)


def _others(values: FloatArray) -> FloatArray:
    """Return the sum of all other values along the last axis, without a difference in which digits would cancel."""
    n = values.shape[-1]
    return np.asarray(values @ (1.0 - np.eye(n)))


def _share_bounds(low: FloatArray, high: FloatArray) -> Bounds:
    """Return bounds of shares of exponentials whose exponents lie anywhere in a box.

    Derivatives are bounded along segments of that box, which other differences of scores might not allow.
    """
    top = high.max(axis=2, keepdims=True)
    least, most = np.exp(low - top), np.exp(high - top)
    lower, upper = least / np.maximum(_others(most) + least, TINY), most / np.maximum(_others(least) + most, TINY)
    return lower * (1.0 - CHAINED_ROUNDING), np.minimum(upper * (1.0 + CHAINED_ROUNDING) + TINY, 1.0)


def _shares(s: FloatArray) -> FloatArray:
    e = np.exp(s - s.max(axis=2, keepdims=True))
    return np.asarray(e / e.sum(axis=2, keepdims=True))
