"""Read: a form with the rule by which its scores become predictions; Model: that and the user's own estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ifonly.arrays import FloatArray

if TYPE_CHECKING:
    pass
from ifonly.models.form import Form
from ifonly.warning_filters import few_filters

__all__ = ["Model", "Read", "sigmoid"]

Link = Literal["none", "identity", "sigmoid", "softmax", "clip", "normalised", "shares"]


@dataclass(frozen=True)
class Read:
    """Result of a reader: the form, and the rule by which its scores become a prediction.

    Attributes
    ----------
    form
        The scores.
    classes
        The labels, in the model's order; empty for a regression model.
    rule
        ``"sign"``: one score, the second class iff ``score > threshold``; ``"argmax"``: one score per class, the
        first of the largest wins; ``"value"``: regression, the score is the prediction.
    link
        How the scores become probabilities: ``"none"`` (there are none), ``"identity"`` (they are), ``"sigmoid"``,
        ``"softmax"``, ``"clip"`` (``(s + 1) / 2`` within 0 and 1), ``"normalised"`` (sigmoids divided by their sum),
        ``"shares"`` (scores that are not negative, divided by their sum).
    threshold
        The score above which rule ``"sign"`` gives the second class.
    strict
        Whether a score exactly at the threshold stays with the first class.
    piecewise_constant
        Whether the scores take finitely many values (trees), so that ties are real and no margin is needed.
    accepts_missing
        The features that may be missing: the model takes that as a value of its own, or its Pipeline fills one in.
    rounding
        The unit of rounding of the arithmetic in which the estimator computes its scores and probabilities.
    link_forward
        Scores -> class probabilities, in place of `link`; for regression, scores -> predictions.
    link_inverse
        The least score at which the second class's probability, or the prediction, is at least a given value: minus
        infinity when it always is, infinity when it never is.
    """

    form: Form
    classes: tuple[Any, ...] = ()
    rule: Literal["sign", "argmax", "value"] = "value"
    link: Link = "none"
    threshold: float = 0.0
    strict: bool = True
    piecewise_constant: bool = False
    accepts_missing: frozenset[int] = frozenset()
    rounding: float = 2.0**-52
    link_forward: Callable[[FloatArray], FloatArray] | None = None
    link_inverse: Callable[[float], float] | None = None

    def probabilities(self, scores: FloatArray) -> FloatArray | None:
        """Return class probabilities from scores, or None when the model has none."""
        if self.link == "none":
            return None
        if self.link_forward is not None:
            return self.link_forward(scores)
        if self.rule == "sign":
            s = scores[:, 0]
            p = np.clip((s + 1) / 2, 0, 1) if self.link == "clip" else s if self.link == "identity" else sigmoid(s)
            return np.column_stack([1 - p, p])
        if self.link == "identity":
            return scores
        if self.link == "shares":
            return _shares(scores)
        if self.link == "softmax":
            e = np.exp(scores - scores.max(axis=1, keepdims=True))
            return np.asarray(e / e.sum(axis=1, keepdims=True))
        return _shares(sigmoid(scores))

    def decide(self, scores: FloatArray) -> Any:
        """Return the index of the predicted class (or the value, for regression) from scores."""
        if self.rule == "value":
            return scores[:, 0] if self.link_forward is None else self.link_forward(scores)[:, 0]
        if self.rule == "argmax":
            return scores.argmax(axis=1)
        above = scores[:, 0] > self.threshold if self.strict else scores[:, 0] >= self.threshold
        return above.astype(np.int64)


def sigmoid(s: FloatArray) -> FloatArray:
    """Return ``1 / (1 + exp(-s))``, as scikit-learn computes it."""
    from scipy.special import expit  # noqa: PLC0415 - slow to import

    return np.asarray(expit(s))


def _shares(s: FloatArray) -> FloatArray:
    """Return scores divided by their sum; where that is 0 they are all equal."""
    total = s.sum(axis=1, keepdims=True)
    return np.where(total > 0, s / np.where(total > 0, total, 1.0), 1.0 / s.shape[1])


@dataclass(frozen=True)
class Model:
    """A read model together with the user's own estimator, which has the last word on every answer."""

    read: Read
    estimator: Any
    prepare: Callable[[FloatArray], Any] = field(repr=False)

    @property
    def rounding(self) -> float:
        """The unit of rounding of the estimator's own arithmetic: as its reader says, or that of its `dtype`."""
        last = self.estimator.steps[-1][1] if hasattr(self.estimator, "steps") else self.estimator
        return max(self.read.rounding, float(np.finfo(getattr(last, "arithmetic", np.float64)).eps))

    def predict(self, U: FloatArray) -> Any:
        """Return the estimator's own prediction for canonical rows."""
        rows = self.prepare(U)
        with few_filters():
            return np.asarray(self.estimator.predict(rows)).reshape(len(U), -1)[:, 0]

    def predict_proba(self, U: FloatArray) -> FloatArray | None:
        """Return the estimator's own probabilities, or None when it has none."""
        if not self.read.classes or not hasattr(self.estimator, "predict_proba"):
            return None
        rows = self.prepare(U)
        try:
            with few_filters():
                return np.asarray(self.estimator.predict_proba(rows), dtype=np.float64)
        except AttributeError:  # a scorecard always has the method, whatever the estimator inside it has
            if self.read.link != "none":
                raise
            return None
