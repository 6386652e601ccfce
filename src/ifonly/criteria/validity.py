"""Validity: the model must say what is wanted, ties broken exactly as its `predict` breaks them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ifonly.data.features import plain
from ifonly.errors import CriterionError, did_you_mean
from ifonly.models.read import Model, Read
from ifonly.question.any_class import AnyClassGoal
from ifonly.question.goal import ClassGoal, Goal, IntervalGoal, ProbabilityGoal
from ifonly.question.words import interval_text, number

__all__ = ["Target", "as_target", "resolve"]


@dataclass(frozen=True, repr=False)
class Target:
    """The outcome that is wished for.

    Parameters
    ----------
    label
        The wanted class, for a classifier.
    probability
        The least probability the model must give that class; without it, the class must be the prediction. A value
        below one half does not ask for the class to win.
    at_least, at_most
        The wanted interval of a regression model's prediction.
    any_of
        Several classes, any of which will do; ``want=["good", "fair"]`` is short for it.

    Examples
    --------
    >>> Target("good", probability=0.7)
    Target(label='good', probability=0.7)
    >>> Target(any_of=["good", "fair"])
    Target(any_of=('good', 'fair'))
    """

    label: Any = None
    probability: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    any_of: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        if self.probability is not None and not 0.0 < self.probability < 1.0:
            raise CriterionError(
                f"The 'probability' of a Target must lie strictly between 0 and 1, got {self.probability!r}. For 70 "
                "per cent write 0.7."
            )
        interval = self.at_least is not None or self.at_most is not None
        if self.any_of is not None:
            self._check_several(interval)
            object.__setattr__(self, "any_of", tuple(plain(label) for label in self.any_of))
        if interval and (self.label is not None or self.probability is not None):
            raise CriterionError(
                "A Target is either a class (label, probability) or an interval (at_least, at_most), not both."
            )
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise CriterionError(
                f"The interval of the Target is empty: at_least={self.at_least!r} is above at_most={self.at_most!r}."
            )

    def _check_several(self, interval: bool) -> None:
        if isinstance(self.any_of, str) or not isinstance(self.any_of, Collection):
            raise CriterionError(
                f"The 'any_of' of a Target must be a list of classes, got {self.any_of!r}. Write any_of=[{self.any_of!r}]."
            )
        if interval or self.label is not None or self.probability is not None:
            raise CriterionError(
                "A Target with any_of is met by the prediction of one of these classes; it has no label, probability or "
                "interval beside it. Take those out, or ask for one class: Target(label, probability=...)."
            )
        if not len(self.any_of):
            raise CriterionError("The 'any_of' of a Target is empty. Name the classes that would do.")

    def __repr__(self) -> str:
        said = ((f.name, getattr(self, f.name)) for f in fields(self))
        return f"Target({', '.join(f'{name}={value!r}' for name, value in said if value is not None)})"


def as_target(want: Any) -> Target:
    """Return a wish as a `Target`: of a list of classes, any."""
    if isinstance(want, Target):
        return want
    several = isinstance(want, list | tuple | set | frozenset | np.ndarray)
    return Target(any_of=tuple(want)) if several else Target(label=want)


def resolve(want: Any, model: Model) -> Goal:
    """Turn what the user wants into a goal for this model, or say why it makes no sense for it."""
    target = as_target(want)
    read = model.read
    if not read.classes:
        if target.at_least is None and target.at_most is None:
            raise CriterionError(
                "The model predicts a number, so say which numbers are wanted: want=Target(at_least=...) or "
                f"Target(at_most=...). Got {want!r}."
            )
        low = -np.inf if target.at_least is None else float(target.at_least)
        high = np.inf if target.at_most is None else float(target.at_most)
        return IntervalGoal(f"want a prediction in {interval_text(low, high)}", model, low, high)
    if target.at_least is not None or target.at_most is not None:
        raise CriterionError(
            f"The model predicts classes ({_known(read)}), not numbers: use want=Target(label, probability=...)."
        )
    if target.any_of is not None:
        return _any_of(target.any_of, model)
    index = _class_index(target.label, read)
    label = read.classes[index]
    if target.probability is None:
        return ClassGoal(f"want {label!r}", model, label, index)
    if not read.link.askable or not hasattr(model.estimator, "predict_proba"):
        what = read.link.refusal(len(read.classes))
        raise CriterionError(
            f"A probability was asked for, but {type(model.estimator).__name__} {what} Ask for the class "
            f"alone, want={label!r}; or wrap the model in CalibratedClassifierCV(ensemble=False), or fit one whose "
            "probabilities can be asked for: LogisticRegression, a forest, gradient boosting."
        )
    text = f"want {label!r} with probability at least {number(target.probability)}"
    return ProbabilityGoal(text, model, label, index, target.probability)


def _any_of(labels: Sequence[Any], model: Model) -> Goal:
    """Return the goal of several classes; one alone is an ordinary goal."""
    read = model.read
    indices = sorted({_class_index(label, read) for label in labels})
    if len(indices) == len(read.classes):
        raise CriterionError(
            f"Every class that the model knows is wanted ({_known(read)}), so nothing has to change. Leave one out."
        )
    known = tuple(read.classes[i] for i in indices)
    if len(indices) == 1:
        return ClassGoal(f"want {known[0]!r}", model, known[0], indices[0])
    return AnyClassGoal(f"want {' or '.join(map(repr, known))}", model, known, tuple(indices))


def _class_index(label: Any, read: Read) -> int:
    for i, known in enumerate(read.classes):
        if known == label and isinstance(known, bool) == isinstance(label, (bool, np.bool_)):
            return i
    if label is None:
        raise CriterionError(
            f"Say which outcome is wanted: the model knows {_known(read)}. want=None means 'the other class' and "
            "needs exactly two."
        )
    raise CriterionError(
        f"The model does not know the class {label!r}; it knows {_known(read)}.{did_you_mean(label, read.classes)}"
    )


def _known(read: Read) -> str:
    return ", ".join(repr(c) for c in read.classes)
