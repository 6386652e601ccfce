"""HiGHS 1.15.1 at its own tolerances calls a program infeasible whose best point lies at the end of an epigraph column.

``epigraph.mps`` is such a program, with 38 columns and numbers near 1 (a question of the battery, 20261124:2409046). A point
of cost 666.4478 keeps all of its rows to 2e-16; its column ``cost`` is 1.3016558964, and may be 1.3016558978. With
presolve or without, for many seeds there is no point at all for HiGHS. A roomier end costs nothing, and helps.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ifonly import Explainer, Proximity
from ifonly.question.problem import build

PROGRAM = Path(__file__).with_name("epigraph.mps")
COST, LARGEST, BEST = 36, 37, 666.4478189540638


def loaded(**options: Any) -> Any:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    for name, value in options.items():
        highs.setOptionValue(name, value)
    highs.readModel(str(PROGRAM))
    return highs


@pytest.mark.parametrize("presolve", ["on", "off"])
@pytest.mark.parametrize("seed", range(6))
def test_a_roomy_end_is_solved_with_every_setting(presolve: str, seed: int) -> None:
    highs = loaded(presolve=presolve, random_seed=seed)
    upper = highs.getLp().col_upper_
    for column in (COST, LARGEST):
        highs.changeColBounds(column, 0.0, 2.0 * upper[column])
    highs.run()
    assert highs.modelStatusToString(highs.getModelStatus()) == "Optimal"
    assert highs.getInfo().objective_function_value == pytest.approx(BEST, rel=1e-9)


@pytest.mark.parametrize(("norm", "column"), [("l1", "cost"), ("linf", "cost"), ("linf", "largest")])
def test_the_end_of_an_epigraph_column_never_binds(norm: str, column: str) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(0, 4, 60), "b": rng.uniform(0, 4, 60)})
    model = LogisticRegression().fit(X, X.a + X.b > 4)
    costs = Proximity(norm=norm, scale="none", tables={"a": {1.0: 1.0, 2.0: 3.0, -1.0: 1.0}})  # type: ignore[arg-type]
    row = X[~model.predict(X)].iloc[[0]]
    statement = Explainer(model, X, criteria=[costs])._ask(row, True, []).statement
    program, box = build(statement).arrays(), statement.box()
    ends = np.array([[a, row.b.iloc[0]] for a in (box.lower[0], box.upper[0])])
    dearest = float(statement.objective(ends).max())
    assert program.upper[program.names.index(column)] > 1.9 * dearest
