"""Solvers: backends and their registry, and what makes their verdicts safe to believe."""

from ifonly.solvers.backend import Backend, Capability, Limits, Solution, Status, installed
from ifonly.solvers.registry import available_solvers, find_solver, known_solvers

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
