"""The methods: ours, the leaf-big-M formulation in this process, and peers in theirs, behind one interface."""

from __future__ import annotations

import pickle
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from benchmarks.peers.catalogue import PEERS, Peer
from benchmarks.peers.client import Died, Hung, Worker
from benchmarks.peers.encoding import FloatArray
from benchmarks.peers.environments import default_cache
from benchmarks.peers.leaf_big_m import LeafBigM
from benchmarks.speed.problems import Case
from ifonly import Explainer, Proximity
from ifonly.errors import IfOnlyWarning, Infeasible, NoCounterfactual

__all__ = ["METHODS", "Disagrees", "Reply", "Session", "Unsupported", "open_session"]

OURS, BIG_M = "ifonly", "leafbigm"
METHODS = (OURS, "treecf", "nice", "dice-random", "dice-genetic", "oceanpy", BIG_M)
_TREES = frozenset({"forest", "boosting", "xgboost", "tree"})
# How much longer than its limit a peer that keeps time may take before it counts as hanging, and to open a task.
_GRACE, _OPENING = 30.0, 600.0
_AGREEMENT = 0.995


class Unsupported(Exception):
    """The method does not take this kind of model."""


class Disagrees(Exception):
    """Mismatch: the peer's copy of the model predicts something else than the model."""


@dataclass(frozen=True, eq=False)
class Reply:
    """Reply of a method for one row; `frame` is the row as returned, when it comes in raw columns."""

    status: str
    seconds: float
    row: FloatArray | None = None
    proven: bool = False
    bound: float = np.nan
    frame: pd.DataFrame | None = None
    phases: dict[str, float] = field(default_factory=dict)
    cpu: float = np.nan
    note: str = ""


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
        return _Ours(case, solver)
    if method == BIG_M:
        if case.kind not in _TREES:
            raise Unsupported(f"{method} is a formulation of trees")
        return _BigM(case)
    peer = PEERS[method]
    if case.kind not in peer.kinds:
        raise Unsupported(f"{method} takes no {case.kind} model")
    return _Remote(peer, case, default_cache() if cache is None else cache)


# -- here ------------------------------------------------------------------------------------------------------------
class _Clocked:
    """A solver that counts the seconds spent in it."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.spent = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def solve(self, *args: Any, **options: Any) -> Any:
        """Solve and count."""
        began = time.perf_counter()
        try:
            return self._backend.solve(*args, **options)
        finally:
            self.spent += time.perf_counter() - began


class _Ours:
    """ifonly, as people call it: the whole `explain`, verification included."""

    def __init__(self, case: Case, solver: str) -> None:
        self.case = case
        self.explainer = Explainer(
            case.model,
            case.table.frame,
            schema=case.table.schema,
            criteria=[Proximity("l1", scale="range")],
            solver=solver,
        )
        self.clock = _Clocked(self.explainer.backend)
        self.explainer.backend = self.clock

    def explain(self, row: int, seconds: float) -> Reply:
        """Explain; `verify` is what the model's own `predict` takes for the answer, `build` all that is not solving."""
        factual = self.case.table.frame.iloc[[row]]
        self.clock.spent = 0.0
        began, worked = time.perf_counter(), time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IfOnlyWarning)
                answer = self.explainer.explain(factual, want=self.case.table.wanted, time_limit=seconds)
        except NoCounterfactual as error:
            spent = time.perf_counter() - began
            return Reply(type(error).__name__, spent, proven=isinstance(error, Infeasible), note=str(error)[:200])
        total, cpu = time.perf_counter() - began, time.process_time() - worked
        best = answer[0]
        sure = best.certificate
        rest = total - self.clock.spent
        verify = min(self._predicting(best.row), rest)
        phases = {"build": rest - verify, "solve": self.clock.spent, "verify": verify}
        matrix = self.case.row_of(best.row)
        return Reply("found", total, matrix, sure.proven, sure.bound, best.row, phases, cpu)

    def _predicting(self, row: pd.DataFrame) -> float:
        began = time.perf_counter()
        self.case.model.predict(row)
        return time.perf_counter() - began

    def close(self) -> None:
        """Nothing is held."""


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


# -- elsewhere -------------------------------------------------------------------------------------------------------
class _Portable(pickle.Pickler):
    """Leaves out random states, which no prediction needs and which NumPy 1 cannot read from NumPy 2."""

    def reducer_override(self, obj: Any) -> Any:
        """Write None in the place of a random state."""
        if isinstance(obj, np.random.RandomState | np.random.Generator):
            return type(None), ()
        return NotImplemented


class _Remote:
    """A peer in a process and an environment of its own; after a hang it is started anew."""

    def __init__(self, peer: Peer, case: Case, cache: Path) -> None:
        self.peer, self.case = peer, case
        self.python = peer.environment.python(cache)
        self.log = cache / "logs" / f"{peer.environment.name}.log"
        self.folder = tempfile.TemporaryDirectory(prefix="ifonly-task-")
        self.task = Path(self.folder.name) / "task.pickle"
        classes = case.classes
        task = {
            "estimator": case.estimator,
            "X": case.matrix,
            "y": np.array([classes.index(label) for label in case.table.target]),
            "encoding": case.encoding.to_json(),
            "want": case.want,
            "kind": case.kind,
            "options": dict(peer.options),
            "check": case.check_rows(),
        }
        with self.task.open("wb") as stream:
            _Portable(stream).dump(task)
        self.worker = self._start()

    def _start(self) -> Worker:
        worker = Worker(self.python, self.peer.path, self.log)
        try:
            reply = worker.ask({"open": str(self.task)}, _OPENING)
            self._compare(reply)
        except BaseException:
            worker.close()
            raise
        return worker

    def _compare(self, reply: dict[str, Any]) -> None:
        """Both sides must explain the same model."""
        if reply["status"] != "open":
            raise Died(reply["note"])
        said = reply["predictions"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = self.case.estimator.predict(self.case.check_rows())
        ours = np.array([self.case.classes.index(label) for label in labels])
        share = float(np.mean(ours == np.array(said)))
        if share < _AGREEMENT:
            raise Disagrees(f"its model agrees with ours on {share:.1%} of {len(said)} rows")

    def explain(self, row: int, seconds: float) -> Reply:
        """Ask, and end the worker when it hangs."""
        if not self.worker.alive:
            self.worker = self._start()
        patience = seconds + (_GRACE if self.peer.keeps_time else 0.0)
        message = {"explain": self.case.matrix[row].tolist(), "seconds": seconds}
        began = time.perf_counter()
        try:
            reply = self.worker.ask(message, patience)
        except (Hung, Died) as error:
            spent = time.perf_counter() - began
            self.worker.close()
            return Reply("killed" if isinstance(error, Hung) else "died", spent, note=str(error))
        if reply["status"] == "error":
            return Reply("error", time.perf_counter() - began, note=reply["note"])
        values = None if reply["row"] is None else np.array(reply["row"])
        bound = np.nan if reply["bound"] is None else float(reply["bound"])
        return Reply(reply["status"], reply["seconds"], values, reply["proven"], bound, cpu=reply["cpu"])

    def close(self) -> None:
        """End the worker and remove the task."""
        if self.worker.alive:
            self.worker.close()
        self.folder.cleanup()
