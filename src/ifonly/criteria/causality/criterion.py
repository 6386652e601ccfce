"""Causality: what follows from an action changes with it, as a causal model says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, get_args

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.criteria.actionability.demands import Frozen
from ifonly.criteria.causality.causes import Cause, open_cause
from ifonly.criteria.causality.mechanism import CausalEquation, Mechanism
from ifonly.data.schema import Numeric
from ifonly.errors import CriterionError
from ifonly.program.box import Box
from ifonly.question.criterion import ChecksTogether, Criterion, HasConsequences, Remarks
from ifonly.question.demand import Demand
from ifonly.question.query import Query

__all__ = ["Causality", "Cause"]

Count = Literal["actions", "all"]


@dataclass(frozen=True)
class Causality(HasConsequences, ChecksTogether, Remarks, Criterion):
    r"""Structural causal model of the features: an effect changes with its causes, and never by itself.

    For a feature ``i`` with parents ``p`` the structural equation is ``x_i = c_i(p) + noise``. The noise of this person
    is what the factual leaves unexplained (abduction), the parents change (action), and the feature follows
    (prediction; Pearl 2013, Karimi et al. 2020, Maragno et al. 2022):

        ``x_i = xhat_i + c_i(p) - c_i(phat)``.

    A whole-numbered feature, or one with a fixed precision, lies within half a step of the right-hand side. Parents may
    have parents themselves. An answer obeys the equation to a millionth of the feature's range (on a grid: of its step,
    beyond half a step), by the word of the user's own fitted model.

    Parameters
    ----------
    causes
        Feature -> its `Cause`. The features must be numeric; parents may be of any kind.
    count
        ``"actions"``: distance and sparsity count what the person does; what follows is neither counted nor charged.
        ``"all"``: every changed feature counts.

    Examples
    --------
    >>> law = Causality({"duration": Cause(["credit_amount"], coefficients={"credit_amount": 0.004})})
    >>> law.order
    ('duration',)
    """

    causes: Mapping[str, Cause]
    count: Count = "actions"

    def __post_init__(self) -> None:
        if not self.causes:
            raise CriterionError("Causality needs at least one feature with a Cause.")
        if self.count not in get_args(Count):
            raise CriterionError(
                f"The 'count' of Causality must be one of {', '.join(get_args(Count))}. Got {self.count!r}."
            )
        for name, cause in self.causes.items():
            if not isinstance(cause, Cause):
                raise CriterionError(
                    f"The causes of Causality map features to a Cause, got {cause!r} for {name!r}. Write Cause([...], "
                    "model=...), or Causality.learn(X, {feature: [parents]}) to fit the models."
                )
        _ = self.order

    @property
    def order(self) -> tuple[str, ...]:
        """The caused features, causes before their effects."""
        graph = {name: list(cause.parents) for name, cause in self.causes.items()}
        try:
            return tuple(name for name in TopologicalSorter(graph).static_order() if name in self.causes)
        except CycleError as error:
            circle = " -> ".join(map(str, error.args[1]))
            raise CriterionError(
                f"The causes go round in a circle ({circle}): nothing is its own cause. Take one of these arrows out."
            ) from None

    def ancestors(self, name: str) -> tuple[str, ...]:
        """Return the causes of a feature that have no cause themselves: what a person can act on."""
        found: dict[str, None] = {}
        stack = [name]
        while stack:
            cause = self.causes.get(stack.pop())
            for parent in () if cause is None else cause.parents:
                if parent in self.causes:
                    stack.append(parent)
                else:
                    found[parent] = None
        return tuple(found)

    @classmethod
    def learn(
        cls,
        X: Any,
        graph: Mapping[str, Sequence[str]],
        *,
        models: Iterable[Any] | None = None,
        cv: int = 5,
        count: Count = "actions",
        random_state: int = 0,
    ) -> Causality:
        """Fit a model to each arrow of a causal graph, chosen by cross-validation.

        Parameters
        ----------
        X
            The data.
        graph
            Feature -> its parents.
        models
            Unfitted regression models to choose from. The default is a ridge regression, small gradient boosting and a
            network of 20 rectifiers. Numbers are scaled and categories one-hot encoded before each.
        cv
            Number of folds.
        count
            See `Causality`.
        random_state
            Seed of the folds and of the default models.
        """
        from ifonly.criteria.causality.learning import learn_causes  # noqa: PLC0415 - scikit-learn is loaded when needed

        return cls(learn_causes(X, graph, models, cv, random_state), count)

    # -- checks before solving ----------------------------------------------------------------------------------
    def check(self, query: Query) -> None:
        """Every feature must be known, every effect a number that this row has, every model readable."""
        schema = query.schema
        for name, cause in self.causes.items():
            for parent in cause.parents:
                schema.index(parent)
            feature = schema[name]
            if not isinstance(feature, Numeric):
                raise CriterionError(
                    f"{name!r} is {feature.kind}: it cannot be the sum of what its parents cause and a noise. Only "
                    "numeric features can be caused; say what goes together with Actionability(implies=[...])."
                )
            if _is_missing(query, schema.index(name)):
                raise CriterionError(
                    f"{name!r} is missing in this row, so what its parents leave unexplained is not known. Fill it in, "
                    "or leave it out of Causality."
                )
            mechanism = self._mechanism(query, name)
            accepts = frozenset[int]() if mechanism.model is None else mechanism.model.read.accepts_missing
            refused = [schema.index(p) for p in cause.parents if schema.index(p) not in accepts]
            absent = [schema.names[j] for j in refused if _is_missing(query, j)]
            if absent:
                raise CriterionError(
                    f"{absent[0]!r} is missing in this row, and the cause of {name!r} gives a missing value no "
                    "meaning. Fill it in, or leave the effect out of Causality."
                )

    def check_together(self, query: Query, demands: Sequence[Demand]) -> None:
        """A frozen effect of a cause that may change is a contradiction."""
        schema = query.schema
        frozen = {d.feature for d in demands if isinstance(d, Frozen)}
        box = Box.of(schema, query.factual)
        for demand in demands:
            demand.narrow(query, box)
        for name in self.order:
            if schema.index(name) not in frozen:
                continue
            free = [a for a in self.ancestors(name) if not box.is_fixed_at(schema.index(a), query.factual)]
            if free:
                raise CriterionError(
                    f"{name!r} is frozen, but it follows from {', '.join(map(repr, free))}, which may change: a frozen "
                    f"effect of a changed cause is a contradiction. Freeze {', '.join(map(repr, free))} too, or "
                    f"unfreeze {name!r}."
                )

    # -- the equations ------------------------------------------------------------------------------------------
    def demands(self, query: Query) -> list[Demand]:
        """Return one equation per caused feature, causes before their effects."""
        return list(self._equations(query))

    def _equations(self, query: Query) -> list[CausalEquation]:
        # Heuristics ask for the same question's equations again and again.
        key = (id(self), id(query.schema), query.factual.tobytes())
        return query.training.memo.get("equations", key, lambda: self._stated(query), keep=(self, query.schema))

    def _stated(self, query: Query) -> list[CausalEquation]:
        equations = [CausalEquation.of(query, self._mechanism(query, name)) for name in self.order]
        followers = frozenset(e.mechanism.feature for e in equations)
        equations[-1] = replace(equations[-1], followers=followers)
        return equations

    def exempt(self, query: Query) -> frozenset[int]:
        """Return the caused features, unless all changes are counted."""
        counted = () if self.count == "all" else self.causes
        return frozenset(query.schema.index(name) for name in counted)

    def _mechanism(self, query: Query, name: str) -> Mechanism:
        cause, known = self.causes[name], query.training.memo
        key = (name, id(cause), query.schema.features)
        return known.get("mechanisms", key, lambda: open_cause(query, name, cause), keep=cause)

    # -- NumPy's side -------------------------------------------------------------------------------------------
    def with_consequences(self, query: Query, U: FloatArray, *, by_model: bool = False) -> FloatArray:
        """Return the rows with every caused feature computed anew, by the forms or by the user's own models."""
        for equation in self._equations(query):
            U = equation.with_consequence(query, U, by_model=by_model)
        return U

    def remarks(self, query: Query, U: FloatArray) -> list[str]:
        """Say which changes are consequences."""
        moved = np.flatnonzero(query.changed(U).any(axis=0))
        out = []
        for name in self.order:
            if query.schema.index(name) in moved:
                parents = " and ".join(query.schema.label(p) for p in self.causes[name].parents)
                aside = "; not counted as a change of its own" if self.count == "actions" else ""
                out.append(f"{query.schema.label(name)} follows from {parents}{aside}")
        return out

    def measure(self, query: Query, U: FloatArray) -> dict[str, FloatArray]:
        """Return how far the worst equation is off, by the user's own models."""
        errors = [equation.error(query, U, by_model=True) for equation in self._equations(query)]
        return {"causal_error": np.max(errors, axis=0)}


def _is_missing(query: Query, j: int) -> bool:
    part = query.factual[query.schema.slice(j)]
    return bool(np.isnan(part[0])) if isinstance(query.schema.features[j], Numeric) else not part.any()
