"""The worker's side of the wire: one JSON line in, one JSON line out, whatever the peer itself prints.

``{"open": path}`` loads a task and answers the peer's own predictions for the task's check rows;
``{"explain": row, "seconds": limit}`` answers one counterfactual. A worker runs in the peer's environment.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from encoding import Encoding, FloatArray
from memory import peak_memory

__all__ = ["Answer", "Peer", "Task", "serve"]


@dataclass(frozen=True)
class Task:
    """Task of a peer: the fitted estimator on the matrix, the training rows, and the wanted class."""

    estimator: Any
    X: FloatArray
    y: Any
    encoding: Encoding
    want: int
    kind: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """Answer of a peer: a matrix row, whether it claims the optimum, its bound if it has one, and further rows."""

    row: FloatArray | None
    proven: bool = False
    bound: float | None = None
    status: str = "found"
    more: tuple[FloatArray, ...] = ()


class Peer(Protocol):
    """An explainer that has been opened on a task."""

    def predict(self, rows: FloatArray) -> Any:
        """Return class positions, by what the peer itself holds for the model."""
        ...

    def explain(self, row: FloatArray, seconds: float) -> Answer:
        """Return a counterfactual of a matrix row."""
        ...


def serve(open_task: Callable[[Task], Peer]) -> None:
    """Answer requests until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Whatever peers and their C libraries print must not end up between the answers.
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    peer: Peer | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "open" in request:
                peer, reply = _open(open_task, request["open"])
            else:
                assert peer is not None
                reply = _explain(peer, np.asarray(request["explain"], dtype=np.float64), request["seconds"])
        except Exception as error:  # noqa: BLE001 - the failure of a peer is a result
            traceback.print_exc()
            reply = {"status": "error", "note": f"{type(error).__name__}: {error}"[:300]}
        out.write(json.dumps(reply) + "\n")
        out.flush()


def _open(open_task: Callable[[Task], Peer], path: str) -> tuple[Peer, dict[str, Any]]:
    with Path(path).open("rb") as stream:
        data = pickle.load(stream)
    began = time.perf_counter()
    check = data.pop("check")
    task = Task(**{**data, "encoding": Encoding.from_json(data["encoding"])})
    peer = open_task(task)
    seconds = time.perf_counter() - began
    said = [int(c) for c in peer.predict(check)]
    return peer, {"status": "open", "seconds": seconds, "predictions": said}


def _explain(peer: Peer, row: FloatArray, limit: float) -> dict[str, Any]:
    began, worked = time.perf_counter(), time.process_time()
    answer = peer.explain(row, limit)
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    values = None if answer.row is None else [float(v) for v in answer.row]
    bound = answer.bound if answer.bound is not None and np.isfinite(answer.bound) else None
    return {
        "status": answer.status,
        "seconds": seconds,
        "cpu": cpu,
        "row": values,
        "proven": bool(answer.proven),
        "bound": bound,
        "more": [[float(v) for v in row] for row in answer.more],
        "peak": peak_memory(),
    }
