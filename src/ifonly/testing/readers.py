"""The kit's part for readers: a read model against the estimator that it was read from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.features import plain
from ifonly.data.schema import Schema
from ifonly.models.form import Form
from ifonly.models.opening import complete_row, open_model
from ifonly.models.read import Model
from ifonly.models.rules import Sign
from ifonly.program.box import Box
from ifonly.runtime.memo import cached_property
from ifonly.testing.claims import TOLERANCE, Check, require, run_all
from ifonly.testing.forms import checks_of
from ifonly.testing.points import at_thresholds, random_rows, with_holes
from ifonly.tolerances import DUST, TINY

__all__ = ["check_reader", "reader_checks"]

_IN_THIRDS = 3
_BLOCK = 1000  # points that are compared at a time
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
        With the name of the check that failed (see `reader_checks`), and a sentence that names the row and both values.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> check_reader(DecisionTreeClassifier(max_depth=3).fit(X, y), X, points=300)
    """
    checks = reader_checks(estimator, X, schema=schema, points=points, rows=rows, tolerance=tolerance, seed=seed)
    run_all(checks)


def reader_checks(
    estimator: Any,
    X: Any,
    *,
    schema: Schema | None = None,
    points: int = 5000,
    rows: int = 3,
    tolerance: float = EXACT,
    seed: int = 0,
) -> Iterator[Check]:
    """Yield the checks of a reader, each with its name, for a test of its own; for parameters see `check_reader`.

    The last ones are `form_checks` of the form that was read. The checks are independent of each other; the model is
    opened, and the estimator asked, once for all of them.
    """
    compared = _Compared(estimator, X, schema, points, rows, tolerance, seed)
    yield "model opens", compared.opens
    yield "scores have the declared shape", compared.shape
    yield "values are the estimator's", compared.values
    yield "probabilities are the estimator's", compared.probabilities
    yield "decision scores are the estimator's", compared.decision_scores
    yield "classes are the estimator's", compared.classes
    for name, check in checks_of(compared.form_and_rows, samples=200, tolerance=TOLERANCE, seed=seed):
        yield f"form, {name}", check


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


@dataclass(frozen=True, eq=False)
class _Asked:
    """Some canonical rows: the form's scores, and all that the estimator says of them."""

    U: FloatArray
    scores: FloatArray
    said: npt.NDArray[Any]
    shares: FloatArray | None
    decided: FloatArray | None


class _Compared:
    """A model as it was read, beside the estimator itself."""

    def __init__(
        self, estimator: Any, X: Any, schema: Schema | None, points: int, rows: int, tolerance: float, seed: int
    ) -> None:
        self.estimator, self.X, self.given = estimator, X, schema
        self.points, self.rows, self.tolerance, self.seed = points, rows, tolerance, seed
        self.who = type(estimator).__name__

    @cached_property
    def opened(self) -> tuple[Schema, Model, FloatArray]:
        """The schema, the model as `Explainer` opens it, and the canonical rows of `X`."""
        schema, model, _, known = open_model(self.estimator, self.X, self.given)
        return schema, model, known

    @property
    def schema(self) -> Schema:
        """Features of the canonical vector."""
        return self.opened[0]

    @property
    def model(self) -> Model:
        """The model as it was read."""
        return self.opened[1]

    @cached_property
    def asked(self) -> list[_Asked]:
        """Both sides at all points, in blocks."""
        U = _points(*self.opened, self.points, np.random.default_rng(self.seed))
        return [self._ask(U[start : start + _BLOCK]) for start in range(0, len(U), _BLOCK)]

    def _ask(self, U: FloatArray) -> _Asked:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the estimator has to say of its input is not for here
            said, shares, decided = self.model.predict(U), self.model.predict_proba(U), self._decision_function(U)
        return _Asked(U, np.asarray(self.model.read.form(U)), said, shares, decided)

    def form_and_rows(self) -> tuple[Form, Schema, FloatArray]:
        """Return the form and a few rows to put to the optimiser, some with missing values where they are taken."""
        schema, model, known = self.opened
        rng = np.random.default_rng([self.seed, 1])
        chosen = known[rng.choice(len(known), size=min(self.rows, len(known)), replace=False)]
        if model.read.accepts_missing:
            whole = complete_row(schema, known)[None, :]
            chosen = np.vstack([chosen, with_holes(schema, whole, model.read.accepts_missing, rng)])
        return model.read.form, schema, chosen

    # -- the checks ---------------------------------------------------------------------------------------------
    def opens(self) -> None:
        """The reader is found and reads the estimator."""
        require(self.model.read.form.n_outputs > 0, f"the form of {self.who} has no score")

    def shape(self) -> None:
        """One score per row and output."""
        n = self.model.read.form.n_outputs
        for at in self.asked:
            require(
                at.scores.shape == (len(at.U), n),
                f"the form gives scores of shape {at.scores.shape} for {len(at.U)} rows and {n} outputs",
            )

    def values(self) -> None:
        """The values of a regressor."""
        if self.model.read.classes:
            return
        for at in self.asked:
            ours = self.model.read.decide(at.scores)[:, None]
            self._close(ours, np.asarray(at.said, dtype=np.float64)[:, None], "value", at.U)

    def probabilities(self) -> None:
        """The probabilities of a classifier, if it has any."""
        read = self.model.read
        for at in self.asked if read.classes else ():
            ours = read.probabilities(at.scores)
            require(
                ours is None or at.shares is not None,
                f"the form has probabilities (link {read.link!r}), {self.who} has none",
            )
            if ours is not None and at.shares is not None:
                self._close(ours, at.shares, "probability", at.U)

    def decision_scores(self) -> None:
        """The decision scores of a classifier without probabilities, or their order."""
        for at in self.asked if self.model.read.classes else ():
            alone = at.decided is not None and self.model.read.probabilities(at.scores) is None
            if alone and at.decided is not None and at.decided.shape == at.scores.shape:
                self._same_order(at.scores, at.decided, at.U)

    def classes(self) -> None:
        """The classes, ties included."""
        for at in self.asked if self.model.read.classes else ():
            self._same_classes(at.U, at.scores, at.said)

    # -- comparisons --------------------------------------------------------------------------------------------
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
        return self.model.read.decision.clearance(scores)

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
        if not isinstance(self.model.read.rule, Sign):
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
