"""One robust question: asked, timed by the processor, and its answer attacked without the library's own adversaries."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.robust.cells import Cell, Larger, explainer_of, fitted, larger_explainer, scaled
from ifonly import Explainer, Infeasible, OutOfTime, Robustness

__all__ = ["ask", "ask_larger"]

_POINTS = 4000  # of a ball, put to the model


def ask(cell: Cell, row: int, limit: float, patience: float, solver: str) -> dict[str, Any]:
    """Ask for the other class of one row; return a record."""
    X, _ = scaled(cell.data)
    explainer = explainer_of(cell.data, cell.model, cell.size, solver)
    model = fitted(cell.data, cell.model, cell.size)
    want = 1 - int(model.predict(X.iloc[[row]])[0])
    record = _timed((explainer, model), X, row, want, cell.radius, cell.norm, limit * patience)
    record |= {"cell": cell.name, "row": row, "within": record["seconds"] <= limit}
    return record


def ask_larger(which: Larger, row: int, limit: float, patience: float, solver: str) -> dict[str, Any]:
    """Ask a larger question; return a record."""
    data, model, explainer = larger_explainer(which, solver)
    record = _timed((explainer, model), data.frame, row, data.wanted, which.radius, "linf", limit * patience)
    return record | {"cell": which.name, "row": row, "within": record["seconds"] <= limit}


def _timed(
    asked: tuple[Explainer, Any], X: pd.DataFrame, row: int, want: Any, radius: float, norm: Any, seconds: float
) -> dict[str, Any]:
    explainer, _ = asked
    began, clock = time.process_time(), time.perf_counter()
    record: dict[str, Any] = {"proven": False, "robust": None, "cost": None, "bound": None, "solver": "", "ended": ""}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = explainer.explain(
                X.iloc[[row]], want=want, criteria=[Robustness(radius=radius, norm=norm)], time_limit=seconds
            )
    except Infeasible:
        record |= {"proven": True, "ended": "impossible"}
    except OutOfTime as error:
        record |= {"bound": error.bound, "ended": "no answer"}
    except Exception as error:  # noqa: BLE001 - one question that fails must not end a long run
        record |= {"ended": f"{type(error).__name__}: {error}"[:200]}
    else:
        proof = answer[0].certificate
        record |= {
            "proven": bool(proof.proven),
            "cost": proof.objective,
            "bound": proof.bound,
            "solver": proof.solver,
            "ended": proof.status,
        }
    record["seconds"], record["clock"] = time.process_time() - began, time.perf_counter() - clock
    if record["cost"] is not None:
        record["robust"] = withstands(asked, X, answer.frame(), want, radius, norm)
    return record


def withstands(
    asked: tuple[Explainer, Any], X: pd.DataFrame, answer: pd.DataFrame, want: Any, radius: float, norm: str
) -> bool:
    """Attack an answer: ends of all axes, corners, and points drawn from the ball and its edge, put to the user's model."""
    (explainer, model), rng = asked, np.random.default_rng(0)
    numbers = [c for c in answer if c in X.select_dtypes("number")]
    span = (X[numbers].max() - X[numbers].min()).to_numpy(float)
    d = len(numbers)
    axes = np.vstack([np.eye(d), -np.eye(d)])
    if norm == "linf":
        inside = rng.uniform(-1.0, 1.0, (_POINTS, d))
        half = _POINTS // 2
        inside[:half] = np.sign(inside[:half]) * (rng.random((half, d)) < 0.8)
    else:
        inside = rng.normal(size=(_POINTS, d)) * (rng.random((_POINTS, d)) < rng.uniform(0.05, 1.0, (_POINTS, 1)))
        inside /= np.maximum(np.linalg.norm(inside, axis=1, keepdims=True), 1e-9)
        inside[_POINTS // 2 :] *= rng.random((_POINTS - _POINTS // 2, 1)) ** (1.0 / d)
    shift = radius * np.vstack([axes, inside, np.zeros((1, d))]) * span
    around = answer.iloc[[0] * len(shift)].reset_index(drop=True)
    for k, name in enumerate(numbers):
        feature = explainer.schema[name]
        moved = np.trunc(shift[:, k] / feature.step) * feature.step if feature.step else shift[:, k]
        value = float(answer[name].iloc[0])
        there = np.clip(value + moved, min(feature.lower, value), max(feature.upper, value))
        around[name] = (
            np.round(there).astype(X[name].dtype) if X[name].dtype.kind in "iu" else there.astype(X[name].dtype)
        )
    return bool((model.predict(around) == want).all())
