"""Links: how scores become probabilities or values, forwards for NumPy, backwards and as rows for a program.

A classifier has one score for the second of two classes, or one score per class; a link serves both. A regression model has
one score, and its link is the increasing function that takes it to the prediction. To add a link, write one class; to use a
function that is increasing and nothing more, pass `link_forward` and `link_inverse` to `ifonly.models.read.Read`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.form import Form
from ifonly.models.forms.bends import LOG_SIGMOID, SIGMOID, Broken, sigmoid
from ifonly.models.forms.compose import combine
from ifonly.models.forms.curves import Curve, Softmax
from ifonly.program.mip import Affine, Convex

__all__ = [
    "LINKS",
    "Clip",
    "Function",
    "Identity",
    "Link",
    "LinkName",
    "NoLink",
    "Normalised",
    "Shares",
    "Sigmoid",
    "SoftmaxLink",
    "between",
    "shares",
]

LinkName = Literal["none", "identity", "sigmoid", "softmax", "clip", "normalised", "shares"]
Function = Callable[[FloatArray], FloatArray]

_CLIPPED = Broken(np.array([-1.0, 1.0]), np.array([0.0, 1.0]))


class Link:
    """A link of scores. The defaults are those of log-odds: a sigmoid, and for several scores sigmoids over their sum.

    Attributes
    ----------
    name
        What a reader writes for it.
    has_probabilities
        Whether the scores have probabilities at all.
    askable
        Whether a least probability can be demanded in a program.
    why_no_form
        Why the probabilities cannot be added to those of other models, where `form` says so.
    """

    name: str = ""
    has_probabilities: bool = True
    askable: bool = True
    why_no_form: str = "their link is not a curve that is known"

    # -- forwards -----------------------------------------------------------------------------------------------
    def probabilities(self, scores: FloatArray) -> FloatArray | None:
        """Return class probabilities from scores, or None when there are none."""
        if scores.shape[1] > 1:
            return self.each(scores)
        p = self.second(scores[:, 0])
        return np.column_stack([1 - p, p])

    def second(self, s: FloatArray) -> FloatArray:
        """Return the second class's probability from one score."""
        return sigmoid(s)

    def each(self, scores: FloatArray) -> FloatArray:
        """Return probabilities from one score per class."""
        return _over_sum(sigmoid(scores))

    def value(self, scores: FloatArray) -> FloatArray:
        """Return the prediction of a regression model from its score."""
        return scores[:, 0]

    # -- backwards ----------------------------------------------------------------------------------------------
    def inverse(self, p: float) -> float:
        """Return the score at which the second class's probability is `p`."""
        return float(np.log(p) - np.log1p(-p))

    def score_at(self, p: float, i: int) -> float:
        """Return the one score beyond which class `i` has at least probability `p`: above it for the second, else below."""
        return self.inverse(p if i == 1 else 1.0 - p)

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """Return the scores that give a value in an interval."""
        return low, high

    # -- in a program -------------------------------------------------------------------------------------------
    def gaps(self, scores: Sequence[Affine], i: int, p: float, margin: float) -> list[Affine]:
        """Return expressions that must not be negative for class `i` to have at least probability `p`."""
        if len(scores) > 1:
            return self.rows(scores, i, p + margin)
        need = self.score_at(p, i)
        return between(scores[0], *((need, np.inf) if i == 1 else (-np.inf, need)), margin)

    def rows(self, scores: Sequence[Affine], i: int, p: float) -> list[Affine]:  # noqa: ARG002 - for subclasses
        """Return the linear expressions that must not be negative, for one score per class."""
        return []

    def is_curved(self, n_scores: int) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a least probability is a convex row instead of linear ones."""
        return False

    def convex(self, scores: Sequence[Affine], i: int, p: float, margin: float, behind: Affine | None = None) -> Convex:
        """Return the convex row of a curved link: class `i` has at least probability `p`, up to `behind`."""
        raise NotImplementedError(f"the link {self.name!r} is not curved")

    def most_behind(self, ahead: FloatArray, p: float) -> float:
        """Return how far behind a convex row can be, when scores are this far ahead of the wanted one."""
        raise NotImplementedError(f"the link {self.name!r} is not curved")

    # -- as forms -----------------------------------------------------------------------------------------------
    def form(self, scores: Form) -> Form | None:
        """Return the form of all class probabilities, or None when a program cannot hold it."""
        if scores.n_outputs > 1:
            return self.each_form(scores)
        p = self.second_form(scores)
        return None if p is None else combine(p, np.array([[-1.0], [1.0]]), np.array([1.0, 0.0]))

    def second_form(self, score: Form) -> Form | None:  # noqa: ARG002 - for subclasses
        """Return the form of the second class's probability."""
        return None

    def each_form(self, scores: Form) -> Form | None:  # noqa: ARG002 - for subclasses
        """Return the form of the probabilities of one score per class."""
        return None

    def value_form(self, score: Form) -> Form | None:
        """Return the form of a regression model's prediction."""
        return score

    def refusal(self, n_classes: int) -> str:  # noqa: ARG002 - for subclasses
        """Say what a model does in place of a probability that can be demanded."""
        return "gives no probabilities."


class NoLink(Link):
    """Scores without probabilities; of a regression model, the score is the prediction."""

    name: str = "none"
    has_probabilities: bool = False
    askable: bool = False
    why_no_form: str = "it has none"

    def probabilities(self, scores: FloatArray) -> FloatArray | None:
        """There are none."""
        del scores
        return None

    def form(self, scores: Form) -> Form | None:
        """There is none."""
        del scores
        return None


