"""Backend: the protocol of a solver, its limits and its solution."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cache
from typing import ClassVar, Protocol

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.program.mip import MipArrays
from ifonly.runtime.tuning import DEFAULT, Tuning
from ifonly.tolerances import NO_GAP, OPTIMALITY

__all__ = ["Backend", "Capability", "Limits", "Packaged", "Solution", "Status", "installed"]


class Capability(Enum):
    """Ability of a backend beyond mixed-integer linear programs.

    One that `PROVES` rests its verdicts on safe bounds, and need not be asked twice.
    """

    INCUMBENT_EVENTS = auto()
    PROVES = auto()


class Status(Enum):
    """Status of a solve: the way it ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    OUT_OF_TIME = "out_of_time"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


IncumbentHook = Callable[[float, float, FloatArray], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a solve: time, gap, and the cut-off that is already known.

    Attributes
    ----------
    seconds
        Wall-clock limit.
    gap
        Relative gap at which the solve may stop and call itself optimal.
    cutoff
        Only points with a cost of at most this are looked for.
    seed
        Random seed of the solver.
    second_setting
        Whether to take another way than usual (no presolve, another seed), to confirm a verdict of the first.
    tuning
        The tuned numbers.
    """

    seconds: float = 30.0
    gap: float = OPTIMALITY
    cutoff: float = np.inf
    seed: int = 0
    second_setting: bool = False
    tuning: Tuning = field(default=DEFAULT, repr=False)

    @property
    def relative_gap(self) -> float:
        """The gap that the solver is given: half of it, since its point is repaired and measured anew."""
        return max(0.5 * self.gap, NO_GAP)

    @property
    def solver_seed(self) -> int:
        """The seed that the solver is given."""
        return int(self.seed) + int(self.second_setting)

    def settings(self) -> dict[str, object]:
        """Return what every solver is told, for records: all else is as the solver comes, its tolerances too."""
        return {
            "relative_gap": self.relative_gap,
            "absolute_gap": NO_GAP,
            "seed": self.solver_seed,
            "presolve": not self.second_setting,
        }

    def within(self, seconds: float) -> Limits:
        """Return the same limits with (at most) this many seconds."""
        return replace(self, seconds=max(0.0, min(self.seconds, seconds)))


@dataclass(frozen=True, slots=True)
class Solution:
    """The answer of a solver: a point if there is one, and what is proven."""

    status: Status
    values: FloatArray | None = None
    objective: float = np.inf
    bound: float = -np.inf
    pool: tuple[tuple[float, FloatArray], ...] = ()
    interrupted: bool = False
    solver: str = ""


class Backend(Protocol):
    """A solver."""

    @property
    def name(self) -> str:
        """Name by which `solver=` finds it."""
        ...

    @property
    def label(self) -> str:
        """Name as people write it."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Capabilities that need no lowering."""
        ...

    def available(self) -> bool:
        """Whether it can be imported here; never takes a licence."""
        ...

    def version(self) -> str:
        """Return its version, or an empty string when it is not there."""
        ...

    def solve(self, program: MipArrays, limits: Limits, on_incumbent: IncumbentHook | None = None) -> Solution:
        """Solve a linear program with integers, at the tolerances the solver is tested with."""
        ...


class Packaged:
    """The part of a backend that is the same for every Python package that brings a solver."""

    package: ClassVar[str]

    def available(self) -> bool:
        """Whether the package is there; imports nothing and takes no licence."""
        return installed(self.package)

    def version(self) -> str:
        """Return the package's version, or an empty string when it is not there."""
        return importlib.metadata.version(self.package) if self.available() else ""


@cache
def installed(package: str) -> bool:
    """Whether a package is there, without importing it; looked up once."""
    return importlib.util.find_spec(package) is not None
