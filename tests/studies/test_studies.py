"""The paper's case studies: its tables where they are exact, and its claims where they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import LinearConstraint, linprog, milp

from ifonly import Explainer, Explanation, Infeasible, Proximity, Schema
from ifonly.data.schema import Numeric
from ifonly.studies import Part, Study, german_study, heart_study
from ifonly.studies.cases import _Case, _german

REAL = ["duration", "credit_amount", "installment_commitment", "age"]


def changes(explanation: Explanation, k: int = 0) -> dict[str, Any]:
    return {c.feature: round(c.after, 2) if isinstance(c.after, float) else c.after for c in explanation[k].changes}


# -- German Credit, parts A to D ---------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def first_parts() -> Study:
    return german_study("ABCD")


def test_parts_a_to_d_are_those_of_the_paper(first_parts: Study) -> None:
    a = changes(first_parts["A"])
    assert (a["duration"], a["installment_commitment"], a["age"]) == (15.02, 3.86, 27.03)
    assert a["credit_amount"] == pytest.approx(-334, abs=1)
    assert changes(first_parts["B"]) == {"duration": 7.12}
    assert changes(first_parts["C"]) == {"duration": 7.12}
    assert changes(first_parts["D"]) == {"duration": 7.12}
    assert {"age": 75.52} in [changes(first_parts["D"], k) for k in range(3)]
    assert all(part.explanation.status == "optimal" for part in first_parts.parts)


def test_answers_of_one_part_leave_each_others_features(first_parts: Study) -> None:
    for letter in "CD":
        sets = [frozenset(changes(first_parts[letter], k)) for k in range(3)]
        assert len(set(sets)) == 3
        assert not any(a < b for a in sets for b in sets)
    assert all(float(answer.row["credit_amount"].iloc[0]) >= 0 for answer in first_parts["D"])


def test_evaluation_is_that_of_the_paper(first_parts: Study) -> None:
    table = first_parts.evaluation()
    assert list(table.index) == ["Part A", "Part B", "Part C", "Part D"]
    assert (table["categorical proximity"] == 1.0).all()
    assert table["continuous proximity"]["Part A"] == pytest.approx(-1715.94, abs=1.0)
    assert round(table["continuous proximity"]["Part B"], 2) == -16.88
    assert table["sparsity"].round(2)[["Part A", "Part B"]].tolist() == [0.80, 0.95]
    assert table.iloc[:2, 3:].isna().all(axis=None)


def test_table_is_printed_as_in_the_paper(first_parts: Study) -> None:
    lines = first_parts.table().splitlines()
    assert lines[0].split() == ["F1", "F2", "F3", "F4", "F6"]
    assert lines[1].split() == ["factual", "24", "1371", "4", "25", "1"]
    assert "Part B: validity, proximity, coherence, sparsity" in lines
    assert lines[lines.index("Part B: validity, proximity, coherence, sparsity") + 1].split() == [
        "(a)", "7.12", "--", "--", "--", "--",
    ]  # fmt: skip
    assert any(line.startswith("Never changed: F5, F7") for line in lines)
    printed = str(first_parts)
    assert "validity is 1.00 in all cases" in printed
    assert "sparsity-based diversity" in printed


def test_long_levels_are_letters_explained_below(first_parts: Study) -> None:
    answer = first_parts["B"]
    row = answer.factual.assign(checking_status="no checking", property_magnitude="life insurance")
    schema = answer.schema
    from dataclasses import replace

    from ifonly import Change

    changed = tuple(
        Change(name, answer.factual[name].iloc[0], row[name].iloc[0])
        for name in ("checking_status", "property_magnitude")
    )
    switched = replace(answer, counterfactuals=(replace(answer[0], row=row, changes=changed),), schema=schema)
    text = Study("", (Part("E", "all", switched),), first_parts.labels).table()
    assert "F8  F18" in text
    assert "F18: A real estate, B life insurance." in text


# -- German Credit, parts E and F --------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def case() -> _Case:
    return _german()


@pytest.fixture(scope="module")
def part_e(case: _Case) -> Explanation:
    return case.part("E", 60.0).explanation


@pytest.fixture(scope="module")
def part_f(case: _Case) -> Explanation:
    return case.part("F", 60.0).explanation


def outside(row: pd.DataFrame, rows: pd.DataFrame, schema: Schema) -> float:
    """Distance of a row from the hull of others, by a linear program that shares nothing with the library."""
    numbers = [f.name for f in schema.features if isinstance(f, Numeric)]
    both = pd.concat([row, rows], ignore_index=True)
    others = both.drop(columns=numbers)
    levels = (
        pd.get_dummies(others.astype(str)).to_numpy(dtype=float) if len(others.columns) else np.empty((len(both), 0))
    )
    spans = (both[numbers].max() - both[numbers].min()).to_numpy(dtype=float)
    points = np.hstack([both[numbers].to_numpy(dtype=float) / spans, levels])
    x, P = points[0], points[1:]
    n, d = P.shape
    slack = np.full((d, 1), -1.0)
    A = np.vstack([np.hstack([P.T, slack]), np.hstack([-P.T, slack])])
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=A,
        b_ub=np.concatenate([x, -x]),
        A_eq=[[*np.ones(n), 0.0]],
        b_eq=[1.0],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    return float(found.fun)


def test_the_witness_can_tell_inside_from_outside(case: _Case) -> None:
    rows = case.wanted_rows
    schema = case.schema(bounded=True)
    middle = rows.iloc[[0]].astype(dict.fromkeys(REAL, float))
    assert outside(middle, rows, schema) <= 1e-9
    assert outside(middle.assign(duration=70.0), rows, schema) > 0.1


def test_part_e_lies_in_the_hull_and_changes_few_features(part_e: Explanation, case: _Case) -> None:
    assert part_e.status == "optimal"
    assert len(part_e) == 3
    assert len(part_e[0].changes) <= 5
    for answer in part_e:
        assert outside(answer.row, case.wanted_rows, part_e.schema) <= 1e-7
        assert case.model.predict(answer.row)[0] == "good"
        for name in ("foreign_worker", "personal_status", "purpose"):
            assert answer.row[name].iloc[0] == part_e.factual[name].iloc[0]


def test_part_e_is_the_best_of_all_rows(part_e: Explanation, case: _Case) -> None:
    # No two good applicants that come into question share all categories, so with an epsilon of 0 the hull is themselves.
    rows, factual, X = case.wanted_rows, case.data.frame.iloc[case.row], case.split[0]
    numbers = [f.name for f in part_e.schema.features if isinstance(f, Numeric)]
    levels = [name for name in rows if name not in numbers]
    for name in ("foreign_worker", "personal_status", "purpose"):
        rows = rows[rows[name] == factual[name]]
    rows = rows[rows["employment"].isin(["1<=X<4", "4<=X<7", ">=7"])]
    assert not rows.duplicated(levels).any()
    rows = rows[(rows["age"] >= factual["age"]) & (rows["residence_since"] >= factual["residence_since"])]
    rows = rows[case.model.predict(rows) == "good"]
    moved = (rows[numbers] - factual[numbers].astype(float)) / (X[numbers].max() - X[numbers].min())
    switched = (rows[levels].astype(str) != factual[levels].astype(str)).sum(axis=1)
    costs = 10.0 * ((moved != 0).sum(axis=1) + switched) + (moved**2).sum(axis=1) + switched
    assert part_e[0].certificate.objective == pytest.approx(costs.min(), abs=1e-6)
    best, found = rows.loc[costs.idxmin()], part_e[0].row.iloc[0]
    assert found[numbers].astype(float).tolist() == pytest.approx(best[numbers].astype(float).tolist())
    assert found[levels].astype(str).tolist() == best[levels].astype(str).tolist()


@pytest.mark.slow
def test_part_f_obeys_the_learned_law(part_f: Explanation, case: _Case) -> None:
    learned = case.law.causes["duration"].model
    now = learned.predict(part_f.factual[["credit_amount"]])[0]
    assert len(part_f) == 3
    for answer in part_f:
        caused = learned.predict(answer.row[["credit_amount"]])[0] - now
        moved = answer.row["duration"].iloc[0] - part_f.factual["duration"].iloc[0]
        assert moved == pytest.approx(caused, abs=1e-6)
        assert answer.measures["causal_error"] <= 1e-6
        assert outside(answer.row, case.wanted_rows, part_f.schema) <= 0.05 + 1e-7
        assert case.model.predict(answer.row)[0] == "good"
    # the paper's first answer of this part, and then amounts with the durations they cause
    assert changes(part_f) == {
        "checking_status": "no checking",
        "employment": "4<=X<7",
        "property_magnitude": "life insurance",
    }
    assert all({"credit_amount", "duration"} <= set(changes(part_f, k)) for k in (1, 2))


def test_part_f_needs_room_around_the_hull(case: _Case) -> None:
    explainer = Explainer(
        case.model,
        case.split[0],
        schema=case.schema(bounded=True),
        criteria=[Proximity("l2"), case.actions, case.hull(0.0), case.law],
    )
    with pytest.raises(Infeasible) as refused:
        explainer.explain(case.data.frame.iloc[[case.row]], want="good")
    assert any("epsilon 0 -> 0.003" in str(way) for way in refused.value.relaxations)


@pytest.mark.parametrize("name", ["checking_status", "housing", "job"])
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_coherence_holds_without_its_rows(case: _Case, name: str, epsilon: float) -> None:
    """Without ``sum of levels = 1``, 0/1 columns within the enlarged hull still have exactly one level each (paper, A)."""
    P = pd.get_dummies(case.wanted_rows.astype(dict.fromkeys(case.wanted_rows, str))[name]).to_numpy(dtype=float)
    n, k = P.shape
    # columns: weights of all rows, 0/1 levels, |s|
    link = np.hstack([P.T, -np.eye(k), -np.eye(k)])
    back = np.hstack([-P.T, np.eye(k), -np.eye(k)])
    rows = np.vstack([link, back, np.r_[np.ones(n), np.zeros(2 * k)], np.r_[np.zeros(n + k), np.ones(k)]])
    low = np.r_[np.full(2 * k, -np.inf), 1.0, -np.inf]
    high = np.r_[np.zeros(2 * k), 1.0, epsilon]
    whole = np.r_[np.zeros(n), np.ones(k), np.zeros(k)]
    for sign in (1.0, -1.0):
        cost = sign * np.r_[np.zeros(n), np.ones(k), np.zeros(k)]
        found = milp(cost, integrality=whole, bounds=(0, 1), constraints=LinearConstraint(rows, low, high))
        assert sign * found.fun == pytest.approx(1.0)


# -- the figure, Heart -------------------------------------------------------------------------------------------------
def test_figure_shows_the_effect(tmp_path: Path) -> None:
    from ifonly.studies.figure import draw_effect, manifold_effect

    effect = manifold_effect()
    schema = Schema.infer(effect.good, numeric=list(effect.good))
    assert outside(effect.nearest, effect.good, schema) > 0.01
    assert outside(effect.within, effect.good, schema) <= 1e-7
    for name in ("manifold.png", "manifold.svg"):
        draw_effect(effect, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000


def test_heart_part_b() -> None:
    heard: list[str] = []
    study = heart_study("B", on_part=lambda part: heard.append(part.letter))
    assert heard == ["B"]
    assert study["B"].status == "optimal"
    assert len(study["B"][0].changes) == 1
    assert study["B"].factual["chol"].iloc[0] == 266


@pytest.mark.data
def test_heart_in_full() -> None:
    study = heart_study(time_limit=300.0)
    assert all(part.explanation.status == "optimal" for part in study.parts)
    table = study.evaluation()
    assert table["sparsity"]["Part A"] < table["sparsity"]["Part B"]
    assert (table["categorical diversity"].dropna() >= 0).all()
    for answer in study["E"]:
        assert answer.row[["age", "sex"]].iloc[0].tolist() == [49, "male"]
