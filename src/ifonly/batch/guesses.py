"""Speculative confirmation: a search runs on the form's predictions, and the model confirms many of them at once.

One call of `predict` for one row costs most of the time of an easy question, and hardly less than a call for a hundred rows.
So each search is given a model that *guesses* what the estimator would say (by its exact form) and notes every point it
was asked about. When the estimator, asked for all points of a block at once, says the same of all points of a search, that
search went exactly as it would have gone with the estimator; otherwise the row is asked again, with the estimator itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ifonly.criteria.validity import Target
from ifonly.models.read import Model
from ifonly.program.box import Box
from ifonly.tolerances import DUST, SCORE_OPERATIONS

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["Guess", "Guesser", "Notebook", "guessing", "may_guess", "right"]

FloatArray = npt.NDArray[np.float64]

_TIE = DUST  # within which a probability may fall on either side of what is asked for


@dataclass(frozen=True)
class Guess:
    """A point that a search asked the model about: its label, or its probabilities, by the form."""

    u: FloatArray
    label: Any = None
    probabilities: FloatArray | None = None
    tied: bool = False


class Notebook:
    """Notebook of guesses: those of one search after another, each taken out when its search is over."""

    def __init__(self) -> None:
        self._noted: list[Guess] = []

    def note(self, guesses: Iterable[Guess]) -> None:
        """Keep guesses until they are taken."""
        self._noted.extend(guesses)

    def taken(self) -> list[Guess]:
        """Return what was noted since the last call."""
        found, self._noted = self._noted, []
        return found


@dataclass(frozen=True)
class Guesser(Model):
    """A model that answers by its form and writes what it was asked into a notebook that is not its own."""

    notebook: Notebook = field(kw_only=True, repr=False, compare=False)
    noise: float = 0.0

    @classmethod
    def of(cls, model: Model, box: Box, notebook: Notebook) -> Guesser:
        """Return the guesser of a model whose rows lie in a box."""
        # So near to a threshold a score may fall on either side in a sum of another order, as of a longer block. Answers
        # of continuous models clear it by twice as much (see `Goal.rounding`).
        noise = SCORE_OPERATIONS * model.scatter(model.read.form, box)
        return cls(model.read, model.estimator, model.prepare, notebook=notebook, noise=noise)

    def predict(self, U: FloatArray) -> Any:
        """Return the labels that the form gives to canonical rows."""
        scores = self.read.form(U)
        labels = [self.read.classes[int(k)] for k in self.read.decide(scores)]
        tied = self.read.decision.clearance(scores) <= self.noise
        self.notebook.note(Guess(u, label, tied=bool(t)) for u, label, t in zip(U, labels, tied, strict=True))
        out = np.empty(len(labels), dtype=object)
        out[:] = labels
        return out

    def predict_proba(self, U: FloatArray) -> FloatArray | None:
        """Return the probabilities that the form gives to canonical rows."""
        probabilities = self.read.probabilities(self.read.form(U))
        if probabilities is None:
            return super().predict_proba(U)
        self.notebook.note(Guess(u, probabilities=p) for u, p in zip(U, probabilities, strict=True))
        return probabilities


def may_guess(explainer: Explainer) -> bool:
    """Whether the model's word is a class, so that a guess of it is right or wrong; a number is never guessed.

    Nor is the word of nearest rows: at equal distances a form does not know which of them count.
    """
    model = explainer.model
    return type(model) is Model and bool(model.read.classes) and model.by_form


def guessing(explainer: Explainer) -> tuple[Explainer, Notebook]:
    """Return an explainer that shares everything with the given one but asks a guesser, and the notebook of its guesses."""
    box, notebook = Box.of(explainer.schema, explainer.training.U[0]), Notebook()
    twin = copy(explainer)
    twin.model = Guesser.of(explainer.model, box, notebook)
    return twin, notebook


def right(model: Model, want: Any, guesses: Sequence[Sequence[Guess]]) -> list[bool]:
    """Say of which searches all guesses are right, by the estimator, with one call for all; an error is not right."""
    points = [guess for row in guesses for guess in row]
    try:
        agree = _agree(model, want, points)
    except Exception:  # noqa: BLE001 - whatever the user's model raises belongs to one row, which is asked again
        return [not row for row in guesses]
    ends = np.cumsum([0, *map(len, guesses)]).tolist()
    return [all(agree[i:j]) for i, j in pairwise(ends)]


def _agree(model: Model, want: Any, points: Sequence[Guess]) -> list[bool]:
    agree = [False] * len(points)
    labelled = [i for i, p in enumerate(points) if p.probabilities is None]
    together = [i for i in labelled if not points[i].tied]
    alone = [[i] for i in labelled if points[i].tied]
    for block in ([together] if together else []) + alone:
        said = model.predict(np.array([points[i].u for i in block]))
        for i, label in zip(block, said, strict=True):
            agree[i] = bool(label == points[i].label)
    judged = [i for i, p in enumerate(points) if p.probabilities is not None]
    threshold = want.probability if isinstance(want, Target) else None
    if judged and threshold is not None:
        said = model.predict_proba(np.array([points[i].u for i in judged]))
        if said is not None:
            for i, real in zip(judged, said, strict=True):
                near = np.abs(real - threshold) <= _TIE
                same = (real >= threshold) == (points[i].probabilities >= threshold)  # type: ignore[operator]
                agree[i] = bool(np.all(same & ~near))
    return agree
