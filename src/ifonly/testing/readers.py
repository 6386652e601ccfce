"""The kit's part for readers: a read model against the estimator that it was read from."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.features import plain
from ifonly.data.schema import Schema
from ifonly.models.opening import complete_row, open_model
from ifonly.models.read import Model
from ifonly.program.box import Box
from ifonly.testing.claims import require
from ifonly.testing.forms import check_form
from ifonly.testing.points import at_thresholds, random_rows, with_holes
from ifonly.tolerances import DUST, TINY

__all__ = ["check_reader"]

_IN_THIRDS = 3
EXACT = DUST


def check_reader(
    estimator: Any,
    X: Any,
    *,
    schema: Schema | None = None,
    points: int = 5000,
    rows: int = 3,
    tolerance: float = EXACT,
    seed: int = 0,
) -> None:
    """Check that what a reader makes of a fitted estimator predicts what the estimator predicts.

    The model is opened as `Explainer` opens it. A third of the points are rows of `X`, a third lie all over the
    schema's box, a third have features on the form's thresholds and on the floats next to them; where missing values
    are taken, some have some. On all of them the classes must be the estimator's, and probabilities, decision scores or
    values must be close to it. Then `check_form` looks at a few rows.

    Parameters
    ----------
    estimator
        A fitted estimator whose class has a reader.
    X
        Data of the kind it was fitted on.
    schema
        What its columns mean; read off `X` by default.
    points
        How many points to compare on.
    rows
        How many rows to put to the optimiser.
    tolerance
        How far numbers may differ, relative to their size: 1e-9, or 1e-5 where the framework computes in float32.
    seed
        Seed of the points.

    Raises
    ------
    AssertionError
        With a sentence that names the row and both values.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> check_reader(DecisionTreeClassifier(max_depth=3).fit(X, y), X, points=300)
    """
    schema, model, _, known = open_model(estimator, X, schema)
    rng = np.random.default_rng(seed)
    compared = _Compared(schema, model, tolerance)
    U = _points(schema, model, known, points, rng)
    for start in range(0, len(U), 1000):
        compared.on(U[start : start + 1000])
    chosen = known[rng.choice(len(known), size=min(rows, len(known)), replace=False)]
    if model.read.accepts_missing:
        whole = complete_row(schema, known)[None, :]
        chosen = np.vstack([chosen, with_holes(schema, whole, model.read.accepts_missing, rng)])
    check_form(model.read.form, schema, chosen, seed=seed)


def _points(schema: Schema, model: Model, known: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Return rows of the data, rows all over the box, and rows at thresholds; some with missing values."""
    box, share = Box.of(schema, complete_row(schema, known)), n // _IN_THIRDS
    data = known[rng.permutation(len(known))[:share]]
    anywhere = random_rows(box, share, rng)
    edges = at_thresholds(box, model.read.form.cuts(), np.vstack([data, anywhere]), share, rng)
    more = random_rows(box, n - len(data) - len(anywhere) - len(edges), rng)
    U = np.vstack([data, anywhere, edges, more])
    if model.read.accepts_missing:
        some = rng.permutation(len(U))[: len(U) // 4]
        U[some] = with_holes(schema, U[some], model.read.accepts_missing, rng)
    return U


class _Compared:
    """A model as it was read, beside the estimator itself."""

    def __init__(self, schema: Schema, model: Model, tolerance: float) -> None:
        self.schema, self.model, self.tolerance = schema, model, tolerance
        self.who = type(model.estimator).__name__

    def on(self, U: FloatArray) -> None:
        """Compare on canonical rows."""
        read = self.model.read
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the estimator has to say of its input is not for here
            said, shares, decided = self.model.predict(U), self.model.predict_proba(U), self._decision_function(U)
        scores = read.form(U)
        require(
            scores.shape == (len(U), read.form.n_outputs),
            f"the form gives scores of shape {scores.shape} for {len(U)} rows and {read.form.n_outputs} outputs",
        )
        if not read.classes:
            self._close(read.decide(scores)[:, None], np.asarray(said, dtype=np.float64)[:, None], "value", U)
            return
        ours = read.probabilities(scores)
        require(
            ours is None or shares is not None, f"the form has probabilities (link {read.link!r}), {self.who} has none"
        )
        if ours is not None and shares is not None:
            self._close(ours, shares, "probability", U)
        if decided is not None and ours is None and decided.shape == scores.shape:
            self._same_order(scores, decided, U)
        self._same_classes(U, scores, said)

    def _decision_function(self, U: FloatArray) -> FloatArray | None:
        if not self.model.read.classes or not hasattr(self.model.estimator, "decision_function"):
            return None
        return np.asarray(self.model.estimator.decision_function(self.model.prepare(U))).reshape(len(U), -1)

    def _same_classes(self, U: FloatArray, scores: FloatArray, said: npt.NDArray[Any]) -> None:
        read = self.model.read
        chosen = read.decide(scores)
        ours = [read.classes[int(i)] for i in chosen]
        differs = np.array([a != b for a, b in zip(ours, said, strict=True)], dtype=np.bool_)
        if not read.piecewise_constant:  # a score that is all but a tie may fall either way by rounding alone
            differs &= self._margin(scores) > self.tolerance * np.maximum(1.0, np.abs(scores).max(axis=1))
        if differs.any():
            i = int(np.argmax(differs))
            raise AssertionError(
                f"{self._row(U[i])}: the form says {ours[i]!r} (scores {scores[i].tolist()}), {self.who}.predict says "
                f"{plain(said[i])!r}"
            )

    def _margin(self, scores: FloatArray) -> FloatArray:
        """Return how far scores are from a tie."""
        if self.model.read.rule == "sign":
            return np.abs(scores[:, 0] - self.model.read.threshold)
        top = np.sort(scores, axis=1)[:, -2:]
        return np.asarray(top[:, 1] - top[:, 0])

    def _close(self, ours: FloatArray, theirs: FloatArray, what: str, U: FloatArray) -> None:
        require(ours.shape == theirs.shape, f"{what}: the form has shape {ours.shape}, {self.who} {theirs.shape}")
        size = max(float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)), TINY)
        off = np.where(ours == theirs, 0.0, np.abs(ours - theirs) / size)
        i, k = np.unravel_index(int(np.argmax(np.where(np.isnan(off), np.inf, off))), off.shape)
        require(
            off[i, k] <= self.tolerance,
            f"{self._row(U[i])}: {what}{f' {k}' if ours.shape[1] > 1 else ''} by the form {float(ours[i, k])!r}, by "
            f"{self.who} {float(theirs[i, k])!r}",
        )

    def _same_order(self, ours: FloatArray, theirs: FloatArray, U: FloatArray) -> None:
        """Without probabilities, a score may be any increasing function of the decision score; several are compared."""
        if self.model.read.rule != "sign":
            self._close(ours, theirs, "decision score", U)
            return
        order = np.argsort(ours[:, 0], kind="stable")
        ranked = theirs[order, 0]
        falls = np.maximum.accumulate(ranked) - ranked
        i = int(np.argmax(falls))
        before = int(order[int(np.argmax(ranked[: i + 1]))])
        require(
            falls[i] <= self.tolerance * max(float(np.abs(ranked).max()), TINY),
            f"{self._row(U[order[i]])} has a greater score by the form than {self._row(U[before])}, "
            f"{float(ours[order[i], 0])!r} against {float(ours[before, 0])!r}, but not by {self.who}, "
            f"{float(ranked[i])!r} against {float(theirs[before, 0])!r}",
        )

    def _row(self, u: FloatArray) -> str:
        return str({name: self.schema.level_values(j, u) for j, name in enumerate(self.schema.names)})
