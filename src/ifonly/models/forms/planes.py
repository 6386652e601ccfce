"""Planes above functions of scores, for many boxes of scores at once: their values, and the protocol of a step."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.form import Form
from ifonly.models.forms.propagate import Bounds

__all__ = ["Rows", "Step", "size_of"]


class Rows(NamedTuple):
    """Upper bounds of rows, ``slopes @ s + constant``, per box and row; and slopes that lean where rows gain most.

    Attributes
    ----------
    lean
        Slopes as an estimate, of the whole way across the box: what the bound does not rest on, a search may go by.
    """

    slopes: FloatArray
    constant: FloatArray
    lean: FloatArray


class Step(Protocol):
    """A function of the scores of the forms `under` it, one after the other."""

    @property
    def under(self) -> tuple[Form, ...]:
        """The forms."""
        ...

    def bounds(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Return bounds of its scores, from bounds of the scores under it."""
        ...

    def rows(self, rows: Rows, low: FloatArray, high: FloatArray, at: FloatArray | None = None) -> Rows:
        """Return rows of its scores as rows of the scores under it: tight at a corner, or `at` these scores."""
        ...


def size_of(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the largest absolute value of intervals."""
    return np.maximum(np.abs(low), np.abs(high))
