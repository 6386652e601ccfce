"""Inputs: the protocol of the canonical vector as a form sees it inside a program."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Schema
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.program.mip import Affine

__all__ = ["Inputs"]


class Inputs(Protocol):
    """Inputs of a form: expressions and columns for raw values, order literals and levels, within a box.

    `ifonly.program.variables.Variables` are the inputs of a program; `ifonly.program.shifted.Shifted` the same off by a
    given amount. A form needs nothing else of either: a change, a deviation or the way back from a solution to a row
    belongs to criteria and to searches.
    """

    @property
    def box(self) -> Box:
        """The box in which each feature may lie."""
        ...

    @property
    def schema(self) -> Schema:
        """The features of the canonical vector."""
        ...

    def raw(self, j: int) -> Affine:
        """Return the raw value of numeric feature `j`."""
        ...

    def affine(self, weights: FloatArray, constant: float = 0.0) -> Affine:
        """Return ``constant + weights @ u`` over the canonical vector; missing numeric features count as 0."""
        ...

    def cells(self, j: int) -> Cells:
        """Return the cells into which the cuts split numeric feature `j`."""
        ...

    def literals(self, j: int) -> IntArray:
        """Return the columns of the order literals of feature `j`: ``b[k] = 1`` iff ``x <= cuts[k]``."""
        ...

    def literal_index(self, j: int, cuts: FloatArray) -> IntArray:
        """Return which literal says ``x_j <= cut``: -1 when it is never true, the number of cuts when always."""
        ...

    def at_most(self, j: int, cut: float) -> Affine:
        """Return the 0/1 expression of ``x_j <= cut``; a constant when the box decides it."""
        ...

    def level_table(self, j: int, values: FloatArray) -> Affine:
        """Return ``sum_l values[l] * [feature j has level l]`` as one expression."""
        ...

    def level_in(self, j: int, mask: npt.NDArray[np.bool_]) -> Affine:
        """Return the 0/1 expression of "the level of feature `j` is in this set"."""
        ...
