"""Branch and bound over inputs and scores: bounds of parts hold at every point, and the optimum is that of enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ifonly import Explainer, Infeasible, Proximity, Schema, Sparsity
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT, CompositeSearch, Tuning
from ifonly.search.composites.engine import _Search
from ifonly.search.composites.parts import Part, Parts
from ifonly.search.composites.programs import Programs, Solved
from ifonly.search.composites.relaxed import Relaxed
from ifonly.search.engine import separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from portions import one_in
from questions import shares

GRID = pd.DataFrame(
    list(itertools.product(range(7), np.round(np.arange(-2, 3) * 0.1, 1), ["red", "green", "blue"], [0, 1])),
    columns=["size", "weight", "colour", "new"],
)
SCHEMA = Schema.infer(GRID, precision={"weight": 1})
AT_ONCE = Tuning(composites=CompositeSearch(relaxed_from=1, priced_from=10**9))
NEVER = Tuning(composites=CompositeSearch(relaxed_from=10**9))


def fitted(kind: str, seed: int, classes: int) -> Any:
    rng = np.random.default_rng(seed)
    score = GRID["size"] + 2 * (GRID["colour"] == "green") - 20 * GRID["weight"] * GRID["new"]
    y = np.digitize(score + rng.normal(0, 1.5, len(GRID)), [2.5, 5.0][: classes - 1])
    parts = [
        ("forest", RandomForestClassifier(5, max_depth=3, random_state=seed)),
        ("line", LogisticRegression(max_iter=2000)),
    ]
    model = VotingClassifier(parts, voting="soft") if kind == "soft" else StackingClassifier(parts, cv=2)
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), remainder=StandardScaler())
    made = make_pipeline(columns, model).fit(GRID, y)
    return made if len(set(made.predict(GRID))) > 1 else fitted(kind, seed + 1000, classes)


def asked(model: Any, i: int, want: int, house: list[Any]) -> Statement:
    explainer = Explainer(model, GRID, schema=SCHEMA)
    question = explainer._ask(GRID.iloc[[i]], want, house)
    return question.goal.with_first_margin(question.statement)


def searching(statement: Statement) -> _Search:
    box = statement.box()
    question = separable(statement)
    assert question is not None
    return _Search(statement, question, box, Incumbents.of(statement, box, Progress()))


# -- bounds ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", one_in(2, range(8)))
def test_no_point_of_a_part_costs_less_than_its_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = 2 + seed % 2
    model = fitted("soft" if seed % 4 < 2 else "stacked", seed, classes)
    i = int(rng.integers(len(GRID)))
    want = int(rng.choice([c for c in range(classes) if c != model.predict(GRID)[i]]))
    norm = "l2" if seed % 3 == 2 else "l1"
    statement = asked(model, i, want, [Proximity(norm, scale="range"), Sparsity(price=0.1)])
    search = searching(statement)
    tables, whole = search.tables, search.whole()
    U = statement.query.schema.encode(GRID)
    scores = np.array([tables.enclosure.values(u) for u in U])
    good = (statement.form(U) @ search.rows.T + search.constant >= 0.0).all(axis=1)
    cost = statement.objective(U)
    x = U[:, search.places.places] - search.free.origin
    on = U[:, search.places.entries] > 0.0
    parts = Parts(tables, search.rows, search.constant, whole)
    root = parts.view(parts.root(), np.inf)
    assert root is not None
    programs = Programs(tables, search.free, search.branching.raw, root, DEFAULT.composites)
    bounded = tight = 0
    for _ in range(60):
        part = _drawn(rng, parts.root(), scores, tables.enclosure.inner)
        inside = ((scores >= part.least) & (scores <= part.most)).all(axis=1)
        inside &= ((x >= part.low) & (x <= part.high)).all(axis=1) & (on <= part.allowed).all(axis=1)
        least = float(cost[good & inside].min(initial=np.inf))
        view = parts.view(part, np.inf)
        if view is None:
            assert np.isinf(least)
            continue
        near = None
        for _ in range(2):
            solved = programs.solve(view, near, Deadline.never())
            bound = solved.bound if isinstance(solved, Solved) else solved
            assert bound <= least * (1 + 1e-9) + 1e-12
            bounded += 1
            tight += bound > 0.0
            if isinstance(solved, float):
                break
            near = parts.near(view, solved.scores)
    assert bounded > 30
    assert tight > 10


def _drawn(rng: np.random.Generator, root: Part, scores: np.ndarray, inner: np.ndarray) -> Part:
    """Return a random part: a few numbers, a level and a few scores are kept to less."""
    low, high, allowed = root.low.copy(), root.high.copy(), root.allowed.copy()
    least, most = root.least.copy(), root.most.copy()
    for k in np.flatnonzero(rng.random(len(low)) < 0.3):
        end = rng.uniform(low[k], high[k])
        low[k], high[k] = (end, high[k]) if rng.random() < 0.5 else (low[k], end)
    if rng.random() < 0.3:
        allowed[rng.integers(len(allowed))] = False
    for place in rng.choice(inner, 2):
        # at scores that there are, which are the hardest ends
        end = rng.choice(scores[:, place])
        least[place], most[place] = (end, most[place]) if rng.random() < 0.5 else (least[place], end)
    return Part(low, high, allowed, least, most)


def test_leads_of_three_classes_narrow_each_other() -> None:
    statement = asked(fitted("soft", 1, 3), 0, 2, [])
    search = searching(statement)
    parts = Parts(search.tables, search.rows, search.constant, search.whole())
    (line,) = search.tables.linear
    lead = np.arange(line.place.start, line.place.stop).reshape(3, 3)
    root = parts.root()
    root.least[lead[0, 1]] = root.least[lead[1, 2]] = 0.5
    view = parts.view(root, np.inf)
    assert view is not None
    # s0 - s1 >= 0.5 and s1 - s2 >= 0.5 make s0 - s2 >= 1, and s2 - s0 <= -1
    assert view.low[0, lead[0, 2]] >= 1.0 - 1e-9
    assert view.high[0, lead[2, 0]] <= -1.0 + 1e-9


# -- whole searches ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["soft", "stacked"])
@pytest.mark.parametrize("seed", one_in(2, range(6)))
def test_optimum_equals_enumeration(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = 2 + seed % 2
    model = fitted(kind, 50 + seed, classes)
    said = model.predict(GRID)
    price, at_most = float(rng.choice([0.0, 0.1])), int(rng.integers(1, 5))
    square = seed % 3 == 2
    house = [Proximity("l2" if square else "l1", scale="range"), Sparsity(at_most=at_most, price=price)]
    explainer = Explainer(model, GRID, schema=SCHEMA, criteria=house, tuning=AT_ONCE)
    for i in rng.permutation(len(GRID))[:3]:
        factual = GRID.iloc[int(i)]
        want = int(rng.choice([c for c in set(said) if c != said[i]]))
        table = shares(GRID, factual)
        changed = (table > 0).sum(axis=1)
        cost = (table**2 if square else table).sum(axis=1) + price * changed
        good = (said == want) & (changed <= at_most).to_numpy()
        row = factual.to_frame().T.astype(GRID.dtypes)
        if not good.any():
            with pytest.raises(Infeasible):
                explainer.explain(row, want=want)
            continue
        answer = explainer.explain(row, want=want)
        assert answer.status == "optimal"
        assert answer[0].certificate.objective == pytest.approx(float(cost[good].min()), rel=2e-6, abs=1e-12)


def test_it_takes_part_and_agrees_with_the_search_of_inputs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X[["alcohol", "flavanoids", "proline", "hue"]]
    line = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model = VotingClassifier(
        [("line", line), ("forest", RandomForestClassifier(4, max_depth=3, random_state=0))], voting="soft"
    )
    model.fit(X, y)
    ended: list[float] = []
    run = Relaxed.run

    def heard(self: Relaxed, deadline: Deadline) -> float:
        ended.append(run(self, deadline))
        return ended[-1]

    monkeypatch.setattr(Relaxed, "run", heard)
    rows = np.flatnonzero(model.predict(X) != 1)[[0, 40, 80]]
    costs = []
    for tuned in (AT_ONCE, NEVER):
        explainer = Explainer(model, X, tuning=tuned, criteria=[Proximity("l1", scale="range")])
        answers = [explainer.explain(X.iloc[[i]], want=1) for i in rows]
        assert all(answer.status == "optimal" for answer in answers)
        costs.append([answer[0].certificate.objective for answer in answers])
    assert len(ended) == len(rows)
    assert np.isinf(ended).all()  # closed by itself
    assert costs[0] == pytest.approx(costs[1], rel=3e-6)
