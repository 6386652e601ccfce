"""Readers of scikit-learn's estimators made of estimators: voting, stacking, calibration, thresholds, searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema
from ifonly.errors import UnsupportedModel
from ifonly.models.form import Form
from ifonly.models.forms.complete import complete
from ifonly.models.forms.compose import combine, mean, stack
from ifonly.models.forms.linear import Linear
from ifonly.models.links import LinkName, Sigmoid
from ifonly.models.read import Read
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.reading.outcomes import least, missing_for_all, one_score, probabilities, values, votes
from ifonly.models.reading.source import Column, Source
from ifonly.models.registry import read_estimator, reads
from ifonly.tolerances import DUST, FEASIBILITY, FLOAT32_ROOM, OUT_OF_REACH, VOTE_DIGITS, WEIGHED_VOTERS

__all__ = ["average_of_members", "response"]


# -- one estimator inside another ------------------------------------------------------------------------------------
@reads("sklearn", "GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
def read_search(estimator: Any, source: Source) -> Read:
    """The best estimator it found."""
    return read_estimator(estimator.best_estimator_, source)


@reads("sklearn", "FrozenEstimator")
def read_frozen(estimator: Any, source: Source) -> Read:
    """The estimator inside."""
    return read_estimator(estimator.estimator, source)


@reads("sklearn", "FixedThresholdClassifier", "TunedThresholdClassifierCV")
def read_threshold(estimator: Any, source: Source) -> Read:
    """The positive class iff its score or probability is at least the threshold."""
    inner = getattr(estimator, "estimator_", estimator.estimator)
    method = _method(inner, estimator.response_method, ("predict_proba", "decision_function"))
    if hasattr(estimator, "best_threshold_"):
        threshold, positive = float(estimator.best_threshold_), estimator._curve_scorer._get_pos_label()
    else:
        automatic = 0.5 if method == "predict_proba" else 0.0
        threshold = automatic if estimator.threshold == "auto" else float(estimator.threshold)
        positive = estimator.pos_label
    read = one_score(read_estimator(inner, source), f"{source.where}{type(inner).__name__}")
    second = positive is None or positive == inner.classes_[1]
    if method == "decision_function":
        _check_decision(inner, read, source, f"{source.where}{type(inner).__name__}")
        # The score of the first class is the negative of the second's.
        return replace(read, threshold=threshold if second else -threshold, strict=not second)

    def response_of(s: FloatArray) -> FloatArray:
        p = read.probabilities(s[:, None])
        assert p is not None
        return p[:, 1] if second else -p[:, 0]

    if second:
        return replace(read, threshold=_finite(least(response_of, threshold)), strict=False)
    first_wins_until = least(response_of, float(np.nextafter(-threshold, np.inf)))
    return replace(read, threshold=_finite(first_wins_until), strict=False)


def _finite(threshold: float) -> float:
    """Return a threshold that a program can hold and no score reaches, for one that is always or never passed."""
    return float(np.clip(threshold, -OUT_OF_REACH, OUT_OF_REACH))


# -- averages and votes ----------------------------------------------------------------------------------------------
@reads("sklearn", "VotingClassifier")
def read_voting_classifier(estimator: Any, source: Source) -> Read:
    """Soft: the weighted mean of the members' probabilities; hard: the class with most votes, the first of equals."""
    members = _members(estimator, source)
    classes = labels_of(estimator)
    weights = estimator._weights_not_none
    w = np.ones(len(members)) if weights is None else np.asarray(weights, dtype=np.float64)
    missing = missing_for_all(read for _, read in members)
    steady = all(read.piecewise_constant for _, read in members)
    if estimator.voting == "soft":
        form = mean([probabilities(read, who) for who, read in members], w)
        return Read(form, classes, "argmax", "identity", piecewise_constant=steady, accepts_missing=missing)
    return Read(
        majority([votes(read) for _, read in members], w),
        classes,
        "argmax",
        piecewise_constant=True,
        accepts_missing=missing,
    )


@reads("sklearn", "VotingRegressor")
def read_voting_regressor(estimator: Any, source: Source) -> Read:
    """The weighted mean of the members' predictions."""
    members = _members(estimator, source)
    weights = estimator._weights_not_none
    form = mean(
        [values(read, who) for who, read in members],
        None if weights is None else np.asarray(weights, dtype=np.float64),
    )
    return Read(
        form,
        piecewise_constant=all(read.piecewise_constant for _, read in members),
        accepts_missing=missing_for_all(read for _, read in members),
    )


