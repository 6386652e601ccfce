"""One question being answered: search, verify, widen the margin where the model refuses, and put the answer together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ifonly.adversary import withstand, withstands
from ifonly.blame import explain_infeasibility
from ifonly.criteria import Criterion, Query
from ifonly.criteria.robustness import Robustness
from ifonly.criteria.validity import Goal
from ifonly.deadline import Deadline
from ifonly.engine import Found, find
from ifonly.errors import CriterionError, NotVerified, OutOfTime
from ifonly.events import OnEvent
from ifonly.features import plain
from ifonly.mip import FloatArray
from ifonly.problem import Statement
from ifonly.ranges import safe_ranges
from ifonly.result import Certificate, Change, Counterfactual, Explanation
from ifonly.schema import Numeric
from ifonly.several import Answer, NoMore, Several
from ifonly.solvers import Limits, Status

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["Question"]

_FIRST_MARGIN = 1e-7
_WIDENINGS = 6
NEVER = Deadline.never()


@dataclass(frozen=True)
class Question:
    """One question being answered."""

    explainer: Explainer
    frame: pd.DataFrame
    query: Query
    goal: Goal
    statement: Statement
    deadline: Deadline = NEVER
    gap: float = 1e-6
    on_event: OnEvent | None = None

    def refuse_what_is_there(self) -> None:
        """Say so when the factual already has the wanted outcome."""
        u = self.query.factual[None, :]
        if bool(self.goal.holds(self.query, u)[0]) and bool(self.goal.confirmed(u)[0]):
            now = self.explainer.model.predict(u)[0]
            raise CriterionError(
                f"The wanted outcome is already there: the model says {plain(now)!r} for this row ({self.goal.text}). "
                "Ask for another outcome, or for more of it: Target(label, probability=...)."
            )

    # -- searching ----------------------------------------------------------------------------------------------
    def _encode(self, answer: Counterfactual) -> FloatArray:
        return self.query.schema.encode(answer.row, missing=True)

    def one(self, statement: Statement, *, first: bool = True) -> Answer:
        """Return one verified counterfactual; widen the margin while the model refuses."""
        backend = self.explainer.backend
        best: tuple[FloatArray, float] | None = None
        u: FloatArray | None = None
        for margin in self._margins():
            statement = replace(statement, margin=margin)
            limits = self._limits()
            found, statement = withstand(statement, self._find, backend, limits, self.deadline)
            if found.status is Status.INFEASIBLE:
                if not first:
                    raise NoMore
                if u is not None:
                    break
                raise explain_infeasibility(statement, backend, limits, self.deadline)
            best = self._first_verified(found, statement)
            u = found.u if found.u is not None else u
            if best is not None:
                return Answer(self._counterfactual(best[0], statement, found), best[0], found, statement)
            if found.interrupted:
                raise KeyboardInterrupt
            if found.u is None or self.deadline.passed:
                why = "" if self.deadline.passed else " (the program is too large for memory, or for the time left)"
                raise OutOfTime(
                    f"No verified answer within the time limit{why}; no answer costs less than {found.bound:.6g}. Raise "
                    "time_limit, or loosen a demand.",
                    found.bound,
                )
            statement = statement.refined(found.u)
        assert u is not None
        scores = self.explainer.model.read.form(u[None, :])[0]
        shown = self.goal.score_of(u[None, :])
        raise NotVerified(
            f"The optimiser's answer is refused by the model itself, even with the margin widened to "
            f"{statement.margin:.1g}: our score {np.round(scores, 6).tolist()}, the model's {np.round(shown, 6).tolist()}. "
            "Please report this with the model's class and version.",
            scores.tolist(),
            shown.tolist(),
        )

    def _limits(self) -> Limits:
        return Limits(self.deadline.left(), self.gap, seed=self.explainer.random_state)

    def _find(self, statement: Statement, limits: Limits, deadline: Deadline) -> Found:
        return find(statement, self.explainer.backend, limits, self.on_event, deadline)

    def _margins(self) -> list[float]:
        scale = self.explainer.training.score_scale
        widening = [_FIRST_MARGIN * scale * 10.0**k for k in range(_WIDENINGS)]
        discrete = self.explainer.model.read.piecewise_constant or self._on_grid()
        return [0.0, *widening] if discrete and self.goal.ties_are_ours() else widening

    def _on_grid(self) -> bool:
        """Whether the scores take finitely many values because every number the model looks at lies on a grid."""
        features = [self.query.schema.features[j] for j in self.statement.form.raw()]
        return all(isinstance(f, Numeric) and f.step is not None for f in features)

    def _first_verified(self, found: Found, statement: Statement) -> tuple[FloatArray, float] | None:
        """Return the best point that the user's own model confirms, exactly as it will be returned."""
        candidates = [] if found.u is None else [found.u]
        if found.status is not Status.OPTIMAL:
            candidates += list(found.pool)
        verified = []
        for candidate in candidates:
            stored = self.query.schema.stored(candidate)
            settled = statement.settled(stored[None, :], by_model=True)[0]
            same = np.array_equal(settled, stored, equal_nan=True)
            # On the very edge of a demand, settling may round a value beyond it; then the solver's own is as good.
            for u in (stored,) if same else (settled, stored):
                if self._confirmed(u, statement):
                    verified.append((float(statement.objective(u[None, :])[0]), u))
                    break
        if not verified:
            return None
        cost, u = min(verified, key=lambda pair: pair[0])
        return u, cost

    def _confirmed(self, u: FloatArray, statement: Statement) -> bool:
        row = u[None, :]
        if not bool(self.goal.confirmed(row)[0]):
            return False
        return all(bool(d.verified(self.query, row)[0]) for d in statement.demands if d is not self.goal)

    # -- answering ----------------------------------------------------------------------------------------------
    def another(self, u: FloatArray, answer: Answer) -> Answer | None:
        """Return a point of the same search as an answer, or None if it is refused."""
        found, statement = replace(answer.found, u=u, pool=()), answer.statement
        best = self._first_verified(found, statement)
        if best is None or not withstands(statement, best[0], self.explainer.backend, self._limits(), self.deadline):
            return None
        return Answer(self._counterfactual(best[0], statement, found), best[0], found, statement)

    def _counterfactual(self, u: FloatArray, statement: Statement, found: Found) -> Counterfactual:
        row = u[None, :]
        objective = float(statement.objective(row)[0])
        bound = min(found.bound, objective)
        width = (objective - bound) / max(1.0, abs(objective))
        proven = found.status is Status.OPTIMAL and width <= 2.0 * self.gap + 1e-9
        certificate = Certificate(
            objective, bound, max(width, 0.0), proven, statement.margin, found.solver or self.explainer.backend.label
        )
        schema = self.query.schema
        changed = self.query.changed(row)[0]
        changes = tuple(
            Change(schema.names[j], self.query.value(j), schema.level_values(j, u))
            for j in map(int, np.flatnonzero(changed))
        )
        measures: dict[str, float] = {}
        for criterion in statement.criteria:
            measures |= {name: float(v[0]) for name, v in criterion.measure(self.query, row).items()}
        distance = measures.pop("distance", objective)
        measures.pop("changed", None)
        return Counterfactual(
            schema.decode(row),
            changes,
            self._predicted(row),
            float(self.goal.score_of(row)[0]),
            distance,
            certificate,
            ranges=safe_ranges(statement, u, self.explainer.backend, self.deadline) if self._robust else {},
            measures=measures,
        )

    @property
    def _robust(self) -> bool:
        return any(isinstance(c, Robustness) for c in self.statement.criteria)

    def _predicted(self, row: FloatArray) -> Any:
        """Return the model's prediction: the wanted label, which it has just confirmed, or what it says."""
        if self.goal.kind == "class":
            return self.goal.label
        return plain(self.explainer.model.predict(row)[0])

    def _said(self, row: FloatArray) -> Any:
        """Return what the model says of the factual, by its form: the label or the value."""
        read = self.explainer.model.read
        decided = read.decide(read.form(row))[0]
        return read.classes[int(decided)] if read.classes else float(decided)

    def explanation(self, several: Several, seconds: float) -> Explanation:
        """Put the answers together."""
        u, answers = self.query.factual[None, :], several.answers
        model = self.explainer.model
        has_probabilities = model.read.link != "none"
        speaking = [c for c in self.statement.criteria if type(c).remarks is not Criterion.remarks]
        rows = np.vstack([self._encode(a) for a in answers]) if speaking else np.empty((0, 0))
        return Explanation(
            answers,
            self.frame,
            self._said(u),
            float(self.goal.score_of(u)[0]),
            self.goal.text.removeprefix("want "),
            self.query.schema,
            "optimal" if several.proven else "feasible",
            seconds,
            answers[0].certificate.solver,
            notes=(*several.notes, *(r for c in speaking for r in c.remarks(self.query, rows))),
            score_name="probability" if has_probabilities else "score" if model.read.classes else "value",
            reference=self.explainer._frame,
            interrupted=several.interrupted,
        )
