"""Robustness: the outcome holds all over a ball, with a margin, and by several models."""

from ifonly.criteria.robustness.criterion import Robustness

__all__ = ["Robustness"]
