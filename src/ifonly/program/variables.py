"""The canonical vector as variables of a program: raw values, order literals over cells, levels, changes.

Per numeric feature, the cuts of all forms split the box into *cells* ``(t[k-1], t[k]]``. Order literals
``b[k] <=> x <= t[k]`` obey ``b[k] <= b[k+1]``, and the cell indicators are ``c[k] = b[k] - b[k-1]``. While nothing
needs the raw value, it does not exist: a cell costs what its point nearest to the factual costs. When something
couples raw values, ``x`` is a column of its own with ``sum low[k] c[k] <= x <= sum high[k] c[k]``, the exact
projection of "x lies in the chosen cell" (Balas 1985).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric, Schema
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.program.mip import Affine, Mip
from ifonly.tolerances import MOST_COUNTS

__all__ = ["Variables"]


class Variables:
    """The handle a form or a criterion gets: ask it for raw values, literals, levels and changes as expressions.

    Parameters
    ----------
    mip
        The program to add columns and rows to.
    box
        Where each feature may lie.
    factual
        The canonical row that is explained.
    cuts
        Numeric feature -> all raw thresholds ``x <= cut`` that any form of the problem asks for.
    raw
        Numeric features whose raw value takes part in some row.
    """

    def __init__(
        self,
        mip: Mip,
        box: Box,
        factual: FloatArray,
        cuts: Mapping[int, FloatArray],
        raw: Iterable[int],
    ) -> None:
        self.mip = mip
        self.box = box
        self.schema: Schema = box.schema
        self.factual = factual
        self._cuts = cuts
        self._raw_features = frozenset(raw)
        self._cells: dict[int, Cells] = {}
        self._literals: dict[int, IntArray] = {}
        self._raw: dict[int, Affine] = {}
        self._levels: dict[int, tuple[IntArray, IntArray]] = {}
        self._changed: dict[int, Affine] = {}
        self._deviation: dict[int, Affine] = {}

    # -- numeric features ---------------------------------------------------------------------------------------
    def cells(self, j: int) -> Cells:
        """Return the cells of numeric feature `j`."""
        if j not in self._cells:
            feature = self.schema.features[j]
            assert isinstance(feature, Numeric)
            cuts = self._cuts.get(j, np.empty(0))
            self._cells[j] = Cells.of(feature, float(self.box.lower[j]), float(self.box.upper[j]), cuts)
        return self._cells[j]

    def literals(self, j: int) -> IntArray:
        """Return the columns of the order literals of feature `j`: ``b[k] = 1`` iff ``x <= cuts[k]``."""
        if j not in self._literals:
            n = self.cells(j).cuts.size
            name = self.schema.features[j].name
            b = self.mip.columns(n, 0.0, 1.0, integer=True, name=f"{name}_le")
            if n > 1:
                k = np.arange(n - 1, dtype=np.int64)
                row = np.concatenate([k, k])
                column = np.concatenate([b[:-1], b[1:]])
                value = np.concatenate([np.ones(n - 1), -np.ones(n - 1)])
                # b[k] <= b[k + 1]: at most a cut is at most the next
                self.mip.rows(row, column, value, -np.inf, 0.0, n - 1)
            self._literals[j] = b
        return self._literals[j]

    def at_most(self, j: int, cut: float) -> Affine:
        """Return the 0/1 expression of ``x_j <= cut``; a constant when the box decides it."""
        if self.box.missing[j]:
            raise ValueError(f"feature {j} is missing: its literals have no value")
        k = int(self.literal_index(j, np.array([cut]))[0])
        if k < 0:
            return Affine(constant=0.0)
        b = self.literals(j)
        return Affine.of(int(b[k])) if k < b.size else Affine(constant=1.0)

    def literal_index(self, j: int, cuts: FloatArray) -> IntArray:
        """Return which literal says ``x_j <= cut``: -1 when it is never true, the number of cuts when always."""
        cells = self.cells(j)
        k = np.searchsorted(cells.cuts, cuts, side="right").astype(np.int64) - 1
        return np.where(cuts >= cells.high[-1], cells.cuts.size, k)

    def in_cell(self, j: int, k: int) -> Affine:
        """Return the 0/1 expression of "feature `j` lies in cell `k`"."""
        b = self.literals(j)
        upper = Affine.of(int(b[k])) if k < b.size else Affine(constant=1.0)
        return upper - Affine.of(int(b[k - 1])) if k > 0 else upper

    def cell_table(self, j: int, values: FloatArray) -> Affine:
        """Return ``sum_k values[k] * c[k]``: a number per cell as one expression."""
        b = self.literals(j)
        return Affine(b, values[:-1] - values[1:], float(values[-1]))

    def raw(self, j: int) -> Affine:
        """Return the raw value of numeric feature `j`."""
        if j not in self._raw:
            self._raw[j] = self._make_raw(j)
        return self._raw[j]

    def _make_raw(self, j: int) -> Affine:
        low, high = float(self.box.lower[j]), float(self.box.upper[j])
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        if low == high:
            return Affine(constant=low)
        if j not in self._raw_features:
            raise RuntimeError(f"{feature.name!r} is used by its raw value but was not declared so")
        step = feature.step
        if step is not None and (high - low) / step <= MOST_COUNTS:
            first, last = round(low / step), round(high / step)
            x = self.mip.column(first, last, integer=True, name=feature.name) * step
        else:  # so many steps that one of them is nothing: `point` puts the value on its grid
            x = self.mip.column(low, high, name=feature.name)
        cells = self.cells(j)
        if cells.cuts.size:
            # x >= low end of its cell
            self.mip.row(x - self.cell_table(j, cells.low), lower=0.0)
            # x <= high end of its cell
            self.mip.row(x - self.cell_table(j, cells.high), upper=0.0)
        return x

    def is_raw(self, j: int) -> bool:
        """Whether the raw value of numeric feature `j` takes part in the problem."""
        return j in self._raw_features and not self.box.is_fixed(j)

    def deviation(self, j: int) -> Affine:
        """Return an expression that is at least ``|x_j - factual_j|``, and equal to it when minimised."""
        if j not in self._deviation:
            hat = float(self.factual[self.schema.starts[j]])
            x = self.raw(j)
            low, high = float(self.box.lower[j]), float(self.box.upper[j])
            if low >= hat or x.is_constant:
                d = x - hat if x.constant >= hat or not x.is_constant else hat - x
            elif high <= hat:
                d = hat - x
            else:
                name = self.schema.features[j].name
                up = self.mip.column(0.0, high - hat, name=f"{name}_up")
                down = self.mip.column(0.0, hat - low, name=f"{name}_down")
                # x - xhat = up - down
                self.mip.row(x - up + down, hat, hat)
                d = up + down
            self._deviation[j] = d
        return self._deviation[j]

    # -- categorical features -----------------------------------------------------------------------------------
    def _level_columns(self, j: int) -> tuple[IntArray, IntArray]:
        """Return (admissible level positions, their columns); no columns when only one level is left."""
        if j not in self._levels:
            positions = np.flatnonzero(self.box.allowed[self.schema.slice(j)]).astype(np.int64)
            if self.box.missing[j] or positions.size == 1:
                columns = np.empty(0, dtype=np.int64)
            else:
                name = self.schema.features[j].name
                columns = self.mip.columns(positions.size, 0.0, 1.0, integer=True, name=f"{name}_is")
                # one level
                self.mip.row(Affine(columns, np.ones(columns.size)), 1.0, 1.0)
            self._levels[j] = (positions, columns)
        return self._levels[j]

    def level_table(self, j: int, values: FloatArray) -> Affine:
        """Return ``sum_l values[l] * [feature j has level l]`` as one expression."""
        if self.box.missing[j]:
            return Affine()
        open_values = values[self.box.allowed[self.schema.slice(j)]].astype(np.float64)
        if bool((open_values == open_values[0]).all()):
            return Affine(constant=float(open_values[0]))
        _, columns = self._level_columns(j)
        return Affine(columns, open_values)

    def level_in(self, j: int, mask: npt.NDArray[np.bool_]) -> Affine:
        """Return the 0/1 expression of "the level of feature `j` is in this set"."""
        positions, columns = self._level_columns(j)
        if self.box.missing[j]:
            raise ValueError(f"feature {j} is missing: its literals have no value")
        inside = mask[positions]
        if inside.all():
            return Affine(constant=1.0)
        if not inside.any():
            return Affine(constant=0.0)
        return Affine(columns[inside], np.ones(int(inside.sum())))

    # -- all features -------------------------------------------------------------------------------------------
    def changed(self, j: int) -> Affine:
        """Return the 0/1 expression of "feature `j` differs from the factual" (at least that, when minimised)."""
        if j not in self._changed:
            self._changed[j] = self._make_changed(j)
        return self._changed[j]

    def _make_changed(self, j: int) -> Affine:
        if self.box.missing[j]:
            return Affine()
        if not isinstance(self.schema.features[j], Numeric):
            return 1.0 - self.level_table(j, self.factual[self.schema.slice(j)])
        hat = float(self.factual[self.schema.starts[j]])
        if np.isnan(hat):
            return Affine(constant=1.0)
        low, high = float(self.box.lower[j]), float(self.box.upper[j])
        if low == high:
            return Affine(constant=float(low != hat))
        if not low <= hat <= high:
            return Affine(constant=1.0)
        home = int(self.cells(j).index(hat))
        if not self.is_raw(j):
            return 1.0 - self.in_cell(j, home)
        z = self.mip.column(0.0, 1.0, integer=True, name=f"{self.schema.features[j].name}_changed")
        x = self.raw(j)
        # x <= xhat where z is 0
        self.mip.row(x - z * (high - hat), upper=hat)
        # x >= xhat where z is 0
        self.mip.row(x - z * (low - hat), lower=hat)
        if self.cells(j).cuts.size:
            # another cell is a change
            self.mip.row(z + self.in_cell(j, home), lower=1.0)
        return z

    def surely_changed(self, j: int, least: float) -> Affine:
        """Return a 0/1 expression that can be 1 only if feature `j` differs, a raw value by at least `least`."""
        feature = self.schema.features[j]
        if not isinstance(feature, Numeric) or not self.is_raw(j):
            return self.changed(j)
        hat = float(self.factual[self.schema.starts[j]])
        low, high = float(self.box.lower[j]), float(self.box.upper[j])
        # On a grid the neighbours are rounded as stored values are: 1.1 + 0.1 would lie above a range that ends at 1.2.
        if feature.step is not None:
            above, below = feature.snap(hat + feature.step), feature.snap(hat - feature.step)
        else:
            above, below = float(feature.at_least(hat + least)), float(feature.at_most(hat - least))
        sides: list[Affine] = []
        x = self.raw(j)
        if high >= above:  # x >= above if `up`, else x >= low
            up = self.mip.column(integer=True, name=f"{feature.name}_rises")
            # x >= above where up is 1
            self.mip.row(x - up * (above - low), lower=low)
            sides.append(up)
        if low <= below:  # x <= below if `down`, else x <= high
            down = self.mip.column(integer=True, name=f"{feature.name}_falls")
            # x <= below where down is 1
            self.mip.row(x + down * (high - below), upper=high)
            sides.append(down)
        if len(sides) == 2:
            # not both ways
            self.mip.row(sides[0] + sides[1], upper=1.0)
        return Affine.total(sides)

    def affine(self, weights: FloatArray, constant: float = 0.0) -> Affine:
        """Return ``constant + weights @ u`` over the canonical vector; missing numeric features count as 0."""
        terms = [Affine(constant=constant)]
        for j, feature in enumerate(self.schema.features):
            part = weights[self.schema.slice(j)]
            if not part.any():
                continue
            if isinstance(feature, Numeric):
                if not self.box.missing[j]:
                    terms.append(self.raw(j) * float(part[0]))
            else:
                terms.append(self.level_table(j, part))
        return Affine.total(terms)

    def used(self) -> set[int]:
        """Return the features that have a column of their own so far."""
        literal = {j for j, b in self._literals.items() if b.size}
        raw = {j for j, x in self._raw.items() if not x.is_constant}
        return literal | raw | {j for j, (_, columns) in self._levels.items() if columns.size}

    def is_home(self, j: int) -> bool:
        """Whether feature `j` may stay what it is."""
        if self.box.missing[j]:
            return True
        part = self.factual[self.schema.slice(j)]
        if not isinstance(self.schema.features[j], Numeric):
            return bool(part[self.box.allowed[self.schema.slice(j)]].any())
        return bool(self.box.lower[j] <= part[0] <= self.box.upper[j])

    def must_stay(self, j: int) -> bool:
        """Whether feature `j` cannot differ from the factual in this program."""
        return self.box.is_fixed_at(j, self.factual)

    def switch(self, j: int) -> Affine | None:
        """Return the change indicator of feature `j` if something asked for it, for perspective tangents."""
        z = self._changed.get(j)
        return z if z is not None and not z.is_constant else None

    # -- back to a point ----------------------------------------------------------------------------------------
    def point(self, v: FloatArray) -> FloatArray:
        """Return the canonical row that a solution stands for, exactly on its cells, grids and levels."""
        u = self.factual.copy()
        for j, feature in enumerate(self.schema.features):
            if self.box.missing[j]:
                continue
            start = self.schema.starts[j]
            if isinstance(feature, Numeric):
                u[start] = self._numeric_point(j, feature, v)
            else:
                positions, columns = self._level_columns(j) if j in self._levels else (None, None)
                if positions is None:
                    positions = np.flatnonzero(self.box.allowed[self.schema.slice(j)])
                    if self.factual[start + positions].any() or not positions.size:
                        continue
                chosen = int(np.argmax(v[columns])) if columns is not None and columns.size else 0
                u[self.schema.slice(j)] = 0.0
                u[start + int(positions[chosen])] = 1.0
        return u

    def _numeric_point(self, j: int, feature: Numeric, v: FloatArray) -> float:
        hat = float(self.factual[self.schema.starts[j]])
        low, high = float(self.box.lower[j]), float(self.box.upper[j])
        if j in self._literals and self._literals[j].size:
            k = int(np.sum(v[self._literals[j]] < 0.5))
            low, high = float(self.cells(j).low[k]), float(self.cells(j).high[k])
        if j in self._raw and not self._raw[j].is_constant:
            value = feature.snap(self._raw[j].value(v))
            z = self._changed.get(j)
            if z is not None and z.value(v) < 0.5 and low <= hat <= high:
                value = hat
            return float(np.clip(value, low, high))
        if np.isnan(hat):
            return low
        return float(np.clip(hat, low, high))
