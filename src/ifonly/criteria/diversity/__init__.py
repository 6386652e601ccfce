"""Diversity: what makes a further answer another answer."""

from typing import TYPE_CHECKING

from ifonly._moved import forwarding
from ifonly.criteria.diversity.criterion import Diversity

__all__ = ["Diversity"]

if not TYPE_CHECKING:  # to type checkers, what is not above is not there
    __getattr__ = forwarding(__name__)
