"""Planes above functions of scores, for many boxes of scores at once: their values, and the protocol of a step."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.form import Form
from ifonly.models.forms.propagate import Bounds
from ifonly.tolerances import CHAINED_ROUNDING

__all__ = ["Narrows", "Need", "Rows", "Step", "kept", "size_of"]


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


class Need(NamedTuple):
    """Sums ``slopes @ scores`` of a step's scores, per box and row, and what each of them must be at least."""

    slopes: FloatArray
    least: FloatArray


@runtime_checkable
class Narrows(Protocol):
    """A step that knows at which scores under it its own scores can be in a box, and as large as rows need them."""

    def narrowed(self, own: Bounds, given: Bounds, need: Need) -> Bounds:
        """Return bounds of the scores under it, where its own scores are within theirs; infinite where nothing is known."""
        ...


class Kept(NamedTuple):
    """Ends of some places outside of which a row is negative, and the largest values of rows: all of them rounded outwards.

    Attributes
    ----------
    low, high
        The ends.
    spare
        The largest value of each row.
    need
        What each row's share of these places must be at least.
    """

    low: FloatArray
    high: FloatArray
    spare: FloatArray
    need: Need


def kept(rows: Rows, low: FloatArray, high: FloatArray, places: IntArray) -> Kept:
    """Return what is left of some places where no row is negative.

    With all other scores where a row is largest, one score makes up for no more than the row has to spare.
    """
    top = np.maximum(rows.slopes * low[:, None], rows.slopes * high[:, None])
    size = (np.abs(rows.slopes) * size_of(low, high)[:, None]).sum(axis=2) + np.abs(rows.constant)
    room = CHAINED_ROUNDING * size
    spare = top.sum(axis=2) + rows.constant + room
    slopes, ends = rows.slopes[:, :, places], (low[:, None, places], high[:, None, places])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # a slope of 0, or next to it, says nothing
        way = np.where(slopes == 0.0, np.inf, spare[:, :, None] / np.abs(slopes))
        way = way * (1.0 + CHAINED_ROUNDING) + CHAINED_ROUNDING * np.maximum(np.abs(ends[0]), np.abs(ends[1]))
        lower = np.where(slopes > 0.0, ends[1] - way, -np.inf)
        upper = np.where(slopes < 0.0, ends[0] + way, np.inf)
    need = Need(slopes, top[:, :, places].sum(axis=2) - spare - room)
    return Kept(lower.max(axis=1, initial=-np.inf), upper.min(axis=1, initial=np.inf), spare, need)


def size_of(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the largest absolute value of intervals."""
    return np.maximum(np.abs(low), np.abs(high))
