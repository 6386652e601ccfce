"""Statement: demands, costs and form of one question, before a program is built."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.form import Form
from ifonly.models.forms.compose import plateau
from ifonly.program.box import Box
from ifonly.question.abilities import Refines, Verifies
from ifonly.question.costs import Costs
from ifonly.question.criterion import Couples, Criterion, HasConsequences
from ifonly.question.demand import Demand
from ifonly.question.outside import Outside
from ifonly.question.query import Query
from ifonly.runtime.memo import cached_property

__all__ = ["Statement"]


@dataclass(frozen=True, eq=False)
class Statement:
    """Statement of a question before anything is built: the query, its demands, and the criteria that cost.

    `form` is the model's form, or a refined one; `margin` is how far the scores must clear their thresholds, `tie` how far
    at least where a tie would be lost.
    """

    query: Query
    demands: tuple[Demand, ...]
    criteria: tuple[Criterion, ...]
    form: Form
    margin: float = 0.0
    tie: float = 0.0

    def costs(self) -> Costs:
        """Return the separable costs of all criteria."""
        return self._costs

    @cached_property
    def _costs(self) -> Costs:
        known = [part for part in (criterion.costs(self.query) for criterion in self.criteria) if part is not None]
        total = known[0] if known else Costs.none(self.query.schema)
        for part in known[1:]:
            total = total + part
        return total.without(self.query.schema, self.exempt())

    def exempt(self) -> frozenset[int]:
        """Return the features whose change is a consequence of other changes, as some criterion says."""
        return self._exempt

    @cached_property
    def _exempt(self) -> frozenset[int]:
        return self.query.exempt.union(*(c.exempt(self.query) for c in self._consequences))

    @cached_property
    def coupled(self) -> tuple[Couples, ...]:
        """The criteria with a cost that is no sum over single features."""
        return tuple(c for c in self.criteria if isinstance(c, Couples) and not c.separable())

    @cached_property
    def _consequences(self) -> tuple[HasConsequences, ...]:
        return tuple(c for c in self.criteria if isinstance(c, HasConsequences))

    def separable(self) -> bool:
        """Whether all costs belong to single features, and nothing follows from a change."""
        return not self.coupled and not self._consequences

    def objective(self, U: FloatArray) -> FloatArray:
        """Return the true objective of canonical rows: the NumPy twin of the program's objective."""
        total = self.costs().per_feature(self.query, U).sum(axis=1)
        for criterion in self.coupled:
            total = total + criterion.coupled_cost(self.query, U)
        return np.asarray(total)

    def settled(self, U: FloatArray, *, by_model: bool = False) -> FloatArray:
        """Return canonical rows with what follows from the rest computed anew: by forms, or by the user's models."""
        for criterion in self._consequences:
            U = criterion.with_consequences(self.query, U, by_model=by_model)
        return U

    def refined(self, u: FloatArray) -> Statement:
        """Return the statement with forms that are exact at `u`; itself when they all are."""
        form = self.form.refined(u)
        finer = [d.refined(u) if isinstance(d, Refines) else None for d in self.demands]
        if form is None and all(d is None for d in finer):
            return self
        demands = tuple(new or old for new, old in zip(finer, self.demands, strict=True))
        return replace(self, form=self.form if form is None else form, demands=demands)

    def refusing(self, u: FloatArray) -> Form | None:
        """Return the form of a further model that refuses `u` by its own word; None if none does."""
        forms = (d.refusing(self.query, u) for d in self.demands if isinstance(d, Verifies))
        return next((form for form in forms if form is not None), None)

    def without(self, u: FloatArray, form: Form | None = None) -> Statement | None:
        """Return the statement without the part around `u` on which the scores are the same; None if there is no such part.

        There is one if every number whose raw value matters lies on a grid, or may not change: the cells around the others,
        and the values of these. Where the model refuses `u`, it refuses all of that part. The scores are the model's, or
        those of another form.
        """
        schema, by, form = self.query.schema, form, self.form if form is None else form
        free = {j for j in form.raw() if schema.features[j].step is None}  # type: ignore[union-attr]
        box = self.box() if free else self.query.limits
        if any(box.lower[j] < box.upper[j] for j in free):
            return None
        limits = self.query.limits.copy()
        part = plateau(form, limits, u)
        for j in form.raw():
            part.lower[j] = part.upper[j] = u[schema.starts[j]]
        for j in free:
            limits.lower[j] = limits.upper[j] = u[schema.starts[j]]  # by a number that may not change nothing can leave
        return replace(self, demands=(*self.demands, Outside(part, limits, form.features(), by)))

    def box(self) -> Box:
        """Return the box that all demands on single features leave."""
        box = self.query.limits.copy()
        for demand in self.demands:
            demand.narrow(self.query, box)
        return box
