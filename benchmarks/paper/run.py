"""The run: every data set, model, method and factual; what is on disk already is not asked again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.paper import answers
from benchmarks.paper.answers import Cell, Line
from benchmarks.paper.methods import open_session
from benchmarks.paper.models import AUTHORS, Fitted, ModelName, fitted
from benchmarks.paper.ours import OBJECTIVES
from benchmarks.paper.replies import Reply, Unsupported
from benchmarks.peers.client import Died, Hung
from benchmarks.peers.environments import EnvironmentFailed
from benchmarks.peers.session import Disagrees

__all__ = ["ONE", "THREE", "Settings", "plan", "run"]

# Only DiCE and ours are asked for three, as in the paper: the others give one answer.
ONE = (
    "ifonly",
    "ifonly-fewest",
    "ifonly-nearest",
    "ifonly_tr",
    "dice-genetic",
    "dice-random",
    "growing-spheres",
    "face",
    "actionable-recourse",
    "nice",
    "treecf",
    "oceanpy",
)
THREE = ("ifonly", "ifonly_tr", "ifonly-diverse", "dice-genetic", "dice-random")
_TIMED_OUT = ("killed", "outoftime", "out of time")


@dataclass(frozen=True)
class Settings:
    """Settings: the size of a run.

    Attributes
    ----------
    factuals
        At most so many of the 30.
    seconds
        Time limit of ours per factual.
    peer_seconds
        Time limit of a peer per factual.
    give_up
        After so many factuals in a row that a peer did not answer in time, its others of the same model are
        recorded as given up. Ours is never spared one.
    cache
        Where the peers' environments live.
    """

    factuals: int = 30
    seconds: float = 30.0
    peer_seconds: float = 60.0
    give_up: int = 3
    cache: Path | None = None


def plan(data: Sequence[str], models: Sequence[str], methods: Sequence[str]) -> list[Cell]:
    """Return the cells in the order of the run: model by model, ours first, one answer before three.

    The authors' forests are asked by ours alone: they are there for the printed rows beside them.
    """
    counts = ((1, ONE), (3, THREE))
    return [
        Cell(d, m, method, n)
        for d in data
        for m in models
        for n, known in counts
        for method in known
        if method in methods and (m != AUTHORS or method in OBJECTIVES)
    ]


Told = Callable[[Cell, int, int], None]


def run(cells: Sequence[Cell], settings: Settings, path: Path, tell: Told) -> None:
    """Ask for what is missing, appending to a file; `tell` hears of each: the cell, how many are done, of how many."""
    known = answers.done(path)
    left = _count(cells, known, settings)
    finished = 0
    for cell in cells:
        source = fitted(_model(cell.model), cell.data)
        asked = source.asked[: settings.factuals]
        rows = [p for p in asked if (cell, p) not in known]
        if not rows or (cell, answers.NOT_OPENED) in known:
            continue
        for line in _lines(cell, source, rows, settings):
            answers.append(path, line)
            step = len(rows) if line.factual == answers.NOT_OPENED else 1
            finished += step
            tell(cell, finished, left)


def _count(cells: Sequence[Cell], known: set[tuple[Cell, int]], settings: Settings) -> int:
    """Return how many answers are missing, at most: models not trained yet may drop some factuals."""
    opened = {cell for cell, factual in known if factual == answers.NOT_OPENED}
    seen: dict[Cell, int] = {}
    for cell, factual in known:
        seen[cell] = seen.get(cell, 0) + (factual != answers.NOT_OPENED)
    return sum(max(settings.factuals - seen.get(cell, 0), 0) for cell in cells if cell not in opened)


def _model(name: str) -> ModelName:
    return name  # type: ignore[return-value]


def _lines(cell: Cell, source: Fitted, rows: Sequence[int], settings: Settings) -> Iterator[Line]:
    own = cell.method in OBJECTIVES
    limit = settings.seconds if own else settings.peer_seconds
    try:
        session = open_session(cell.method, source, cell.n, settings.cache)
    except Unsupported as error:
        yield answers.not_opened(cell, "unsupported", str(error), limit)
        return
    except (EnvironmentFailed, Disagrees, Died, Hung) as error:
        yield answers.not_opened(cell, type(error).__name__.lower(), " ".join(str(error).split()), limit)
        return
    late = 0
    try:
        for position in rows:
            if not own and 0 < settings.give_up <= late:
                reply = Reply("given up", 0.0, note=f"after {late} in a row without an answer in {limit:g} s")
            else:
                reply = session.explain(position, limit)
                late = late + 1 if reply.status in _TIMED_OUT else 0
            yield answers.line_of(cell, position, reply, limit)
    finally:
        session.close()
