"""Column generation on linear relaxations, for programs with more columns than one wants to write down.

A `Block` holds many columns ``lambda >= 0`` without cost that sum to one, e.g. the weights of a convex combination of
training rows. The linear program is solved over the few of them that matter; with duals ``y`` the reduced cost of a
column ``a`` is ``-y'a``, and since the columns of a block sum to one,

    (safe bound of the rows and the program's own columns) + sum over blocks of the least reduced cost

never exceeds the value over all columns, whatever the duals are (Lasdon 1970; see `ifonly.solvers.bounds`). When no reduced
cost is negative it is that value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ifonly.arrays import FloatArray, IntArray
from ifonly.program.mip import MipArrays
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT, ColumnGeneration
from ifonly.solvers.bounds import SafeBounds
from ifonly.solvers.column_prices import Least, Pricer
from ifonly.solvers.highs import load
from ifonly.tolerances import LP_EXACT, LP_ROOM, SHORT_SUM, WIDER, WIDEST

__all__ = ["Block", "PricedProgram", "Relaxed", "expanded"]

_INFINITY = 1e30
_DUAL, _PRIMAL = 1, 4
NEVER = Deadline.never()


@dataclass(eq=False)
class Block:
    """Columns of weight at least 0 that sum to one.

    Attributes
    ----------
    rows
        The rows of the program in which the columns have entries.
    one
        The row ``sum of the columns = 1``, in which the program itself has no entries.
    matrix
        The entries, one line per column.
    active
        The columns to start with; those that enter while programs are solved are added.
    pricer
        Least products with the lines of the matrix, where other programs ask for them too.
    """

    rows: IntArray
    one: int
    matrix: FloatArray
    active: list[int] = field(default_factory=list)
    pricer: Pricer | None = None

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.matrix)


def _factors(program: MipArrays) -> FloatArray:
    """Return what each row of the program was multiplied by when it was frozen, which its blocks have to follow."""
    return np.append(program.row_factor, np.ones(program.n_rows - program.row_factor.size))


def expanded(program: MipArrays, blocks: Sequence[Block]) -> MipArrays:
    """Return the program with every column of the blocks written down, after its own columns."""
    if not blocks:
        return program
    parts = [program.matrix]
    for block in blocks:
        rows = np.append(block.rows, block.one)
        entries = np.column_stack([block.matrix, np.ones(block.size)]) * _factors(program)[rows]
        part = sparse.coo_matrix(entries.T)
        parts.append(sparse.csr_matrix((part.data, (rows[part.row], part.col)), shape=(program.n_rows, block.size)))
    n = sum(block.size for block in blocks)
    return replace(
        program,
        matrix=sparse.csr_matrix(sparse.hstack(parts)),
        cost=np.concatenate([program.cost, np.zeros(n)]),
        lower=np.concatenate([program.lower, np.zeros(n)]),
        upper=np.concatenate([program.upper, np.ones(n)]),
        integer=np.concatenate([program.integer, np.zeros(n, dtype=np.bool_)]),
        names=(*program.names, *(f"weight_{i}" for i in range(n))),
    )


@dataclass(frozen=True, eq=False)
class Relaxed:
    """Solution of a linear relaxation: no point costs less than `bound`; `values` only if that is below the cut-off.

    When time ran out, or the solver could not end it in any setting, the bound is the best that was proven until then, and
    there are no values.
    """

    bound: float
    values: FloatArray | None = None
    duals: FloatArray | None = None
    stopped: bool = False


class PricedProgram:
    """The linear relaxation of a program with blocks, solved again and again under other bounds.

    While the active columns cannot meet the rows of a block, penalised slack stands in for the missing ones; what
    slack is left at the end is driven out, or proven to be needed, with the slack as the only cost.
    """

    def __init__(
        self,
        program: MipArrays,
        blocks: Sequence[Block],
        tuning: ColumnGeneration = DEFAULT.columns,
        *,
        elastic: bool = True,
    ) -> None:
        self.program, self.tuning = program, tuning
        self.factors = _factors(program)
        self.blocks = tuple(blocks)
        self._pricers = [block.pricer or Pricer(block.matrix, tuning) for block in blocks]
        self._safe = SafeBounds(program.matrix)
        self.highs = _load(program)
        self.cost = program.cost.copy()
        self.lower, self.upper = program.lower.copy(), program.upper.copy()
        self.row_lower, self.row_upper = program.row_lower.copy(), program.row_upper.copy()
        self.n_columns = program.n_columns
        self._inside = [np.zeros(block.size, dtype=np.bool_) for block in self.blocks]
        self._slack = np.empty(0, dtype=np.int32)
        self._penalty = tuning.penalty
        self._moved = True
        self._tolerance = LP_EXACT
        self._order: list[tuple[IntArray, IntArray]] = []
        self.used: list[set[int]] = [set() for _ in self.blocks]
        if elastic:
            self._add_slack()
        for k, block in enumerate(self.blocks):
            if not block.active:
                block.active.append(0)
            self._enter(k, np.array(block.active))

    # -- changing the program -----------------------------------------------------------------------------------
    def set_bounds(self, columns: npt.NDArray[np.int32], lower: FloatArray, upper: FloatArray) -> None:
        """Change the bounds of some columns."""
        self._moved = True
        self.lower[columns], self.upper[columns] = lower, upper
        self.highs.changeColsBounds(len(columns), columns, lower, upper)

    def set_costs(self, columns: npt.NDArray[np.int32], costs: FloatArray) -> None:
        """Change the costs of some columns."""
        self.cost[columns] = costs
        self.highs.changeColsCost(len(columns), columns, costs)

    def set_row(self, row: int, lower: float, upper: float) -> None:
        """Change the two sides of a row."""
        self._moved = True
        factor = float(self.factors[row])
        self.row_lower[row], self.row_upper[row] = float(lower) * factor, float(upper) * factor
        self.highs.changeRowBounds(int(row), float(lower) * factor, float(upper) * factor)

    def _enter(self, k: int, which: IntArray) -> int:
        """Let columns of block `k` into the program; return how many are new."""
        block = self.blocks[k]
        new = which[~self._inside[k][which]]
        if not new.size:
            return 0
        self._inside[k][new] = True
        self._order.append((np.full(new.size, k), new))
        rows = np.append(block.rows, block.one).astype(np.int32)
        entries = np.column_stack([block.matrix[new], np.ones(new.size)]) * self.factors[rows]
        start = (np.arange(new.size) * len(rows)).astype(np.int32)
        self.highs.addCols(
            new.size, np.zeros(new.size), np.zeros(new.size), np.full(new.size, _INFINITY), entries.size, start,
            np.tile(rows, new.size), entries.ravel(),
        )  # fmt: skip
        return int(new.size)

    def _add_slack(self) -> None:
        rows = np.concatenate([block.rows for block in self.blocks]).astype(np.int32)
        n = 2 * len(rows)
        self._slack = np.arange(self.n_columns, self.n_columns + n, dtype=np.int32)
        self.highs.addCols(
            n, np.full(n, self._penalty), np.zeros(n), np.full(n, _INFINITY), n, np.arange(n, dtype=np.int32),
            np.tile(rows, 2), np.repeat([1.0, -1.0], len(rows)),
        )  # fmt: skip

    # -- solving ------------------------------------------------------------------------------------------------
    def solve(self, cutoff: float = np.inf, deadline: Deadline = NEVER) -> Relaxed:
        """Return the optimum over all columns of the blocks, or a bound once that reaches the cut-off or time is up."""
        while True:
            found = self._generate(cutoff, deadline)
            if found.values is None or self._left(found.values) <= LP_ROOM:
                return self._trimmed(found)
            met = self._can_meet(deadline)
            if met.stopped:
                return Relaxed(found.bound, stopped=True)
            if met.values is None:
                return Relaxed(np.inf)
            if self._penalty >= self.tuning.dearest:
                return Relaxed(found.bound)
            self._penalty *= self.tuning.dearer
            self._price_slack(self._penalty)

    def _trimmed(self, found: Relaxed) -> Relaxed:
        return found if found.values is None else replace(found, values=found.values[: self.n_columns])

    def _left(self, values: FloatArray) -> float:
        return float(values[self._slack].sum()) if self._slack.size else 0.0

    def _price_slack(self, penalty: float) -> None:
        self.highs.changeColsCost(len(self._slack), self._slack, np.full(len(self._slack), penalty))

    def _can_meet(self, deadline: Deadline) -> Relaxed:
        """Minimise the slack alone: there are values if some columns of the blocks meet their rows in these bounds."""
        every = np.arange(self.n_columns, dtype=np.int32)
        self.highs.changeColsCost(self.n_columns, every, np.zeros(self.n_columns))
        self._price_slack(1.0)
        found = self._generate(LP_ROOM, deadline, costs=np.zeros(self.n_columns))
        self.highs.changeColsCost(self.n_columns, every, self.cost)
        self._price_slack(self._penalty)
        return found

    def _priced(self, duals: FloatArray, *, exactly: bool = False) -> list[Least]:
        """Return, per block, the least reduced costs of its columns and which have them, without the dual of their sum.

        Unless `exactly` the least are asked for, any columns that should enter will do.
        """
        rows, n = duals * self.factors, self.tuning.at_once
        return [
            pricer.least(-rows[block.rows], n, None if exactly else float(rows[block.one]) - LP_EXACT)
            for block, pricer in zip(self.blocks, self._pricers, strict=True)
        ]

    def _safe_bound(self, duals: FloatArray, costs: FloatArray | None, priced: Sequence[Least]) -> float:
        """Return the safe bound that some duals give over all columns, those of the blocks included.

        The columns of a block are at least 0 and sum to one, so the least of ``reduced @ lambda`` is the least entry.
        """
        now = replace(
            self.program,
            cost=self.cost,
            lower=self.lower,
            upper=self.upper,
            row_lower=self.row_lower,
            row_upper=self.row_upper,
        )
        bound = self._safe.of(now, duals, costs)
        for block, least in zip(self.blocks, priced, strict=True):
            one = float(duals[block.one] * self.factors[block.one])
            bound += least.bound - one
            bound -= SHORT_SUM * (abs(bound) + abs(least.bound) + abs(one))
        return bound

    def _is_empty(self) -> bool:
        """Whether a ray of the duals proves that no columns at all meet the rows."""
        found = self.highs.getDualRay()
        if not found[1] or len(found[2]) != self.program.n_rows:
            return False
        ray, none = np.asarray(found[2], dtype=np.float64), np.zeros(self.n_columns)
        return any(self._safe_bound(ray, none, self._priced(ray, exactly=exactly)) > 0.0 for exactly in (False, True))

    def _generate(self, cutoff: float, deadline: Deadline, costs: FloatArray | None = None) -> Relaxed:
        """Solve and let columns in until none is missing, the cut-off is reached, or the rest is infeasible.

        `costs` replace those of the program's own columns in the bound.
        """
        proven = -np.inf
        while True:
            feasible = None if deadline.passed else self._run(deadline)
            if feasible is None:
                return Relaxed(proven, stopped=True)
            if not feasible:
                return Relaxed(np.inf if self._is_empty() else proven)
            solution = self.highs.getSolution()
            duals = np.asarray(solution.row_dual)
            priced = self._priced(duals)
            entered = sum(self._let_in(k, least, duals) for k, least in enumerate(priced))
            if not entered and any(least.bound < float(least.products.min()) - LP_EXACT for least in priced):
                priced = self._priced(duals, exactly=True)
                entered = sum(self._let_in(k, least, duals) for k, least in enumerate(priced))
            bound = self._safe_bound(duals, costs, priced)
            proven = max(proven, bound)
            if bound >= cutoff:
                return Relaxed(bound)
            if not entered:
                values = np.asarray(solution.col_value)
                self._note(values)
                return Relaxed(bound, values, duals)

    def _note(self, values: FloatArray) -> None:
        """Remember the columns that carry weight."""
        weights = values[self.n_columns + len(self._slack) :]
        blocks, which = (np.concatenate(parts) for parts in zip(*self._order, strict=True))
        carry = weights > 0.0
        for k, i in zip(blocks[carry].tolist(), which[carry].tolist(), strict=True):
            self.used[k].add(i)

    def _let_in(self, k: int, least: Least, duals: FloatArray) -> int:
        """Let the columns of a block with negative reduced costs in, and remember them; return how many are new."""
        one = float(duals[self.blocks[k].one] * self.factors[self.blocks[k].one])
        some = least.which[least.products - one < -LP_EXACT]
        self.blocks[k].active.extend(int(i) for i in some[~self._inside[k][some]])
        return self._enter(k, some)

    def _set_tolerance(self, tolerance: float) -> None:
        if tolerance != self._tolerance:
            self._tolerance = tolerance
            self.highs.setOptionValue("primal_feasibility_tolerance", tolerance)
            self.highs.setOptionValue("dual_feasibility_tolerance", tolerance)

    def _run(self, deadline: Deadline) -> bool | None:
        """Solve once; say whether there is a point, or None when there was no time to tell, or no setting that could.

        A solve that ends without a verdict is repeated from scratch, then with wider tolerances, with the other simplex
        method, and at last with a presolve, which often sees at once what the simplex method cannot decide. What an answer
        breaks by a tolerance is seen when it is verified. Where none of that helps, nothing is proven, and nothing lost.
        """
        import highspy  # noqa: PLC0415 - imported only when something is solved

        kinds = highspy.HighsModelStatus
        # other bounds leave the last basis dual feasible, other costs and new columns leave it primal feasible
        first, other = (_DUAL, _PRIMAL) if self._moved else (_PRIMAL, _DUAL)
        self._moved = False
        tries = ((first, 1.0, "off"), (first, 1.0, "off"), (first, WIDER, "off"), (first, WIDEST, "off"))
        for method, wider, presolve in (*tries, (other, 1.0, "off"), (other, WIDEST, "off"), (first, 1.0, "on")):
            self.highs.setOptionValue("simplex_strategy", method)
            self._set_tolerance(wider * LP_EXACT)
            self.highs.setOptionValue("presolve", presolve)
            # its clock runs on from one solve to the next
            self.highs.setOptionValue("time_limit", self.highs.getRunTime() + deadline.left())
            self.highs.run()
            ended = self.highs.getModelStatus()
            self.highs.setOptionValue("presolve", "off")
            if ended in (kinds.kOptimal, kinds.kModelEmpty):
                return True
            if ended in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
                return False
            if deadline.passed:
                return None
            self.highs.clearSolver()
        return None


def _load(program: MipArrays) -> Any:
    """Return a HiGHS object that holds the relaxation of a program, and that columns can be added to."""
    highs = load(replace(program, integer=np.zeros_like(program.integer)))
    highs.setOptionValue("presolve", "off")  # a presolved program could not take further columns
    highs.setOptionValue("primal_feasibility_tolerance", LP_EXACT)
    highs.setOptionValue("dual_feasibility_tolerance", LP_EXACT)
    return highs
