"""Registry of solvers: a backend is one file in this folder with one `BACKEND`."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from dataclasses import replace
from pathlib import Path

from ifonly.errors import SolverMissing, did_you_mean
from ifonly.solvers.backend import Backend

__all__ = ["ONLY", "available_solvers", "find_solver", "known_solvers"]


ONLY = " only"  # behind the name of a solver: it solves every question, also those that need no solver


def known_solvers() -> dict[str, Backend]:
    """Return every backend by name; discovery imports the backend modules, not the solvers."""
    found: dict[str, Backend] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        loaded = importlib.import_module(f"ifonly.solvers.{module.name}")
        if hasattr(loaded, "BACKEND"):
            found[loaded.BACKEND.name] = loaded.BACKEND
    return found


def available_solvers() -> list[str]:
    """Return the names of the solvers that can be used here."""
    return [name for name, backend in known_solvers().items() if backend.available()]


def find_solver(name: str) -> Backend:
    """Return a backend by name; "auto" picks one per program (see `ifonly.solvers.auto`).

    "highs only" is HiGHS without the searches that need no solver, for comparisons: it is asked every question.
    """
    if name.endswith(ONLY) and (named := name.removesuffix(ONLY)) in known_solvers():
        backend: Backend = replace(find_solver(named), name=name)  # type: ignore[type-var]  # every backend is a dataclass
        return backend
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
