"""Manifold: the answer lies where the data lie, in a convex hull of rows or where an isolation forest finds it normal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.criteria.manifold.branches import InCloud
from ifonly.criteria.manifold.hull import Ball, Norm
from ifonly.criteria.manifold.isolation import Normal
from ifonly.criteria.manifold.rows import Cloud, Shape
from ifonly.errors import CriterionError
from ifonly.program.box import Box
from ifonly.question.any_class import AnyClassGoal
from ifonly.question.criterion import Criterion, Remarks
from ifonly.question.demand import Demand
from ifonly.question.goal import ClassGoal, Goal, IntervalGoal, ProbabilityGoal
from ifonly.question.query import Query
from ifonly.question.words import number
from ifonly.runtime.warning_filters import few_filters

__all__ = ["Manifold"]

Of = Literal["wanted", "all"]
By = Literal["label", "prediction"]


@dataclass(frozen=True, eq=False)
class Manifold(Remarks, Criterion):
    """Stay close to the data: within the convex hull of rows of the wanted outcome, enlarged by `epsilon`.

    Units are scaled: numbers are divided by their range in training, a category is a set of 0/1 columns. A row with a
    missing value spans no hull; a feature that the factual lacks takes no part.

    Parameters
    ----------
    epsilon
        How far outside the hull an answer may lie.
    norm
        The norm in which that is counted: ``"l1"``, ``"l2"`` or ``"linf"``.
    clusters
        None: one hull. A number: the union of the hulls of so many k-means clusters; ``"auto"``: of as many as the
        silhouette prefers, up to eight. Or a label per training row (or per row of `rows`).
    of
        ``"wanted"``: rows of the wanted outcome; ``"all"``: all rows.
    by
        How a row's outcome is known: by its true ``"label"`` or by the model's ``"prediction"``. By default by label
        when the explainer was given the true outcomes and a class is wanted, otherwise by prediction.
    rows
        Rows to use instead of the training data, in its columns; `of` and `by` then do not matter.
    isolation
        Instead of a hull: demand that an isolation forest, fitted on the rows, finds the answer at least as normal as
        this share of the rows (0.1: among the 90 per cent most normal ones).

    Examples
    --------
    >>> Manifold(epsilon=0.05, clusters=3).norm
    'l1'
    """

    epsilon: float = 0.0
    norm: Norm = "l1"
    clusters: int | Literal["auto"] | Sequence[Any] | None = None
    of: Of = "wanted"
    by: By | None = None
    rows: Any = None
    isolation: float | None = None

    def __post_init__(self) -> None:
        for name, known in (("norm", get_args(Norm)), ("of", get_args(Of)), ("by", (*get_args(By), None))):
            if getattr(self, name) not in known:
                raise CriterionError(
                    f"The {name!r} of Manifold must be one of {', '.join(map(repr, known))}. Got {getattr(self, name)!r}."
                )
        if not (np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise CriterionError(f"The 'epsilon' of Manifold must not be negative, got {self.epsilon!r}.")
        if self.isolation is not None and not 0.0 < self.isolation < 1.0:
            raise CriterionError(
                f"The 'isolation' of Manifold is a share of the rows, strictly between 0 and 1; got {self.isolation!r}."
            )
        wrong = isinstance(self.clusters, str) and self.clusters != "auto"
        if wrong or (isinstance(self.clusters, int) and self.clusters < 1):
            raise CriterionError(
                f"The 'clusters' of Manifold must be a number of at least 1, 'auto', or one label per row. Got "
                f"{self.clusters!r}."
            )

    @property
    def _key(self) -> tuple[object, ...]:
        """Key of equality; rows and labels, which have no truth value to compare by, count by their identity."""
        many = not isinstance(self.clusters, int | str | None)
        clusters = id(self.clusters) if many else self.clusters
        return self.epsilon, self.norm, self.of, self.by, self.isolation, id(self.rows), many, clusters

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Manifold) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def check(self, query: Query) -> None:
        """There must be rows to be close to."""
        self._cloud(query)

    def demands(self, query: Query) -> Sequence[Demand]:
        """Return the demand to lie in a hull of the rows, or to be normal among them."""
        cloud = self._cloud(query)
        return [self._hull(query, cloud) if self.isolation is None else self._normal(query, cloud)]

    def _normal(self, query: Query, cloud: Cloud) -> Normal:
        assert self.isolation is not None
        return Normal.among(cloud, self.isolation, query)

    def _hull(self, query: Query, cloud: Cloud) -> InCloud:
        shape = Shape.of(query, cloud)
        if not len(shape.U):
            raise CriterionError(
                f"Every one of {cloud.words} has a missing value, so none spans a hull. Fill the values in, or give "
                "Manifold(rows=...)."
            )
        near = f" (within {number(self.epsilon)} in {self.norm})" if self.epsilon else ""
        return InCloud.of(f"lie in {self._hull_words(cloud)}{near}", shape, Ball(self.epsilon, self.norm))

    def _hull_words(self, cloud: Cloud) -> str:
        union = f"one of the {cloud.n_clusters} cluster hulls" if cloud.n_clusters > 1 else "the convex hull"
        return f"{union} of {cloud.words}"

    def measure(self, query: Query, U: FloatArray) -> dict[str, FloatArray]:
        """Return how far each row is from the hull in scaled units, or how normal it is, measured anew."""
        cloud = self._cloud(query)
        if self.isolation is not None:
            return {"isolation": self._normal(query, cloud).degree(U)}
        return {"hull_distance": self._hull(query, cloud).distance(U)}

    def remarks(self, query: Query, U: FloatArray) -> list[str]:
        """Name the rows that the measures of the answers refer to."""
        del U
        cloud = self._cloud(query)
        if self.isolation is not None:
            return [f"isolation: the score of an isolation forest fitted on {cloud.words}"]
        how = "Wolfe's algorithm" if self.norm == "l2" else "a linear program of its own"
        return [f"hull distance: to {self._hull_words(cloud)} ({self.norm}, scaled units), measured anew by {how}"]

    # -- rows ---------------------------------------------------------------------------------------------------
    def _cloud(self, query: Query) -> Cloud:
        """Return the rows that are meant, from memory when the same was asked before."""
        goal = query.goal
        wanted = goal.key if isinstance(goal, Goal) else ()
        key = (*self._key[2:4], *self._key[5:], wanted, query.seed)
        return query.training.memo.get("clouds", key, lambda: self._found(query), keep=(self.rows, self.clusters))

    def _found(self, query: Query) -> Cloud:
        U, words, which = self._select(query)
        return Cloud(U, self._clustered(query, U, which), words)

    def _select(self, query: Query) -> tuple[FloatArray, str, IntArray]:
        """Return the rows, what to call them, and their places in the table they come from."""
        training = query.training
        if self.rows is not None:
            U = query.schema.encode(self.rows, missing=True)
            if not len(U):
                raise CriterionError("The 'rows' of Manifold are empty. Give at least one row to be close to.")
            return U, f"the {len(U)} rows given", np.arange(len(U))
        if self.of == "all" or query.goal is None:
            return training.U, f"the {len(training.U)} training rows", np.arange(len(training.U))
        chosen, words = self._wanted(query)
        which = np.flatnonzero(chosen)
        if not which.size:
            raise CriterionError(
                f"No training row is {words}, so there is no hull to lie in. Use Manifold(of='all'), the other by=, or "
                "Manifold(rows=...)."
            )
        return training.U[which], f"the {which.size} training rows {words}", which

    def _wanted(self, query: Query) -> tuple[npt.NDArray[np.bool_], str]:
        goal, training = query.goal, query.training
        assert isinstance(goal, Goal)
        if self.by == "label" and training.labels is None:
            raise CriterionError(
                "Manifold(by='label') needs the true outcomes: Explainer(model, X, y). Or use by='prediction'."
            )
        by_label = self.by == "label" or (
            self.by is None and training.labels is not None and isinstance(goal, ClassGoal | AnyClassGoal)
        )
        outcome = goal.text.removeprefix("want ").removeprefix("a prediction ")
        if not by_label:
            limits = Box.of(query.schema, query.factual)
            return goal.said_of(training.U, training.scores, limits), f"for which the model says {outcome}"
        assert training.labels is not None
        if isinstance(goal, IntervalGoal):
            values = training.labels.astype(np.float64)
            return np.asarray((values >= goal.low) & (values <= goal.high)), f"whose outcome is {outcome}"
        if isinstance(goal, AnyClassGoal):
            return np.isin(training.labels, goal.labels), f"labelled {outcome}"
        assert isinstance(goal, ClassGoal | ProbabilityGoal)
        return np.asarray(training.labels == goal.label), f"labelled {goal.label!r}"

    def _clustered(self, query: Query, U: FloatArray, which: IntArray) -> IntArray:
        """Return the cluster of each row."""
        if self.clusters is None:
            return np.zeros(len(U), dtype=np.int64)
        if isinstance(self.clusters, int | str):
            with few_filters():
                return _k_means(query, U, None if isinstance(self.clusters, str) else self.clusters)
        labels = np.asarray(self.clusters)
        if len(labels) not in (len(which), len(query.training.U)):
            raise CriterionError(
                f"'clusters' has {len(labels)} labels, but there are {len(query.training.U)} training rows. Give one "
                "label per row."
            )
        labels = labels if len(labels) == len(which) else labels[which]
        return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _k_means(query: Query, U: FloatArray, k: int | None) -> IntArray:
    """Cluster the rows in scaled units, into `k` parts or as many as the silhouette prefers (Rousseeuw 1987)."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 - scikit-learn is loaded only when it is needed
    from sklearn.metrics import silhouette_score  # noqa: PLC0415

    starts, spread = query.schema.starts, query.training.range
    units = np.ones(U.shape[1])
    units[[starts[j] for j in query.training.numeric]] = [spread[j] or 1.0 for j in query.training.numeric]
    points = np.nan_to_num(U / units)
    distinct = len(np.unique(points, axis=0))
    if k is not None:
        if k > distinct:
            raise CriterionError(f"'clusters' is {k}, but there are only {distinct} different rows.")
        return np.asarray(KMeans(k, n_init=4, random_state=query.seed).fit_predict(points), dtype=np.int64)
    best = np.zeros(len(U), dtype=np.int64)
    best_score = 0.0
    for k_now in range(2, min(query.tuning.clouds.most_clusters, distinct - 1) + 1):
        labels = KMeans(k_now, n_init=4, random_state=query.seed).fit_predict(points)
        some = min(len(points), query.tuning.clouds.silhouette_rows)
        score = float(silhouette_score(points, labels, sample_size=some, random_state=query.seed))
        if score > best_score:
            best, best_score = np.asarray(labels, dtype=np.int64), score
    return best
