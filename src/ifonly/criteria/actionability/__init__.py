"""Actionability: what a person can and cannot change."""

from ifonly.criteria.actionability.criterion import Actionability, Implies, LinearRow

__all__ = ["Actionability", "Implies", "LinearRow"]
