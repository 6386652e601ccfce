"""Decimals read off the data: where they are, how they are said, and what questions make of them."""

import json
import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from ifonly import Actionability, Explainer, Infeasible, Proximity, Schema, Sparsity, verify
from ifonly.data.inference import decimals_of
from ifonly.data.schema import Numeric
from ifonly.errors import SchemaError
from ifonly.policy import read_policy, write_policy
from ifonly.result.serial import feature_from_dict, feature_to_dict


def read(values: Any, dtype: str = "float64") -> int | None:
    return decimals_of(pd.DataFrame({"x": pd.Series(values, dtype=dtype)})).get("x")


# -- reading ---------------------------------------------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.sets(st.integers(-(10**8), 10**8), min_size=10, max_size=40))
def test_ratios_of_a_power_of_ten_are_read_as_its_exponent(d: int, counts: set[int]) -> None:
    least = next((k for k in range(d + 1) if all(c % 10 ** (d - k) == 0 for c in counts)), d)
    values = [c / 10**d for c in sorted(counts)]
    assert read(values) == (least or None)
    assert read([*values, np.nan]) == (least or None)
    assert read(values, "float32") is None  # its 0.1 is no 0.1 in double precision


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(-9, 12))
def test_a_continuum_has_no_decimals_in_any_unit(seed: int, power: int) -> None:
    noise = np.random.default_rng(seed).normal(size=30)
    assert read(noise * 10.0**power) is None
    assert read((noise + 1000.0) * 10.0**power) is None
    assert read([*np.round(noise, 1), noise[0]]) is None  # one long value is enough


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([0.5] * 3, None),  # so few values that quarters may be to come
        ([0.5] * 1000, None),
        (np.arange(9) / 10 + 0.1, None),
        (np.arange(1, 11) / 10, 1),
        (np.arange(100.0), None),  # whole numbers: what they are is for the user to say
        (np.arange(1, 31) * 1e-9, None),  # tiny units
        (np.arange(1, 31) / 1e6, 6),
        (np.arange(1, 31) / 1e7, None),
        (1e12 + np.arange(30) / 10, 1),
        (1e12 + np.arange(30) / 1000, None),  # sixteen digits: a double is near every such decimal
        ([*np.arange(1, 31) / 100, np.nan, np.nan], 2),
    ],
)
def test_few_values_and_odd_units_claim_nothing(values: Any, decimals: int | None) -> None:
    assert read(values) == decimals


FRAME = pd.DataFrame(
    {
        "price": np.round(np.linspace(0.25, 9.75, 40), 2),
        "share": np.round(np.linspace(0.1, 4.0, 40), 1),
        "long": np.linspace(0.0, 1.0, 40) / 3.0,
        "count": np.arange(40),
    }
)


def decimals(schema: Schema) -> dict[str, tuple[int | None, int | None]]:
    return {f.name: (f.precision, f.decimals) for f in schema.features if isinstance(f, Numeric)}


def test_a_schema_notes_what_it_reads_and_declares_what_it_is_told() -> None:
    whole = {"count": (0, None), "long": (None, None)}
    assert decimals(Schema.infer(FRAME)) == {"price": (None, 2), "share": (None, 1)} | whole
    assert decimals(Schema.infer(FRAME, precision="data")) == {"price": (2, None), "share": (1, None)} | whole
    assert decimals(Schema.infer(FRAME, precision={"price": 1})) == {"price": (1, None), "share": (None, 1)} | whole
    assert (
        decimals(Schema.infer(FRAME, precision={"price": None})) == {"price": (None, None), "share": (None, 1)} | whole
    )
    assert decimals(Schema.infer(FRAME, numeric=["share"])) == {"price": (None, 2), "share": (None, None)} | whole
    assert decimals(Schema.infer(FRAME, precision=None)) == {"price": (None, None), "share": (None, None)} | whole
    with pytest.raises(SchemaError, match="must map columns to decimals, or be 'auto' or 'data'"):
        Schema.infer(FRAME, precision="automatic")  # type: ignore[arg-type]


def test_a_schema_says_its_decimals() -> None:
    said = repr(Schema.infer(FRAME, precision={"price": 2}))
    assert said == (
        "Schema(price: numeric with 2 decimals, share: numeric with 1 decimal in the data, long: numeric, count: integer)"
    )
    text = write_policy(Schema.infer(FRAME))
    assert "# 1 decimal in the data" in text
    assert read_policy(text).schema(FRAME) == Schema.infer(FRAME)


def test_a_feature_keeps_its_decimals_in_a_file() -> None:
    for feature in Schema.infer(FRAME).features:
        plain = json.loads(json.dumps(feature_to_dict(feature)))
        assert feature_from_dict(plain) == feature
        assert ("decimals" in plain) == (getattr(feature, "decimals", None) is not None)


