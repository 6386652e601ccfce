"""The automatic choice: engines that need no solver are tried first (`ifonly.search.engines`), then HiGHS."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.solvers.highs import Highs

__all__ = ["Auto"]


@dataclass(frozen=True)
class Auto(Highs):
    """HiGHS, for what no engine closes without a solver."""

    name: str = "auto"
