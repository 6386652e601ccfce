"""Surrogates: counterfactuals of a model that cannot be read, only asked; confirmed by it, never proven optimal."""

from ifonly.surrogate.blackbox import Function, open_any
from ifonly.surrogate.question import ObservedQuestion, warm

__all__ = ["Function", "ObservedQuestion", "open_any", "warm"]
