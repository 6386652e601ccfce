"""Replies: what a method says for one row, whoever it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from benchmarks.peers.encoding import FloatArray

__all__ = ["Reply"]


@dataclass(frozen=True, eq=False)
class Reply:
    """Reply of a method for one row.

    Attributes
    ----------
    frame
        The rows as returned, when they come in raw columns.
    cost
        The method's own objective, where that is more than the distance.
    calls, model_cpu
        How often the model was asked, and the processor seconds in it.
    peak
        The most memory of the method's process, in MB.
    """

    status: str
    seconds: float
    row: FloatArray | None = None
    proven: bool = False
    bound: float = np.nan
    frame: pd.DataFrame | None = None
    phases: dict[str, float] = field(default_factory=dict)
    cpu: float = np.nan
    note: str = ""
    cost: float = np.nan
    calls: float = np.nan
    model_cpu: float = np.nan
    peak: float = np.nan
