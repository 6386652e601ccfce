"""Wrong optima of solvers on rectifier rows at extreme tolerances: small networks against enumeration.

With feasibility tolerances of 1e-9 and presolve HiGHS called 0.199 the optimum of a program whose optimum is -0.067, SCIP
did the same, and 22 of 619 robust answers of small networks flipped. Solvers now keep their own tolerances, and their
verdicts are confirmed (`ifonly.solvers.trusted`).
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ifonly import CriterionError, Explainer, Infeasible, Proximity, Robustness, Schema, Sparsity, Target
from ifonly.program.mip import MipArrays
from ifonly.solvers.backend import Limits, Status
from ifonly.solvers.registry import available_solvers, find_solver
from ifonly.solvers.tangents import solve
from portions import one_in


def four_columns() -> MipArrays:
    """One unit and one number of a network: ``on = 1`` and 103 cost -0.06695."""
    A = [
        [-1, 1, 0, 0.17599803424197324],
        [1, 0, -0.14694312257311548, 0],
        [0, 1, 0.3810509809588565, 0],
        [0, 0, 0, 0.3571428571428571],
    ]
    side = 17.980854404753156
    return MipArrays(
        cost=np.array([0.6049856044051315, 0, 0, -0.35511064780449675]),
        offset=36.42055126109191,
        matrix=sparse.csr_matrix(np.array(A)),
        row_lower=np.array([side, -np.inf, -np.inf, -np.inf]),
        row_upper=np.array([side, 0, 0.3810509809588565, 37.07142857142857]),
        lower=np.array([0.0, 0.0, 0.0, 100.0]),
        upper=np.array([0.14694312257311548, 0.3810509809588565, 1.0, 103.0]),
        integer=np.array([False, False, True, True]),
    )


@pytest.mark.parametrize("name", ["auto", "highs", "scip", "gurobi"])
def test_four_columns(name: str) -> None:
    if name != "auto" and name not in available_solvers():
        pytest.skip(f"{name} is not installed")
    answer = solve(four_columns(), find_solver(name), Limits())
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(-0.06695, abs=1e-4)
    assert four_columns().violation(answer.values) <= 1e-8


LOW, HIGH = 100, 107
GRID = pd.DataFrame(list(itertools.product(range(LOW, HIGH + 1), repeat=3)), columns=list("abc"))
SHAPE = (8, 8, 8)


@pytest.mark.parametrize("seed", one_in(3, range(5)))
def test_networks_and_balls_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(LOW, HIGH + 1, (60, 3)), columns=list("abc"))
    X.iloc[0], X.iloc[1] = LOW, HIGH
    y = (np.sin(X.a) + np.cos(X.b) + 0.3 * (X.c - 103) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(StandardScaler(), MLPClassifier((6,), max_iter=150, random_state=seed)).fit(X, y)
    p = model.predict_proba(GRID)[:, 1]
    good = p > 0.5 + 1e-6
    cube, safe = good.reshape(SHAPE), np.ones(SHAPE, dtype=bool)
    for step in (-2, -1, 0, 1, 2):  # a may be off by 0.3 * 7 = 2.1, so by two whole steps
        safe &= cube[np.clip(np.arange(8) + step, 0, 7)]
    safe = safe.reshape(-1)
    explainer = Explainer(model, X, solver="highs only")
    for i in rng.integers(0, len(GRID), 4):
        row = GRID.iloc[i]
        if p[i] >= 0.5 - 1e-6:
            continue
        cost = (np.abs(GRID - row) / 7).sum(axis=1) + 0.1 * (row != GRID).sum(axis=1)
        for ok, criteria in ((good, []), (safe, [Robustness(radius=0.3, features=["a"])])):
            best = float(cost[ok].min()) if ok.any() else np.inf
            try:
                answer = explainer.explain(row, want=1, criteria=criteria)
            except Infeasible:
                assert best == np.inf
                continue
            except CriterionError:
                continue
            place = np.ravel_multi_index(tuple(answer.frame().iloc[0].astype(int) - LOW), SHAPE)
            assert ok[place]
            assert answer[0].certificate.proven
            assert answer[0].certificate.objective <= best + 1e-5


@pytest.mark.parametrize("name", ["auto", "highs", "scip"])
def test_squares_of_a_network(name: str) -> None:
    if name != "auto" and name not in available_solvers():
        pytest.skip(f"{name} is not installed")
    values = (range(LOW, LOW + 8), [round(0.1 * k, 1) for k in range(12)], range(6))
    grid = pd.DataFrame(list(itertools.product(*values)), columns=list("abc")).astype(float)
    X = grid.sample(60, random_state=807).reset_index(drop=True)
    X.iloc[0], X.iloc[1] = grid.min(), grid.max()
    schema = Schema.infer(X, integer=["a", "c"], precision={"b": 1})
    network = MLPRegressor(hidden_layer_sizes=(6,), max_iter=200, random_state=807)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(StandardScaler(), network).fit(X, np.sin(X.a) + X.b * 2 + 0.2 * X.c)
    row = pd.Series({"a": 105.0, "b": 0.5, "c": 0.0})
    away = ((grid - row).abs() / (X.max() - X.min())).to_numpy()
    best = float((away**2).sum(axis=1)[model.predict(grid) >= 0.6].min())
    explainer = Explainer(model, X, schema=schema, solver=name, criteria=[Proximity("l2"), Sparsity(price=0)])
    certificate = explainer.explain(row, want=Target(at_least=0.6))[0].certificate
    assert certificate.proven
    assert certificate.objective == pytest.approx(best, abs=1e-6)
