"""Linear scores without a solver: a knapsack over moves of features, and one convex program under a Mahalanobis distance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ifonly._moved import forwarding
from ifonly.search.linear.ellipsoid import Ellipsoid
from ifonly.search.linear.engine import Knapsack

__all__ = ["Ellipsoid", "Knapsack"]

if not TYPE_CHECKING:  # to type checkers, what is not above is not there
    __getattr__ = forwarding(__name__)
