"""Solvers: what they can do, what they are asked, what they answer. A backend is one file with one `Backend` class."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cache
from typing import Protocol

import numpy as np

from ifonly.errors import SolverMissing, did_you_mean
from ifonly.mip import FloatArray, MipArrays

__all__ = [
    "Backend",
    "Capability",
    "Limits",
    "Solution",
    "Status",
    "available_solvers",
    "find_solver",
    "installed",
    "known_solvers",
]


class Capability(Enum):
    """Ability of a backend beyond mixed-integer linear programs.

    One that `YIELDS` leaves questions to the engine that need no solver at all; one that `PROVES` rests its verdicts on safe
    bounds, and need not be asked twice.
    """

    INCUMBENT_EVENTS = auto()
    PROVES = auto()
    YIELDS = auto()


class Status(Enum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    OUT_OF_TIME = "out_of_time"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


IncumbentHook = Callable[[float, float, FloatArray], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long, how exact, and what is already known.

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
    """

    seconds: float = 30.0
    gap: float = 1e-6
    cutoff: float = np.inf
    seed: int = 0
    second_setting: bool = False

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
        """What `solver=` calls it."""
        ...

    @property
    def label(self) -> str:
        """What people call it."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it takes as it is."""
        ...

    def available(self) -> bool:
        """Whether it can be imported here; never takes a licence."""
        ...

    def version(self) -> str:
        """Return its version, or an empty string when it is not there."""
        ...

    def solve(
        self,
        program: MipArrays,
        limits: Limits,
        on_incumbent: IncumbentHook | None = None,
    ) -> Solution:
        """Solve a linear program with integers, at the tolerances the solver is tested with."""
        ...


def known_solvers() -> dict[str, Backend]:
    """Return every backend by name; discovery imports the backend modules, not the solvers."""
    found: dict[str, Backend] = {}
    for module in pkgutil.iter_modules(__path__):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        if hasattr(loaded, "BACKEND"):
            found[loaded.BACKEND.name] = loaded.BACKEND
    return found


def available_solvers() -> list[str]:
    """Return the names of the solvers that can be used here."""
    return [name for name, backend in known_solvers().items() if backend.available()]


@cache
def installed(package: str) -> bool:
    """Whether a package is there, without importing it; looked up once."""
    return importlib.util.find_spec(package) is not None


def find_solver(name: str) -> Backend:
    """Return a backend by name; "auto" picks one per program (see `ifonly.solvers.auto`)."""
    if name == "auto":
        from ifonly.solvers.auto import Auto  # noqa: PLC0415 - it imports this module

        return Auto()
    known = known_solvers()
    if name not in known:
        raise SolverMissing(
            f"Unknown solver {name!r}.{did_you_mean(name, known)} Known: auto, {', '.join(sorted(known))}."
        )
    backend = known[name]
    if not backend.available():
        raise SolverMissing(
            f"The solver {name!r} is not installed here. Install it with: pip install 'ifonly[{name}]', or use "
            "solver='highs', which is always there."
        )
    return backend
