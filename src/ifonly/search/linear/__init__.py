"""Linear scores without a solver: a knapsack over moves of features, and one convex program under a Mahalanobis distance."""

from __future__ import annotations

from ifonly._moved import forwarding
from ifonly.search.linear.ellipsoid import Ellipsoid
from ifonly.search.linear.engine import Knapsack

__all__ = ["Ellipsoid", "Knapsack"]

_MOVED = ("Mover", "Row", "goal_row", "jumps_of", "movers_of", "one_linear_row")
__getattr__ = forwarding(__name__, dict.fromkeys(_MOVED, "ifonly.search.linear.engine"))
