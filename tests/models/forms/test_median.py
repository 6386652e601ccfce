"""The median form: the program's median is NumPy's for every point, ties and all; answers equal enumeration."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import AdaBoostRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from ifonly import Explainer, Infeasible, Proximity, Sparsity, Target
from ifonly.data.schema import Integer, Schema
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.median import Median
from ifonly.program.box import Box
from ifonly.program.mip import Mip
from ifonly.program.variables import Variables
from ifonly.solvers.backend import Limits
from ifonly.solvers.registry import find_solver
from portions import one_in

GRID = pd.DataFrame(list(itertools.product(range(6), range(5), range(4))), columns=["a", "b", "c"])


def plain_median(scores, weights):
    """The definition: the least score whose weight, with all that is below it, is at least half."""
    for score in sorted(scores):
        if sum(w for s, w in zip(scores, weights, strict=True) if s <= score) >= sum(weights) / 2:
            return score
    raise AssertionError


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [5.0, 1.0, 1.0, 1.0, 1.5], [0.3]])
def test_numpy_and_the_program_say_what_the_definition_says(weights):
    rng = np.random.default_rng(len(weights))
    schema = Schema((Integer("a", 0.0, 3.0), Integer("b", 0.0, 3.0)))
    inner = Linear(
        schema, rng.integers(-2, 3, (len(weights), 2)).astype(float), rng.integers(-1, 2, len(weights)) * 1.0
    )
    form = Median(inner, np.array(weights))
    for u in itertools.product(range(4), range(4)):
        point = np.array(u, dtype=float)
        expected = plain_median(inner(point[None, :])[0], weights)
        assert form(point[None, :])[0, 0] == expected
        box = Box.of(schema, point)
        low, high = form.score_bounds(box)
        assert low[0] <= expected <= high[0]
        for sign in (1.0, -1.0):
            mip = Mip()
            x = Variables(mip, box, point, {}, (0, 1))
            (median,) = form.embed(mip, x)
            for j in (0, 1):
                mip.row(x.raw(j), float(point[j]), float(point[j]))
            mip.minimise(median * sign)
            found = find_solver("highs").solve(mip.arrays(), Limits())
            assert found.values is not None
            assert median.value(found.values) == pytest.approx(expected, abs=1e-5)


def test_a_tie_makes_the_next_program_keep_away_from_it():
    schema = Schema((Integer("a", 0.0, 3.0),))
    form = Median(Linear(schema, np.array([[1.0], [-1.0]]), np.zeros(2)), np.ones(2))
    finer = form.refined(np.array([2.0]))
    assert finer is not None
    assert finer.level == 1
    clear = Median(Linear(schema, np.array([[1.0], [-1.0], [0.0]]), np.zeros(3)), np.ones(3))
    assert clear.refined(np.array([2.0])) is None


@pytest.mark.parametrize("member", [DecisionTreeRegressor(max_depth=3), LinearRegression()], ids=["trees", "linear"])
@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_optimum_equals_enumeration(member, seed):
    rng = np.random.default_rng(seed)
    y = GRID["a"] - GRID["b"] * (GRID["c"] > 1) + rng.normal(0, 1, len(GRID))
    model = AdaBoostRegressor(member, n_estimators=7, random_state=seed).fit(GRID, y)
    said = model.predict(GRID)
    for _ in range(5):
        factual = GRID.iloc[int(rng.integers(len(GRID)))]
        now, low = said[factual.name], float(np.quantile(said, rng.uniform(0.1, 0.8)))
        high = low + float(rng.uniform(0.05, 2.0))
        if low <= now <= high:
            continue
        at_most = int(rng.integers(1, 4))
        changed = (factual != GRID).sum(axis=1)
        cost = sum((GRID[c] - factual[c]).abs() / GRID[c].max() for c in GRID)
        good = (said >= low) & (said <= high) & (changed <= at_most)
        explainer = Explainer(model, GRID, criteria=[Proximity("l1", scale="range"), Sparsity(at_most=at_most)])
        if not good.any():
            with pytest.raises(Infeasible):
                explainer.explain(factual, want=Target(at_least=low, at_most=high))
            continue
        answer = explainer.explain(factual, want=Target(at_least=low, at_most=high))
        assert answer[0].certificate.proven
        assert answer[0].certificate.objective == pytest.approx(cost[good].min(), abs=1e-6)
        assert low <= model.predict(answer.frame())[0] <= high
