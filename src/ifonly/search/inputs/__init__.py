"""Branch and bound over inputs, for networks and k nearest neighbours: its nodes, best first, without a solver."""

from __future__ import annotations

from ifonly.search.inputs.nearest import Neighbours
from ifonly.search.inputs.networks import Networks

__all__ = ["Neighbours", "Networks"]
