"""The votes form: which class a classifier decides on, as 0/1 scores, one per class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.abilities import Resolves, adds_exactly, schema_of
from ifonly.models.form import Form
from ifonly.models.forms.compose import combine, for_budget, plateau, score_bounds
from ifonly.models.forms.propagate import Bounds, Budget
from ifonly.models.forms.ties import AwayFromTies
from ifonly.models.read import Read
from ifonly.models.rules import Sign
from ifonly.program.box import Box
from ifonly.program.inputs import Inputs
from ifonly.program.leaving import apart, ends, leaving
from ifonly.program.mip import Affine, Mip
from ifonly.runtime.memo import cached_property
from ifonly.tolerances import DUST, near_a_tie

__all__ = ["Votes"]


@dataclass(frozen=True, eq=False)
class Votes(AwayFromTies):
    """``v_k = 1`` iff the classifier decides on class ``k``.

    For classes ``k, m`` and ``d = s_k - s_m`` within ``[L, U]``: ``d >= L + (e - L) v_k``, where ``e`` is 0 if a tie is
    ``k``'s, and otherwise half of the least difference that there can be, where that is known (trees). One score against a
    threshold is the same with two classes.

    Attributes
    ----------
    read
        The classifier.
    level
        Which of the distances from ties is used; see `refined`.
    budget
        What all changes may cost in the program it is embedded in.
    decided
        Boxes on which the scores are constant and tied, each with the class that the classifier decides on there.
    """

    read: Read
    level: int = 0
    budget: Budget | None = None
    decided: tuple[tuple[Box, int], ...] = ()

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return len(self.read.classes)

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the votes of canonical rows."""
        return np.asarray(np.eye(self.n_outputs)[self.read.decide(self.read.form(U))])

    def inside(self) -> tuple[Form, ...]:
        """Return the classifier's form."""
        return (self.read.form,)

    def cuts(self) -> Mapping[int, FloatArray]:
        """Return the thresholds of the classifier's form, and the ends of the boxes that are decided."""
        if not self.decided:
            return self.read.form.cuts()
        parts = {j: [cuts] for j, cuts in self.read.form.cuts().items()}
        for box, _ in self.decided:
            for j, edges in ends(box, apart(box, self.features())[0]).items():
                parts.setdefault(j, []).append(edges)
        return {j: np.unique(np.concatenate(p)) for j, p in parts.items()}

    def raw(self) -> frozenset[int]:
        """Return the numeric features whose raw value enters."""
        return self.read.form.raw()

    def features(self) -> frozenset[int]:
        """Return the features the classifier looks at."""
        return self.read.form.features()

    def gaps(self) -> Form:
        """Return the form of ``s_k - s_m`` for all pairs ``k < m``, in the order of `pairs`."""
        return combine(self.read.form, *self.read.decision.pairs(self.n_outputs))

    @cached_property
    def _resolution(self) -> float:
        """The least difference from a tie that there can be, 0 if it is not known or lost in rounding."""
        if not adds_exactly(self.read.form):
            return 0.0
        gaps = self.gaps()
        return gaps.resolution if isinstance(gaps, Resolves) else 0.0

    def pairs(self) -> list[tuple[int, int]]:
        """Return all pairs of classes ``k < m``."""
        n = self.n_outputs
        return [(k, m) for k in range(n) for m in range(k + 1, n)]

    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Add one 0/1 column per class that the box leaves open, and a row per pair."""
        gaps = self.gaps().embed(mip, x)
        low, high = score_bounds(self.gaps(), x.box, self.budget)
        n = self.n_outputs
        if n == 2:
            first = mip.column(integer=True, name="votes")
            votes = [first, 1.0 - first]
        else:
            columns = mip.columns(n, 0.0, 1.0, integer=True, name="votes")
            votes = [Affine.of(int(c)) for c in columns]
            # one class has the vote
            mip.row(Affine.total(votes), 1.0, 1.0)
        for (k, m), gap, *known in zip(self.pairs(), gaps, low, high, strict=True):
            bounds = mip.bounds(gap)
            a, b = max(known[0], bounds[0]), min(known[1], bounds[1])
            size = max(b - a, DUST)
            away = self.away * size
            room = away, max(away, 0.5 * self._resolution)
            mine, other = room if self.read.decision.first_wins else room[::-1]
            # s_k - s_m >= mine where k has the vote (else its lower bound a)
            mip.row(gap - votes[k] * (mine - a), lower=a)
            # s_k - s_m <= -other where m has the vote (else its upper bound b)
            mip.row(gap + votes[m] * (b + other), upper=b)
        for box, k in self.decided:
            numbers, levels = apart(box, self.features())
            if bool((box.missing == x.box.missing)[list(self.features())].all()):
                # k has the vote, or a feature leaves the box in which the scores are tied
                mip.row(votes[k] + leaving(x, box, numbers, levels), lower=1.0)
        return votes

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return bounds of the votes: what the classifier can decide on at all."""
        low, high = score_bounds(self.gaps(), box, budget)
        can, must = np.ones(self.n_outputs), np.zeros(self.n_outputs)
        for (k, m), a, b in zip(self.pairs(), low, high, strict=True):
            can[k], can[m] = can[k] * (b >= 0), can[m] * (a <= 0)
        if can.sum() == 1:
            must = can.copy()
        return must, can

    def magnitude(self, box: Box, *, centred: bool = False) -> FloatArray:  # noqa: ARG002 - votes are counted, from 0
        """Return the votes that there can be, and one that they count from."""
        return self.score_bounds(box)[1] + 1.0

    def handicapped(self, k: int, room: float) -> Votes:
        """Return the votes with ``s_k - room`` in place of the score ``s_k``."""
        less = np.zeros(self.read.form.n_outputs)
        if isinstance(self.read.rule, Sign):  # one score, that of the second class
            less[0] = -room if k == 1 else room
        else:
            less[k] = -room
        return replace(self, read=replace(self.read, form=combine(self.read.form, np.eye(len(less)), less)))

    def for_budget(self, box: Box, budget: Budget) -> Votes:
        """Return the votes with bounds that hold within the budget."""
        return replace(self, read=replace(self.read, form=for_budget(self.read.form, box, budget)), budget=budget)

    def refined(self, u: FloatArray) -> Votes | None:
        """Keep a greater distance from ties if `u` lies at one, and refine the classifier's form."""
        form = self.read.form.refined(u)
        gaps = self.gaps()(u[None, :])[0]
        size = max(float(np.abs(gaps).max()), 1.0)
        near = bool((np.abs(gaps) <= near_a_tie(self.away) * size).any())
        # Scores that are constant around a point are decided there as by the classifier, which loses no other.
        level = self.next_level(near) if self.raw() else self.level
        decided = () if self.raw() or not near else self._decided_at(u)
        if form is None and level == self.level and not decided:
            return None
        read = self.read if form is None else replace(self.read, form=form)
        return replace(self, read=read, level=level, decided=(*self.decided, *decided))

    def _decided_at(self, u: FloatArray) -> tuple[tuple[Box, int], ...]:
        """Return the box around a tie on which the scores are constant, with the decision; nothing if it is known."""
        schema = schema_of(self.read.form)
        if schema is None or any(bool(box.contains(u[None, :])[0]) for box, _ in self.decided):
            return ()
        its = int(self.read.decide(self.read.form(u[None, :]))[0])
        return ((plateau(self.read.form, Box.of(schema, u), u), its),)
