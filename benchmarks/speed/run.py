"""The run: every problem, every method, every factual, in one go."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers.client import Died, Hung
from benchmarks.peers.environments import EnvironmentFailed
from benchmarks.speed import records
from benchmarks.speed.methods import OURS, Disagrees, Session, Unsupported, open_session
from benchmarks.speed.problems import Case, Problem, prepare
from benchmarks.speed.records import Record

__all__ = ["Settings", "explain_rows", "run"]

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
    """

    factuals: int = 20
    seconds: float = 60.0
    solver: str = "auto"
    cache: Path | None = None
    give_up: int = 0
    budget: float = np.inf

    def enough(self, answers: int, hopeless: int, spent: float) -> bool:
        """Whether a peer need not be asked for more rows of a problem."""
        return 0 < self.give_up <= hopeless == answers or (answers >= _LEAST and spent > self.budget)


def run(problems: Sequence[Problem], methods: Sequence[str], settings: Settings, path: Path) -> None:
    """Run all, appending to a CSV file; what is there already is not run again."""
    done = set()
    if path.exists():
        known = records.load(path)
        done = set(zip(known["problem"], known["method"], known["factual"], strict=True))
    for problem in problems:
        case = prepare(problem, settings.factuals)
        _say(f"{problem.name}: {len(case.factuals)} rows of {len(case.table.frame)}")
        for method in methods:
            rows = [int(r) for r in case.factuals if (case.name, method, int(r)) not in done]
            if not rows or (case.name, method, -1) in done:
                continue
            began = time.perf_counter()
            count = 0
            for record in explain_rows(case, method, rows, settings):
                records.append(path, [record])
                count += record.valid
            _say(f"  {method:13} {count}/{len(rows)} valid in {time.perf_counter() - began:.1f} s")


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
        _warm_up(session, method, rows[0])
        hopeless, spent = 0, 0.0
        for done, row in enumerate(rows):
            if method != OURS and settings.enough(done, hopeless, spent):
                yield from (records.given_up(case, method, other) for other in rows[done:])
                return
            load = records.load_average()
            reply = session.explain(row, settings.seconds)
            spent += reply.seconds
            hopeless += not reply.proven and reply.seconds >= 0.95 * settings.seconds
            yield records.judge(case, method, row, reply, load)
    finally:
        session.close()


def _warm_up(session: Session, method: str, row: int) -> None:
    """Let methods that fill caches on their first answer do so; the others gain nothing from it."""
    if method in (OURS, "treecf", "oceanpy"):
        session.explain(row, _WARM_UP)


def _say(text: str) -> None:
    print(text, flush=True)