class Identity(Link):
    """Scores that are probabilities."""

    name: str = "identity"

    def second(self, s: FloatArray) -> FloatArray:
        """Return the score."""
        return s

    def each(self, scores: FloatArray) -> FloatArray:
        """Return the scores."""
        return scores

    def inverse(self, p: float) -> float:
        """Return the probability."""
        return p

    def rows(self, scores: Sequence[Affine], i: int, p: float) -> list[Affine]:
        """``s_i >= p``."""
        return [scores[i] - p]

    def second_form(self, score: Form) -> Form | None:
        """Return the score."""
        return score

    def each_form(self, scores: Form) -> Form | None:
        """Return the scores."""
        return scores


class Sigmoid(Link):
    """``1 / (1 + exp(-s))``."""

    name: str = "sigmoid"

    def second_form(self, score: Form) -> Form | None:
        """Return the curve."""
        return Curve(score, (SIGMOID,))


class SoftmaxLink(Link):
    """``exp(s_i) / sum_k exp(s_k)``."""

    name: str = "softmax"

    def each(self, scores: FloatArray) -> FloatArray:
        """Return the softmax, the largest score taken off first."""
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))

    def is_curved(self, n_scores: int) -> bool:
        """Of several scores it is."""
        return n_scores > 1

    def convex(self, scores: Sequence[Affine], i: int, p: float, margin: float, behind: Affine | None = None) -> Convex:
        """``log sum_k exp(s_k - s_i) <= -log p - margin + behind``: convex in the scores."""
        limit = -float(np.log(p)) - margin
        gaps = tuple(scores[k] - scores[i] for k in range(len(scores)) if k != i)

        def function(d: FloatArray) -> float:
            top = max(0.0, float(d[:-1].max()))
            return float(top + np.log(np.exp(-top) + np.exp(d[:-1] - top).sum()) - limit - d[-1])

        def gradient(d: FloatArray) -> FloatArray:
            top = max(0.0, float(d[:-1].max()))
            e = np.exp(d[:-1] - top)
            return np.append(e / (np.exp(-top) + e.sum()), -1.0)

        return Convex((*gaps, Affine() if behind is None else behind), function, gradient)

    def most_behind(self, ahead: FloatArray, p: float) -> float:
        """``log sum_k exp(a_k) <= max a + log n``."""
        return max(0.0, float(ahead.max()) + float(np.log(len(ahead)) + np.log(p)))

    def each_form(self, scores: Form) -> Form | None:
        """Return the softmax as a form."""
        return Softmax(scores)


class Clip(Link):
    """``(s + 1) / 2`` within 0 and 1."""

    name: str = "clip"

    def second(self, s: FloatArray) -> FloatArray:
        """Return the probability."""
        return np.clip((s + 1) / 2, 0, 1)

    def inverse(self, p: float) -> float:
        """Return the score."""
        return 2.0 * p - 1.0

    def second_form(self, score: Form) -> Form | None:
        """Return the curve of two kinks."""
        return Curve(score, (_CLIPPED,))


class Normalised(Link):
    """Sigmoids divided by their sum: no threshold on the scores is a probability."""

    name: str = "normalised"
    askable: bool = False

    def each_form(self, scores: Form) -> Form | None:
        """Return it as a softmax."""
        return shares(scores)

    def refusal(self, n_classes: int) -> str:
        """Say that each class is judged by itself."""
        return (
            f"judges each of its {n_classes} classes against the rest, by a sigmoid of its score, and divides by the sum "
            "of all: no threshold on the scores is a probability."
        )


class Shares(Link):
    """Scores that are not negative, divided by their sum."""

    name: str = "shares"
    why_no_form: str = "they are divided by their sum"

    def each(self, scores: FloatArray) -> FloatArray:
        """Return the shares."""
        return _over_sum(scores)

    def rows(self, scores: Sequence[Affine], i: int, p: float) -> list[Affine]:
        """``s_i >= p sum_k s_k``."""
        return [scores[i] - Affine.total(scores) * p]

    def each_form(self, scores: Form) -> Form | None:
        """Return the shares of sigmoids; those of other scores are not known as a form."""
        sigmoids = isinstance(scores, Curve) and all(bend is SIGMOID for bend in scores.bends)
        return shares(scores.inner) if isinstance(scores, Curve) and sigmoids else None


LINKS: dict[str, Link] = {
    link.name: link for link in (NoLink(), Identity(), Sigmoid(), SoftmaxLink(), Clip(), Normalised(), Shares())
}


# -- parts -----------------------------------------------------------------------------------------------------------
def _over_sum(s: FloatArray) -> FloatArray:
    """Return scores divided by their sum; where that is 0 they are all equal."""
    total = s.sum(axis=1, keepdims=True)
    return np.where(total > 0, s / np.where(total > 0, total, 1.0), 1.0 / s.shape[1])


def shares(form: Form) -> Form:
    """Return sigmoids divided by their sum, which is the softmax of their logarithms."""
    return Softmax(Curve(form, (LOG_SIGMOID,) * form.n_outputs))


def between(score: Affine, low: float, high: float, margin: float) -> list[Affine]:
    """Return what must not be negative for a score within an interval, by a margin."""
    if np.isposinf(low) or np.isneginf(high):
        return [Affine(constant=-1.0)]
    margin = min(margin, (high - low) / 4)  # a narrow interval must not vanish
    out = [score - (low + margin)] if np.isfinite(low) else []
    return [*out, *([(high - margin) - score] if np.isfinite(high) else [])]
