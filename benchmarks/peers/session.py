"""Session with a peer: its task on disk, its worker, the check that both sides hold the same model, and the questions."""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.catalogue import Peer
from benchmarks.peers.client import Died, Hung, Worker
from benchmarks.peers.encoding import FloatArray
from benchmarks.peers.environments import Environment, default_cache

__all__ = ["Disagrees", "Opened"]

# How much longer than its limit a peer that keeps time may take before it counts as hanging, and to open a task.
_GRACE, _OPENING = 30.0, 600.0
_AGREEMENT = 0.995


class Disagrees(Exception):
    """Mismatch: the peer's copy of the model predicts something else than the model."""


class _Portable(pickle.Pickler):
    """Leaves out random states, which no prediction needs and which NumPy 1 cannot read from NumPy 2."""

    def reducer_override(self, obj: Any) -> Any:
        """Write None in the place of a random state."""
        if isinstance(obj, np.random.RandomState | np.random.Generator):
            return type(None), ()
        return NotImplemented


class Opened:
    """A peer in a process and an environment of its own, opened on a task; after a hang it is started anew.

    Parameters
    ----------
    task
        What the worker is told, by the names of its `Task`, and the rows of the check.
    agreement
        The share of the check rows on which predictions of the worker are those of the model.
    """

    def __init__(
        self,
        peer: Peer,
        task: Mapping[str, Any],
        agreement: Callable[[Sequence[int]], float],
        cache: Path | None = None,
        environment: Environment | None = None,
    ) -> None:
        where = default_cache() if cache is None else cache
        own = peer.environment if environment is None else environment
        self.peer, self._agreement = peer, agreement
        self._python = own.python(where)
        self._log = where / "logs" / f"{own.name}.log"
        self._folder = tempfile.TemporaryDirectory(prefix="ifonly-task-")
        self._task = Path(self._folder.name) / "task.pickle"
        with self._task.open("wb") as stream:
            _Portable(stream).dump(dict(task))
        self._worker = self._start()

    def _start(self) -> Worker:
        worker = Worker(self._python, self.peer.path, self._log)
        try:
            self._compare(worker.ask({"open": str(self._task)}, _OPENING))
        except BaseException:
            worker.close()
            raise
        return worker

    def _compare(self, reply: Mapping[str, Any]) -> None:
        """Both sides must explain the same model."""
        if reply["status"] != "open":
            raise Died(reply["note"])
        said = reply["predictions"]
        share = self._agreement(said)
        if share < _AGREEMENT:
            raise Disagrees(f"its model agrees with ours on {share:.1%} of {len(said)} rows")

    def ask(self, row: FloatArray, seconds: float) -> dict[str, Any]:
        """Return the worker's reply; "killed" when it hung and was ended, "died" or "error", each with a note."""
        if not self._worker.alive:
            self._worker = self._start()
        patience = seconds + (_GRACE if self.peer.keeps_time else 0.0)
        began = time.perf_counter()
        try:
            reply = self._worker.ask({"explain": row.tolist(), "seconds": seconds}, patience)
        except (Hung, Died) as error:
            self._worker.close()
            reply = {"status": "killed" if isinstance(error, Hung) else "died", "note": str(error)}
        return {"seconds": time.perf_counter() - began, "row": None, "proven": False, "note": "", **reply}

    def close(self) -> None:
        """End the worker and remove the task."""
        if self._worker.alive:
            self._worker.close()
        self._folder.cleanup()