# -- questions -------------------------------------------------------------------------------------------------------
RNG = np.random.default_rng(3)
X = pd.DataFrame({"a": RNG.uniform(0, 3, 150).round(1), "b": RNG.uniform(-1, 1, 150).round(1)})
Y = 0.37 * X["a"] + X["b"] + RNG.normal(0, 0.2, 150) > 0.6
MODELS = {
    "linear": LogisticRegression().fit(X, Y),
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, Y),
    "forest": RandomForestClassifier(7, max_depth=4, random_state=0).fit(X, Y),
}
GRID = pd.DataFrame(
    product(*(np.round(np.arange(round(X[c].min() * 10), round(X[c].max() * 10) + 1) / 10, 1) for c in X)),
    columns=["a", "b"],
)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("price", [0.0, 0.1])
def test_enumeration_of_the_grid_agrees_with_the_proof(name: str, price: float) -> None:
    model = MODELS[name]
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="range"), Sparsity(price=price)])
    said, ranges = model.predict(GRID), (X.max() - X.min()).to_numpy()
    for i in range(0, 60, 6):
        row = X.iloc[i]
        answer = explainer.explain(row)
        assert answer.status == "optimal"
        other = GRID[said != model.predict(X.iloc[[i]])[0]].to_numpy()
        move = np.abs(other - row.to_numpy())
        least = (move / ranges).sum(axis=1) + price * (move > 0).sum(axis=1)
        assert answer[0].certificate.objective == pytest.approx(least.min(), rel=1e-6)
        given = answer.frame()[["a", "b"]].to_numpy()
        assert np.array_equal(given, np.round(given, 1))


@pytest.mark.parametrize("name", MODELS)
def test_a_row_with_more_decimals_keeps_them(name: str) -> None:
    model = MODELS[name]
    explainer = Explainer(model, X)
    for i in range(0, 40, 8):
        row = {"a": float(X["a"].iloc[i]), "b": float(X["b"].iloc[i]) * 0.9 + 0.01234567}
        answer = explainer.explain(row)
        found, changed = answer.frame().iloc[0], set(answer.changes()["feature"])
        assert answer.status == "optimal"
        assert found["a"] == round(found["a"], 1)
        if "b" not in changed:
            assert found["b"] == row["b"]


@pytest.mark.filterwarnings("ignore::ifonly.errors.FactualViolatesDemand")
def test_decimals_that_nobody_demands_make_nothing_impossible() -> None:
    model = MODELS["linear"]
    slope, (edge,) = model.coef_[0], -model.intercept_
    at = (edge - slope[1] * 0.0) / slope[0]  # on the line where b is 0
    low = np.floor(at * 10) / 10 + 0.005
    row = {"a": round(low - 0.305, 1), "b": 0.0}
    narrow = [Actionability(ranges={"a": (low, low + 0.09)}, only=["a"])]  # no point of the grid
    answer = Explainer(model, X).explain(row, criteria=narrow, want=True)
    assert answer.status == "optimal"
    assert low <= answer.frame()["a"].iloc[0] <= low + 0.09
    with pytest.raises(Infeasible):
        Explainer(model, X, schema=Schema.infer(X, precision="data")).explain(row, criteria=narrow, want=True)


def test_bounds_between_points_of_the_grid_move_inwards() -> None:
    schema = Schema.infer(X, bounds={"a": (0.03, 2.97)})
    assert (schema["a"].lower, schema["a"].upper) == (0.03, 2.97)  # type: ignore[union-attr]
    explainer = Explainer(MODELS["tree"], X, schema=schema)
    for i in range(0, 30, 6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = explainer.explain(X.iloc[i]).frame()["a"].iloc[0]
        assert found == round(found, 1)


@pytest.mark.parametrize("norm", ["l2", "linf", "mahalanobis"])
def test_costs_that_a_grid_makes_hard_leave_a_linear_question_continuous(norm: Any) -> None:
    criteria = [Proximity(norm)]
    free = Explainer(MODELS["linear"], X, schema=Schema.infer(X, precision=None), criteria=criteria)
    read = Explainer(MODELS["linear"], X, criteria=criteria)
    for i in (0, 9):
        ours, theirs = read.explain(X.iloc[i]), free.explain(X.iloc[i])
        assert ours.frame().equals(theirs.frame())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("off", [0.0, 0.01234567])
def test_records_of_answers_with_decimals_are_verified(name: str, off: float) -> None:
    explainer = Explainer(MODELS[name], X)
    answer = explainer.explain({"a": 0.4, "b": 0.1 + off}, want=True, proof=True)
    record = answer.record()
    assert verify(record, MODELS[name], X).ok
    assert verify(json.loads(json.dumps(record)), MODELS[name], X).ok
