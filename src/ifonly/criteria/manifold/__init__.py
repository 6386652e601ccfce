"""Manifold: closeness to the data, by hulls of rows or by isolation."""

from ifonly.criteria.manifold.criterion import Manifold

__all__ = ["Manifold"]
