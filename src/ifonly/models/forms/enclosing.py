"""Linear bounds of composite forms over many boxes at once: curves, shares, votes and means of atoms.

A composite is a function of the scores of its *atoms*, ensembles, linear forms and networks. Over a box of atom
scores, rows of its scores are bounded from above by linear functions of the atom scores, substituted step by step from the
outside inwards:

    rows @ f(s) <= f(c) + sum_j d_j (s_j - c_j),    c the corner of the box at which the row is largest,

where ``d_j`` is the least slope towards the corner: of secants for an increasing function of one number, of the derivative
for a softmax. So the bound is never worse than interval arithmetic, and its error falls with the square of the box. The
leaves of a tree then enter by one number each, in which what they add to several classes is weighed against each other.

All arrays have the boxes as their first axis. Rounding is added to every bound where it arises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.abilities import AddsInFloats, Ensemble, Layered, LinearScores, Stepwise
from ifonly.models.form import Form
from ifonly.models.forms.bends import LOG_SIGMOID, SIGMOID, Bend
from ifonly.models.forms.compose import Combination, Mean, Stack, magnitude
from ifonly.models.forms.curves import Curve, Softmax
from ifonly.models.forms.envelopes import envelope, reached, rises, secants
from ifonly.models.forms.median import Median
from ifonly.models.forms.planes import Narrows, Need, Rows, Step, kept, size_of
from ifonly.models.forms.propagate import Bounds
from ifonly.models.forms.ratios import SharesStep, SoftmaxStep
from ifonly.models.forms.votes import Votes
from ifonly.program.box import Box
from ifonly.runtime.memo import cached_property
from ifonly.tolerances import CHAINED_ROUNDING, ROUNDING, SCORE_OPERATIONS, TINY

__all__ = ["Atom", "Enclosure", "Narrowed", "Rows"]

BoolArray = npt.NDArray[np.bool_]


# -- steps -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Affine:
    """``weights @ s + constant``."""

    under: tuple[Form, ...]
    weights: FloatArray
    constant: FloatArray

    def bounds(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Return bounds by interval arithmetic."""
        up, down = np.maximum(self.weights, 0.0).T, np.minimum(self.weights, 0.0).T
        room = CHAINED_ROUNDING * (size_of(low, high) @ np.abs(self.weights).T + np.abs(self.constant))
        lower, upper = low @ up + high @ down + self.constant, high @ up + low @ down + self.constant
        return lower - room, upper + room

    def narrowed(self, own: Bounds, given: Bounds, need: Need) -> Bounds:  # noqa: ARG002 - the protocol
        """Return ends beyond which some sum leaves its interval, wherever its other terms are."""
        low, high = given
        wide = np.repeat(self.weights[None], len(low), axis=0)
        rows = np.concatenate([wide, -wide], axis=1)
        constant = np.concatenate([self.constant - own[0], own[1] - self.constant], axis=1)
        size = CHAINED_ROUNDING * (np.abs(constant) + np.tile(np.abs(self.constant), 2))
        ends = kept(Rows(rows, constant + size, rows), low, high, np.arange(low.shape[1]))
        return ends.low, ends.high

    def rows(self, rows: Rows, low: FloatArray, high: FloatArray, at: FloatArray | None = None) -> Rows:  # noqa: ARG002 - the protocol
        """Substitute."""
        slopes = rows.slopes @ self.weights
        terms = np.abs(rows.slopes) @ np.abs(self.weights) @ size_of(low, high)[:, :, None]
        room = CHAINED_ROUNDING * (terms[:, :, 0] + np.abs(rows.slopes) @ np.abs(self.constant))
        return Rows(slopes, rows.constant + rows.slopes @ self.constant + room, rows.lean @ self.weights)


