"""Program: the protocol of a program under construction, as far as demands and costs see it."""

from __future__ import annotations

from typing import Protocol

from ifonly.program.box import Box
from ifonly.program.mip import Affine, Mip
from ifonly.program.variables import Variables
from ifonly.question.query import Query
from ifonly.solvers.priced_lp import Block

__all__ = ["Program"]


class Program(Protocol):
    """A program that demands add rows to, and criteria costs; `ifonly.question.problem.Problem` is one.

    Attributes
    ----------
    mip
        Columns, rows and the objective.
    x
        The canonical vector as variables.
    query, box
        The question, and the box that the program is built over.
    outputs
        The model's scores, as expressions.
    margin, tie
        By how much scores must clear their thresholds, and at least where a tie would be lost.
    exempt
        The features whose change is a consequence of other changes.
    blocks
        Columns that a solver need not write down.
    """

    mip: Mip
    x: Variables
    query: Query
    box: Box
    outputs: list[Affine]
    margin: float
    tie: float
    exempt: frozenset[int]
    blocks: list[Block]

    def moving(self) -> list[int]:
        """Return the features that can change at all in this program."""
        ...

    def distance(self, j: int) -> Affine:
        """Return ``|x_j - xhat_j|`` of a numeric feature."""
        ...
