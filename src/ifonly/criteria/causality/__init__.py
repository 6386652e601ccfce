"""Causality: effects that follow from actions."""

from ifonly.criteria.causality.criterion import Causality, Cause

__all__ = ["Causality", "Cause"]
