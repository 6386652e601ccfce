"""Diversity: what makes a further answer another answer."""

from ifonly.criteria.diversity.criterion import Diversity

__all__ = ["Diversity"]
