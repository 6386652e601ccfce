"""Files of commit 03503d0, before modules moved into folders: what it wrote is read to the same values.

`policy.toml` was written by hand, with every section that it knew; `answer.json` is what it answered to `ask`, as `to_json()`
wrote it; `modules.txt` are its modules, for `tests/test_moved.py`.
"""

from __future__ import annotations

import json
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from ifonly import (
    Actionability,
    Change,
    Diversity,
    Explainer,
    Explanation,
    Implies,
    LinearRow,
    Manifold,
    Proximity,
    Robustness,
    Schema,
    Sparsity,
)
from ifonly.data.features import Binary, Categorical, Integer, Numeric, Ordinal
from ifonly.policy import FeaturePolicy, read_policy, write_policy

HERE = Path(__file__).parent


# -- a policy ---------------------------------------------------------------------------------------------------------
def test_its_policy_means_the_same() -> None:
    policy = read_policy((HERE / "policy.toml").read_text(encoding="utf-8"))
    assert policy.features == {
        "age": FeaturePolicy(kind="integer", bounds=(18, 99), label="Age in years"),
        "income": FeaturePolicy(kind="numeric", bounds=(0.0, 12.5), precision=1),
        "school": FeaturePolicy(kind="ordinal", levels=("none", "some", "full")),
        "home": FeaturePolicy(kind="categorical", levels=("none", "rent", "own")),
    }
    assert policy.criteria == (
        Proximity("l1", "range", {"age": 2.0}),
        Sparsity(at_most=3, price=0.05),
        Actionability(
            frozen=("id",),
            increase=("age",),
            decrease=("debts",),
            ranges={"income": (None, 6.5), "age": (18, 80)},
            max_step={"age": 10},
            allow={"home": ("rent", "own")},
            conditional={"school": {"some": ("some", "full")}},
            rows=(LinearRow({"income": 1.0, "debts": -0.5}, at_least=0.25),),
            implies=(Implies({"home": "own"}, {"income": (2.0, None)}),),
        ),
        Manifold(epsilon=0.1, norm="l1", of="all", by="label"),
    )


def test_its_policy_applies_to_its_data_and_is_written_back() -> None:
    policy = read_policy((HERE / "policy.toml").read_text(encoding="utf-8"))
    schema = policy.schema(table())
    assert [f.name for f in schema.features] == ["id", "age", "income", "debts", "school", "home"]
    assert read_policy(write_policy(schema, policy.criteria)).criteria == policy.criteria


# -- an answer --------------------------------------------------------------------------------------------------------
def table() -> pd.DataFrame:
    n = np.arange(120)
    homes = pd.Index(["none", "rent", "own"], dtype=object)
    return pd.DataFrame(
        {
            "id": n % 7,
            "age": 18 + n % 50,
            "income": ((n * 37) % 80) / 10.0,
            "debts": ((n * 13) % 40) / 8.0,
            "school": pd.Series(np.array(["none", "some", "full"], dtype=object)[n % 3], dtype=object),
            "home": pd.Categorical(homes.to_numpy()[(n // 3) % 3], dtype=pd.CategoricalDtype(homes)),
        }
    )


def ask() -> Explanation:
    """Ask what `answer.json` answers: two answers that stay in a ball."""
    X = table()
    y = np.where(X["income"] - X["debts"] + 0.02 * X["age"] + (X["home"] == "own") > 3.0, "good", "bad")
    encode = make_column_transformer((OneHotEncoder(), ["school", "home"]), remainder="passthrough")
    model = make_pipeline(encode, DecisionTreeClassifier(max_depth=4, random_state=0)).fit(X, y)
    schema = Schema.infer(X, precision={"income": 1}, ordinal={"school": ["none", "some", "full"]})
    criteria = [
        Actionability(frozen=["id"], decrease=["debts"]),
        Sparsity(price=0.05),
        Diversity("features"),
        Robustness(radius=0.01),
    ]
    return Explainer(model, X, schema=schema).explain(X.iloc[[6]], want="good", n=2, criteria=criteria)


def test_its_answer_says_the_same() -> None:
    text = (HERE / "answer.json").read_text(encoding="utf-8")
    found, written = Explanation.from_json(text), json.loads(text)
    assert (found.want, found.status, found.prediction, found.score, found.score_name) == (
        "'good'",
        "optimal",
        "bad",
        0.0,
        "probability",
    )
    assert (found.seconds, found.solver) == (written["seconds"], "HiGHS")
    assert found.notes == tuple(written["notes"])
    first, second = found
    assert first.changes == (Change("income", 6.2, 6.9),)
    assert second.changes == (Change("debts", 4.75, written["counterfactuals"][1]["changes"][0]["after"]),)
    assert first.ranges == {"income": (6.9, 7.9)}
    for answer, old in zip(found, written["counterfactuals"], strict=True):
        assert (answer.prediction, answer.score, answer.distance) == ("good", 1.0, old["distance"])
        assert answer.ranges == {name: tuple(ends) for name, ends in old["ranges"].items()}
        certificate = answer.certificate
        assert {name: getattr(certificate, name) for name in old["certificate"]} == old["certificate"]
        assert certificate.bound > -inf
        pd.testing.assert_frame_equal(answer.row, frame_of(old["row"]), check_dtype=False)
    pd.testing.assert_frame_equal(found.factual, table().iloc[[6]])
    kinds = [type(feature) for feature in found.schema.features]
    assert kinds == [Integer, Integer, Numeric, Numeric, Ordinal, Categorical]
    assert Binary not in kinds
    assert (found.schema.features[2].precision, found.schema.features[4].levels) == (1, ("none", "some", "full"))


def frame_of(row: dict[str, dict[str, list[object]]]) -> pd.DataFrame:
    frame = pd.DataFrame(row["columns"])
    return frame.astype({"school": object, "home": table()["home"].dtype})


def test_its_answer_is_written_anew_without_loss() -> None:
    found = Explanation.from_json((HERE / "answer.json").read_text(encoding="utf-8"))
    again = Explanation.from_json(found.to_json())
    assert [(a.changes, a.certificate, a.ranges) for a in again] == [
        (a.changes, a.certificate, a.ranges) for a in found
    ]
    assert (again.notes, again.schema.features, again.status) == (found.notes, found.schema.features, found.status)
    assert again.to_json() == found.to_json()


def test_its_question_has_the_same_answers_today() -> None:
    old, new = Explanation.from_json(HERE / "answer.json"), ask()
    for then, now in zip(old, new, strict=True):
        assert now.certificate.proven
        assert now.certificate.objective == pytest.approx(then.certificate.objective, rel=1e-6)
        assert [c.feature for c in now.changes] == [c.feature for c in then.changes]
        assert now.prediction == then.prediction
