"""Trees without a solver: the leaves of one, cells of several, with a kernel, and balls of the largest change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ifonly._moved import forwarding
from ifonly.search.cells.engine import Cells
from ifonly.search.cells.largest import LargestChange
from ifonly.search.cells.single_tree import SingleTree

__all__ = ["Cells", "LargestChange", "SingleTree"]

if not TYPE_CHECKING:  # to type checkers, what is not above is not there
    __getattr__ = forwarding(__name__)
