"""Problem: one question as one program, with its box, variables, model, demands and costs put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.program.mip import Affine, Mip, MipArrays, Square
from ifonly.program.variables import Variables
from ifonly.question.costs import Costs
from ifonly.question.statement import Statement
from ifonly.solvers.priced_lp import Block, expanded

__all__ = ["Problem", "build"]


class Problem:
    """A built program, and the way back from its solutions to rows."""

    def __init__(self, statement: Statement, box: Box, *, extra_raw: frozenset[int] = frozenset()) -> None:
        self.statement = statement
        self.query = statement.query
        self.margin, self.tie = statement.margin, statement.tie
        self.exempt = statement.exempt()
        self.mip = Mip()
        self.box = box
        raw = set(statement.form.raw()) | extra_raw
        for demand in statement.demands:
            raw |= demand.raw(self.query)
        for criterion in statement.coupled:
            raw |= criterion.couples(self.query)
        self.x = Variables(self.mip, box, self.query.factual, _all_cuts(statement), raw)
        self.outputs: list[Affine] = statement.form.embed(self.mip, self.x)
        self._touched: set[int] = set()
        self.blocks: list[Block] = []

    def touch(self, features: frozenset[int]) -> None:
        """Note features that some row or cost moves although the model does not look at them."""
        self._touched |= features

    def moving(self) -> list[int]:
        """Return the features that can change at all in this program."""
        moving = set(self.statement.form.features()) | self._touched | self.x.used()
        moving |= {j for j in range(len(self.query.schema)) if not self.x.is_home(j)}
        for demand in self.statement.demands:
            moving |= demand.features(self.query)
        for criterion in self.statement.coupled:
            moving |= criterion.couples(self.query)
        return [j for j in sorted(moving) if not self.x.must_stay(j)]

    def distance(self, j: int) -> Affine:
        """Return ``|x_j - xhat_j|`` of a numeric feature, by its raw value or by its cells."""
        x, hat = self.x, float(self.query.factual[self.query.schema.starts[j]])
        if x.is_raw(j):
            return x.deviation(j)
        return x.cell_table(j, np.abs(x.cells(j).nearest(hat) - hat))

    def minimise(self, costs: Costs) -> None:
        """Add separable costs to the objective."""
        for j, feature in enumerate(self.query.schema.features):
            if self.box.missing[j]:
                continue
            if not isinstance(feature, Numeric):
                table = costs.level_costs(self.query.schema, j, self.query.factual)
                if (
                    j in self.x.used()
                    or not self.query.factual[self.query.schema.slice(j)][
                        self.box.allowed[self.query.schema.slice(j)]
                    ].any()
                ):
                    self.mip.minimise(self.x.level_table(j, table))
            else:
                self._minimise_numeric(j, costs)

    def _minimise_numeric(self, j: int, costs: Costs) -> None:
        x, hat = self.x, float(self.query.factual[self.query.schema.starts[j]])
        if np.isnan(hat):
            self.mip.minimise(Affine(constant=float(costs.price[j])))
            return
        if not x.is_raw(j):
            nearest = x.cells(j).nearest(hat)
            self.mip.minimise(x.cell_table(j, costs.numeric(j, nearest - hat)))
            return
        if j in costs.curves:
            self.mip.minimise(costs.curves[j].expression(self, j))
        if costs.linear[j]:
            d = x.deviation(j)
            self.mip.minimise(d * float(costs.linear[j]))
            cells = x.cells(j)
            if cells.cuts.size:
                # |x - xhat| >= distance of the cell: implied by integers, tighter in the relaxation
                self.mip.row(d - x.cell_table(j, np.abs(cells.nearest(hat) - hat)), lower=0.0)
        if costs.price[j]:
            self.mip.minimise(x.changed(j) * float(costs.price[j]))
        if costs.square[j]:
            switch = x.switch(j)
            self.mip.minimise_square(Square(x.raw(j) - hat, float(costs.square[j]), switch))

    def point(self, values: FloatArray) -> FloatArray:
        """Return the canonical row of a solution."""
        return self.x.point(values)

    def arrays(self) -> MipArrays:
        """Return the program as arrays, with every column of its blocks written down."""
        return expanded(self.mip.arrays(), self.blocks)

    def write(self, path: str | Path) -> None:
        """Write the program as an LP or MPS file (by suffix), for people who want to look inside."""
        from ifonly.solvers.highs import write_program  # noqa: PLC0415 - highspy is loaded only when needed

        write_program(self.arrays(), Path(path))


def _all_cuts(statement: Statement) -> dict[int, FloatArray]:
    parts: dict[int, list[FloatArray]] = {}
    sources: Sequence[Mapping[int, FloatArray]] = [
        statement.form.cuts(),
        *(d.cuts(statement.query) for d in statement.demands),
    ]
    for source in sources:
        for j, cuts in source.items():
            parts.setdefault(j, []).append(np.asarray(cuts, dtype=np.float64))
    return {j: np.unique(np.concatenate(p)) for j, p in parts.items()}


def build(statement: Statement, box: Box | None = None) -> Problem:
    """Put one question together: model, demands, costs."""
    problem = Problem(statement, statement.box() if box is None else box)
    for demand in statement.demands:
        demand.apply(problem)
    for criterion in statement.coupled:
        criterion.add_cost(problem)
    problem.minimise(statement.costs())
    return problem