@dataclass(frozen=True, eq=False)
class _Bent:
    """Increasing functions of one score each."""

    under: tuple[Form, ...]
    bends: tuple[Bend, ...]

    def bounds(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Return the values at both ends."""
        lower, upper = self._values(low), self._values(high)
        return lower - ROUNDING * np.abs(lower) - TINY, upper + ROUNDING * np.abs(upper) + TINY

    def narrowed(self, own: Bounds, given: Bounds, need: Need) -> Bounds:  # noqa: ARG002 - the protocol
        """Return the scores at which the functions have these values."""
        ends = [reached(bend, own[0][:, k], own[1][:, k]) for k, bend in enumerate(self.bends)]
        return np.column_stack([low for low, _ in ends]), np.column_stack([high for _, high in ends])

    def _values(self, s: FloatArray) -> FloatArray:
        return np.column_stack([bend(s[:, k]) for k, bend in enumerate(self.bends)])

    def rows(self, rows: Rows, low: FloatArray, high: FloatArray, at: FloatArray | None = None) -> Rows:
        """Take the line through the upper end for what gains by the score, and through the lower end for what loses."""
        if at is not None:
            return self._enveloped(rows, low, high, at)
        lower, upper = self._values(low), self._values(high)
        ends = [secants(b, *(a[:, k] for a in (low, high, lower, upper))) for k, b in enumerate(self.bends)]
        above, below, chord = (np.column_stack(part)[:, None] for part in zip(*ends, strict=True))
        gains = rows.slopes > 0.0
        slopes = rows.slopes * np.where(gains, above, below)
        at = np.where(gains, high[:, None], low[:, None])
        value = np.where(gains, upper[:, None], lower[:, None])
        constant = (rows.slopes * value).sum(axis=2) - (slopes * at).sum(axis=2)
        room = (np.abs(rows.slopes * value) + np.abs(slopes) * size_of(low, high)[:, None]).sum(axis=2)
        return Rows(slopes, rows.constant + constant + CHAINED_ROUNDING * room, rows.lean * chord)

    def _enveloped(self, rows: Rows, low: FloatArray, high: FloatArray, at: FloatArray) -> Rows:
        """Take the lines of the concave and of the convex envelope that are tight at the scores `at`."""
        ends = [envelope(bend, *(a[:, k] for a in (low, high, at))) for k, bend in enumerate(self.bends)]
        above, over, below, under = (np.column_stack(part)[:, None] for part in zip(*ends, strict=True))
        gains = rows.slopes > 0.0
        line = np.where(gains, above, below)
        slopes = rows.slopes * line
        constant = (rows.slopes * np.where(gains, over, under)).sum(axis=2)
        room = (
            np.abs(rows.slopes) * (np.abs(line) * size_of(low, high)[:, None] + np.maximum(np.abs(over), np.abs(under)))
        ).sum(axis=2)
        return Rows(slopes, rows.constant + constant + CHAINED_ROUNDING * room, rows.lean * 0.5 * (above + below))


@dataclass(frozen=True, eq=False)
class _Votes:
    """One vote for the class that a classifier decides on, over the leads of class ``k`` over ``m > k``."""

    under: tuple[Form, ...]
    pairs: tuple[tuple[int, int], ...]
    n: int
    room: FloatArray

    def _can(self, low: FloatArray, high: FloatArray) -> BoolArray:
        """Return which classes may be decided on."""
        can = np.ones((len(low), self.n), dtype=np.bool_)
        for i, (k, m) in enumerate(self.pairs):
            can[:, k] &= high[:, i] + self.room[i] >= 0.0
            can[:, m] &= low[:, i] - self.room[i] <= 0.0
        return can

    def bounds(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Return 0 and 1, or what is decided."""
        can = self._can(low, high)
        must = can & (can.sum(axis=1, keepdims=True) == 1)
        return must.astype(np.float64), can.astype(np.float64)

    def narrowed(self, own: Bounds, given: Bounds, need: Need) -> Bounds:  # noqa: ARG002 - the protocol
        """Return the leads of a class that must be decided on: none is lost by more than rounding."""
        low, high = np.full_like(given[0], -np.inf), np.full_like(given[1], np.inf)
        must = own[0] > 0.0
        for i, (k, m) in enumerate(self.pairs):
            low[must[:, k], i], high[must[:, m], i] = -self.room[i], self.room[i]
        return low, high

    def rows(self, rows: Rows, low: FloatArray, high: FloatArray, at: FloatArray | None = None) -> Rows:  # noqa: ARG002 - the protocol
        """Take the best class that may be decided on; lean towards its lead over those that are left."""
        can = self._can(low, high)[:, None]
        constant = np.where(can, rows.slopes, -np.inf).max(axis=2)
        best = np.where(can, rows.lean, -np.inf).argmax(axis=2)
        top = np.take_along_axis(rows.lean, best[:, :, None], axis=2)
        lost = np.where(can, top - rows.lean, 0.0)  # by each other class that wins
        lean = np.zeros((*rows.slopes.shape[:2], len(self.pairs)))
        for i, (k, m) in enumerate(self.pairs):
            width = np.maximum(high[:, i] - low[:, i], TINY)[:, None]
            lean[:, :, i] = np.where(best == k, lost[:, :, m], np.where(best == m, -lost[:, :, k], 0.0)) / width
        return Rows(np.zeros_like(lean), rows.constant + constant, lean)


@dataclass(frozen=True, eq=False)
class _Median:
    """The weighted median of scores, which never falls when one of them rises."""

    under: tuple[Form, ...]
    form: Median

    def bounds(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Return the medians of both ends."""
        return self.form.of_scores(low), self.form.of_scores(high)

    def rows(self, rows: Rows, low: FloatArray, high: FloatArray, at: FloatArray | None = None) -> Rows:  # noqa: ARG002 - the protocol
        """Take the medians of the ends; lean on all scores by their weights."""
        lower, upper = self.bounds(low, high)
        constant = (rows.slopes * np.where(rows.slopes > 0.0, upper[:, None], lower[:, None])).sum(axis=2)
        lean = rows.lean * (self.form.weights / self.form.weights.sum())
        return Rows(np.zeros((*rows.slopes.shape[:2], low.shape[1])), rows.constant + constant, lean)


# -- the whole -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Atom:
    """An ensemble, a linear form or a network, the place of its scores among those of all atoms, and their rounding."""

    form: Form
    place: slice
    room: FloatArray


class Narrowed(NamedTuple):
    """Rows for scores at which none of them is negative, the box of these scores, and which boxes have none of them."""

    rows: Rows
    low: FloatArray
    high: FloatArray
    closed: BoolArray


@dataclass(frozen=True, eq=False)
class Enclosure:
    """A form as steps over atoms: each step is given scores of atoms and of earlier steps, by their places.

    Attributes
    ----------
    atoms
        The ensembles, linear forms and networks.
    steps
        The functions of them, each with the places of what it is given, and of its own scores.
    out
        The places of the form's scores.
    n_places
        Number of all scores.
    """

    atoms: tuple[Atom, ...]
    steps: tuple[tuple[Step, IntArray, IntArray], ...]
    out: IntArray
    n_places: int

    @classmethod
    def of(cls, form: Form, box: Box) -> Enclosure | None:
        """Return the steps of a form; None where one of them is not known."""
        building = _Building(box)
        out = building.places(form)
        if out is None:
            return None
        return cls(tuple(building.atoms), tuple(building.steps), out, building.n)

    def bounds(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Return bounds of all scores, from bounds of those of the atoms, which come first of each array's places."""
        low, high = low.copy(), high.copy()
        for step, given, own in self.steps:
            low[:, own], high[:, own] = step.bounds(low[:, given], high[:, given])
        return low, high

    def rows(self, rows: Rows, low: FloatArray, high: FloatArray, at: FloatArray | None = None) -> Rows:
        """Return rows of the form's scores as rows of all places; those of steps are 0 in the end.

        They are tight at a corner of the box, or near some scores `at` all places.
        """
        at = None if at is None else np.clip(at, low, high)
        shape = (len(low), rows.slopes.shape[1], self.n_places)
        slopes, lean = np.zeros(shape), np.zeros(shape)
        slopes[:, :, self.out], lean[:, :, self.out] = rows.slopes, rows.lean
        constant = np.broadcast_to(rows.constant, shape[:2])
        for step, given, own in reversed(self.steps):
            near = None if at is None else at[:, given]
            inner = step.rows(Rows(slopes[:, :, own], constant, lean[:, :, own]), low[:, given], high[:, given], near)
            slopes[:, :, own] = lean[:, :, own] = 0.0
            slopes[:, :, given] += inner.slopes
            lean[:, :, given] += inner.lean
            constant = inner.constant
        return Rows(slopes, constant, lean)

    def narrowed(self, rows: Rows, low: FloatArray, high: FloatArray) -> Narrowed:
        """Return rows as `rows` does, but only for scores at which none of them is negative, and the box of these scores."""
        low, high, closed = low.copy(), high.copy(), np.zeros(len(low), dtype=np.bool_)
        shape = (len(low), rows.slopes.shape[1], self.n_places)
        slopes, lean = np.zeros(shape), np.zeros(shape)
        slopes[:, :, self.out], lean[:, :, self.out] = rows.slopes, rows.lean
        constant = np.broadcast_to(rows.constant, shape[:2])

        def cut(places: IntArray, ends: Bounds) -> None:
            # what is no number cuts nothing
            lower = np.where(ends[0] > low[:, places], ends[0], low[:, places])
            upper = np.where(ends[1] < high[:, places], ends[1], high[:, places])
            empty = lower > upper
            closed[empty.any(axis=1)] = True
            low[:, places] = np.where(empty, low[:, places], lower)
            high[:, places] = np.where(empty, high[:, places], upper)

        for step, given, own in reversed(self.steps):
            left = kept(Rows(slopes, constant, lean), low, high, own)
            closed |= (left.spare < 0.0).any(axis=1)
            cut(own, (left.low, left.high))
            if isinstance(step, Narrows):
                ends = (low[:, own], high[:, own]), (low[:, given], high[:, given])
                cut(given, step.narrowed(*ends, left.need))
            inner = step.rows(Rows(slopes[:, :, own], constant, lean[:, :, own]), low[:, given], high[:, given])
            slopes[:, :, own] = lean[:, :, own] = 0.0
            slopes[:, :, given] += inner.slopes
            lean[:, :, given] += inner.lean
            constant = inner.constant
        left = kept(Rows(slopes, constant, lean), low, high, self.inner)
        closed |= (left.spare < 0.0).any(axis=1)
        cut(self.inner, (left.low, left.high))
        return Narrowed(Rows(slopes, constant, lean), low, high, closed)

    @cached_property
    def inner(self) -> IntArray:
        """The places of the atoms' scores."""
        places = [np.arange(atom.place.start, atom.place.stop, dtype=np.int64) for atom in self.atoms]
        return np.concatenate(places)

    @property
    def bends(self) -> bool:
        """Whether some step is a curve or a share: planes above it come closer as its scores are kept to less."""
        return any(isinstance(step, _Bent | SharesStep | SoftmaxStep) for step, _, _ in self.steps)

    def values(self, u: FloatArray) -> FloatArray:
        """Return the scores at all places of one canonical vector, but for the rounding of bounds."""
        s = np.zeros((1, self.n_places))
        for atom in self.atoms:
            s[:, atom.place] = atom.form(u[None, :])
        low, high = self.bounds(s, s)
        return np.asarray(0.5 * (low + high)[0])


class _Building:
    """The steps of a form, put together from the inside outwards."""

    def __init__(self, box: Box) -> None:
        self.box, self.n = box, 0
        self.atoms: list[Atom] = []
        self.steps: list[tuple[Step, IntArray, IntArray]] = []

    def places(self, form: Form) -> IntArray | None:
        """Return the places of a form's scores; None where it is not known how to enclose them."""
        if isinstance(form, Stack):
            parts = [self.places(part) for part in form.parts]
            return None if any(p is None for p in parts) else np.concatenate([p for p in parts if p is not None])
        if isinstance(form, Ensemble | LinearScores | Layered | Stepwise):
            own = self._new(form.n_outputs)
            self.atoms.append(Atom(form, slice(int(own[0]), int(own[-1]) + 1), self._room(form)))
            return own
        step = self._step(form)
        if step is None:
            return None
        given = self.places(step.under[0])
        if given is None:
            return None
        own = self._new(form.n_outputs)
        self.steps.append((step, given, own))
        return own

    def _new(self, n: int) -> IntArray:
        self.n += n
        return np.arange(self.n - n, self.n, dtype=np.int64)

    def _room(self, form: Form) -> FloatArray:
        """Return how far a computed sum may be off, by ours and by the model's own arithmetic."""
        eps = form.precision if isinstance(form, AddsInFloats) else float(np.finfo(np.float64).eps)
        return (CHAINED_ROUNDING + SCORE_OPERATIONS * eps) * magnitude(form, self.box)

    def _step(self, form: Form) -> Step | None:
        if isinstance(form, Combination):
            return _Affine((form.inner,), form.weights, form.constant)
        if isinstance(form, Mean):
            share = form.weights / form.weights.sum()
            weights = np.hstack([w * np.eye(form.n_outputs) for w in share])
            return _Affine((form.inner,), weights, np.zeros(form.n_outputs))
        if isinstance(form, Curve):
            return _Bent((form.inner,), form.bends) if all(map(rises, form.bends)) else None
        if (
            isinstance(form, Softmax)
            and isinstance(form.inner, Curve)
            and all(b is LOG_SIGMOID for b in form.inner.bends)
        ):
            return SharesStep((form.inner.inner,), SIGMOID)
        if isinstance(form, Softmax):
            return SoftmaxStep((form.differences(),), form.n_outputs)
        if isinstance(form, Votes):
            gaps = form.gaps()
            room = SCORE_OPERATIONS * form.read.rounding * magnitude(gaps, self.box)
            return _Votes((gaps,), tuple(form.pairs()), form.n_outputs, room)
        return _Median((form.inner,), form) if isinstance(form, Median) else None
