"""Peers whose packages no longer install, rebuilt under `benchmarks/peers`, on the models of the comparison."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.paper.models import Fitted
from benchmarks.paper.replies import Reply, Unsupported
from benchmarks.peers import actionable_recourse, face, growing_spheres
from benchmarks.peers.encoding import FloatArray

__all__ = ["REBUILT", "linear_parts"]

_MOST_ROWS = 20_000


class _Local:
    """A peer in this process, for one answer."""

    def __init__(self, source: Fitted, n: int) -> None:
        if n > 1:
            raise Unsupported("it gives one answer")
        self.source, self.data = source, source.data
        self.train = self.data.codes(self.data.train.frame)

    def wanted(self, codes: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which coded rows the model puts in the wanted class."""
        return self.source.wanted(self.data.frame(codes))

    def search(self, factual: FloatArray, seconds: float) -> FloatArray | None:
        """Return a coded row, or None."""
        raise NotImplementedError

    def explain(self, position: int, seconds: float) -> Reply:
        """Search and take the time."""
        factual = self.data.codes(self.data.test.frame.iloc[[position]])[0]
        began, worked = time.perf_counter(), time.process_time()
        row = self.search(factual, seconds)
        spent, cpu = time.perf_counter() - began, time.process_time() - worked
        if row is None:
            return Reply("out of time" if spent >= seconds else "none found", spent, cpu=cpu)
        return Reply("found", spent, row[None, :], cpu=cpu)

    def close(self) -> None:
        """Nothing is held."""


class _Spheres(_Local):
    def search(self, factual: FloatArray, seconds: float) -> FloatArray | None:
        return growing_spheres.grow(factual, self.data.encoding, self.wanted, frozen=self.data.frozen, seconds=seconds)


class _Face(_Local):
    """FACE among the training rows that share the factual's frozen features."""

    def __init__(self, source: Fitted, n: int) -> None:
        super().__init__(source, n)
        fields = self.data.encoding.fields
        self.frozen = [j for j, f in enumerate(fields) if f.name in self.data.frozen]
        self.scale = np.ones(self.data.encoding.width)
        for field in fields:
            # A switch of a category has the length 1.
            self.scale[list(field.columns)] = np.sqrt(2.0) if field.kind == "category" else field.span

        self.graphs: dict[tuple[float, ...], tuple[FloatArray, face.Graph]] = {}

    def _scaled(self, rows: FloatArray) -> FloatArray:
        return self.data.encoding.matrix(rows) / self.scale

    def _graph(self, factual: FloatArray) -> tuple[FloatArray, face.Graph]:
        key = tuple(factual[self.frozen])
        if key not in self.graphs:
            rows = self.train[(self.train[:, self.frozen] == factual[self.frozen]).all(axis=1)]
            if len(rows) > _MOST_ROWS:
                rows = np.random.default_rng(0).permutation(rows)[:_MOST_ROWS]
            targets = self.wanted(rows) if len(rows) else np.zeros(0, dtype=bool)
            self.graphs[key] = rows, face.Graph(self._scaled(rows), targets)
        return self.graphs[key]

    def search(self, factual: FloatArray, seconds: float) -> FloatArray | None:
        del seconds
        rows, graph = self._graph(factual)
        path = graph.shortest(self._scaled(factual[None, :])[0])
        return None if path is None else rows[path[-1]]


class _Recourse(_Local):
    def __init__(self, source: Fitted, n: int) -> None:
        super().__init__(source, n)
        if source.name not in ("lr", "svm"):
            raise Unsupported("it takes linear models")
        self.model = linear_parts(source)

    def search(self, factual: FloatArray, seconds: float) -> FloatArray | None:
        return actionable_recourse.recourse(
            factual, self.data.encoding, self.model, self.train, frozen=self.data.frozen, seconds=seconds
        )


def linear_parts(source: Fitted) -> actionable_recourse.Linear:
    """Return a linear model in raw units: a slope per number, a score per level."""
    core, scaler = source.model[-1], source.model[0].named_transformers_["number"]
    weights = np.ravel(core.coef_)
    data = source.data
    slopes: dict[str, float] = {}
    tables: dict[str, FloatArray] = {}
    intercept = float(np.ravel(core.intercept_)[0])
    for k, name in enumerate(data.numbers):
        slopes[name] = float(weights[k] * scaler.scale_[k])
        intercept += float(weights[k] * scaler.min_[k])
    at = len(data.numbers)
    for name in data.categories:
        extra = len(next(f.levels for f in data.encoding.fields if f.name == name)) - 1
        tables[name] = np.concatenate([[0.0], weights[at : at + extra]])
        at += extra
    names = [f.name for f in data.encoding.fields]
    return actionable_recourse.Linear(
        tuple(slopes.get(name, 0.0) for name in names),
        tuple(tables.get(name, np.zeros(0)) for name in names),
        intercept,
    )


REBUILT: dict[str, Any] = {"growing-spheres": _Spheres, "face": _Face, "actionable-recourse": _Recourse}
