"""Causality: what follows from an action changes with it, as a causal model says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, get_args

import numpy as np

from ifonly.box import Box
from ifonly.criteria import Criterion, Demand, Query
from ifonly.criteria.demands import Frozen
from ifonly.criteria.mechanism import Follows, Mechanism, is_settled
from ifonly.errors import CriterionError
from ifonly.fitted import open_part
from ifonly.mip import FloatArray
from ifonly.models import Form
from ifonly.models.linear import Linear
from ifonly.models.outcomes import values
from ifonly.schema import Categorical, Feature, Numeric, Schema

__all__ = ["Causality", "Cause"]

Count = Literal["actions", "all"]
Coefficient = float | Mapping[Any, float]


@dataclass(frozen=True)
class Cause:
    """What a feature follows from: its parents, and ``c``, one of a model, coefficients or a form.

    Parameters
    ----------
    parents
        The features it follows from.
    model
        A fitted regression model (or Pipeline) of any supported kind that takes a frame of exactly the parents' columns.
    coefficients
        Parent -> weight, for a linear ``c``; for a categorical parent, level -> value.
    function
        A form with one output over the explainer's schema that looks at the parents only.
    r2
        The share of the variance that the model explains on rows it has not seen; set by `Causality.learn`.

    Examples
    --------
    >>> Cause(["credit_amount"], coefficients={"credit_amount": 0.004}).parents
    ['credit_amount']
    """

    parents: Sequence[str]
    model: Any = None
    coefficients: Mapping[str, Coefficient] | None = None
    function: Form | None = None
    r2: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.parents, str):
            raise CriterionError(
                f"The 'parents' of a Cause must be a list of features, got the text {self.parents!r}. Write "
                f"Cause([{self.parents!r}], ...)."
            )
        if not len(self.parents):
            raise CriterionError("A Cause needs at least one parent; a feature without parents is not caused: leave it out.")
        twice = [name for name in self.parents if list(self.parents).count(name) > 1]
        if twice:
            raise CriterionError(f"{twice[0]!r} is named twice among the parents of a Cause.")
        given = [x for x in (self.model, self.coefficients, self.function) if x is not None]
        if len(given) != 1:
            raise CriterionError(
                f"A Cause needs exactly one of model=, coefficients= and function=, got {len(given)}. To have a model fitted "
                "to data, use Causality.learn(X, {feature: [parents]})."
            )
        if self.coefficients is not None and set(self.coefficients) != set(self.parents):
            raise CriterionError(
                f"The coefficients of a Cause must be those of its parents ({', '.join(self.parents)}), got "
                f"{', '.join(map(str, self.coefficients))}."
            )


@dataclass(frozen=True)
class Causality(Criterion):
    r"""What follows from an action changes with it, and nothing that follows changes by itself.

    For a feature ``i`` with parents ``p`` the structural equation is ``x_i = c_i(p) + noise``. The noise of this person
    is what the factual leaves unexplained (abduction), the parents change (action), and the feature follows
    (prediction; Pearl 2013, Karimi et al. 2020, Maragno et al. 2022):

        ``x_i = xhat_i + c_i(p) - c_i(phat)``.

    A whole-numbered feature, or one with a fixed precision, lies within half a step of the right-hand side. Parents may
    have parents themselves. An answer obeys the equation to 1e-6 by the word of the user's own fitted model.

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
    _read: dict[tuple[Feature, ...], Mechanism] = field(default_factory=dict, init=False, repr=False, compare=False)
    _last: list[tuple[Any, list[Follows]]] = field(default_factory=list, init=False, repr=False, compare=False)

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
                    f"The causes of Causality map features to a Cause, got {cause!r} for {name!r}. Write Cause([parents], "
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
                f"The causes go round in a circle ({circle}): nothing can be its own cause. Take one of these arrows out."
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
        from ifonly.criteria.learning import learn_causes  # noqa: PLC0415 - scikit-learn is loaded when needed

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
                    f"{name!r} is {feature.kind}: it cannot be the sum of what its parents cause and a noise. Only numeric "
                    "features can be caused; say what goes together with Actionability(implies=[...])."
                )
            if _is_missing(query, schema.index(name)):
                raise CriterionError(
                    f"{name!r} is missing in this row, so what its parents leave unexplained is not known. Fill it in, or "
                    "leave it out of Causality."
                )
            mechanism = self._mechanism(query, name)
            accepts = mechanism.model is not None and mechanism.model.read.accepts_missing
            absent = [p for p in cause.parents if _is_missing(query, schema.index(p))]
            if absent and not accepts:
                raise CriterionError(
                    f"{absent[0]!r} is missing in this row, and the cause of {name!r} gives a missing value no meaning. Fill "
                    "it in, or leave the effect out of Causality."
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
            free = [a for a in self.ancestors(name) if not is_settled(query, box, schema.index(a))]
            if free:
                raise CriterionError(
                    f"{name!r} is frozen, but it follows from {', '.join(map(repr, free))}, which may change: a frozen "
                    f"effect of a changed cause is a contradiction. Freeze {', '.join(map(repr, free))} too, or unfreeze "
                    f"{name!r}."
                )

    # -- the equations ------------------------------------------------------------------------------------------
    def demands(self, query: Query) -> list[Demand]:
        """Return one equation per caused feature, causes before their effects."""
        return list(self._equations(query))

    def _equations(self, query: Query) -> list[Follows]:
        key = (query.schema.features, query.factual.tobytes())
        # Heuristics ask for the same question's equations again and again, so the last ones are kept.
        for known, equations in self._last:
            if known == key:
                return equations
        equations = [Follows.of(query, self._mechanism(query, name)) for name in self.order]
        followers = frozenset(e.mechanism.feature for e in equations)
        equations[-1] = replace(equations[-1], followers=followers)
        self._last[:] = [(key, equations)]
        return equations

    def exempt(self, query: Query) -> frozenset[int]:
        """Return the caused features, unless all changes are counted."""
        return frozenset(query.schema.index(name) for name in self.causes) if self.count == "actions" else frozenset()

    def _mechanism(self, query: Query, name: str) -> Mechanism:
        schema, cause = query.schema, self.causes[name]
        key = (schema[name], *schema.features)
        if key not in self._read:
            i, parents = schema.index(name), tuple(schema.index(p) for p in cause.parents)
            if cause.model is not None:
                self._read[key] = _learned(query, name, cause)
            elif cause.coefficients is not None:
                self._read[key] = Mechanism(i, parents, _linear(schema, name, cause.coefficients))
            else:
                self._read[key] = Mechanism(i, parents, _given(schema, name, cause))
        return self._read[key]

    # -- NumPy's side -------------------------------------------------------------------------------------------
    def settle(self, query: Query, U: FloatArray) -> FloatArray:
        """Return the rows with every caused feature computed anew through the user's own models."""
        for equation in self._equations(query):
            U = equation.settle(query, U)
        return U

    def remarks(self, query: Query, U: FloatArray) -> list[str]:
        """Say which changes are consequences."""
        moved = query.changed(U).any(axis=0)
        out = []
        for name in self.order:
            if moved[query.schema.index(name)]:
                parents = " and ".join(query.schema.label(p) for p in self.causes[name].parents)
                aside = "; not counted as a change of its own" if self.count == "actions" else ""
                out.append(f"{query.schema.label(name)} follows from {parents}{aside}")
        return out

    def measure(self, query: Query, U: FloatArray) -> dict[str, FloatArray]:
        """Return how far the worst equation is off, by the user's own models."""
        errors = [equation.error(query, U) for equation in self._equations(query)]
        return {"causal_error": np.max(errors, axis=0)}


def _is_missing(query: Query, j: int) -> bool:
    part = query.factual[query.schema.slice(j)]
    return bool(np.isnan(part[0])) if isinstance(query.schema.features[j], Numeric) else not part.any()


def _learned(query: Query, name: str, cause: Cause) -> Mechanism:
    """Read a fitted model; its columns are the parents, in the order in which it was fitted."""
    schema, model = query.schema, cause.model
    fitted = [str(c) for c in getattr(model, "feature_names_in_", cause.parents)]
    if sorted(fitted) != sorted(cause.parents) or getattr(model, "n_features_in_", len(fitted)) != len(fitted):
        was = ", ".join(fitted) if hasattr(model, "feature_names_in_") else f"{model.n_features_in_} columns"
        raise CriterionError(
            f"The model of {name!r} was fitted on {was}, but its parents are {', '.join(cause.parents)}. Fit it on "
            f"X[{list(cause.parents)!r}], or name the parents it was fitted on."
        )
    U = query.training.U
    base = U[int(np.argmax(~np.isnan(U).any(axis=1)))]
    opened = open_part(model, schema, fitted, base, f"The cause of {name!r}: ")
    if opened.read.classes:
        raise CriterionError(
            f"The model of {name!r} predicts classes ({', '.join(map(repr, opened.read.classes))}), but what it causes is a "
            "number. Fit a regression model."
        )
    form = values(opened.read, f"The cause of {name!r}")
    return Mechanism(schema.index(name), tuple(schema.index(p) for p in fitted), form, opened)


def _linear(schema: Schema, name: str, coefficients: Mapping[str, Coefficient]) -> Linear:
    weights = np.zeros((1, schema.width))
    for parent, coefficient in coefficients.items():
        weights[0, schema.slice(schema.index(parent))] = _weights(schema[parent], name, coefficient)
    return Linear(schema, weights, np.zeros(1))


def _weights(feature: Feature, name: str, coefficient: Coefficient) -> Any:
    """Return the weight of a number, or of each level of a category."""
    if isinstance(feature, Numeric):
        if isinstance(coefficient, Mapping):
            raise CriterionError(
                f"{feature.name!r} is numeric, so its coefficient in the cause of {name!r} is one number, got {coefficient!r}."
            )
        return float(coefficient)
    if isinstance(coefficient, Mapping):
        return _level_weights(feature, name, coefficient)
    if all(isinstance(level, (bool, int, float)) for level in feature.levels):
        return [float(coefficient) * float(level) for level in feature.levels]
    raise CriterionError(
        f"{feature.name!r} is {feature.kind} with text levels: give each level a value in the cause of {name!r}, "
        f"coefficients={{{feature.name!r}: {{{feature.levels[0]!r}: 0.0, ...}}}}."
    )


def _level_weights(feature: Categorical, name: str, table: Mapping[Any, float]) -> FloatArray:
    out = np.full(feature.width, np.nan)
    for level, value in table.items():
        out[feature.position(level)] = float(value)
    if np.isnan(out).any():
        level = feature.levels[int(np.argmax(np.isnan(out)))]
        raise CriterionError(f"The cause of {name!r} gives the level {level!r} of {feature.name!r} no value. Add it.")
    return out


def _given(schema: Schema, name: str, cause: Cause) -> Form:
    form = cause.function
    assert form is not None
    parents = {schema.index(p) for p in cause.parents}
    others = sorted(form.features() - parents)
    if form.n_outputs != 1 or others:
        looks = ", ".join(schema.names[j] for j in others)
        why = f"looks at {looks} too" if others else f"has {form.n_outputs} outputs"
        raise CriterionError(
            f"The function of {name!r} must be a form with one output that looks at {', '.join(cause.parents)} only; this "
            f"one {why}."
        )
    return form
