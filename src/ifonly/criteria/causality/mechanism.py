"""Structural equation of one feature that follows from its parents, said to the optimiser and to NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.criteria.causality.acting import acted
from ifonly.data.schema import Numeric
from ifonly.errors import Relaxation
from ifonly.models.form import Form
from ifonly.models.forms.compose import score_bounds
from ifonly.models.read import Model
from ifonly.program.box import Box
from ifonly.program.leaving import apart, ends, leaving
from ifonly.program.mip import Affine
from ifonly.question.abilities import Loosens, Refines, Tightens, Verifies
from ifonly.question.demand import Demand
from ifonly.question.guidance import Proposes
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.question.words import number
from ifonly.runtime.deadline import Deadline
from ifonly.tolerances import DUST, FEASIBILITY, FLOAT64_ROOM, STORED_ROUNDINGS

__all__ = ["CausalEquation", "Mechanism"]

_TOLERANCE = FEASIBILITY  # of the feature's unit, within which the equation holds


@dataclass(frozen=True, eq=False)
class Mechanism:
    """``c_i``: how much of feature ``i`` its parents explain.

    Attributes
    ----------
    feature, parents
        Positions in the schema.
    form
        The function, for the optimiser and for quick evaluation.
    model
        The user's own fitted model, which has the last word; None when the form is the definition.
    """

    feature: int
    parents: tuple[int, ...]
    form: Form
    model: Model | None = None

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return ``c_i`` of canonical rows, by the user's own model."""
        if self.model is None:
            return self.form(U)[:, 0]
        return np.asarray(self.model.predict(U), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CausalEquation(Tightens, Proposes, Refines, Verifies, Loosens, Demand):
    """``x_i = xhat_i + c_i(p) - c_i(phat)``; on a grid of step ``s``: within ``s / 2`` of the right-hand side.

    Attributes
    ----------
    mechanism
        The equation.
    hat
        ``xhat_i``.
    at, said
        ``c_i(phat)`` by the form and by the user's own model; each is subtracted from its own kind.
    step
        The spacing of the feature's grid, 0 for a continuous feature.
    unit
        What is small for the feature is small beside this: the step of its grid, or its range in the data.
    followers
        For one of several equations: all features that follow from others, so that it proposes points for all.
    """

    mechanism: Mechanism
    hat: float
    at: float
    said: float
    step: float
    unit: float = 1.0
    followers: frozenset[int] = frozenset()

    @classmethod
    def of(cls, query: Query, mechanism: Mechanism) -> CausalEquation:
        """Return the demand for one question: the noise is what the equation leaves unexplained of the factual."""
        schema, i = query.schema, mechanism.feature
        feature = schema.features[i]
        assert isinstance(feature, Numeric)
        parents = ", ".join(schema.names[j] for j in mechanism.parents)
        row = query.factual[None, :]
        return cls(
            f"{feature.name} follows from {parents}",
            mechanism,
            float(query.factual[schema.starts[i]]),
            float(mechanism.form(row)[0, 0]),
            float(mechanism(row)[0]),
            feature.step or 0.0,
            feature.step or float(query.training.range[i]) or 1.0,
        )

    @property
    def _dust(self) -> float:
        # a consequence smaller than this is rounding, not a change
        return max(DUST * self.unit, FLOAT64_ROOM * max(abs(self.hat), abs(self.at)))

    # -- the optimiser's side -----------------------------------------------------------------------------------
    def narrow(self, query: Query, box: Box) -> None:
        """Leave the feature what the bounds of ``c_i`` over the parents' box leave it."""
        i, form = self.mechanism.feature, self.mechanism.form
        if all(box.is_fixed_at(j, query.factual) for j in form.features()):
            box.narrow(i, self.hat, self.hat)
            return
        (low,), (high,) = score_bounds(form, box)
        middle = self.hat - self.at
        room = 0.5 * self.step + max(_TOLERANCE * self.unit, self._dust)
        box.narrow(i, middle + low - room, middle + high + room)

    def tighten(self, query: Query, box: Box) -> None:
        """Propagate the parents' box to the feature once more: bounds of ``c_i`` over a smaller box."""
        self.narrow(query, box)

    def cuts(self, query: Query) -> Mapping[int, FloatArray]:
        """Return the thresholds of the form, and where the parents' grids leave the factual."""
        cuts = dict(self.mechanism.form.cuts())
        still = self._unchanged(query)
        for j, edges in ends(still, apart(still, self.mechanism.parents)[0] if self._on_grids(query) else []).items():
            cuts[j] = np.union1d(cuts.get(j, np.empty(0)), edges)
        return cuts

    def _on_grids(self, query: Query) -> bool:
        """Whether every parent has a least change: a step or another level."""
        parents = (query.schema.features[j] for j in self.mechanism.parents)
        return not self.step and all(not isinstance(f, Numeric) or f.step is not None for f in parents)

    def _unchanged(self, query: Query) -> Box:
        """Return the box in which no parent has changed."""
        box = Box.of(query.schema, query.factual)
        for j in self.mechanism.parents:
            part = query.factual[query.schema.slice(j)]
            if not isinstance(query.schema.features[j], Numeric):
                box.keep_levels(j, part > 0.0)
            elif not box.missing[j]:
                box.lower[j] = box.upper[j] = part[0]
        return box

    def raw(self, query: Query) -> frozenset[int]:
        """Return the feature itself and the parents whose raw value the form needs."""
        del query
        return self.mechanism.form.raw() | {self.mechanism.feature}

    def features(self, query: Query) -> frozenset[int]:
        """Return the feature itself and the parents the form looks at."""
        del query
        return self.mechanism.form.features() | {self.mechanism.feature}

    def _off(self, problem: Program) -> Affine:
        """Return ``x_i - xhat_i - c_i(p) + c_i(phat)``."""
        (caused,) = self.mechanism.form.embed(problem.mip, problem.x)
        return problem.x.raw(self.mechanism.feature) - caused + (self.at - self.hat)

    def apply(self, problem: Program) -> None:
        """Embed the form and tie the feature to it."""
        # structural equation: -s/2 <= x_i - xhat_i - c_i(p) + c_i(phat) <= s/2
        problem.mip.row(self._off(problem), -0.5 * self.step, 0.5 * self.step)
        if self._on_grids(problem.query):
            self._keep_cell(problem)

    def _keep_cell(self, problem: Program) -> None:
        """Keep the feature in the cell of the factual while no parent has changed, which a solver's tolerance would not.

        A threshold may lie at the factual's own value, as those of bins do.
        """
        x, i, still = problem.x, self.mechanism.feature, self._unchanged(problem.query)
        cells = x.cells(i)
        k = int(cells.index(self.hat))
        moved = leaving(x, still, *apart(still, self.mechanism.parents))
        if k > 0:
            # x_i <= the cut below the factual only if a parent leaves its value
            problem.mip.row(moved - x.at_most(i, float(cells.cuts[k - 1])), lower=0.0)
        if k < len(cells.cuts):
            # x_i <= the cut above the factual unless a parent leaves its value
            problem.mip.row(moved + x.at_most(i, float(cells.cuts[k])), lower=1.0)

    def candidates(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[FloatArray]:
        """Return single actions with what follows from them, and rows of the data taken back."""
        return acted(statement, box, self.followers, deadline) if self.followers else ()

    def refined(self, u: FloatArray) -> CausalEquation | None:
        """Refine a form that is not exact everywhere, such as a curve."""
        form = self.mechanism.form.refined(u)
        return None if form is None else replace(self, mechanism=replace(self.mechanism, form=form))

    # -- NumPy's side -------------------------------------------------------------------------------------------
    def target(self, query: Query, U: FloatArray, *, by_model: bool = False) -> FloatArray:
        """Return ``xhat_i + c_i(p) - c_i(phat)``, exactly ``xhat_i`` where no parent has changed."""
        moved = self._moved(query, U)
        out = np.full(len(U), self.hat)
        if moved.any():
            rows = U[moved]
            out[moved] += self.mechanism(rows) - self.said if by_model else self.mechanism.form(rows)[:, 0] - self.at
        return out

    def error(self, query: Query, U: FloatArray, *, by_model: bool = False) -> FloatArray:
        """Return how far each row is from the equation; on a grid, counted from half a step on."""
        x = U[:, query.schema.starts[self.mechanism.feature]]
        return np.maximum(np.abs(x - self.target(query, U, by_model=by_model)) - 0.5 * self.step, 0.0)

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, by the form, which rows obey the equation."""
        return np.asarray(self.error(query, U) <= self._tolerance(query, U))

    def verified(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, by the user's own model, which rows obey the equation."""
        return np.asarray(self.error(query, U, by_model=True) <= self._tolerance(query, U))

    def _moved(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say in which rows a parent has changed."""
        return np.asarray(query.changed(U)[:, list(self.mechanism.parents)].any(axis=1))

    def _tolerance(self, query: Query, U: FloatArray) -> FloatArray:
        """Return a millionth of the feature's unit, or what its column can hold where that is coarser (float32).

        Nothing where no parent has changed: then nothing follows, and a number beside the factual's would be an action.
        """
        schema = query.schema
        x, feature = U[:, schema.starts[self.mechanism.feature]], schema.features[self.mechanism.feature]
        assert isinstance(feature, Numeric)
        kind = feature.stored
        grain = float(np.finfo(kind).eps) if kind.kind == "f" else 0.0
        room = np.maximum(max(_TOLERANCE * self.unit, self._dust), STORED_ROUNDINGS * grain * np.abs(x))
        return np.where(self._moved(query, U), room, 0.0)

    def with_consequence(self, query: Query, U: FloatArray, *, by_model: bool = False) -> FloatArray:
        """Return the rows with the feature computed anew from its parents, in the dtype of its column."""
        start = query.schema.starts[self.mechanism.feature]
        feature = query.schema.features[self.mechanism.feature]
        assert isinstance(feature, Numeric)
        x, target, out = U[:, start], self.target(query, U, by_model=by_model), U.copy()
        target = np.where(np.abs(target - self.hat) <= self._dust, self.hat, target)
        if self.step:
            # Half a step off, two values of the grid are right: the one that is there stays.
            kept = np.abs(x - target) <= 0.5 * self.step + self._dust
            target = np.where(kept, x, [feature.snap(float(t)) for t in target])
        out[:, start] = target
        return query.schema.stored(out)

    # -- loosening ----------------------------------------------------------------------------------------------
    def excess(self, problem: Program) -> Affine:
        """Return how far the feature is from what follows."""
        off = self._off(problem)
        least, most = problem.mip.bounds(off)
        over = problem.mip.column(0.0, max(0.0, most), name="over")
        under = problem.mip.column(0.0, max(0.0, -least), name="under")
        # x_i exceeds what follows by at most s/2 + over
        problem.mip.row(off - over, upper=0.5 * self.step)
        # x_i stays behind what follows by at most s/2 + under
        problem.mip.row(off + under, lower=-0.5 * self.step)
        return over + under

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Say by how much the feature would have to be moved on its own."""
        name = query.schema.names[self.mechanism.feature]
        amount = float(self.error(query, u[None, :])[0])
        return Relaxation(self.text, f"let {name} differ from what follows by {number(amount, 'up')}", amount)
