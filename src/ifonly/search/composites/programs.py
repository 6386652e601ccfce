"""Linear programs of parts of a search that splits scores, one after the other, each from the basis of the one before.

With any prices of the rows by which trees and features agree, any ``u`` of the rows that say what scores are, and ``m >= 0``
of the goal's, which are ``a @ s + b >= 0`` in a part, no point of the part costs less than

    min over points (cost - u @ scores)  +  min over the part's s of (u - m @ a) @ s  -  m @ b,

and the first term is bounded by `ifonly.search.composites.prices`, feature by feature and tree by tree. A part without a
point is closed by a ray of the duals: as many times of it as it takes are added to such prices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.models.forms.enclosing import Rows
from ifonly.models.forms.planes import size_of
from ifonly.program.mip import MipArrays
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import CompositeSearch
from ifonly.search.composites.parts import View
from ifonly.search.composites.prices import Prices
from ifonly.search.composites.program import Program
from ifonly.search.composites.tables import Tables
from ifonly.search.inputs.free import Free
from ifonly.solvers.highs import load
from ifonly.solvers.linear import ray_of
from ifonly.tolerances import CHAINED_ROUNDING

__all__ = ["Programs", "Solved"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Solved:
    """Bound of a part's cost, and the point of its linear program; None where it has none.

    Attributes
    ----------
    leaves
        Share of each leaf.
    cells
        Per number: the share of it that lies behind each cell but the last.
    levels
        Share of each level.
    raw, paid
        Of numbers whose raw value matters: the value, counted from the origin, and what it costs; NaN elsewhere.
    scores
        The scores of the atoms, in the places of all scores.
    """

    bound: float
    leaves: FloatArray
    cells: tuple[FloatArray, ...]
    levels: FloatArray
    raw: FloatArray
    paid: FloatArray
    scores: FloatArray


class Programs:
    """One linear program over the tables, whose bounds and whose goal are those of one part after the other."""

    def __init__(self, tables: Tables, free: Free, raw: BoolArray, whole: View, tuning: CompositeSearch) -> None:
        self.tables, self.free, self.raw, self.tuning = tables, free, raw, tuning
        self.program = program = Program(tables, free, raw, tables.cost)
        self.inner, self.n_rows = tables.enclosure.inner, whole.rows.slopes.shape[1]
        self.score_rows = program.mip.n_rows
        self.s = program.scores(np.full(tables.enclosure.n_places, -np.inf), np.full(tables.enclosure.n_places, np.inf))
        self.goal_rows = program.mip.n_rows
        program.goals(2 * self.n_rows, self.s[self.inner])
        self.envelopes = program.envelopes()
        self.arrays: MipArrays = program.mip.arrays()
        self.highs: Any = load(self.arrays)
        self.highs.setOptionValue("presolve", "off")
        self.lower, self.upper = self.arrays.lower.copy(), self.arrays.upper.copy()

    def solve(self, view: View, near: Rows | None, deadline: Deadline) -> Solved | float:
        """Return the bound of a part and the point of its program; the bound alone where there is no point."""
        self._set_bounds(view)
        goals = [view.rows, view.rows if near is None else near]
        slopes = np.concatenate([rows.slopes[0][:, self.inner] for rows in goals])
        constant = np.concatenate([rows.constant[0] for rows in goals])
        self._set_goal(slopes, constant)
        highs = self.highs
        highs.setOptionValue("time_limit", float(highs.getRunTime() + max(deadline.left(), 0.0)))
        highs.run()
        solution = highs.getSolution()
        duals = np.asarray(solution.row_dual, dtype=np.float64)
        if not solution.dual_valid or duals.size != self.arrays.n_rows:
            duals = np.zeros(self.arrays.n_rows)
        bound = self._bound(view, duals, slopes, constant)
        if not self._is_optimal():
            return self._by_ray(view, slopes, constant, bound)
        v = np.array(solution.col_value)
        k, program = self.free.n_numbers, self.program
        raw, paid = np.full((2, k), np.nan)
        for j, x in program.x.items():
            raw[j], paid[j] = x.value(v), program.paid[j].value(v)
        return Solved(bound, v[program.y], tuple(v[z] for z in program.z), v[program.w], raw, paid, v[self.s])

    # -- the program of a part -----------------------------------------------------------------------------------
    def _set_bounds(self, view: View) -> None:
        program, lower, upper = self.program, self.lower, self.upper
        upper[program.y] = view.open_[0]
        upper[program.w] = view.nodes.allowed[0]
        for k, z in enumerate(program.z):
            at = np.arange(len(z))
            lower[z], upper[z] = at < view.cells[0][0, k], at < view.cells[1][0, k]
        room = self.tables.room[self.inner]
        lower[self.s[self.inner]] = view.low[0, self.inner] - room
        upper[self.s[self.inner]] = view.high[0, self.inner] + room
        for k, x in program.x.items():
            lower[x.columns[0]], upper[x.columns[0]] = view.nodes.low[0, k], view.nodes.high[0, k]
            if k in self.envelopes:
                self._set_envelope(k, int(x.columns[0]), float(view.nodes.low[0, k]), float(view.nodes.high[0, k]))
        n = len(lower)
        self.highs.changeColsBounds(n, np.arange(n, dtype=np.int32), lower, upper)

    def _set_envelope(self, k: int, column: int, low: float, high: float) -> None:
        """Set the rows below what a number costs: its price in full where it must change, else in proportion.

        Of its square they are the tangent in the middle of what its distance may be.
        """
        free = self.free
        home, rate, square, price = (float(a[k]) for a in (free.home, free.rate, free.square, free.price))
        for row, sign, far, close in ((0, 1.0, high - home, low - home), (1, -1.0, home - low, home - high)):
            must = close > 0.0
            middle = 0.5 * max(far + max(close, 0.0), 0.0)
            slope = rate + 2.0 * square * middle + (0.0 if must or far <= 0.0 else price / far)
            at = self.envelopes[k] + row
            self.highs.changeCoeff(at, column, -sign * slope)
            fixed = (price if must else 0.0) - square * middle**2
            self.highs.changeRowBounds(at, fixed - sign * slope * home, np.inf)

    def _set_goal(self, slopes: FloatArray, constant: FloatArray) -> None:
        for r, (row, c) in enumerate(zip(slopes, constant, strict=True)):
            # as a row of size 1: HiGHS drops entries below 1e-9
            size = float(np.abs(row).max(initial=0.0)) or 1.0
            for place, value in zip(self.inner, row / size, strict=True):
                self.highs.changeCoeff(self.goal_rows + r, int(self.s[place]), float(value))
            self.highs.changeRowBounds(self.goal_rows + r, -float(c) / size, np.inf)

    # -- bounds --------------------------------------------------------------------------------------------------
    def _is_optimal(self) -> bool:
        import highspy  # noqa: PLC0415 - imported only when something is solved

        return bool(self.highs.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    def _by_ray(self, view: View, slopes: FloatArray, constant: FloatArray, bound: float) -> float:
        ray = ray_of(self.highs, self.arrays.n_rows)
        if ray is None or not ray.any():
            return bound
        ray = ray / np.abs(ray).max()
        return max([bound, *(self._bound(view, times * ray, slopes, constant) for times in self.tuning.rays)])

    def _bound(self, view: View, duals: FloatArray, slopes: FloatArray, constant: FloatArray) -> float:
        """Return the safe bound that some duals give."""
        tables = self.tables
        duals = np.where(np.isfinite(duals), duals, 0.0)
        sizes = np.abs(slopes).max(axis=1, initial=0.0)
        sizes[sizes == 0.0] = 1.0
        goal = np.maximum(duals[self.goal_rows : self.goal_rows + len(slopes)], 0.0) / sizes
        weights = np.zeros((1, tables.enclosure.n_places))
        weights[0, self.inner] = duals[self.score_rows : self.score_rows + len(self.inner)]
        charge, rebate, levels = self.program.prices(duals)
        none = np.zeros(0)
        prices = Prices(tables, self.free, self.raw, goal, charge, rebate, levels, tables.cost, none, none, none)
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number bounds nothing
            least = float(prices.bounds(view.nodes, view.cells, view.open_, weights, np.zeros(1))[0][0])
            left = weights[0, self.inner] - goal @ slopes
            low, high = view.low[0, self.inner], view.high[0, self.inner]
            least += float(np.minimum(left * low, left * high).sum() - goal @ constant)
            weighed = np.abs(weights[0, self.inner]) + goal @ np.abs(slopes)
            size = float((weighed * size_of(low, high)).sum() + goal @ np.abs(constant))
            least -= CHAINED_ROUNDING * size
        return least if np.isfinite(least) else -np.inf
