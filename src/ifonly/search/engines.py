"""The engines in the order in which they are tried; `find` tries them."""

from __future__ import annotations

from ifonly.search.balls import Balls, LinearBalls, NetworkBalls
from ifonly.search.boxes import Boxes
from ifonly.search.cells import Cells, LargestChange, SingleTree
from ifonly.search.composites import Composites
from ifonly.search.distances import Distances
from ifonly.search.inputs import Neighbours, Networks
from ifonly.search.linear import Ellipsoid, Knapsack
from ifonly.search.progress import Engine, find
from ifonly.search.unions import Unions
from ifonly.solvers.backend import Backend
from ifonly.solvers.registry import ONLY

__all__ = ["ENGINES", "WITH_SOLVER", "engines_for", "find"]

_IN_BOXES: tuple[Engine, ...] = (
    Knapsack(),
    Ellipsoid(),
    SingleTree(),
    Cells(),
    LargestChange(),
    Networks(),
    Neighbours(),
    Composites(),
    LinearBalls(),
    Balls(),
    NetworkBalls(),
    Distances(),
)
ENGINES: tuple[Engine, ...] = (*_IN_BOXES, Unions(_IN_BOXES), Boxes())
WITH_SOLVER: tuple[Engine, ...] = ENGINES[-1:]  # of a solver that is to solve every question: "highs only"


def engines_for(backend: Backend) -> tuple[Engine, ...]:
    """Return the engines of a ``solver=``: all of them, unless the solver is asked to do all by itself ("highs only")."""
    return WITH_SOLVER if backend.name.endswith(ONLY) else ENGINES
