"""Causes of a feature: its parents and a function of them, given by the user and read as a form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.criteria.causality.mechanism import Mechanism
from ifonly.data.schema import Categorical, Feature, Numeric, Schema
from ifonly.errors import CriterionError
from ifonly.models.form import Form
from ifonly.models.forms.linear import Linear
from ifonly.models.opening import complete_row, open_part
from ifonly.models.reading.outcomes import values
from ifonly.question.query import Query
from ifonly.runtime.warning_filters import few_filters

__all__ = ["Cause", "open_cause"]

Coefficient = float | Mapping[Any, float]


@dataclass(frozen=True)
class Cause:
    """Causes of a feature: its parents, and ``c``, one of a model, coefficients or a form.

    Parameters
    ----------
    parents
        The features it follows from.
    model
        A fitted regression model (or Pipeline) of any supported kind; it takes a frame of exactly the parents' columns.
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
            raise CriterionError(
                "A Cause needs at least one parent. A feature without parents is left out of the causes."
            )
        twice = [name for name in self.parents if list(self.parents).count(name) > 1]
        if twice:
            raise CriterionError(f"{twice[0]!r} is named twice among the parents of a Cause.")
        given = [x for x in (self.model, self.coefficients, self.function) if x is not None]
        if len(given) != 1:
            raise CriterionError(
                f"A Cause needs exactly one of model=, coefficients= and function=, got {len(given)}. To have a model "
                "fitted to data, use Causality.learn(X, {feature: [parents]})."
            )
        if self.coefficients is not None and set(self.coefficients) != set(self.parents):
            raise CriterionError(
                f"The coefficients of a Cause must be those of its parents ({', '.join(self.parents)}), got "
                f"{', '.join(map(str, self.coefficients))}."
            )


def open_cause(query: Query, name: str, cause: Cause) -> Mechanism:
    """Return the mechanism of one feature, or say why its cause does not fit the data."""
    schema = query.schema
    if cause.model is not None:
        return _learned(query, name, cause)
    parents = tuple(schema.index(p) for p in cause.parents)
    if cause.coefficients is not None:
        return Mechanism(schema.index(name), parents, _linear(schema, name, cause.coefficients))
    return Mechanism(schema.index(name), parents, _given(schema, name, cause))


def _learned(query: Query, name: str, cause: Cause) -> Mechanism:
    """Read a fitted model; its columns are the parents, in the order in which it was fitted."""
    schema, model = query.schema, cause.model
    fitted = [str(c) for c in getattr(model, "feature_names_in_", cause.parents)]
    width = getattr(model, "n_features_in_", len(fitted))
    if sorted(fitted) != sorted(cause.parents) or width != len(fitted):
        was = ", ".join(fitted) if hasattr(model, "feature_names_in_") else f"{width} columns"
        raise CriterionError(
            f"The model of {name!r} was fitted on {was}, but its parents are {', '.join(cause.parents)}. Fit it on "
            f"X[{list(cause.parents)!r}], or name the parents it was fitted on."
        )
    base = complete_row(schema, query.training.U)
    with few_filters():
        opened = open_part(model, schema, fitted, base, f"The cause of {name!r}: ", tuning=query.tuning)
    if opened.read.classes:
        raise CriterionError(
            f"The model of {name!r} predicts classes ({', '.join(map(repr, opened.read.classes))}), but what it causes "
            "is a number. Fit a regression model."
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
                f"{feature.name!r} is numeric: its coefficient in the cause of {name!r} is one number, got "
                f"{coefficient!r}."
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
            f"The function of {name!r} must be a form with one output that looks at {', '.join(cause.parents)} only; "
            f"this one {why}."
        )
    return form
