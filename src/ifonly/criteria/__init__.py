"""What makes a counterfactual good. A criterion is said twice: as demands and costs of a program, and as a measure.

A `Criterion` is what the user writes. For one question (a `Query`) it yields `Demand`s, the atoms that can clash and be
loosened one by one, and costs, the terms of the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ifonly.box import Box
from ifonly.deadline import Deadline
from ifonly.mip import Affine, FloatArray, IntArray
from ifonly.models import Model
from ifonly.schema import Schema
from ifonly.tolerances import EDGE
from ifonly.training import Training

if TYPE_CHECKING:
    from ifonly.criteria.validity import Goal
    from ifonly.problem import Problem, Statement

__all__ = ["Branch", "Costs", "Criterion", "Demand", "Query", "Relaxation", "number"]


@dataclass(frozen=True, eq=False)
class Query:
    """One question: this factual, this model, this training data, this goal.

    `exempt` are the features whose change is a consequence of other changes, neither counted nor charged.
    """

    schema: Schema
    factual: FloatArray
    model: Model
    training: Training
    seed: int = 0
    goal: Goal | None = None
    exempt: frozenset[int] = frozenset()
    _known: dict[int, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, owner: Any, compute: Callable[[], Any]) -> Any:
        """Return what `compute` returned the first time that `owner` asked this query."""
        if id(owner) not in self._known:
            self._known[id(owner)] = owner, compute()  # the owner is kept, so that no other one gets its id
        return self._known[id(owner)][1]

    def value(self, j: int) -> Any:
        """Return the factual's raw value of feature `j`."""
        return self.schema.level_values(j, self.factual)

    def changed(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Return, per row and feature, whether it differs from the factual."""
        different = (self.factual != U) & ~(np.isnan(self.factual) & np.isnan(U))
        return np.logical_or.reduceat(different, self.schema.starts, axis=1)

    def counted(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Return, per row and feature, whether it is changed and counts as a change."""
        changed = self.changed(U)
        changed[:, sorted(self.exempt)] = False
        return changed


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A way out of a contradiction.

    Attributes
    ----------
    demand
        The demand to loosen, in words.
    change
        How to loosen it, in words, e.g. "at_most 1 -> 2".
    amount
        How far that is, in the demand's own unit.
    """

    demand: str
    change: str
    amount: float

    def __str__(self) -> str:
        return self.change


@dataclass(frozen=True, eq=False)
class Branch:
    """One of several alternatives of a demand: no point of it costs less than `bound`.

    Attributes
    ----------
    bound
        A lower bound on the objective within this alternative.
    box
        The part of the box it lives in.
    demand
        What replaces the demand there.
    """

    bound: float
    box: Box
    demand: Demand


@dataclass(frozen=True, eq=False)
class Demand:
    """One atomic demand on the answer. Subclasses fill in what they need; the defaults demand nothing."""

    text: str

    def narrow(self, query: Query, box: Box) -> None:
        """Shrink the box, for a demand on single features."""

    def tighten(self, query: Query, box: Box) -> None:
        """Shrink the box once more when a budget has made it smaller, for a demand that carries bounds further."""

    def cuts(self, query: Query) -> Mapping[int, FloatArray]:  # noqa: ARG002 - for subclasses
        """Return the raw thresholds this demand asks for."""
        return {}

    def raw(self, query: Query) -> frozenset[int]:  # noqa: ARG002 - for subclasses
        """Return the numeric features whose raw value this demand couples."""
        return frozenset()

    def features(self, query: Query) -> frozenset[int]:
        """Return the features that the rows of `apply` can move, whether or not the model looks at them."""
        return self.raw(query) | frozenset(self.cuts(query))

    def apply(self, problem: Problem) -> None:
        """Add rows to the program."""

    def within_box(self) -> bool:
        """Whether `narrow` says all there is to this demand."""
        return type(self).apply is Demand.apply and type(self).branches is Demand.branches

    def at_most(self) -> int | None:
        """Return how many features may change, for a demand that says just that."""
        return None

    def branches(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[Branch] | None:  # noqa: ARG002
        """Split the question into alternatives, cheapest bound first, or return None when it is one piece.

        Once the deadline has passed, bounds may be looser, but no alternative may be left out.
        """
        return None

    def candidates(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[FloatArray]:  # noqa: ARG002
        """Return points worth trying as incumbents: this demand knows how to meet itself cheaply.

        None have to be returned, and none should be once the deadline has passed.
        """
        return ()

    def lower_bound(self, statement: Statement, box: Box, deadline: Deadline) -> float:  # noqa: ARG002
        """Return a bound on the objective in a box that this demand alone implies, if it can tell (see `squeeze`)."""
        return -np.inf

    def squeeze(self, statement: Statement, box: Box, budget: float, deadline: Deadline) -> Box:  # noqa: ARG002
        """Return the part of a box in which this demand can be met for at most `budget`; it may be empty."""
        return box

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, per canonical row, whether the demand is met: the NumPy twin of `narrow` and `apply`."""
        box = Box.of(query.schema, query.factual)
        self.narrow(query, box)
        return box.contains(U, EDGE)

    def verified(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, per canonical row, whether the demand is met by the word of the user's own models, where it has any."""
        return self.holds(query, U)

    def refined(self, u: FloatArray) -> Demand | None:  # noqa: ARG002 - for subclasses
        """Return a demand whose rows are exact at `u`, or None when they are exact everywhere."""
        return None

    def loosest(self, query: Query) -> Demand | None:  # noqa: ARG002 - for subclasses
        """Return what of this demand stays however far it is loosened, or None: then nothing does."""
        return None

    def excess(self, problem: Problem) -> Affine | None:  # noqa: ARG002 - for subclasses
        """Return an expression of how far the demand is broken, or None: then it can only be dropped."""
        return None

    def excess_raw(self, query: Query) -> frozenset[int]:
        """Return the numeric features whose raw value `excess` needs."""
        return self.raw(query)

    def excess_features(self, query: Query) -> frozenset[int]:
        """Return the features that `excess` can move."""
        return self.features(query)

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:  # noqa: ARG002 - for subclasses
        """Return the loosening that lets the row `u` through."""
        return Relaxation(self.text, f"drop: {self.text}", 1.0)


@dataclass(frozen=True, eq=False)
class Costs:
    """The separable part of the objective: what each feature costs by itself.

    ``sum_j linear[j] |x_j - xhat_j| + square[j] (x_j - xhat_j)^2 + price[j] [x_j != xhat_j] + levels[level of j]``
    """

    linear: FloatArray
    square: FloatArray
    price: FloatArray
    levels: FloatArray

    @classmethod
    def none(cls, schema: Schema) -> Costs:
        """Return costs of zero."""
        n = len(schema)
        return cls(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(schema.width))

    def __add__(self, other: Costs) -> Costs:
        return Costs(
            self.linear + other.linear,
            self.square + other.square,
            self.price + other.price,
            self.levels + other.levels,
        )

    def numeric(self, j: int | Sequence[int] | IntArray, deviation: FloatArray) -> FloatArray:
        """Return the cost of moving numeric feature `j`, or one feature for each amount, by these amounts."""
        moved = np.abs(deviation)
        return np.asarray(self.linear[j] * moved + self.square[j] * moved**2 + self.price[j] * (moved != 0))

    def level_costs(self, schema: Schema, j: int, factual: FloatArray) -> FloatArray:
        """Return the cost of each level of categorical feature `j`."""
        return self.entries(schema, factual, schema.slice(j))

    def entries(self, schema: Schema, factual: FloatArray, which: slice | IntArray) -> FloatArray:
        """Return the cost of the levels that some entries of the canonical vector stand for."""
        return np.asarray(self.levels[which] + self.price[schema.owner[which]] * (factual[which] == 0))

    def without(self, schema: Schema, features: frozenset[int]) -> Costs:
        """Return the costs with those of some features set to zero."""
        if not features:
            return self
        keep = np.array([j not in features for j in range(len(schema))])
        levels = keep[schema.owner]
        return Costs(self.linear * keep, self.square * keep, self.price * keep, self.levels * levels)

    def per_feature(self, query: Query, U: FloatArray) -> FloatArray:
        """Return the cost of each feature of each row; a value in place of a missing one costs only its price."""
        schema, factual = query.schema, query.factual
        numeric = schema.numeric
        at = [schema.starts[j] for j in numeric]
        hat, absent = factual[at], np.isnan(factual[at])
        costs = self.numeric(numeric, U[:, at] - hat)
        costs[:, absent] = np.where(np.isnan(U[:, at]), 0.0, self.price[numeric])[:, absent]
        entries = U * self.entries(schema, factual, slice(None))
        entries[:, at] = costs
        return np.asarray(np.add.reduceat(entries, schema.starts, axis=1))


@dataclass(frozen=True)
class Criterion:
    """What the user writes; subclasses are the public criteria."""

    def check(self, query: Query) -> None:
        """Raise `CriterionError` when the criterion is ill-posed for this schema; warn when the factual breaks it."""

    def check_together(self, query: Query, demands: Sequence[Demand]) -> None:
        """Raise `CriterionError` when the demands of all criteria contradict this one before anything is solved."""

    def demands(self, query: Query) -> Sequence[Demand]:  # noqa: ARG002 - for subclasses
        """Return the atomic demands."""
        return ()

    def costs(self, query: Query) -> Costs | None:  # noqa: ARG002 - for subclasses
        """Return the separable costs, if any."""
        return None

    def couples(self, query: Query) -> frozenset[int]:  # noqa: ARG002 - for subclasses
        """Return the numeric features whose raw value a non-separable cost needs."""
        return frozenset()

    def exempt(self, query: Query) -> frozenset[int]:  # noqa: ARG002 - for subclasses
        """Return features whose change is a consequence, not an action: neither counted nor charged."""
        return frozenset()

    def separable(self) -> bool:
        """Whether all that this criterion costs belongs to single features, and nothing follows from a change."""
        kind = type(self)
        return kind.add_cost is Criterion.add_cost and kind.settle is Criterion.settle

    def add_cost(self, problem: Problem) -> None:
        """Add a non-separable cost to the program."""

    def coupled_cost(self, query: Query, U: FloatArray) -> FloatArray:  # noqa: ARG002 - for subclasses
        """Return the non-separable cost of each row: the NumPy twin of `add_cost`."""
        return np.zeros(len(U))

    def coupled_bound(self, query: Query) -> Costs | None:  # noqa: ARG002 - for subclasses
        """Return separable costs whose largest entry bounds the coupled cost from below, for reduction."""
        return None

    def settle(self, query: Query, U: FloatArray, *, by_model: bool = False) -> FloatArray:  # noqa: ARG002
        """Return the rows with what follows from the rest computed anew: by forms, or by the user's own models."""
        return U

    def remarks(self, query: Query, U: FloatArray) -> list[str]:  # noqa: ARG002 - for subclasses
        """Return sentences to be printed below the answers."""
        return []

    def measure(self, query: Query, U: FloatArray) -> dict[str, FloatArray]:  # noqa: ARG002 - for subclasses
        """Return named numbers about each row, in the words of this criterion."""
        return {}


def number(value: float, towards: Literal["nearest", "up", "down"] = "nearest") -> str:
    """Print a number in a message: short, whole when it is whole, rounded to the side that is asked for.

    A loosening is printed away from what is demanded, so that what is read off the message is enough.
    """
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    if towards == "nearest" or not np.isfinite(value):
        return f"{value:.6g}"
    context = Context(prec=6, rounding=ROUND_CEILING if towards == "up" else ROUND_FLOOR)
    return f"{float(context.create_decimal_from_float(value)):.6g}"
