"""Solution of a relaxation of a covering problem: features as mixtures of their candidates, and what is untrue of them.

A number that mixes two neighbouring candidates lies between them, where rows and costs are linear: it takes that value. One
that mixes values on both sides of a breakpoint, or the factual value with a change, is better as a mixture than any value.
"""

from __future__ import annotations

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.search.distances.candidates import Candidates, Region
from ifonly.search.distances.relaxation import Relaxation
from ifonly.tolerances import ROUNDING

__all__ = ["Solution"]


class Solution:
    """Weights of all candidates, as values of numbers.

    Attributes
    ----------
    x
        Values of the numbers: means of what each mixes.
    mixed, off
        The numbers that mix candidates; those that lie between two points of their grids.
    """

    def __init__(self, found: Candidates, relaxation: Relaxation) -> None:
        self.found, self.terms = found, found.terms
        self.weights, self.y, self.ordinary = relaxation.weights, relaxation.y, relaxation.ordinary
        n = len(self.terms.numbers)
        self.own = self.weights[:n]
        top = self.own.argmax(axis=1)
        heaviest = self.own[np.arange(n), top]
        x = np.where(heaviest >= 1.0 - ROUNDING, found.values[np.arange(n), top], (self.own * found.values).sum(axis=1))
        self.x = np.clip(x, found.region.low, found.region.high)
        self.mixed = np.flatnonzero(heaviest < 1.0 - ROUNDING)
        self.off = self._off_grid()

    def _off_grid(self) -> list[int]:
        """Return the numbers that lie between two points of their grids, or of what their columns can hold."""
        steps = self.x / self.terms.steps
        between = np.abs(steps - np.rint(steps)) > ROUNDING * np.abs(steps)
        some = np.flatnonzero(between | self.terms.coarse)
        return [int(k) for k in some if self._snapped(int(k), up=True) > self._snapped(int(k), up=False)]

    def _feature(self, k: int) -> Numeric:
        feature = self.terms.schema.features[int(self.terms.numbers[k])]
        assert isinstance(feature, Numeric)
        return feature

    def _snapped(self, k: int, *, up: bool) -> float:
        return _on_grid(self._feature(k), float(self.x[k]), up=up)

    # -- the point ----------------------------------------------------------------------------------------------
    def point(self, base: FloatArray) -> FloatArray:
        """Return a point: numbers as their columns can hold them, on the side that adds more to the rows."""
        terms, u, x = self.terms, base.copy(), self.x.copy()
        rises = self.y @ (terms.rate * np.sign(x - terms.at) + terms.slope) > 0.0
        for k in self.off:
            x[k] = self._snapped(k, up=bool(rises[k]))
        u[terms.starts] = np.clip(x, self.found.region.low, self.found.region.high)
        for c, j in enumerate(terms.categories):
            u[terms.schema.slice(int(j))] = 0.0
            u[terms.entry[c, int(self.weights[len(x) + c].argmax())]] = 1.0
        return u

    # -- branching ----------------------------------------------------------------------------------------------
    def parts(self) -> list[Region]:
        """Return parts of the region in which the solution is not met again; none if it is a point."""
        lost, size = self._lost()
        for k in np.argsort(-lost, kind="stable"):
            if not lost[k] > ROUNDING * size:  # true but for rounding
                break
            parts = self._branches(int(k))
            if parts:
                return parts
        if self.off:
            k = max(self.off, key=self._dearest_step)
            below = self.found.region.between(k, high=self._snapped(k, up=False))
            return [below, self.found.region.between(k, low=self._snapped(k, up=True))]
        return self._by_level()

    def _dearest_step(self, k: int) -> float:
        """Return what a step of a number on a grid is worth."""
        rates = self.terms.linear[k] + self.y @ (self.terms.rate[:, k] + np.abs(self.terms.slope[:, k]))
        return float(rates) * (self._feature(k).step or 0.0)

    def _lost(self) -> tuple[FloatArray, float]:
        """Return by how much each number is better as a mixture than at its value, and the size of what was compared.

        A row counts by its multiplier, or by an ordinary one if that is more: beside a tighter row it may be 0.
        """
        terms, n = self.terms, len(self.own)
        at_home = self.x == terms.hat
        cost = np.where(at_home, 0.0, terms.moved_cost(self.x[:, None])[:, 0])
        rows = np.where(at_home, terms.home_rows, terms.moved_rows(self.x[:, None])[:, :, 0])
        paid = (self.own * np.where(self.own > 0.0, self.found.costs[:n], 0.0)).sum(axis=1)
        mixed = (self.own[None] * self.found.rows[:, :n]).sum(axis=2)
        y = np.maximum(self.y, self.ordinary)
        size = np.abs(cost).sum() + y @ (np.abs(rows).sum(axis=1) + np.abs(terms.least))
        return np.maximum(cost - paid, 0.0) + y @ np.maximum(mixed - rows, 0.0), float(size)

    def _branches(self, k: int) -> list[Region]:
        """Split a number whose mixture is untrue: at the factual value, or at a breakpoint inside the mixture."""
        terms, region, feature = self.terms, self.found.region, self._feature(k)
        first, last = self._support(k)
        hat, low, high = float(terms.hat[k]), float(region.low[k]), float(region.high[k])
        if first <= hat <= last and low < high and (terms.price[k] > 0.0 or terms.change.any()):
            parts = [region.between(k, hat, hat)] if low <= hat <= high else []
            parts += [region.between(k, high=feature.below(hat))] if low < hat else []
            return parts + ([region.between(k, low=feature.above(hat))] if hat < high else [])
        inner = terms.breaks[k][(terms.breaks[k] > first) & (terms.breaks[k] < last)]
        if not inner.size and terms.square[k] > 0.0:
            inner = self.x[[k]]
        inner = inner[(inner > low) & (inner < high)]
        if not inner.size:
            return []
        at = float(inner[np.abs(inner - self.x[k]).argmin()])
        return [
            region.between(k, high=_on_grid(feature, at, up=False)),
            region.between(k, low=_on_grid(feature, at, up=True)),
        ]

    def _support(self, k: int) -> tuple[float, float]:
        """Return the first and the last value that a number mixes."""
        mixed = self.found.values[k][self.own[k] > 0.0]
        return float(mixed.min()), float(mixed.max())

    def _by_level(self) -> list[Region]:
        """Split a category that mixes levels into the heaviest one and the others."""
        terms, n = self.terms, len(self.own)
        for c in range(len(terms.categories)):
            weights = self.weights[n + c]
            best = int(weights.argmax())
            if weights[best] < 1.0 - ROUNDING:
                entries, this = (np.zeros(len(self.found.region.allowed), dtype=np.bool_) for _ in range(2))
                entries[terms.entry[c][terms.entry[c] >= 0]] = True
                this[terms.entry[c, best]] = True
                return [self.found.region.without(entries & ~this), self.found.region.without(this)]
        return []

    def unmixed(self) -> Region:
        """Return a part of the region in which no candidates are mixed: numbers on one piece, heaviest levels."""
        terms, region = self.terms, self.found.region
        for k in map(int, self.mixed):
            heavy = float(self.found.values[k, int(self.own[k].argmax())])
            hat = float(terms.hat[k])
            if heavy == hat and (terms.price[k] > 0.0 or terms.change.any()):
                region = region.between(k, hat, hat)
                continue
            feature, inner = self._feature(k), np.sort(terms.breaks[k])
            below, above = inner[inner < heavy], inner[inner > heavy]
            if self.x[k] >= heavy:
                end = _on_grid(feature, float(above[0]), up=True) if above.size else None
                region = region.between(k, _on_grid(feature, heavy, up=False), end)
            else:
                end = _on_grid(feature, float(below[-1]), up=False) if below.size else None
                region = region.between(k, end, _on_grid(feature, heavy, up=True))
        allowed = region.allowed.copy()
        for c in range(len(terms.categories)):
            own = terms.entry[c] >= 0
            allowed[terms.entry[c][own]] = False
            best = terms.entry[c, int(self.weights[len(self.own) + c].argmax())]
            allowed[best] = self.found.region.allowed[best]
        return Region(
            np.maximum(region.low, self.found.region.low), np.minimum(region.high, self.found.region.high), allowed
        )


def _on_grid(feature: Numeric, value: float, *, up: bool) -> float:
    """Return the next value of a number on its grid, up or down; without a grid, the next one that its column can hold."""
    if feature.step is None:
        return float(feature.at_least(value) if up else feature.at_most(value))
    return feature.snap_up(value) if up else feature.snap_down(value)
