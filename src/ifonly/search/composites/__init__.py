"""Branch and bound for curves, votes and means of trees and linear forms: tables, branching, prices, exchanges, engine."""

from __future__ import annotations

from ifonly.search.composites.engine import Composites

__all__ = ["Composites"]
