"""Further answers at a least distance from earlier ones: the engine, and the covering problems that it solves."""

from ifonly.search.distances.engine import Distances

__all__ = ["Distances"]
