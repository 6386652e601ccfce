"""Trees without a solver: the leaves of one, cells of several, with a kernel, and balls of the largest change."""

from __future__ import annotations

from ifonly._moved import forwarding
from ifonly.search.cells.engine import Cells
from ifonly.search.cells.largest import LargestChange
from ifonly.search.cells.single_tree import SingleTree

__all__ = ["Cells", "LargestChange", "SingleTree"]

__getattr__ = forwarding(__name__, {"Splitting": "ifonly.search.cells.splitting"})
