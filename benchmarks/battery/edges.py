"""Edges of continuous columns: rows of the grid drawn towards the factual, as far as the model's own word goes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.battery.worlds import Data

__all__ = ["drawn_closer"]

Mask = npt.NDArray[np.bool_]
_POINTS = 32
_ROUNDS = 4


def drawn_closer(
    data: Data, rows: pd.DataFrame, factual: pd.DataFrame, is_sure: Callable[[pd.DataFrame], Mask]
) -> pd.DataFrame:
    """Return the rows with their continuous values as near to the factual's as stays sure: all together, then one by one.

    Each round tries points on the way, keeps the first that is sure, and looks again between it and the one before.
    """
    names = [c.name for c in data.columns if c.kind == "real" and not pd.isna(factual[c.name].iloc[0])]
    rows = rows.reset_index(drop=True)
    for together in (names, *([n] for n in names if len(names) > 1)):
        low, high = np.zeros(len(rows)), np.ones(len(rows))
        for _ in range(_ROUNDS):
            shares = low[:, None] + (high - low)[:, None] * np.arange(1, _POINTS + 1) / _POINTS
            table = _moved(data, rows, factual, together, shares)
            sure = is_sure(table).reshape(len(rows), _POINTS)
            sure[:, -1] = True  # where it came from
            first = sure.argmax(axis=1)
            low, high = low + (high - low) * first / _POINTS, shares[np.arange(len(rows)), first]
        rows = _moved(data, rows, factual, together, high[:, None])
    return rows


def _moved(
    data: Data, rows: pd.DataFrame, factual: pd.DataFrame, names: list[str], shares: npt.NDArray[np.float64]
) -> pd.DataFrame:
    """Return every row at every share of the way from the factual to it; all the way is the row itself."""
    table = rows.loc[np.repeat(rows.index, shares.shape[1])].reset_index(drop=True)
    share = shares.reshape(-1)
    for name in names:
        there, here = table[name].to_numpy(dtype=np.float64), float(factual[name].iloc[0])
        value = np.where(share >= 1.0, there, here + share * (there - here))
        table[name] = value.astype(data[name].dtype)
    return table
