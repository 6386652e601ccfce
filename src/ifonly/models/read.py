"""Read: a form and the rule by which its scores become predictions; Model: that, the user's estimator and its Rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from threading import local
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Schema
from ifonly.data.tables import DEEP
from ifonly.models.abilities import LinearScores, has_nearest
from ifonly.models.form import Form
from ifonly.models.forms.compose import magnitude
from ifonly.models.links import LINKS, Identity, Link, LinkName, NoLink
from ifonly.models.own_links import OwnLink, ValueLink
from ifonly.models.rules import RULES, Decision, Rule, RuleName, Sign
from ifonly.program.box import Box
from ifonly.runtime.memo import Lean, Memo, cached_property
from ifonly.runtime.tuning import DEFAULT
from ifonly.runtime.warning_filters import CHANGING, few_filters
from ifonly.tolerances import LARGEST_LOGIT, SPACING

__all__ = ["Model", "Observed", "Read", "Rows"]

_Known = TypeVar("_Known", Rule, Link)


@dataclass(frozen=True, init=False)
class Read:
    """Result of a reader: the form, and the rule by which its scores become a prediction.

    Attributes
    ----------
    form
        The scores.
    classes
        The labels, in the model's order; empty for a regression model.
    rule
        How scores become a class, by name or as a `Rule`. ``"sign"``: one score, the second class iff
        ``score > threshold``; ``"argmax"``: one score per class, the first of the largest wins; ``"value"``: regression,
        the score is the prediction.
    link
        How scores become probabilities, by name or as a `Link`: ``"none"`` (there are none), ``"identity"`` (they are),
        ``"sigmoid"``, ``"softmax"``, ``"clip"`` (``(s + 1) / 2`` within 0 and 1), ``"normalised"`` (sigmoids divided by
        their sum), ``"shares"`` (scores that are not negative, divided by their sum).
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

    Parameters
    ----------
    link_forward
        Scores -> class probabilities, in place of `link`; for regression, scores -> predictions.
    link_inverse
        The least score at which the second class's probability, or the prediction, is at least a given value: minus
        infinity when it always is, infinity when it never is.
    """

    form: Form
    classes: tuple[Any, ...]
    rule: Rule
    link: Link
    threshold: float
    strict: bool
    piecewise_constant: bool
    accepts_missing: frozenset[int]
    rounding: float

    def __init__(
        self,
        form: Form,
        classes: tuple[Any, ...] = (),
        rule: Rule | RuleName = "value",
        link: Link | LinkName = "none",
        threshold: float = 0.0,
        strict: bool = True,
        piecewise_constant: bool = False,
        accepts_missing: frozenset[int] = frozenset(),
        rounding: float = SPACING,
        link_forward: Callable[[FloatArray], FloatArray] | None = None,
        link_inverse: Callable[[float], float] | None = None,
    ) -> None:
        known = _named(RULES, rule, "rule") if isinstance(rule, str) else rule
        linked = _named(LINKS, link, "link") if isinstance(link, str) else link
        if link_forward is not None and linked.has_probabilities:
            linked = OwnLink(link_forward, link_inverse, linked.name)
        elif link_forward is not None:
            linked = ValueLink(link_forward, link_inverse)
        values = (form, classes, known.at(threshold, strict), linked, threshold, strict)
        for place, value in zip(fields(self), (*values, piecewise_constant, accepts_missing, rounding), strict=True):
            object.__setattr__(self, place.name, value)

    @property
    def decision(self) -> Decision:
        """The rule of a classifier."""
        if not isinstance(self.rule, Decision):
            raise TypeError("A regression model decides on no class: ask for an interval of its values.")
        return self.rule

    @property
    def slope_at_threshold(self) -> float:
        """Slope of the score at a threshold that was turned from a probability: the model compares before that; else 0.

        A relative change of ``p`` moves its logit ``t`` by ``1 / (1 - p) = 1 + exp(t)`` times as much.
        """
        compared = self.link.has_probabilities and not isinstance(self.link, Identity)
        if not compared or not isinstance(self.rule, Sign) or not self.threshold:
            return 0.0
        return 1.0 + float(np.exp(min(abs(self.threshold), LARGEST_LOGIT)))

    def probabilities(self, scores: FloatArray) -> FloatArray | None:
        """Return class probabilities from scores, or None when the model has none."""
        return self.link.probabilities(scores)

    def decide(self, scores: FloatArray) -> Any:
        """Return the index of the predicted class (or the value, for regression) from scores."""
        return self.rule.decide(scores) if isinstance(self.rule, Decision) else self.link.value(scores)


def _named(table: Mapping[str, _Known], name: str, what: str) -> _Known:
    if name not in table:
        raise ValueError(f"The {what} of a Read must be one of {', '.join(table)}, or a {what.title()}. Got {name!r}.")
    return table[name]


class Rows:
    """Decoder of canonical rows for one estimator: the columns that it was fitted on, named or as a plain array.

    Single rows are remembered for a while, in each thread by itself: an answer is put to the model, perhaps twice, and then
    returned. `schema` are the features that the estimator receives, `entries` their places in the canonical vector of all
    features, `most` is how many rows are remembered.
    """

    def __init__(
        self, schema: Schema, entries: IntArray, *, named: bool, most: int = DEFAULT.reading.remembered
    ) -> None:
        self.schema, self.entries, self.named, self.most = schema, entries, named, most
        self._here = _Remembered()

    def __call__(self, U: FloatArray) -> Any:
        """Return the table that the estimator receives for canonical rows of all features."""
        decoded = self.frame(U[:, self.entries])
        return decoded if self.named else decoded.to_numpy()

    def frame(self, U: FloatArray) -> pd.DataFrame:
        """Return canonical rows of the estimator's own features as a frame of the caller's own."""
        U = np.asarray(U, dtype=np.float64)
        if len(U) != 1:
            return self.schema.decode(U)
        known, key = self._here.decoded, U.tobytes()
        if key not in known:
            if len(known) >= self.most:
                del known[next(iter(known))]
            known[key] = self._decoded(U[0])
        return known[key].copy(deep=DEEP)

    def know(self, schema: Schema, factual: FloatArray, table: pd.DataFrame, line: int | None) -> None:
        """Be told of a row without missing values, and of its place in a table: the next ones will be much like it.

        Nobody may change the table.
        """
        if schema.names == self.schema.names:
            self._here.factual = factual, table, line

    def _decoded(self, u: FloatArray) -> pd.DataFrame:
        if self._here.factual is None:
            return self.schema.decode(u)
        factual, table, line = self._here.factual
        row = table if line is None else table.iloc[[line]]
        if not self.schema.keeps(row, factual):
            row = self.schema.decode(factual)
            self._here.factual = factual, row, None
        return self.schema.decode_beside(u, factual, row)


class _Remembered(local):
    """Rows that one thread has decoded, the latest last, and the factual that it asks about; none in a pickle."""

    def __init__(self) -> None:
        self.decoded: dict[bytes, pd.DataFrame] = {}
        self.factual: tuple[FloatArray, pd.DataFrame, int | None] | None = None

    def __reduce__(self) -> tuple[type[_Remembered], tuple[()]]:
        return _Remembered, ()


@dataclass
class _Clock:
    """Seconds of the shortest call of an estimator so far, decoding included; 0 before the first, and in a pickle."""

    least: float = 0.0

    def __reduce__(self) -> tuple[type[_Clock], tuple[()]]:
        return _Clock, ()


@dataclass(frozen=True)
class Model(Lean):
    """A read model together with the user's own estimator, which has the last word on every answer."""

    read: Read
    estimator: Any
    prepare: Callable[[FloatArray], Any] = field(repr=False)
    memo: Memo = field(init=False, repr=False, compare=False, default_factory=Memo)
    clock: _Clock = field(init=False, repr=False, compare=False, default_factory=_Clock)

    @cached_property
    def rounding(self) -> float:
        """The unit of rounding of the estimator's own arithmetic: as its reader says, or that of its `dtype`."""
        last = self.estimator.steps[-1][1] if hasattr(self.estimator, "steps") else self.estimator
        return max(self.read.rounding, float(np.finfo(getattr(last, "arithmetic", np.float64)).eps))

    @property
    def input_rounding(self) -> float:
        """The unit of rounding with which columns reach the estimator: that of float64 behind a transformer."""
        prepared = hasattr(self.estimator, "steps") or getattr(self.estimator, "transform", None) is not None
        return float(np.finfo(np.float64).eps) if prepared else self.rounding

    def scatter(self, form: Form, box: Box) -> float:
        """Return the unit of rounding of a score: that of the arithmetic, times the size of what is summed in a box.

        Behind a transformer, which computes in float64, a network in float32 sees numbers that are counted from their
        mean: a column around 1e9 is off by a spacing of float64 there, and not by one of float32. The few boxes that
        questions ask for again and again are remembered: bounds of a calibrated network take 15 ms.
        """
        return self._sizes(form, box)[0]

    def spread(self, form: Form, box: Box) -> float:
        """Return the size of a score whose numbers are counted from the middle of a box: how far it can range there."""
        return self._sizes(form, box)[1]

    def _sizes(self, form: Form, box: Box) -> tuple[float, float]:
        def measured() -> tuple[float, float]:
            spread = float(magnitude(form, box, centred=True).max())
            return max(self.rounding * spread, self.input_rounding * float(magnitude(form, box).max())), spread

        return self.memo.get("sizes", (id(form), box.key), measured, keep=form)

    @cached_property
    def by_form(self) -> bool:
        """Whether the form says what the estimator says, rounding aside; where nearest rows are tied it may not."""
        return not has_nearest(self.read.form)

    def scores(self, U: FloatArray) -> FloatArray:
        """Return the scores of canonical rows, by the form.

        Where rows of a table are equally far, only the estimator knows which of them count, and its own probabilities or
        values are the scores.
        """
        form, link = self.read.form, self.read.link
        if not len(U) or self.by_form:
            return form(U)
        if not self.read.classes and isinstance(link, NoLink):
            return np.asarray(self.predict(U), dtype=np.float64)[:, None]
        own = self.predict_proba(U) if isinstance(link, Identity) else None
        return form(U) if own is None else own

    def know(self, schema: Schema, factual: FloatArray, table: pd.DataFrame, line: int | None = None) -> None:
        """Be told of a complete row, and of its place in a table that nobody changes."""
        if isinstance(self.prepare, Rows):
            self.prepare.know(schema, factual, table, line)

    def decode(self, schema: Schema, row: FloatArray) -> pd.DataFrame:
        """Return a canonical row as a frame; the one that was just put to the estimator need not be decoded again."""
        rows = self.prepare
        return rows.frame(row) if isinstance(rows, Rows) and rows.schema is schema else schema.decode(row)

    @property
    def seconds(self) -> float:
        """The time of one call of the estimator, decoding included: the shortest one so far, 0 before the first."""
        return self.clock.least

    @cached_property
    def _asks_others(self) -> bool:
        """Whether the estimator may be made of others, each of which puts warning filters in place; a linear one is not."""
        return not isinstance(self.read.form, LinearScores)

    def _said(self, method: Callable[[Any], Any], U: FloatArray) -> Any:
        """Return the estimator's own word, and note how long it took: nobody can interrupt a call, so searches leave time."""
        began = time.perf_counter()
        with few_filters() if self._asks_others else CHANGING:
            said = method(self.prepare(U))
        taken = time.perf_counter() - began
        self.clock.least = min(taken, self.clock.least or taken)
        return said

    def predict(self, U: FloatArray) -> Any:
        """Return the estimator's own prediction for canonical rows."""
        return np.asarray(self._said(self.estimator.predict, U)).reshape(len(U), -1)[:, 0]

    def predict_proba(self, U: FloatArray) -> FloatArray | None:
        """Return the estimator's own probabilities, or None when it has none."""
        if not self.read.classes or not hasattr(self.estimator, "predict_proba"):
            return None
        try:
            return np.asarray(self._said(self.estimator.predict_proba, U), dtype=np.float64)
        except AttributeError:  # a scorecard always has the method, whatever the estimator inside it has
            if self.read.link.has_probabilities:
                raise
            return None


class Observed(Model):
    """A model of which only the answers are known: its form asks the estimator, and cannot be embedded."""
