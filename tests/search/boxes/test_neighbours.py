"""Proofs of a solver put to the test by neighbours of the optimum, and a solver that lies with every setting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ifonly import Explainer, Proximity, Sparsity
from ifonly.program.mip import MipArrays
from ifonly.search.boxes.neighbours import neighbours
from ifonly.search.incumbents import Incumbents
from ifonly.solvers.backend import Capability, IncumbentHook, Limits, Solution, Status
from ifonly.solvers.registry import find_solver

HIGHS = find_solver("highs only")


@dataclass(frozen=True)
class Lying:
    """HiGHS that overlooks, with both settings, every point with `a` or `b` below the best one's plus some steps."""

    steps: float = 2.0
    name: str = "lying only"
    label: str = "Lying"
    capabilities: frozenset[Capability] = HIGHS.capabilities

    def available(self) -> bool:
        return True

    def version(self) -> str:
        return "1"

    def solve(self, program: MipArrays, limits: Limits, on_incumbent: IncumbentHook | None = None) -> Solution:
        best = HIGHS.solve(program, Limits())
        if best.values is None:
            return best
        lower = program.lower.copy()
        lower[:2] = np.minimum(best.values[:2] + self.steps, program.upper[:2])
        return HIGHS.solve(replace(program, lower=lower), limits, on_incumbent)


def world() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 40, 200), "b": rng.integers(0, 40, 200), "c": rng.normal(size=200).round(1)})
    return X, LogisticRegression(max_iter=500).fit(X, X.a + X.b + X.c > 45)


def explainer(backend: Any = None) -> tuple[Explainer, pd.DataFrame]:
    X, model = world()
    made = Explainer(model, X, criteria=[Proximity("l1", scale="range")], solver="highs only")
    made.backend = made.backend if backend is None else backend
    return made, X[~model.predict(X)].iloc[[0]]


def test_neighbours_are_nearer_and_each_comes_once() -> None:
    made, row = explainer()
    statement = made._ask(row, True, []).statement
    u = statement.query.factual + np.array([6.0, 3.0, 0.0])
    near = neighbours(statement, u)
    assert len(np.unique(near, axis=0)) == len(near)
    assert {(5.0, 3.0), (6.0, 2.0), (5.0, 2.0), (0.0, 3.0), (0.0, 0.0)} <= {
        tuple(r[:2]) for r in near - statement.query.factual
    }
    assert (statement.objective(near) <= statement.objective(u[None, :])[0]).all()


def test_a_true_optimum_is_still_proven() -> None:
    made, row = explainer()
    assert made.explain(row, want=True).status == "optimal"


def test_a_false_proof_is_not_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Incumbents, "open", lambda self: None)  # which finds the optimum by itself
    made, row = explainer()
    true = made.explain(row, want=True)[0].certificate.objective
    lying, _ = explainer(Lying())
    with pytest.warns(match="not proven"):
        told = lying.explain(row, want=True)
    assert told.status != "optimal"
    assert told[0].certificate.bound <= true * (1 + 1e-9)


def test_a_sparse_answer_is_tested_too() -> None:
    made, row = explainer()
    assert made.explain(row, want=True, criteria=[Sparsity(at_most=1)]).status == "optimal"


def test_the_lie_is_one() -> None:
    """Without the test by neighbours, the lie above would be proven: two settings agree on it."""
    made, row = explainer()
    true = made.explain(row, want=True)[0].certificate.objective
    from ifonly.question.problem import build
    from ifonly.solvers.tangents import solve

    program = build(made._ask(row, True, []).statement).arrays()
    said = solve(program, Lying(), Limits(20.0))
    assert said.status is Status.OPTIMAL
    assert said.bound > 1.1 * true
