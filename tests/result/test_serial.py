"""Explanations that are written can be read again, with every value and every dtype."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifonly.data.schema import Binary, Categorical, Feature, Integer, Numeric, Ordinal, Schema
from ifonly.errors import SchemaError
from ifonly.result.serial import explanation_from_dict, explanation_to_dict, from_json, to_json
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation

SCHOOL = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
SIZE = pd.CategoricalDtype([1, 2, 3])
BAND = pd.CategoricalDtype(pd.IntervalIndex.from_breaks([0.0, 1.5, 9.0]))
DAY = pd.CategoricalDtype(pd.to_datetime(["2020-01-01", "2021-06-30"]))
NUMPY_WORDS = pd.CategoricalDtype(pd.Index(["a", "b"], dtype=object))

# name -> (dtype, values it may take besides a missing one, whether one may be missing)
COLUMNS: dict[str, tuple[Any, st.SearchStrategy[Any], bool]] = {
    "whole": (np.dtype("int64"), st.integers(-(2**63), 2**63 - 1), False),
    "small": (np.dtype("int8"), st.integers(-128, 127), False),
    "real": (np.dtype("float64"), st.floats(allow_nan=False), True),
    "short": (np.dtype("float32"), st.floats(width=32, allow_nan=False), True),
    "flag": (np.dtype("bool"), st.booleans(), False),
    "thing": (np.dtype("object"), st.one_of(st.text(), st.integers(), st.booleans()), True),
    "words": (pd.StringDtype("python", na_value=np.nan), st.text(), True),
    "strict_words": (pd.StringDtype("python", na_value=pd.NA), st.text(), True),
    "nullable_whole": (pd.Int64Dtype(), st.integers(-(2**63), 2**63 - 1), True),
    "nullable_real": (pd.Float32Dtype(), st.floats(width=32, allow_nan=False), True),
    "nullable_flag": (pd.BooleanDtype(), st.booleans(), True),
    "school": (SCHOOL, st.sampled_from(list(SCHOOL.categories)), True),
    "size": (SIZE, st.sampled_from([1, 2, 3]), True),
    "band": (BAND, st.sampled_from(list(BAND.categories)), True),
    "day": (DAY, st.sampled_from(list(DAY.categories)), True),
    "numpy_words": (NUMPY_WORDS, st.sampled_from(["a", "b"]), True),
}


def column(values: list[Any], dtype: Any) -> Any:
    if dtype == np.dtype("object"):
        return pd.Series(values, dtype=object)
    return np.array(values, dtype) if isinstance(dtype, np.dtype) else pd.array(values, dtype=dtype)


@st.composite
def rows(draw: st.DrawFn) -> pd.DataFrame:
    data = {}
    for name, (dtype, values, missing) in COLUMNS.items():
        data[name] = column([draw(st.one_of(values, st.none()) if missing else values)], dtype)
    label = draw(st.one_of(st.integers(-9, 9), st.text(), st.datetimes().map(pd.Timestamp)))
    return pd.DataFrame(data).set_axis(pd.Index([label], name=draw(st.one_of(st.none(), st.text()))), axis=0)


FEATURES: tuple[Feature, ...] = (
    Numeric("real", -1.5, 2.5, precision=2, label="a real number"),
    Numeric("short", 0.0, 1.0, dtype=np.dtype("float32")),
    Integer("whole", 0.0, 9.0, dtype=pd.Int64Dtype()),
    Binary("flag", (False, True), dtype=np.dtype("bool")),
    Categorical("thing", ("a", 1, ("x", 2.5), None, math.inf)),
    Categorical("words", ("é", "<b>"), dtype=pd.StringDtype("python", na_value=np.nan)),
    Ordinal("school", ("low", "mid", "high"), dtype=SCHOOL),
    Categorical("band", tuple(BAND.categories), dtype=BAND),
    Categorical("day", tuple(DAY.categories), dtype=DAY),
)


def explanation(factual: pd.DataFrame, row: pd.DataFrame, **parts: Any) -> Explanation:
    changes = (
        Change("real", math.nan, 1.25),
        Change("whole", 3, 4),
        Change("thing", None, ("x", 2.5)),
        Change("band", BAND.categories[0], BAND.categories[1]),
    )
    first = Counterfactual(
        row,
        changes,
        np.int64(1),
        0.1 + 0.2,
        0.1,
        Certificate(0.31, -math.inf, math.inf, proven=False, margin=1e-9, solver="SCIP"),
        ranges={"real": (1.0, math.inf)},
        measures={"hull_distance": 0.02, "depth": math.nan},
    )
    second = Counterfactual(row, (), "bad", None, 0.0, Certificate(0.0, 0.0, 0.0, proven=True))
    return Explanation(
        (first, second),
        factual,
        **{
            "prediction": "bad",
            "score": 0.38,
            "want": "good",
            "schema": Schema(FEATURES),
            "status": "feasible",
            "seconds": 0.0313,
            "solver": "SCIP",
            "notes": ("one", "zwei"),
            "score_name": "score",
            "reference": factual,
        }
        | parts,
    )


def simple() -> Explanation:
    row = pd.DataFrame({"x": [1.0]})
    return explanation(row, row)


@settings(max_examples=40, deadline=None)
@given(rows(), rows())
def test_round_trip_loses_nothing(factual: pd.DataFrame, row: pd.DataFrame) -> None:
    before = explanation(factual, row)
    after = from_json(to_json(before))
    pd.testing.assert_frame_equal(after.factual, factual, check_exact=True)
    for old, new in zip(before, after, strict=True):
        pd.testing.assert_frame_equal(new.row, old.row, check_exact=True)
        # NaN differs from itself, so its text stands in for it.
        assert repr(new.changes) == repr(old.changes)
        assert (new.prediction, new.score, new.distance) == (old.prediction, old.score, old.distance)
        assert new.certificate == old.certificate
        assert new.ranges == old.ranges
        assert repr(new.measures) == repr(old.measures)
    assert after.schema == before.schema
    fields = ("prediction", "score", "want", "status", "seconds", "solver", "notes", "score_name")
    assert all(getattr(after, name) == getattr(before, name) for name in fields)
    assert after.reference is None
    assert to_json(after) == to_json(before)


def test_levels_keep_their_types() -> None:
    after = from_json(to_json(simple()))
    levels = after.schema["thing"].levels  # type: ignore[union-attr]
    assert [type(level) for level in levels] == [str, int, tuple, type(None), float]
    assert isinstance(after.schema["day"].levels[0], pd.Timestamp)  # type: ignore[union-attr]


def test_multiple_index_levels_survive() -> None:
    index = pd.MultiIndex.from_tuples([("north", 3)], names=["region", None])
    row = pd.DataFrame({"x": [1.0]}, index=index)
    pd.testing.assert_frame_equal(from_json(to_json(explanation(row, row))).factual, row)


def test_text_is_strict_json_that_anyone_can_read() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    data = json.loads(to_json(simple()), parse_constant=refuse)
    assert data["format"] == "ifonly/2"
    assert data["counterfactuals"][0]["certificate"]["bound"] == "-inf"
    assert data["counterfactuals"][0]["changes"][0] == {"feature": "real", "before": None, "after": 1.25}
    assert data["factual"]["columns"] == {"x": [1.0]}
    assert data == explanation_to_dict(simple())


def test_faces_of_the_explanation_write_and_read_files(tmp_path: Path) -> None:
    path = tmp_path / "why.json"
    text = simple().to_json(path, indent=None)
    assert "\n" not in text
    assert path.read_text(encoding="utf-8") == text + "\n"
    assert Explanation.from_json(path).want == "good"
    assert Explanation.from_json(text).notes == ("one", "zwei")
    assert Explanation.from_dict(simple().to_dict()).schema == simple().schema


@pytest.mark.parametrize("data", [{"format": "ifonly/3"}, {}, [], None])
def test_another_format_is_refused(data: Any) -> None:
    with pytest.raises(SchemaError, match=r"expected 'ifonly/2'"):
        explanation_from_dict(data)


def test_damaged_data_is_refused_by_name() -> None:
    data = simple().to_dict()
    del data["counterfactuals"][0]["certificate"]["bound"]
    with pytest.raises(SchemaError, match="lacks 'bound'"):
        explanation_from_dict(data)
    data = simple().to_dict()
    data["schema"][0]["kind"] = "imaginary"
    with pytest.raises(SchemaError, match="Unknown kind 'imaginary' of feature 'real'"):
        explanation_from_dict(data)


def test_what_is_not_json_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"pass a pathlib\.Path"):
        from_json("why.json")
    path = tmp_path / "why.json"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(SchemaError, match=r"Not JSON.*\.$"):
        from_json(path)


def test_values_without_a_json_form_are_refused() -> None:
    with pytest.raises(SchemaError, match="JSON has no word for"):
        to_json(explanation(pd.DataFrame({"x": [1.0]}), pd.DataFrame({"x": [1.0]}), prediction=object()))


def test_arrow_strings_are_read_without_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    data = simple().to_dict()
    data["factual"] = {
        "columns": {"x": ["a"]},
        "dtypes": {"x": {"string": "pyarrow", "missing": "nan"}},
        "index": data["factual"]["index"],
    }
    real = pd.StringDtype

    def without_arrow(storage: str, na_value: Any) -> Any:
        if storage == "pyarrow":
            raise ImportError
        return real(storage, na_value=na_value)

    monkeypatch.setattr("ifonly.result.serial.pd.StringDtype", without_arrow)
    assert explanation_from_dict(data).factual["x"].tolist() == ["a"]
