"""Isolation: be as normal as most rows, by the mean path length in an isolation forest, embedded as trees.

An isolation forest scores a point by how many random splits it takes to isolate it (Liu, Ting and Zhou 2008). The score
is an increasing function of the mean path length over the trees, so "at least as normal as a share of the rows" is one
linear row over the leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.criteria.manifold.rows import Cloud
from ifonly.data.schema import Numeric, Schema
from ifonly.errors import CriterionError, Relaxation
from ifonly.models.opening import open_part
from ifonly.models.read import Model
from ifonly.program.mip import Affine
from ifonly.question.abilities import Loosens, Verifies
from ifonly.question.demand import Demand
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.words import number
from ifonly.runtime.warning_filters import few_filters
from ifonly.tolerances import DUST as _DUST

__all__ = ["Normal"]


@dataclass(frozen=True, eq=False)
class Normal(Verifies, Loosens, Demand):
    """``mean path length >= the one at a quantile of the rows``.

    Attributes
    ----------
    model
        The forest, as a function of all features.
    path
        The mean path length to reach.
    scores
        The rows' own scores, in order.
    share
        The share of the rows that may be more normal.
    """

    model: Model
    path: float
    scores: FloatArray
    share: float

    @classmethod
    def among(cls, cloud: Cloud, share: float, query: Query) -> Normal:
        """Return the demand to be at least as normal as this share of some rows."""
        from ifonly.models.readers.sklearn_ensembles import mean_path  # noqa: PLC0415 - scikit-learn is loaded late

        if np.isnan(query.factual).any() or not _complete(query.schema, query.factual[None, :])[0]:
            raise CriterionError(
                "Manifold(isolation=...) needs a row without missing values: an isolation forest gives a missing value "
                "no meaning. Fill it in, or demand a hull instead, which leaves such features out."
            )
        found = query.training.memo.get("forests", id(cloud), lambda: _forest(cloud, query), keep=cloud)
        model, scores = found
        path = mean_path(model.estimator[-1], float(np.quantile(scores, share)))
        text = f"be at least as normal as {number(100 * share)} per cent of {cloud.words} (isolation forest)"
        return cls(text, model, path, scores, share)

    def cuts(self, query: Query) -> Mapping[int, FloatArray]:
        """The forest's thresholds."""
        del query
        return self.model.read.form.cuts()

    def features(self, query: Query) -> frozenset[int]:
        """The features that the forest looks at."""
        del query
        return self.model.read.form.features()

    def apply(self, problem: Program) -> None:
        """Embed the forest and demand the path length."""
        # mean path length >= that of the demanded quantile
        problem.mip.row(self._length(problem), lower=self.path)

    def _length(self, problem: Program) -> Affine:
        return self.model.read.form.embed(problem.mip, problem.x)[0]

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, by the form, which rows are normal enough."""
        del query
        return np.asarray(self.model.read.form(U)[:, 0] >= self.path - _DUST)

    def verified(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, by the forest itself, which rows are normal enough."""
        del query
        return np.asarray(self.score(U) >= np.quantile(self.scores, self.share) - _DUST)

    def score(self, U: FloatArray) -> FloatArray:
        """Return the forest's own scores, higher for what is more normal."""
        rows = self.model.prepare(U)
        with few_filters():
            return np.asarray(self.model.estimator.score_samples(rows), dtype=np.float64)

    def degree(self, U: FloatArray) -> FloatArray:
        """Return the scores by the form: the forest's own up to rounding, without its milliseconds."""
        from ifonly.models.readers.sklearn_ensembles import path_scores  # noqa: PLC0415 - scikit-learn is loaded late

        return path_scores(self.model.estimator[-1], self.model.read.form(U)[:, 0])

    def share_below(self, score: float) -> float:
        """Return the share of the rows that are no more normal than a score: the quantile it reaches."""
        below = int(np.searchsorted(self.scores, score + _DUST, side="right")) - 1
        return max(below, 0) / max(len(self.scores) - 1, 1)

    def excess(self, problem: Program) -> Affine:
        """Return the amount by which the path length falls short."""
        short = problem.mip.column(0.0, max(self.path, 0.0), name="short")
        # mean path length >= that of the demanded quantile - short
        problem.mip.row(self._length(problem) + short, lower=self.path)
        return short

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Name the share that lets the row through."""
        del query
        share = self.share_below(float(self.score(u[None, :])[0]))
        change = f"isolation {number(self.share)} -> {number(share, 'down')}" if share > 0 else f"drop: {self.text}"
        return Relaxation(self.text, change, self.share - share)


def _forest(cloud: Cloud, query: Query) -> tuple[Model, FloatArray]:
    """Fit a forest on the rows, categories as 0/1 columns, and return it with the rows' scores in order."""
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415 - scikit-learn is loaded late
    from sklearn.ensemble import IsolationForest  # noqa: PLC0415
    from sklearn.pipeline import Pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415

    schema, tuning = query.schema, query.tuning.clouds
    levels = {f.name: list(f.levels) for f in schema.features if not isinstance(f, Numeric)}
    encoder = OneHotEncoder(categories=list(levels.values()))
    columns = ColumnTransformer([("levels", encoder, list(levels))], remainder="passthrough")
    samples = min(tuning.samples, len(cloud.U))
    forest = IsolationForest(n_estimators=tuning.trees, max_samples=samples, random_state=query.seed)
    rows = cloud.U[_complete(schema, cloud.U)]
    frame = schema.decode(rows)
    with few_filters():
        estimator = Pipeline([("columns", columns), ("forest", forest)]).fit(frame)
        model = open_part(estimator, schema, schema.names, rows[0], "the isolation forest: ", tuning=query.tuning)
        return model, np.sort(estimator.score_samples(frame))


def _complete(schema: Schema, U: FloatArray) -> npt.NDArray[np.bool_]:
    """Say which rows have a value for every feature."""
    whole = ~np.isnan(U).any(axis=1)
    for j, feature in enumerate(schema.features):
        if not isinstance(feature, Numeric):
            whole &= U[:, schema.slice(j)].any(axis=1)
    return np.asarray(whole)
