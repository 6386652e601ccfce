"""The engines in the order in which they are tried; `find` tries them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ifonly.question.guidance import KeepsDistance, UnionOfBoxes
from ifonly.question.wrapping import Encloses
from ifonly.search.balls import Balls, LinearBalls, NetworkBalls
from ifonly.search.boxes import Boxes
from ifonly.search.cells import Cells, LargestChange, SingleTree
from ifonly.search.composites import Composites
from ifonly.search.distances import Distances
from ifonly.search.engine import OnlyWith
from ifonly.search.inputs import Neighbours, Networks
from ifonly.search.linear import Ellipsoid, Knapsack
from ifonly.search.progress import Engine, find
from ifonly.search.unions import Unions
from ifonly.solvers.backend import Backend
from ifonly.solvers.registry import ONLY

__all__ = ["ENGINES", "WITH_SOLVER", "checked_engines", "engines_for", "find"]

_IN_BOXES: tuple[Engine, ...] = (
    Knapsack(),
    Ellipsoid(),
    SingleTree(),
    Cells(),
    LargestChange(),
    Networks(),
    Neighbours(),
    Composites(),
    OnlyWith(Encloses, LinearBalls()),
    OnlyWith(Encloses, Balls()),
    OnlyWith(Encloses, NetworkBalls()),
    OnlyWith(KeepsDistance, Distances()),
)
ENGINES: tuple[Engine, ...] = (*_IN_BOXES, OnlyWith(UnionOfBoxes, Unions(_IN_BOXES)), Boxes())
WITH_SOLVER: tuple[Engine, ...] = ENGINES[-1:]  # of a solver that is to solve every question: "highs only"


def engines_for(backend: Backend) -> tuple[Engine, ...]:
    """Return the engines of a ``solver=``: all of them, unless the solver is asked to do all by itself ("highs only")."""
    return WITH_SOLVER if backend.name.endswith(ONLY) else ENGINES


def checked_engines(engines: Any) -> tuple[Engine, ...] | None:
    """Return engines that somebody gave as a tuple, and refuse what is none; None, the engines of the solver, stays None."""
    if engines is None:
        return None
    given = tuple(engines) if isinstance(engines, Sequence) and not isinstance(engines, str) else ()
    if not given or not all(_is_engine(engine) for engine in given):
        raise TypeError(
            f"The 'engines' must be a sequence of engines, each with a name and the methods accepts and search, got "
            f"{engines!r}. Write engines=(Mine(), *ENGINES), with ENGINES from ifonly.extend."
        )
    return given


def _is_engine(engine: Any) -> bool:
    return not isinstance(engine, type) and isinstance(engine, Engine) and isinstance(engine.name, str)
