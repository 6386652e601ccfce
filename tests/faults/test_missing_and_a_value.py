"""A factual without a value, and demands that ask for one: both sides of every demand say the same, and ways out help."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from ifonly import Actionability, Explainer, Infeasible, Schema

X = pd.DataFrame({"a": [np.nan, 0.0, 1.0, 2.0, 3.0, 4.0] * 4, "b": np.repeat([0.0, 1.0], 12)})
MODEL = DecisionTreeClassifier(random_state=0).fit(X, (X.a >= 3.0).astype(int))  # missing counts as 0
EXPLAINER = Explainer(MODEL, X, schema=Schema.infer(X, precision={"a": 0, "b": 0}))
NOW = {"a": np.nan, "b": 0.0}
pytestmark = pytest.mark.filterwarnings("ignore::ifonly.errors.FactualViolatesDemand")


def test_frozen_at_missing_and_a_range_contradict_each_other() -> None:
    assert MODEL.predict(pd.DataFrame([NOW]))[0] == 0
    with pytest.raises(Infeasible) as error:
        EXPLAINER.explain(NOW, want=1, criteria=[Actionability(frozen=["a"], ranges={"a": (0, 4)})])
    assert set(error.value.conflict) == {"frozen a", "range of a (0, 4)"}
    ways = [str(way) for way in error.value.relaxations]
    assert "unfreeze a (it would become 3)" in ways or "unfreeze a (it would become 4)" in ways


@pytest.mark.parametrize(
    "rule", [{"increase": ["a"]}, {"decrease": ["a"]}, {"max_step": {"a": 1.0}}], ids=lambda r: next(iter(r))
)
def test_rules_about_a_move_leave_a_value_in_place_of_nothing_alone(rule: dict[str, object]) -> None:
    answer = EXPLAINER.explain(NOW, want=1, criteria=[Actionability(ranges={"a": (0, 4)}, **rule)])
    assert answer.frame().a[0] in (3.0, 4.0)
    assert answer[0].certificate.proven


def test_a_range_over_nothing_is_widened_to_where_it_helps() -> None:
    with pytest.raises(Infeasible) as error:
        EXPLAINER.explain(NOW, want=1, criteria=[Actionability(ranges={"a": (0, 1)})])
    assert [str(way) for way in error.value.relaxations] == ["range of a (0, 1) -> (0, 3)"]


def test_a_step_of_levels_from_nothing_is_no_level() -> None:
    F = pd.DataFrame({"o": pd.Categorical(["low", "mid", "high", None] * 6, ordered=True), "b": np.arange(24) % 3})
    F["o"] = F.o.cat.reorder_categories(["low", "mid", "high"], ordered=True)
    steps = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder())
    model = make_pipeline(
        make_column_transformer((steps, ["o"]), remainder="passthrough"), DecisionTreeClassifier(random_state=0)
    ).fit(F, (F.b == 2).astype(int))
    schema = Schema.infer(F, ordinal={"o": ["low", "mid", "high"]})
    row = F.iloc[[3]].assign(b=0)
    answer = Explainer(model, F, schema=schema).explain(row, want=1, criteria=[Actionability(max_step={"o": 1})])
    assert answer.frame().o.isna().all()
    assert answer.frame().b[0] == 2
