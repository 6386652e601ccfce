"""Tables of the hard regime: scaled numbers, several classes, many features, many rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.hull import all_of
from benchmarks.speed.growth import synthetic
from benchmarks.speed.problems import Table
from ifonly.data.schema import Schema

__all__ = ["digits", "heloc_whole", "million", "scaled", "wide", "wine"]

_MILLION, _KNOWN, _NUMBERS = 10**6, 20_000, 20


def scaled(table: Callable[[], Table]) -> Callable[[], Table]:
    """Return a table of numbers with each of them moved to the range 0 to 1, for peers that know no weights.

    The wanted class is 1, the other 0: XGBoost takes no words.
    """

    @cache
    def make() -> Table:
        known = table()
        frame = known.frame.astype(float)
        low, high = frame.min(), frame.max()
        frame = (frame - low) / (high - low).where(high > low, 1.0)
        # As 32-bit numbers, which trees compare: otherwise a row can be a rounding away from its other class.
        frame = frame.astype(np.float32).astype(np.float64)
        return Table(frame, (known.target == known.wanted).astype(int), Schema.infer(frame, precision=None), 1)

    return make


@cache
def wine() -> Table:
    """Wine: 13 numbers, 3 classes; scikit-learn ships it."""
    from sklearn.datasets import load_wine

    return _several(load_wine(as_frame=True), 1)


@cache
def digits() -> Table:
    """Digits: 64 whole numbers (the shades of an image), 10 classes; scikit-learn ships it."""
    from sklearn.datasets import load_digits

    return _several(load_digits(as_frame=True), 8)


def _several(data: Any, wanted: int) -> Table:
    return Table(data.data, data.target, Schema.infer(data.data, precision=None), wanted)


def wide(features: int, rows: int = 300) -> Callable[[], Table]:
    """Return normal numbers, a tenth of which matter."""

    @cache
    def make() -> Table:
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(rows, features)), columns=[f"f{j}" for j in range(features)])
        weights = rng.normal(size=features) * (rng.random(features) < 0.1)
        target = (frame.to_numpy() @ weights + rng.normal(size=len(frame)) > 0).astype(int)
        return Table(frame, pd.Series(target), Schema.infer(frame, precision=None), 1)

    return make


@cache
def heloc_whole() -> Table:
    """HELOC, both parts: the hull of `benchmarks.hull`, and its rows."""
    data, frame, target = all_of("heloc")
    return Table(frame, target, data.schema, data.wanted)


@cache
def million() -> tuple[Table, pd.DataFrame]:
    """A table of 20 numbers for a model, and a million further rows of its wanted class."""
    whole = synthetic(2 * _MILLION + 4 * _KNOWN, _NUMBERS)
    known, rest = whole.frame.iloc[:_KNOWN], whole.frame.iloc[_KNOWN:]
    good = rest[(whole.target.iloc[_KNOWN:] == whole.wanted).to_numpy()].iloc[:_MILLION].reset_index(drop=True)
    return Table(known, whole.target.iloc[:_KNOWN], Schema.infer(whole.frame, precision=None), whole.wanted), good
