"""Places of numbers that enter a model by steps alone: each is a category, whose levels are the cells between its cuts.

In a cell no score changes, so its value nearest to the factual is all there is to choose. The cells stand behind the
canonical vector, a 0/1 each, as the levels of a category do within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.question.statement import Statement
from ifonly.search.engine import Separable
from ifonly.search.inputs.free import Free
from ifonly.search.inputs.places import Places

__all__ = ["Celled"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Celled(Places):
    """Features that a search may change, some numbers as categories of cells.

    Attributes
    ----------
    plain
        The same without these numbers, which are at home there.
    owner, value
        Per cell: its number, and its value nearest to the factual.
    """

    plain: Places
    owner: IntArray
    value: FloatArray

    @classmethod
    def of_steps(
        cls,
        statement: Statement,
        box: Box,
        features: Iterable[int],
        start: FloatArray,
        cuts: Mapping[int, FloatArray],
    ) -> Places:
        """Return the features among some that a box leaves open, those with cuts as cells."""
        schema, factual, every = statement.query.schema, statement.query.factual, list(features)
        stepped = [j for j in every if j in cuts and not box.is_fixed(j)]
        owner, value, home = [], [], start.copy()
        for j in stepped:
            feature, at = schema.features[j], schema.starts[j]
            assert isinstance(feature, Numeric)
            cells = Cells.of(feature, float(box.lower[j]), float(box.upper[j]), cuts[j])
            value.append(cells.nearest(float(factual[at])))
            owner.append(np.full(len(value[-1]), j, dtype=np.int64))
            home[at] = factual[at]
        plain = Places.of(statement, box, [j for j in every if j not in stepped], home)
        if not stepped:
            return plain
        n, width = len(np.concatenate(owner)), schema.width
        return cls(
            schema,
            plain.numbers,
            (*plain.categories, *stepped),
            plain.places,
            np.concatenate([plain.entries, width + np.arange(n, dtype=np.int64)]),
            start,
            np.concatenate([plain.origin, np.zeros(n)]),
            np.concatenate([plain.size, np.ones(n)]),
            plain,
            np.concatenate(owner),
            np.concatenate(value),
        )

    def allowed(self, box: Box) -> BoolArray:
        """Return which levels a box allows; it has been divided into cells already."""
        return np.concatenate([self.plain.allowed(box), np.ones(len(self.owner), dtype=np.bool_)])

    def take(self, u: FloatArray, levels: IntArray) -> None:
        """Put levels, and the values of cells, into a canonical vector."""
        n = len(self.plain.categories)
        self.plain.take(u, levels[:n])
        cells = levels[n:] - len(self.plain.entries)
        u[np.asarray(self.schema.starts)[self.owner[cells]]] = self.value[cells]

    def free(self, statement: Statement, question: Separable) -> Free:
        """Return these features with their costs; a cell costs what its nearest value does."""
        plain, costs = self.plain.free(statement, question), statement.costs()
        home = statement.query.factual[np.asarray(self.schema.starts)[self.owner]]
        away = np.abs(self.value - home)
        each = (
            costs.linear[self.owner] * away
            + costs.square[self.owner] * away**2
            + costs.price[self.owner] * (away > 0.0)
        )
        begins = np.flatnonzero(np.diff(self.owner, prepend=-1)).astype(np.int64)
        return replace(
            plain,
            level_cost=np.concatenate([plain.level_cost, each]),
            first=np.concatenate([plain.first, len(plain.level_cost) + begins]),
            level_home=np.concatenate([plain.level_home, away == 0.0]),
        )