def _members(estimator: Any, source: Source) -> list[tuple[str, Read]]:
    names = [name for name, member in estimator.estimators if not isinstance(member, str)]
    out = []
    for name, member in zip(names, estimator.estimators_, strict=True):
        inner = source.within(name)
        out.append((f"{inner.where}{type(member).__name__}", read_estimator(member, inner)))
    return out


def majority(ballots: Sequence[Form], weights: FloatArray) -> Form:
    """Return the weighted votes per class, less a little for later classes, so that no two are ever equal.

    The first of several classes with equal votes wins; what is taken off is less than any two totals can differ.
    """
    n = ballots[0].n_outputs
    W = np.hstack([w * np.eye(n) for w in weights])
    return combine(stack(ballots), W, -_least_difference(weights) / (2 * n) * np.arange(n, dtype=np.float64))


def _least_difference(weights: FloatArray) -> float:
    """Return the least nonzero difference between the votes of two classes."""
    w = np.abs(weights[weights != 0])
    if not w.size or bool((w == np.round(w)).all()):
        return float(np.gcd.reduce(w.astype(np.int64))) if w.size else 1.0
    if len(w) > WEIGHED_VOTERS:
        return FEASIBILITY * float(w.min())
    differences = np.zeros(1)
    for x in w:
        differences = np.unique(np.round(np.concatenate([differences, differences + x, differences - x]), VOTE_DIGITS))
    return float(np.min(np.abs(differences[differences != 0])))


def average_of_members(estimator: Any, source: Source) -> Read:
    """Bagging: the mean of the members' probabilities or predictions; of their votes when they have none."""
    reads_of = []
    for member, columns in zip(estimator.estimators_, estimator.estimators_features_, strict=True):
        reads_of.append((type(member).__name__, read_estimator(member, _chosen(source, columns))))
    missing = missing_for_all(read for _, read in reads_of)
    steady = all(read.piecewise_constant for _, read in reads_of)
    if not hasattr(estimator, "classes_"):
        form = mean([values(read, who) for who, read in reads_of])
        return Read(form, piecewise_constant=steady, accepts_missing=missing)
    classes = labels_of(estimator)
    if not all(hasattr(m, "predict_proba") for m in estimator.estimators_):
        ballots = [_onto(votes(read), read, len(classes)) for _, read in reads_of]
        form = majority(ballots, np.ones(len(ballots)))
        return Read(form, classes, "argmax", piecewise_constant=True, accepts_missing=missing)
    form = mean([_onto(probabilities(read, who), read, len(classes)) for who, read in reads_of])
    return Read(form, classes, "argmax", "identity", piecewise_constant=steady, accepts_missing=missing)


def _onto(form: Form, read: Read, n: int) -> Form:
    """Spread the scores of a member that was fitted on some of the class positions over all of them."""
    if len(read.classes) == n:
        return form
    return combine(form, np.eye(n)[:, [int(c) for c in read.classes]])


def _chosen(source: Source, columns: Any) -> Source:
    """Return the columns a member of a bagging is given, as an array without names."""
    chosen = np.arange(len(source.columns))[columns]

    def evaluate(U: FloatArray) -> Any:
        Z = source.evaluate(U)
        Z = Z.to_numpy() if hasattr(Z, "to_numpy") else Z
        return Z[:, chosen]

    return replace(source, columns=tuple(source.columns[i] for i in chosen), evaluate=evaluate)


# -- one against the rest --------------------------------------------------------------------------------------------
@reads("sklearn", "OneVsRestClassifier")
def read_one_vs_rest(estimator: Any, source: Source) -> Read:
    """One score per class, its member's decision score or probability; the first of the largest wins."""
    if estimator.multilabel_:
        raise UnsupportedModel(
            f"{source.where}OneVsRestClassifier decides several labels at once (multilabel). Explain the member of the "
            "label you ask about: estimator.estimators_[k]."
        )
    members = [read_estimator(member, source) for member in estimator.estimators_]
    classes = labels_of(estimator)
    scored = all(hasattr(member, "decision_function") for member in estimator.estimators_)
    if len(members) == 1:
        read = one_score(members[0], f"{source.where}OneVsRestClassifier")
        # A network has probabilities only, but its score is their logit.
        at_zero = scored or isinstance(members[0].link, Sigmoid)
        return replace(read, classes=classes, threshold=0.0 if at_zero else 0.5, strict=True)
    method = "decision_function" if scored else "predict_proba"
    columns = [
        response(member, read, method, source) for member, read in zip(estimator.estimators_, members, strict=True)
    ]
    likely = all(isinstance(read.link, Sigmoid) for read in members)
    link: LinkName = "normalised" if likely and hasattr(estimator, "predict_proba") else "none"
    return Read(
        stack(columns),
        classes,
        "argmax",
        link if scored else "shares",
        piecewise_constant=all(read.piecewise_constant for read in members),
        accepts_missing=missing_for_all(members),
    )


