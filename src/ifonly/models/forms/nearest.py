"""The nearest-neighbour form: means over the k rows whose linear scores are largest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Schema
from ifonly.models.forms.around import Around
from ifonly.models.forms.compose import score_bounds
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.propagate import Bounds, Budget
from ifonly.models.forms.ties import AwayFromTies
from ifonly.program.box import Box
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip
from ifonly.runtime.tuning import DEFAULT, Shaping
from ifonly.tolerances import CHAINED_ROUNDING, near_a_tie

__all__ = ["Nearest"]

BoolArray = npt.NDArray[np.bool_]


class _Standing(NamedTuple):
    """Rows that may be among the k nearest somewhere in a box, and how their scores stand to the k-th largest one.

    Attributes
    ----------
    rows
        The rows; all others are never among the k nearest.
    always
        Per row: whether it always is.
    below, above
        Per row: how far its score can lie below the k-th largest, and above it.
    """

    rows: IntArray
    always: BoolArray
    below: FloatArray
    above: FloatArray


@dataclass(frozen=True, eq=False)
class Nearest(AwayFromTies, Around):
    """``f(u) = (1 / k) sum of v_i`` over the ``k`` rows with the largest scores ``s_i(u)``.

    For rows ``x_i`` of a table, ``|x - x_i|^2 = |x|^2 - s_i`` with ``s_i = 2 x_i @ x - |x_i|^2``: the nearest rows have the
    largest of linear scores, and what is common to all scores makes no difference. With the k-th largest score ``t`` as a
    column, and 0/1 columns ``z_i``, the program has

        z_i = 1  =>  s_i >= t,        z_i = 0  =>  s_i <= t,        sum_i z_i = k,

    each implication one row, whose constant is the k-th largest of the bounds of ``s_j - s_i`` over all ``j``: differences
    of scores have much tighter bounds than scores. Rows that ``k`` others beat all over the box have no column. At a tie the
    program may take either row, so it is a relaxation of every order in which a model may look at rows of equal distance.
    Differences of squares of large columns are off by more than other columns change by: what is `noise` counts as a tie.

    Attributes
    ----------
    inner
        The scores, one per row.
    values
        Per row: what it adds to each output; for a classifier, 1 for its class.
    k
        Number of neighbours.
    noise
        The most by which a difference of two scores may be off in the model's own arithmetic.
    level
        Which of the distances from ties is used; see `refined`.
    budget
        What all changes may cost in the program it is embedded in.
    """

    inner: Linear
    values: FloatArray
    k: int
    noise: float = 0.0
    level: int = 0
    budget: Budget | None = None
    tuning: Shaping = DEFAULT.forms

    @property
    def schema(self) -> Schema:
        """The features."""
        return self.inner.schema

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.values.shape[1])

    @property
    def adds_exactly(self) -> bool:
        """Whether the outputs are whole numbers of votes, divided by their number."""
        return self.n_outputs > 1 and bool(((self.values == 0.0) | (self.values == 1.0)).all())

    @property
    def spacing(self) -> float:
        """The share of one vote."""
        return 1.0 / self.k

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the means over the nearest rows; of rows at equal distance, the earlier ones."""
        size = max(1, self.tuning.entries_at_once // max(1, self.inner.n_outputs))
        parts = [self.of_scores(self.inner(U[i : i + size])) for i in range(0, len(U), size)]
        return np.concatenate(parts) if parts else np.zeros((0, self.n_outputs))

    def of_scores(self, scores: FloatArray) -> FloatArray:
        """Return the means over the rows with the largest scores."""
        first = np.argsort(-scores, axis=1, kind="stable")[:, : self.k]
        return np.asarray(self.values[first].sum(axis=1) / self.k)

    def tied(self, U: FloatArray) -> BoolArray:
        """Say at which rows the k-th and the next score are within rounding of each other, ours or the model's own."""
        inner, rest = self.inner, self.inner.n_outputs - self.k
        if rest <= 0:
            return np.zeros(len(U), dtype=np.bool_)
        size = np.abs(inner.weights) @ np.abs(np.nan_to_num(U)).max(axis=0, initial=0.0) + np.abs(inner.intercept)
        room = max(2.0 * CHAINED_ROUNDING * float(size.max()), self.noise)
        top = np.partition(inner(U), (rest - 1, rest), axis=1)
        return np.asarray(~(top[:, rest] - top[:, rest - 1] > room))

    def magnitude(self, box: Box, *, centred: bool = False) -> FloatArray:
        """Return the largest outputs: a mean is rounded once, whatever the size of the scores."""
        del box, centred
        return np.asarray(np.abs(self.values).max(axis=0))

    def differences(self, first: IntArray, second: IntArray) -> Linear:
        """Return the scores of some rows less those of others."""
        inner = self.inner
        return Linear(
            inner.schema, inner.weights[first] - inner.weights[second], inner.intercept[first] - inner.intercept[second]
        )

    # -- rows that matter ----------------------------------------------------------------------------------------
    def _leads(self, first: IntArray, second: IntArray, box: Box, budget: Budget | None) -> Bounds:
        """Return bounds of ``s_i - s_j`` for all ``i`` of `first`, and ``j`` of `second`, few by the budget."""
        shape, limits = (len(first), len(second)), self.tuning
        if budget is not None and shape[0] * shape[1] * self.schema.width > limits.budget_entries:
            budget = None
        elif budget is not None:
            budget = replace(budget, tangents=min(budget.tangents, limits.few_tangents))
        size = max(1, limits.entries_at_once // max(1, shape[1] * self.schema.width))
        ends = []
        for k in range(0, len(first), size):
            part = first[k : k + size]
            pairs = self.differences(np.repeat(part, shape[1]), np.tile(second, len(part)))
            ends.append(score_bounds(pairs, box, budget))
        low, high = (np.concatenate(parts).reshape(shape) for parts in zip(*ends, strict=True))
        return low, high

    def _candidates(self, box: Box, budget: Budget | None) -> IntArray:
        """Return the rows that are not beaten by `k` rows all over the box; those near its middle are asked, then all."""
        low, high = score_bounds(self.inner, box)
        order = np.argsort(-(low + high), kind="stable")
        rows, asked = np.arange(self.inner.n_outputs), order[: self.tuning.pivots * self.k]
        for who, limit in ((asked, None), (asked, budget), (None, budget)):
            pivots = rows if who is None else np.intersect1d(who, rows)
            if len(pivots) * len(rows) <= self.tuning.most_pairs:
                lead, _ = self._leads(pivots, rows, box, limit)
                rows = rows[(lead > self.noise).sum(axis=0) < self.k]
        return rows

    def _standing(self, box: Box, budget: Budget | None) -> _Standing:
        """Return the rows that matter in a box, with bounds of their distance from the k-th largest score."""
        rows, k = self._candidates(box, budget), self.k
        if len(rows) == k:
            return _Standing(rows, np.ones(k, dtype=np.bool_), np.zeros(k), np.zeros(k))
        if len(rows) ** 2 <= self.tuning.most_pairs:
            low, high = self._leads(rows, rows, box, budget)
        else:
            least, most = score_bounds(self.inner, box, budget)
            low, high = least[rows][:, None] - most[rows], most[rows][:, None] - least[rows]
        np.fill_diagonal(low, 0.0)
        np.fill_diagonal(high, 0.0)
        always = (high >= -self.noise).sum(axis=0) <= k  # itself is one of them
        # s_(k) - s_i lies between the k-th largest of the least and of the largest leads over i
        ends = (-np.sort(-lead, axis=0)[k - 1] for lead in (high, low))
        below, above = (np.maximum(0.0, end) for end in (next(ends), -next(ends)))
        return _Standing(rows, always, below, above)

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return bounds of the outputs: those rows that always count, and the least and the largest of the others."""
        rows, always, *_ = self._standing(box, budget)
        sure, rest = self.values[rows[always]].sum(axis=0), np.sort(self.values[rows[~always]], axis=0)
        left = self.k - int(always.sum())
        low, high = sure + rest[:left].sum(axis=0), sure + rest[len(rest) - left :].sum(axis=0)
        return low / self.k, high / self.k

    # -- the program ---------------------------------------------------------------------------------------------
    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Add the k-th largest score as a column, and a 0/1 column for each row that may or may not be among the nearest."""
        rows, always, below, above = self._standing(x.box, self.budget)
        sure, open_ = rows[always], np.flatnonzero(~always)
        outputs = [Affine(constant=float(v) / self.k) for v in self.values[sure].sum(axis=0)]
        if not len(open_):
            return outputs
        pivot = rows[open_[np.argmin(below[open_] + above[open_])]]
        at = int(np.flatnonzero(rows == pivot)[0])
        # counted from the score of the row that stays nearest to it
        excess = mip.column(-float(above[at]), float(below[at]), name="k-th nearest")
        chosen = mip.columns(len(open_), 0.0, 1.0, integer=True, name="near")
        ones = [Affine.of(int(c)) for c in chosen]
        # k rows are the nearest
        mip.row(Affine.total(ones), float(self.k - len(sure)), float(self.k - len(sure)))
        leads = self.differences(rows[open_], np.full(len(open_), pivot)).embed(mip, x)
        for lead, one, b, a in zip(leads, ones, below[open_], above[open_], strict=True):
            gap, room = lead - excess, self.away * float(a + b) if self.level else -self.noise
            # s_i >= t + room where i is chosen (else its lower bound, t - b)
            mip.row(gap - one * (float(b) + room), lower=-float(b))
            # s_i <= t - room where it is not (else its upper bound, t + a)
            mip.row(gap - one * (float(a) + room), upper=-room)
        counted = self.values[rows[open_]] / self.k
        return [
            known + Affine.total(one * float(v) for one, v in zip(ones, column, strict=True) if v != 0.0)
            for known, column in zip(outputs, counted.T, strict=True)
        ]

    def for_budget(self, box: Box, budget: Budget) -> Nearest:
        """Return the form with bounds that hold within the budget."""
        del box
        return replace(self, budget=budget)

    def refined(self, u: FloatArray) -> Nearest | None:
        """Keep a greater distance from ties if `u` lies at one between rows that differ; None where numbers lie on grids.

        There a point that the model refuses is ruled out by itself, which loses no other.
        """
        if all(self.schema.steps[j] is not None for j in self.raw()):
            return None
        scores = self.inner(u[None, :])[0]
        order = np.argsort(-scores, kind="stable")
        last = scores[order[self.k - 1]]
        size = max(float(np.abs(scores - last).max()), 1.0)
        near = np.abs(scores - last) <= near_a_tie(self.away) * size
        tied = int(near.sum()) > 1 and bool((self.values[near] != self.values[near][0]).any())
        level = self.next_level(tied)
        return None if level == self.level else replace(self, level=level)
