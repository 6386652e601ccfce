"""Statement: demands, costs and form of one question, before a program is built."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, replace
from typing import NamedTuple

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.form import Form
from ifonly.models.forms.compose import plateau
from ifonly.program.box import Box
from ifonly.question.abilities import Counts, Refines, Verifies
from ifonly.question.costs import Costs
from ifonly.question.criterion import Couples, Criterion, HasConsequences
from ifonly.question.demand import BoxDemand, Demand, Outcome
from ifonly.question.outside import Outside
from ifonly.question.query import Query
from ifonly.runtime.memo import cached_property

__all__ = ["Parts", "Separable", "Statement"]


class Separable(NamedTuple):
    """A question in which nothing but the goal reaches beyond single features: the goal, and how many may change."""

    goal: Outcome
    most: int


class Parts(NamedTuple):
    """Parts of a statement that no margin changes, each the property of this name: known ones need not be computed again."""

    separable_costs: Costs
    coupled: tuple[Couples, ...]
    consequences: tuple[HasConsequences, ...]
    exempted: frozenset[int]
    whole: Box
    is_empty: bool
    starts_inside: bool
    on_single_features: Separable | None


@dataclass(frozen=True, eq=False)
class Statement:
    """Statement of a question before anything is built: the query, its demands, and the criteria that cost.

    `form` is the model's form, or a refined one; `margin` is how far the scores must clear their thresholds, `tie` how far
    at least where a tie would be lost. Parts of it that are `known` are not computed again.
    """

    query: Query
    demands: tuple[Demand, ...]
    criteria: tuple[Criterion, ...]
    form: Form
    margin: float = 0.0
    tie: float = 0.0
    known: InitVar[Parts | None] = None

    def __post_init__(self, known: Parts | None) -> None:
        """Keep the parts that are known already; another statement, by `replace`, looks for itself."""
        for name, part in ({} if known is None else known._asdict()).items():
            object.__setattr__(self, name, part)

    def with_margin(self, margin: float, tie: float) -> Statement:
        """Return the same question with another margin, and the parts that it does not change."""
        return Statement(self.query, self.demands, self.criteria, self.form, margin, tie, self.parts())

    def parts(self) -> Parts:
        """Return the parts that no margin changes."""
        return Parts(*(getattr(self, name) for name in Parts._fields))

    # -- costs --------------------------------------------------------------------------------------------------
    def costs(self) -> Costs:
        """Return the separable costs of all criteria."""
        return self.separable_costs

    @cached_property
    def separable_costs(self) -> Costs:
        """The same, added up once."""
        known = [part for part in (criterion.costs(self.query) for criterion in self.criteria) if part is not None]
        total = known[0] if known else Costs.none(self.query.schema)
        for part in known[1:]:
            total = total + part
        return total.without(self.query.schema, self.exempt())

    def exempt(self) -> frozenset[int]:
        """Return the features whose change is a consequence of other changes, as some criterion says."""
        return self.exempted

    @cached_property
    def exempted(self) -> frozenset[int]:
        """The same, asked for once."""
        return self.query.exempt.union(*(c.exempt(self.query) for c in self.consequences))

    @cached_property
    def coupled(self) -> tuple[Couples, ...]:
        """The criteria with a cost that is no sum over single features."""
        return tuple(c for c in self.criteria if isinstance(c, Couples) and not c.separable())

    @cached_property
    def consequences(self) -> tuple[HasConsequences, ...]:
        """The criteria by which some features follow from others."""
        return tuple(c for c in self.criteria if isinstance(c, HasConsequences))

    def separable(self) -> bool:
        """Whether all costs belong to single features, and nothing follows from a change."""
        return not self.coupled and not self.consequences

    @cached_property
    def on_single_features(self) -> Separable | None:
        """The goal and the number of changes, where no demand couples features in another way; costs may."""
        goal, most = None, len(self.query.schema)
        if self.exempt():
            return None
        for demand in self.demands:
            if isinstance(demand, Outcome) and goal is None:
                goal = demand
            elif isinstance(demand, Counts):
                most = min(most, demand.at_most())
            elif not isinstance(demand, BoxDemand):
                return None
        return None if goal is None else Separable(goal, most)

    def objective(self, U: FloatArray) -> FloatArray:
        """Return the true objective of canonical rows: the NumPy twin of the program's objective."""
        total = self.costs().per_feature(self.query, U).sum(axis=1)
        for criterion in self.coupled:
            total = total + criterion.coupled_cost(self.query, U)
        return np.asarray(total)

    def with_consequences(self, U: FloatArray, *, by_model: bool = False) -> FloatArray:
        """Return canonical rows with what follows from the rest computed anew: by forms, or by the user's models."""
        for criterion in self.consequences:
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

    # -- the box ------------------------------------------------------------------------------------------------
    def box(self) -> Box:
        """Return the box that all demands on single features leave, as a copy that may be narrowed."""
        return self.whole.copy()

    @cached_property
    def whole(self) -> Box:
        """The same box, shared by all who look at it: nobody can narrow it."""
        box = self.query.limits.copy()
        for demand in self.demands:
            demand.narrow(self.query, box)
        return box.sealed()

    @cached_property
    def is_empty(self) -> bool:
        """Whether the box leaves some feature no value."""
        return self.whole.empty() is not None

    def starts_in(self, box: Box) -> bool:
        """Whether the factual lies in a part of the box, and lacks no value: then moves begin at it."""
        return self.starts_inside if box is self.whole else _holds(box, self.query.factual)

    @cached_property
    def starts_inside(self) -> bool:
        """The same of the whole box."""
        return _holds(self.whole, self.query.factual)


def _holds(box: Box, factual: FloatArray) -> bool:
    return not box.missing.any() and bool(box.contains(factual[None, :])[0])
