"""Links: the functions between scores and what a model says, as values that can be pickled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray

__all__ = [
    "Back",
    "Logistic",
    "log",
    "logistic",
    "logit",
    "signed_root",
    "signed_square",
    "softplus",
    "softplus_inverse",
]


def log(value: float) -> float:
    """Return the logarithm, the inverse of exp; minus infinity where every score gives more."""
    return float(np.log(value)) if value > 0 else -np.inf


def signed_square(s: FloatArray) -> FloatArray:
    """Return ``sign(s) s^2``."""
    return np.asarray(np.sign(s) * s * s)


def signed_root(value: float) -> float:
    """Return the inverse of `signed_square`."""
    return float(np.sign(value) * np.sqrt(abs(value)))


def softplus(s: FloatArray) -> FloatArray:
    """Return ``log(1 + exp(s))``."""
    return np.asarray(np.logaddexp(0.0, s))


def softplus_inverse(value: float) -> float:
    """Return the inverse of `softplus`; minus infinity where every score gives more."""
    return float(np.log(np.expm1(value))) if value > 0 else -np.inf


def logistic(s: FloatArray) -> FloatArray:
    """Return ``1 / (1 + exp(-s))``, computed by the hyperbolic tangent."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * s)))


def logit(p: float) -> float:
    """Return the inverse of `logistic`."""
    return -np.inf if p <= 0 else np.inf if p >= 1 else float(np.log(p) - np.log1p(-p))


@dataclass(frozen=True)
class Logistic:
    """The link ``1 / (1 + exp(-slope s))``: of one score for both of two classes, or with `each`, of a score per class."""

    slope: float
    each: bool = False

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the probability of each class."""
        if self.each:
            return logistic(self.slope * scores)
        p = logistic(self.slope * scores[:, 0])
        return np.column_stack([1.0 - p, p])

    def inverse(self, p: float) -> float:
        """Return the score at which the probability is `p`."""
        return logit(p) / self.slope


@dataclass(frozen=True, eq=False)
class Back:
    """The way back through a fitted transformer of the target."""

    transformer: Any

    def __call__(self, s: FloatArray) -> FloatArray:
        """Return targets in their own unit."""
        back: Callable[[FloatArray], Any] = self.transformer.inverse_transform
        return np.asarray(back(np.asarray(s).reshape(-1, 1)))[:, 0]
