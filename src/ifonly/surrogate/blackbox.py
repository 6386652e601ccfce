"""Black boxes: models that are asked and not read, and their scores as a form that no program can contain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.data.features import plain
from ifonly.data.schema import Numeric, Schema
from ifonly.errors import CriterionError, UnsupportedModel
from ifonly.models.opening import open_model
from ifonly.models.read import Model, Observed, Read, Rows
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip
from ifonly.runtime.tuning import DEFAULT, Tuning

__all__ = ["Function", "observe", "open_any"]

_MOST_CLASSES = 50  # different whole numbers up to which the answers of a model of no declared kind are classes


@dataclass(frozen=True)
class Function:
    """A plain function of rows as an estimator: its values are the predictions."""

    predict: Callable[[Any], Any]


def open_any(
    model: Any, X: Any, schema: Schema | None, surrogate: Any, tuning: Tuning = DEFAULT
) -> tuple[Schema, Model, pd.DataFrame, FloatArray]:
    """Open a model as `open_model` does; one that cannot be read, or is a plain function, is only asked."""
    if not (isinstance(surrogate, str) and surrogate == "auto"):
        raise CriterionError(
            f"'surrogate' must be None or 'auto', got {surrogate!r}. With 'auto', a model that cannot be read is observed."
        )
    plain_function = callable(model) and not hasattr(model, "predict") and not isinstance(model, type)
    asked = partial(observe, tuning=tuning)
    return open_model(Function(model) if plain_function else model, X, schema, asked, tuning=tuning)


def observe(estimator: Any, schema: Schema, U: FloatArray, *, named: bool, tuning: Tuning = DEFAULT) -> Observed:
    """Return an estimator as a model that is only asked.

    Parameters
    ----------
    estimator
        Anything with a ``predict``.
    schema, U
        The features and the canonical training rows.
    named
        Whether it receives frames; otherwise plain arrays.
    tuning
        The tuned numbers.
    """
    prepare = Rows(schema, np.arange(schema.width), named=named)
    rows = U[:: max(1, len(U) // tuning.observing.told)]
    said = np.asarray(estimator.predict(prepare(rows)))
    if said.size != len(rows):
        raise UnsupportedModel(
            f"The predict of {type(estimator).__name__} gives an array of shape {said.shape} for {len(rows)} rows. It must "
            "give one class or one number per row; wrap it in a function that does."
        )
    said = said.reshape(-1)
    classes = _classes(estimator, said)
    missing = _missing(schema, U)
    form = _Answers(schema, estimator, prepare, classes, _voice(estimator, classes))
    if not classes:
        return Observed(Read(form, accepts_missing=missing), estimator, prepare)
    if len(classes) < 2:
        raise UnsupportedModel(
            f"{type(estimator).__name__} says {classes[0]!r} of every training row, and it is not known what else it can "
            "say. Give it an attribute classes_ with all its classes, or training rows of each."
        )
    rule, link = ("sign", "none") if form.voice == "decision" else ("argmax", "none")
    link = "identity" if form.voice == "probabilities" else link
    return Observed(Read(form, classes, rule, link, accepts_missing=missing), estimator, prepare)  # type: ignore[arg-type]


def _missing(schema: Schema, U: FloatArray) -> frozenset[int]:
    """Return the features that are missing in some row: the model was trained on that."""
    parts = ((j, U[:, schema.slice(j)]) for j in range(len(schema)))
    return frozenset(j for j, part in parts if np.isnan(part).any() or not _present(schema, j, part))


def _present(schema: Schema, j: int, part: FloatArray) -> bool:
    return isinstance(schema.features[j], Numeric) or bool(part.any(axis=1).all())


def _classes(estimator: Any, said: Any) -> tuple[Any, ...]:
    """Return the classes: those that the estimator names, or those that it has said; none for a regression model."""
    named = getattr(estimator, "classes_", None)
    if named is not None:
        return tuple(plain(c) for c in named)
    kind = getattr(estimator, "_estimator_type", None)
    numbers = np.issubdtype(said.dtype, np.floating) if said.dtype != object else False
    if kind == "regressor" or (kind is None and numbers and not hasattr(estimator, "predict_proba")):
        return ()
    found = tuple(plain(c) for c in pd.unique(pd.Series(said)))
    if len(found) > _MOST_CLASSES and all(isinstance(c, (int, float)) and not isinstance(c, bool) for c in found):
        return ()  # counts
    return tuple(sorted(found, key=lambda c: (str(type(c)), c)))


def _voice(estimator: Any, classes: tuple[Any, ...]) -> str:
    """Return the richest thing that the estimator says of a row."""
    if not classes:
        return "values"
    if hasattr(estimator, "predict_proba"):
        return "probabilities"
    return "decision" if hasattr(estimator, "decision_function") and len(classes) == 2 else "votes"


@dataclass(frozen=True, eq=False)
class _Answers:
    """Scores of a black box, by its own word: values, probabilities, a decision function, or 1 for the class it says."""

    schema: Schema
    estimator: Any
    prepare: Rows
    classes: tuple[Any, ...]
    voice: str

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return 1 if self.voice in ("values", "decision") else len(self.classes)

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores of canonical rows."""
        if not len(U):
            return np.zeros((0, self.n_outputs))
        rows = self.prepare(U)
        if self.voice == "probabilities":
            return np.asarray(self.estimator.predict_proba(rows), dtype=np.float64)
        if self.voice == "decision":
            return np.asarray(self.estimator.decision_function(rows), dtype=np.float64).reshape(-1, 1)
        said = np.asarray(self.estimator.predict(rows)).reshape(len(U))
        if self.voice == "values":
            return said.astype(np.float64).reshape(-1, 1)
        return np.array([[float(s == c) for c in self.classes] for s in said])

    def cuts(self) -> Mapping[int, FloatArray]:
        """Return no thresholds: none is known."""
        return {}

    def raw(self) -> frozenset[int]:
        """Return all numeric features."""
        return frozenset(self.schema.numeric)

    def features(self) -> frozenset[int]:
        """Return all features."""
        return frozenset(range(len(self.schema)))

    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Refuse: there is no program of a model that was only observed."""
        del mip, x
        raise UnsupportedModel(
            f"{type(self.estimator).__name__} is only observed, so there is no program that holds it. Use explain, which "
            "learns a surrogate for each question."
        )

    def refined(self, u: FloatArray) -> None:
        """Return None: the answers are exact."""
        del u