# -- stacking --------------------------------------------------------------------------------------------------------
@reads("sklearn", "StackingClassifier", "StackingRegressor")
def read_stacking(estimator: Any, source: Source) -> Read:
    """A linear final estimator over what the members say, and over the data itself when it is passed through."""
    parts, members = [], []
    for (who, read), member, method in zip(
        _members(estimator, source), estimator.estimators_, estimator.stack_method_, strict=True
    ):
        parts.append(response(member, read, method, source, who))
        members.append(read)
    said = stack(parts)
    final, kind = estimator.final_estimator_, type(estimator.final_estimator_).__name__
    seen = _seen_by_final(said.n_outputs, source, estimator.passthrough)
    read = read_estimator(final, seen.within("final estimator"))
    linear = complete(read.form)  # gaps in data that is passed through are not filled in here
    if not isinstance(linear, Linear):
        raise UnsupportedModel(
            f"{source.where}{type(estimator).__name__} with final estimator {kind}: only a linear one, such as "
            "LogisticRegression, Ridge or LinearSVC, can be read over the members."
        )
    n = said.n_outputs
    form = combine(said, linear.weights[:, :n], linear.intercept)
    if estimator.passthrough:
        own = Linear(source.schema, linear.weights[:, n:], np.zeros(linear.n_outputs))
        eye = np.eye(linear.n_outputs)
        both = np.hstack([linear.weights[:, :n], eye])
        form = combine(stack([said, own]), both, linear.intercept)
    classes = labels_of(estimator) if read.classes else ()
    through = estimator.passthrough
    return replace(
        read,
        form=form,
        classes=classes,
        piecewise_constant=all(m.piecewise_constant for m in members) and not through,
        accepts_missing=frozenset() if through else missing_for_all(members),
    )


def _seen_by_final(n: int, source: Source, passthrough: bool) -> Source:
    """Return what the final estimator is given, as if the members' outputs were features of the data."""
    own = tuple(Numeric(f"member output {k}", -1.0, 1.0) for k in range(n))
    if not passthrough:
        return Source.raw(Schema(own), lambda V: V, np.zeros(n))
    schema = Schema(own + source.schema.features)
    outputs = Source.raw(schema, lambda V: V, np.zeros(schema.width)).columns[:n]

    def evaluate(V: FloatArray) -> Any:
        Z = source.evaluate(V[:, n:])
        return np.hstack([V[:, :n], Z.toarray() if hasattr(Z, "toarray") else Z])

    columns = (*outputs, *(_shifted(c, n) for c in source.columns))
    return Source(schema, columns, evaluate, np.concatenate([np.zeros(n), source.base]), tuning=source.tuning)


def _shifted(column: Column, n: int) -> Column:
    """Return a column over the canonical vector with `n` numeric features put before it."""
    return replace(
        column,
        features=frozenset(j + n for j in column.features),
        weights=None if column.weights is None else np.concatenate([np.zeros(n), column.weights]),
        steps={(j + n, cut): w for (j, cut), w in column.steps.items()},
    )


def response(member: Any, read: Read, method: str, source: Source, who: str = "") -> Form:
    """Return what one method of a member gives, as scikit-learn's meta-estimators pass it on.

    Of two probabilities only the second is passed on.
    """
    who = who or f"{source.where}{type(member).__name__}"
    if method == "predict_proba":
        form = probabilities(read, who)
        return combine(form, np.array([[0.0, 1.0]])) if form.n_outputs == 2 else form
    if method == "decision_function":
        _check_decision(member, read, source, who)
        return read.form
    if read.classes:
        return combine(votes(read), np.array([[float(c) for c in read.classes]]))
    return values(read, who)


def _check_decision(member: Any, read: Read, source: Source, who: str) -> None:
    """Refuse a member whose `decision_function` is not the score that was read."""
    theirs = np.asarray(member.decision_function(source.evaluate(source.base[None, :]))).reshape(-1)
    ours = read.form(source.base[None, :])[0]
    if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=FLOAT32_ROOM, atol=DUST):
        raise UnsupportedModel(
            f"{who} enters by its decision_function, which is not the score it is read by. Use predict_proba instead "
            "(stack_method, response_method), or a linear member."
        )


def _method(estimator: Any, asked: str, known: Sequence[str]) -> str:
    return next(m for m in known if hasattr(estimator, m)) if asked == "auto" else asked
