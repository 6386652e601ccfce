"""The methods: ours, the leaf-big-M formulation in this process, and peers in theirs, behind one interface."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks.peers.catalogue import PEERS, Peer
from benchmarks.peers.leaf_big_m import LeafBigM
from benchmarks.peers.session import Opened
from benchmarks.speed.ours import Ours
from benchmarks.speed.problems import Case
from benchmarks.speed.replies import Reply

__all__ = ["EXACT", "METHODS", "Session", "Unsupported", "open_session"]

OURS, BIG_M = "ifonly", "leafbigm"
METHODS = (OURS, "treecf", "nice", "dice-random", "dice-genetic", "oceanpy", BIG_M)
# Those that claim the optimum of a distance, for the hard regime; the others of METHODS are heuristics.
EXACT = ("veritas", "veritas-close", "treecf", "treecf-classic", "oceanpy", "oceanpy-maxsat")
_TREES = frozenset({"forest", "boosting", "xgboost", "tree"})


class Unsupported(Exception):
    """The method does not take this kind of model."""


class Session(Protocol):
    """A method that has been opened on a case."""

    def explain(self, row: int, seconds: float) -> Reply:
        """Explain one row of the case's table."""
        ...

    def close(self) -> None:
        """Free what was taken."""
        ...


def open_session(method: str, case: Case, *, solver: str = "auto", cache: Path | None = None) -> Session:
    """Open a method on a case.

    Raises
    ------
    Unsupported
        When the method does not take this kind of model.
    """
    if method == OURS:
        return Ours(case, solver)
    if not case.ask.plain:
        raise Unsupported(f"{method} knows a distance and a class, and no other demand")
    if method == BIG_M:
        if case.kind not in _TREES or case.ask.norm != "l1":
            raise Unsupported(f"{method} is a formulation of trees under l1")
        return _BigM(case)
    peer = PEERS[method]
    if reason := peer.refuses(case.kind, case.ask.norm, len(case.classes)):
        raise Unsupported(f"{method} takes no {reason}")
    return _Remote(peer, case, cache)


# -- methods --------------------------------------------------------------------------------------------------------
class _BigM:
    """The leaf-big-M formulation on HiGHS, in this process."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.formulation = LeafBigM(case.estimator, case.encoding, case.want, case.kind)

    def explain(self, row: int, seconds: float) -> Reply:
        """Build and solve."""
        began, worked = time.perf_counter(), time.process_time()
        found = self.formulation.explain(self.case.matrix[row], seconds)
        spent, cpu = time.perf_counter() - began, time.process_time() - worked
        return Reply(found.status, spent, found.row, found.proven, found.bound, cpu=cpu)

    def close(self) -> None:
        """Nothing is held."""


class _Remote:
    """A peer in a process and an environment of its own."""

    def __init__(self, peer: Peer, case: Case, cache: Path | None) -> None:
        self.case = case
        task = {
            "estimator": case.estimator,
            "X": case.matrix,
            "y": np.array([case.classes.index(label) for label in case.table.target]),
            "encoding": case.encoding.to_json(),
            "want": case.want,
            "kind": case.kind,
            "options": {**peer.options, "norm": case.ask.norm},
            "check": case.check_rows(),
        }
        self.session = Opened(peer, task, self._agreement, cache)

    def _agreement(self, said: Sequence[int]) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = np.ravel(self.case.estimator.predict(self.case.check_rows()))
        ours = np.array([self.case.classes.index(label) for label in labels])
        return float(np.mean(ours == np.array(said)))

    def explain(self, row: int, seconds: float) -> Reply:
        """Ask, and end the worker when it hangs."""
        reply = self.session.ask(self.case.matrix[row], seconds)
        if reply["status"] in ("killed", "died", "error"):
            return Reply(reply["status"], reply["seconds"], note=reply["note"])
        values = None if reply["row"] is None else np.array(reply["row"])
        bound = np.nan if reply["bound"] is None else float(reply["bound"])
        return Reply(
            reply["status"],
            reply["seconds"],
            values,
            reply["proven"],
            bound,
            cpu=reply["cpu"],
            peak=reply.get("peak", np.nan),
        )

    def close(self) -> None:
        """End the worker and remove the task."""
        self.session.close()
