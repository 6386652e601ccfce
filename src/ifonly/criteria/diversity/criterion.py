"""Diversity: what makes a further answer another answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.criteria.diversity.distinct import Apart, Distinct, LeaveOne, OtherFeatures, looked_at
from ifonly.criteria.proximity import Proximity
from ifonly.errors import CriterionError
from ifonly.question.criterion import ChecksTogether, Criterion
from ifonly.question.demand import Demand
from ifonly.question.further import Clustered, Diversifies, Way
from ifonly.question.query import Query
from ifonly.question.words import number

__all__ = ["Diversity"]


_COUNTED = "the features that the model or a demand looks at"
How = Literal["features", "iterate", "incumbents", "clusters"]


@dataclass(frozen=True)
class Diversity(Diversifies, ChecksTogether, Criterion):
    """Difference between the answers when more than one is asked for.

    Parameters
    ----------
    how
        * ``"features"``, the default: each answer leaves at least one feature of every earlier answer as it is. Each is
          the cheapest that does (Russell 2019 restricts earlier answers' features in the same spirit).
        * ``"iterate"``: any two answers are at least `distance` apart (Karimi et al. 2020). Each is the cheapest that is.
        * ``"incumbents"``: the points met on the way to the optimum, in one search (Maragno et al. 2022). The first is
          the optimum, the others are whatever was found.
        * ``"clusters"``: the best answer of each cluster of `Manifold(clusters=...)`, cheapest first.
    distance
        For ``"iterate"``: the least distance, in the l1 metric with the scales and weights of the query's `Proximity`.
    nested
        For ``"features"``: let an answer change all that an earlier one changes, and more; then only equal sets are
        excluded. A continuous number that an earlier answer leaves alone counts as changed from a ten-thousandth of its
        range in the training data on: there is no least move.

    Notes
    -----
    Sets of features (`nested`) and distances are counted over the features that the model or another demand looks at. A
    change of any other feature does nothing, so it makes no answer another one.

    Examples
    --------
    >>> Diversity("iterate", distance=0.2)
    Diversity(how='iterate', distance=0.2, nested=False)
    """

    how: How = "features"
    distance: float = 0.1
    nested: bool = False

    def __post_init__(self) -> None:
        if self.how not in get_args(How):
            raise CriterionError(f"The 'how' of Diversity must be one of {', '.join(get_args(How))}. Got {self.how!r}.")
        if not (np.isfinite(self.distance) and self.distance > 0):
            raise CriterionError(
                f"The 'distance' of Diversity must be a positive number, got {self.distance!r}. It is counted like the "
                "distance to the factual: 0.1 is a tenth of one feature's range."
            )

    def check_together(self, query: Query, demands: Sequence[Demand]) -> None:
        """One answer per cluster needs clusters."""
        if self.how == "clusters" and not any(len(c.clusters(query)) for c in demands if isinstance(c, Clustered)):
            raise CriterionError(
                "Diversity('clusters') gives one answer per cluster of the data, but no criterion makes clusters. Add "
                "Manifold(clusters=3), or use Diversity('features')."
            )

    def way(self) -> Way:
        """Search again, unless the options say otherwise."""
        return {"incumbents": Way.MET, "clusters": Way.CLUSTERS}.get(self.how, Way.AGAIN)

    def apart(self) -> float:
        """Return the distance, where that makes the difference."""
        return self.distance if self.how == "iterate" else 0.0

    def another(
        self, query: Query, criteria: Sequence[Criterion], demands: Sequence[Demand], u: FloatArray
    ) -> Distinct:
        """Return the demand for an answer other than `u`, which meets these criteria and demands."""
        among = looked_at(query, criteria, demands)
        if self.how == "iterate":
            metric = next((c for c in reversed(criteria) if isinstance(c, Proximity)), Proximity())
            return Apart.from_(u, metric, self.distance, among)
        changed = query.counted(u[None, :])[0]
        return OtherFeatures.than(query, changed, among) if self.nested else LeaveOne.of(query, changed)

    def none_left(self) -> str:
        """Return the sentence that says there is no further answer."""
        if self.how == "iterate":
            return f"no further answer is {number(self.distance)} away from the others in {_COUNTED}"
        if self.nested:
            return f"no further answer changes another set of {_COUNTED}"
        return "every further answer changes all that one of these changes"
