"""Piecewise polynomials as curves in a program: splines, with what they do beyond their last knots.

Between two breakpoints that lie within one piece, and on one side of its inflections, the graph lies in the polygon of its
chord and its tangents; at a knot the slope may jump, so tangents are taken from the piece between the breakpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.forms.bends import tangent_corners
from ifonly.runtime.memo import cached_property
from ifonly.runtime.tuning import DEFAULT
from ifonly.tolerances import ON_BREAKPOINT, ROUNDING

__all__ = ["Polynomials"]


@dataclass(frozen=True, eq=False)
class Polynomials:
    """A continuous function that is a polynomial between knots; the first and last pieces go on for ever.

    Attributes
    ----------
    knots
        Sorted; piece ``i`` is over ``knots[i]`` to ``knots[i + 1]``, piece 0 also before that, the last one also behind.
    coefficients
        Per degree, the highest first, and per piece, in ``s - knots[i]``.
    closely
        Share of a piece within which it is held closely around a refused point.
    bending
        Parts of which its bending is added up.
    """

    knots: FloatArray
    coefficients: FloatArray
    closely: float = DEFAULT.forms.closely
    bending: int = DEFAULT.forms.bending_of_splines

    @classmethod
    def of_spline(cls, t: FloatArray, c: FloatArray, degree: int, beyond: str) -> Polynomials:
        """Return a spline in B-form over its base interval, continued as scikit-learn's `extrapolation` says."""
        from scipy.interpolate import PPoly  # noqa: PLC0415 - slow to import

        whole = PPoly.from_spline((t, np.asarray(c, dtype=np.float64), degree))
        low, high = float(t[degree]), float(t[-degree - 1])
        inside = [i for i in range(len(whole.x) - 1) if low <= whole.x[i] < whole.x[i + 1] <= high]
        knots, pieces = [whole.x[i] for i in inside], [whole.c[:, i] for i in inside]
        if beyond in ("constant", "linear"):
            ends = []
            for x in (low, high):
                end = np.zeros(len(whole.c))
                at = inside[0] if x == low else inside[-1]
                own = whole.c[:, at]
                end[-1] = np.polyval(own, x - whole.x[at])
                if beyond == "linear" and degree > 0:
                    end[-2] = np.polyval(np.polyder(own), x - whole.x[at])
                ends.append(end)
            # The piece before the first knot is written from a point before it, as all pieces are from their left ends.
            room = high - low
            first = ends[0].copy()
            if len(first) > 1:
                first[-1] -= room * first[-2]
            knots, pieces = [low - room, *knots, high], [first, *pieces, ends[1]]
        return cls(np.array([*knots, knots[-1] + (high - low)]), np.array(pieces).T)

    @classmethod
    def combined(cls, parts: Sequence[Polynomials], weights: FloatArray) -> Polynomials:
        """Return a weighted sum of functions with the same knots."""
        return cls(parts[0].knots, np.tensordot(weights, np.array([p.coefficients for p in parts]), axes=1))

    def _piece(self, s: FloatArray) -> FloatArray:
        """Return the number of the piece that each value lies in."""
        inner = self.knots[1:-1]
        return np.asarray(np.searchsorted(inner, s, side="right"))

    def _at(self, s: FloatArray, piece: FloatArray, slope: int = 0) -> FloatArray:
        c, x = self.coefficients, s - self.knots[piece]
        for _ in range(slope):
            powers = np.arange(len(c) - 1, 0, -1, dtype=np.float64)
            c = c[:-1] * powers[:, None] if len(c) > 1 else np.zeros_like(c)
        out = np.zeros_like(x)
        for row in c:
            out = out * x + row[piece]
        return np.asarray(out)

    def __call__(self, s: FloatArray) -> FloatArray:
        """Return the function's values."""
        s = np.asarray(s, dtype=np.float64)
        return self._at(s, self._piece(s))

    def _roots(self, slope: int) -> FloatArray:
        """Return where a derivative vanishes within its piece."""
        found: list[float] = []
        for i in range(self.coefficients.shape[1]):
            c = np.polyder(self.coefficients[:, i], slope)
            for root in np.roots(c) if np.abs(c).max(initial=0.0) > 0 else ():
                x = float(np.real(root)) + float(self.knots[i])
                if abs(float(np.imag(root))) < ROUNDING * max(1.0, abs(float(np.real(root)))) and self._inside(x, i):
                    found.append(x)
        return np.unique(np.array(found))

    def _inside(self, x: float, i: int) -> bool:
        last = self.coefficients.shape[1] - 1
        return bool((i == 0 or x >= self.knots[i]) and (i == last or x <= self.knots[i + 1]))

    @cached_property
    def turns(self) -> FloatArray:
        """Points where the function may change between rising and falling: roots of the slope, and knots."""
        return np.unique(np.concatenate([self._roots(1), self.knots[1:-1]]))

    @cached_property
    def bounds(self) -> FloatArray:
        """Ends of its convex and concave pieces: knots and inflections."""
        return np.unique(np.concatenate([self._roots(2), self.knots[1:-1]]))

    # -- the protocol of a bend ---------------------------------------------------------------------------------
    def span(self, low: float, high: float) -> tuple[float, float]:
        """Return its least and greatest value on an interval."""
        values = self(np.array([low, high, *self.turns[(self.turns > low) & (self.turns < high)]]))
        return float(values.min()), float(values.max())

    def breakpoints(self, low: float, high: float, pieces: int) -> FloatArray:
        """Return knots and inflections, and more points where the function bends, evenly over ``sqrt |f''|``."""
        must = np.array([low, high, *self.bounds[(self.bounds > low) & (self.bounds < high)]])
        middle = np.linspace(low, high, self.bending + 1)
        bending = np.sqrt(np.abs(self._at(middle, self._piece(middle), slope=2)))
        total = np.concatenate([[0.0], np.cumsum(0.5 * (bending[1:] + bending[:-1]))])
        if total[-1] <= 0.0:
            return np.unique(must)
        even = np.interp(np.linspace(0.0, total[-1], pieces + 1)[1:-1], total, middle)
        return np.unique(np.concatenate([must, even]))

    def corners(self, a: float, b: float) -> FloatArray:
        """Return where the tangents at both ends and in the middle cross."""
        at = np.array([a, 0.5 * (a + b), b])
        piece = np.repeat(self._piece(at[1:2]), 3)
        return tangent_corners(at, self._at(at, piece), self._at(at, piece, slope=1))

    def around(self, s: float, known: FloatArray, pieces: int) -> FloatArray:  # noqa: ARG002 - the protocol
        """Return `s` and a point on either side; none where the function is straight or held already."""
        piece = self._piece(np.array([s]))
        length = float(np.diff(self.knots).min())
        straight = not self._at(np.array([s]), piece, slope=2).any() and len(self.coefficients) <= 2
        if straight or (known.size and float(np.abs(known - s).min()) <= ON_BREAKPOINT * length):
            return np.empty(0)
        return s + length * self.closely * np.array([-1.0, 0.0, 1.0])
