"""The distances engine: further answers at a least distance from earlier ones, for trees and for linear scores.

A distance that is to be kept is a reverse-convex row: what meets it is no box, no union of few boxes, and not convex. But it
is a sum over single features, as the cost is. So in a box in which nothing else couples features, what is left is a small
covering problem (`covering`), and a linear score is one more row of it. In a forest such boxes are the parts of the grid in
which the goal is reached: the branch and bound over cells finds them, with the distances' surrogates as further tables of
costs (`surrogates`), by which it prunes what lies near earlier answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.events import Built
from ifonly.models.abilities import LinearScores
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.guidance import KeepsDistance
from ifonly.question.statement import Statement
from ifonly.search.cells.splitting import Splitting
from ifonly.search.distances.covering import Covering
from ifonly.search.distances.inside import Parts, region_of
from ifonly.search.distances.moves import gone_on
from ifonly.search.distances.terms import Row, Terms
from ifonly.search.engine import NO_SOLVER, Separable, by_cells, fills_gaps, separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from ifonly.tolerances import allowed_gap

__all__ = ["Distances"]


@dataclass(frozen=True)
class Distances:
    """Engine for trees and linear scores under costs and demands on single features, and distances that are to be kept."""

    name: str = "distances"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether there is such a distance, and the question without it is one of single features."""
        relaxed = _relaxed(statement)
        question = None if relaxed is None else separable(relaxed)
        if relaxed is None or question is None or not _on_grids(statement, box):
            return False
        return by_cells(relaxed, box, question) or _by_rows(relaxed, box, question)

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Search until the box is closed, or the time is over."""
        relaxed = _relaxed(statement)
        question = None if relaxed is None else separable(relaxed)
        assert relaxed is not None
        assert question is not None
        return _Search(statement, box, progress, question).run(trees=by_cells(relaxed, box, question))


def _relaxed(statement: Statement) -> Statement | None:
    """Return the statement without the distances that are to be kept; None if there are none."""
    others = tuple(d for d in statement.demands if not isinstance(d, KeepsDistance))
    return replace(statement, demands=others) if len(others) < len(statement.demands) else None


def _on_grids(statement: Statement, box: Box) -> bool:
    """Whether all numbers have ends, and these and factual values are on their grids: else values lie beside grid points."""
    schema, factual = statement.query.schema, statement.query.factual
    for j in np.asarray(schema.numeric)[~box.missing[schema.numeric]]:
        feature, ends = schema.features[j], (float(box.lower[j]), float(box.upper[j]), float(factual[schema.starts[j]]))
        assert isinstance(feature, Numeric)
        if not np.isfinite(ends[:2]).all() or any(feature.snap(end) != end for end in ends if not np.isnan(end)):
            return False
    return True


def _by_rows(statement: Statement, box: Box, question: Separable) -> bool:
    """Whether the goal is a few linear rows of the features."""
    if not isinstance(statement.form, LinearScores) or question.goal.is_curved() or fills_gaps(statement, box):
        return False
    numbers = statement.query.schema.number_starts
    known = not np.isnan(statement.query.factual[numbers]).any()
    return known and bool(question.goal.rows())


class _Search:
    """One search of a box."""

    def __init__(self, statement: Statement, box: Box, progress: Progress, question: Separable) -> None:
        self.statement, self.box, self.progress, self.question = statement, box, progress, question
        query = statement.query
        self.tuning = query.tuning.covering
        self.separations = [d.separation(query) for d in statement.demands if isinstance(d, KeepsDistance)]
        self.incumbents = Incumbents.of(statement, box, progress)

    def run(self, *, trees: bool) -> Found:
        """Look for a first incumbent, then search."""
        progress = self.progress
        for u in gone_on(self.statement, self.box, self.separations)[: self.tuning.points]:
            self.incumbents.offer(u)
        if progress.best is None:
            self.incumbents.open()
        progress.tell_best()
        if progress.deadline.passed:
            return Found(Ended.GAVE_UP)
        return self._over_cells() if trees else self._over_rows()

    def _covering(self, rows: list[Row]) -> Covering:
        query = self.statement.query
        apart = [Row.apart(query.schema, separation) for separation in self.separations]
        if self.question.most < len(query.schema):
            rows = [Row.count(query.schema, query.factual, self.question.most), *rows]
        terms = Terms(query.schema, query.factual, self.statement.costs(), [*apart, *rows], self.box.missing)
        return Covering(terms, self._offer, lambda: self.progress.budget, self.tuning)

    def _offer(self, u: FloatArray) -> bool:
        """Offer a point as its columns will hold it."""
        return self.incumbents.offer(self.statement.query.schema.stored(u))

    def _over_cells(self) -> Found:
        """Search parts of the grid."""
        progress, reducer = self.progress, self.incumbents.reducer
        assert reducer.brackets is not None
        progress.tell(Built(len(reducer.brackets.values), len(reducer.form.features())))
        covering = self._covering([])
        parts = Parts(reducer, covering.terms, covering, len(self.separations))
        search = Splitting(self.incumbents, self.question.most, inside=parts)
        ended = search.run(self.box, progress.deadline)
        progress.tell_best()
        if ended is not Ended.CLOSED:
            progress.raise_floor(min(search.bound, parts.open_bound, progress.budget))
            return Found(Ended.GAVE_UP)
        return self._closed(parts.open_bound)

    def _over_rows(self) -> Found:
        """Search the whole box as one covering problem, with the goal among its rows."""
        query, progress = self.statement.query, self.progress
        form = cast("LinearScores", self.statement.form)
        weights, constant = self.question.goal.matrix(self.statement.margin, self.statement.tie)
        slopes = zip(weights @ form.weights, weights @ form.intercept + constant, strict=True)
        rows = [Row.linear(query.schema, query.factual, slope, float(behind)) for slope, behind in slopes]
        covering = self._covering(rows)
        terms = covering.terms
        progress.tell(Built(len(terms.numbers) + len(terms.categories), terms.n_rows))
        start = self.incumbents.start
        costs = self.statement.costs().per_feature(query, start[None, :])[0]
        costs[np.concatenate([terms.numbers, terms.categories])] = 0.0
        box = self.incumbents.reducer.within(self.box, progress.budget)
        if box.empty() is not None:
            return self._closed(np.inf)
        most = self.tuning.most_nodes_of_scores
        return self._closed(covering.search(region_of(terms, box), start, float(costs.sum()), progress.deadline, most))

    def _closed(self, left: float) -> Found:
        """Return what is known when nothing below a bound was left open."""
        progress = self.progress
        progress.solver = NO_SOLVER
        if left == np.inf:
            return progress.found()
        if progress.best is None or progress.value - left > allowed_gap(progress.value, progress.limits.gap):
            progress.raise_floor(min(left, progress.budget))
            return Found(Ended.GAVE_UP)
        progress.close(left)  # what is left lies within the gap that was asked for
        return progress.found()
