"""The automatic choice: the questions that need no solver are solved without one, all others by HiGHS."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.solvers.backend import Capability
from ifonly.solvers.highs import Highs

__all__ = ["Auto"]


@dataclass(frozen=True)
class Auto(Highs):
    """HiGHS, which stands back where no solver is needed."""

    name: str = "auto"
    capabilities: frozenset[Capability] = frozenset({Capability.INCUMBENT_EVENTS, Capability.YIELDS})
