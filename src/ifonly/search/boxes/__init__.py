"""The engine with a solver: boxes that are small enough become programs; what a solver proves is put to the test."""

from __future__ import annotations

from ifonly.search.boxes.engine import Boxes

__all__ = ["Boxes"]
