"""The automatic choice: HiGHS, except for squares where SCIP is installed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ifonly.mip import FloatArray, MipArrays
from ifonly.solvers import Backend, Capability, IncumbentHook, Limits, Solution
from ifonly.solvers.highs import Highs
from ifonly.solvers.scip import Scip

__all__ = ["Auto"]


@dataclass(frozen=True)
class Auto:
    """Picks a backend per program: HiGHS takes squares only by tangents, several solves where SCIP needs one."""

    name: str = "auto"
    label: str = "HiGHS"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What HiGHS can, squares where SCIP is there, and to stand back where no solver is needed."""
        extra = {Capability.SQUARES} if Scip().available() else set()
        return Highs().capabilities | extra | {Capability.YIELDS}

    def available(self) -> bool:
        """HiGHS is always there."""
        return True

    def version(self) -> str:
        """Return the version of HiGHS."""
        return Highs().version()

    def solve(
        self,
        program: MipArrays,
        limits: Limits,
        start: FloatArray | None = None,
        on_incumbent: IncumbentHook | None = None,
    ) -> Solution:
        """Solve with the backend that suits the program, and say which."""
        backend: Backend = Scip() if program.squares else Highs()
        return replace(backend.solve(program, limits, start, on_incumbent), solver=backend.label)
