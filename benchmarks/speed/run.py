"""The run: every problem, every method, every factual, in one go."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers.client import Died, Hung
from benchmarks.peers.environments import EnvironmentFailed
from benchmarks.peers.session import Disagrees
from benchmarks.speed import records
from benchmarks.speed.methods import EXACT, OURS, Session, Unsupported, open_session
from benchmarks.speed.ours import Ours
from benchmarks.speed.problems import Case, Problem, prepare
from benchmarks.speed.records import Record

__all__ = ["Settings", "explain_rows", "finished", "run", "run_method", "say"]

_WARM_UP = 2.0
_LEAST = 3


@dataclass(frozen=True)
class Settings:
    """Settings: the size of a run.

    Attributes
    ----------
    factuals
        Rows per problem.
    seconds
        Time limit per answer.
    solver
        Which solver ours uses.
    cache
        Where the peers' environments live.
    give_up
        After so many rows of a problem, all unproven at the limit, a peer's other rows are recorded as given up;
        0 means never. Ours is never spared a row.
    budget
        So many seconds a peer may take for all rows of a problem; after that, and at least three answers, its other
        rows are recorded as given up, too.
    opening
        Whether a line tells what opening ours took.
    """

    factuals: int = 20
    seconds: float = 60.0
    solver: str = "auto"
    cache: Path | None = None
    give_up: int = 0
    budget: float = np.inf
    opening: bool = False

    def enough(self, answers: int, hopeless: int, spent: float) -> bool:
        """Whether a peer need not be asked for more rows of a problem."""
        return 0 < self.give_up <= hopeless == answers or (answers >= _LEAST and spent > self.budget)


def run(problems: Sequence[Problem], methods: Sequence[str], settings: Settings, path: Path) -> None:
    """Run all, appending to a file of records; what is there already is not run again."""
    done = finished(path)
    for problem in problems:
        case = prepare(problem, settings.factuals)
        say(f"{problem.name}: {len(case.factuals)} rows of {len(case.table.frame)}")
        for method in methods:
            run_method(case, method, settings, path, done)


def finished(path: Path) -> frozenset[tuple[str, str, int]]:
    """Return problem, method and row of what a file of records holds; row -1 for a method that is not there.

    A process that died is asked again.
    """
    if not path.exists():
        return frozenset()
    known = records.load(path)
    known = known[~known["status"].isin(("opened", "died"))]
    return frozenset(zip(known["problem"], known["method"], known["factual"], strict=True))


def run_method(case: Case, method: str, settings: Settings, path: Path, done: Container[tuple[str, str, int]]) -> None:
    """Put the rows of a case that are not done to a method, appending to a file of records."""
    rows = [int(r) for r in case.factuals if (case.name, method, int(r)) not in done]
    if not rows or (case.name, method, -1) in done:
        return
    began = time.perf_counter()
    found = []
    for record in explain_rows(case, method, rows, settings):
        records.append(path, [record])
        found.append(record)
    counts = f"{sum(r.valid for r in found)}/{len(rows)} valid, {sum(r.proven for r in found)} proven"
    spent = [r.cpu for r in found if r.factual >= 0 and not np.isnan(r.cpu)]
    took = f", median {np.median(spent):.3f} s of processor" if spent else ""
    said = found[-1].status if found[-1].factual < 0 else counts + took
    say(f"  {method:14} {said} ({time.perf_counter() - began:.1f} s)")


def explain_rows(case: Case, method: str, rows: Sequence[int], settings: Settings) -> Iterator[Record]:
    """Yield one record per row, or a single one that says why the method is not there."""
    if not rows:
        return
    try:
        session = open_session(method, case, solver=settings.solver, cache=settings.cache)
    except Unsupported as error:
        yield records.missing(case, method, "unsupported", str(error))
        return
    except (EnvironmentFailed, Disagrees, Died, Hung) as error:
        yield records.missing(case, method, type(error).__name__.lower(), str(error))
        return
    try:
        if settings.opening and isinstance(session, Ours):
            yield records.opened(case, method, session.made)
        _warm_up(session, method, rows[0])
        if case.ask.batch and isinstance(session, Ours):
            load, replies = records.load_average(), session.explain_all(rows, settings.seconds)
            yield from (records.judge(case, method, row, r, load) for row, r in zip(rows, replies, strict=True))
            return  # a row of a batch has no time of its own
        yield from _one_by_one(case, method, session, rows, settings)
    finally:
        session.close()


def _one_by_one(case: Case, method: str, session: Session, rows: Sequence[int], settings: Settings) -> Iterator[Record]:
    hopeless, spent = 0, 0.0
    for done, row in enumerate(rows):
        if method != OURS and settings.enough(done, hopeless, spent):
            yield from (records.given_up(case, method, other) for other in rows[done:])
            return
        load = records.load_average()
        reply = session.explain(row, settings.seconds)
        spent += reply.seconds
        hopeless += not reply.proven and reply.seconds >= 0.95 * settings.seconds
        yield records.judge(case, method, row, reply, load, settings.seconds)


def _warm_up(session: Session, method: str, row: int) -> None:
    """Let methods that fill caches on their first answer do so; the others gain nothing from it."""
    if method == OURS or method in EXACT:
        session.explain(row, _WARM_UP)


def say(text: str) -> None:
    """Print at once, so that a run can be followed."""
    print(text, flush=True)
