"""The schema: what is read off a frame, and that encoding and decoding lose nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifonly import SchemaError
from ifonly.data.schema import Binary, Categorical, Integer, Numeric, Ordinal, Schema

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NULLABLE = ["Int8", "Int32", "Int64", "UInt8", "UInt64"]
text = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=0, max_size=6)


# -- one column of every dtype ----------------------------------------------------------------------------------------
def whole(dtype: str) -> st.SearchStrategy[int]:
    info = np.iinfo(dtype.lower())
    return st.integers(max(int(info.min), -(2**53)), min(int(info.max), 2**53))


@st.composite
def columns(draw: st.DrawFn, n: int) -> pd.Series:
    def several(strategy: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(strategy, min_size=n, max_size=n))

    kind = draw(st.sampled_from(["integer", "nullable", "float", "Float", "bool", "boolean", "category", "text"]))
    if kind == "integer":
        dtype = draw(st.sampled_from(INTEGERS))
        return pd.Series(np.array(several(whole(dtype)), dtype=dtype))
    if kind == "nullable":
        dtype = draw(st.sampled_from(NULLABLE))
        return pd.Series(pd.array(several(whole(dtype)), dtype=dtype))
    if kind == "float":
        dtype, width = draw(st.sampled_from([("float32", 32), ("float64", 64)]))
        return pd.Series(np.array(several(st.floats(-(2.0**80), 2.0**80, width=width)), dtype=dtype))
    if kind == "Float":
        return pd.Series(pd.array(several(st.floats(-(2.0**80), 2.0**80)), dtype="Float64"))
    if kind in ("bool", "boolean"):
        return pd.Series(several(st.booleans()), dtype=kind)
    if kind == "category":
        levels = draw(st.lists(st.one_of(text, st.integers(-5, 5)), min_size=1, max_size=4, unique_by=repr))
        levels = [v for v in levels if isinstance(v, type(levels[0]))]
        values = several(st.sampled_from(levels))
        return pd.Series(pd.Categorical(values, categories=levels, ordered=draw(st.booleans())))
    values = several(text)
    return pd.Series(values, dtype=draw(st.sampled_from(["object", "str"])))


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    n = draw(st.integers(1, 5))
    made = draw(st.lists(columns(n), min_size=1, max_size=4))
    return pd.DataFrame({f"c{i}": column for i, column in enumerate(made)})


@settings(max_examples=200)
@given(frames())
def test_round_trip_keeps_values_columns_and_dtypes(X: pd.DataFrame) -> None:
    schema = Schema.infer(X)
    u = schema.encode(X)
    assert u.shape == (len(X), schema.width)
    pd.testing.assert_frame_equal(schema.decode(u, like=X), X, check_exact=True)
    assert np.array_equal(schema.encode(schema.decode(u)), u)
    assert np.array_equal(schema.stored(u), u)


@settings(max_examples=60)
@given(frames(), st.data())
def test_round_trip_keeps_what_is_missing(X: pd.DataFrame, data: st.DataObject) -> None:
    schema = Schema.infer(X)
    holed = X.astype(object)
    for c in X:
        for i in data.draw(st.sets(st.integers(0, len(X) - 1))):
            holed.loc[i, c] = data.draw(st.sampled_from([None, np.nan, pd.NA]))
    u = schema.encode(holed, missing=True)
    back = schema.decode(u)
    assert (back.isna() == holed.isna()).to_numpy().all()
    assert np.array_equal(schema.encode(back, missing=True), u, equal_nan=True)
    if holed.isna().to_numpy().any():
        with pytest.raises(SchemaError, match="Missing value in column"):
            schema.encode(holed)


# -- inference --------------------------------------------------------------------------------------------------------
@pytest.fixture(name="X")
def make_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [19, 40, 75],
            "income": [1.5, 2.25, 0.0],
            "job": ["skilled", "none", "skilled"],
            "size": pd.Categorical(["S", "L", "S"], categories=["S", "M", "L"], ordered=True),
            "colour": pd.Categorical(["red", "green", "blue"]),
            "member": [True, False, True],
            "code": np.array([3, 1, 3], dtype=np.uint8),
        }
    )


def test_kinds_ranges_and_levels_are_read_off_the_frame(X: pd.DataFrame) -> None:
    schema = Schema.infer(X)
    assert [f.kind for f in schema.features] == [
        "integer",
        "numeric",
        "binary",
        "ordinal",
        "categorical",
        "binary",
        "integer",
    ]
    assert (schema["age"].lower, schema["age"].upper) == (19, 75)
    assert schema["job"].levels == ("none", "skilled")
    assert schema["size"].levels == ("S", "M", "L")
    assert schema["member"].levels == (False, True)
    assert schema.names == tuple(X.columns)
    assert len(schema) == 7
    assert schema.width == 1 + 1 + 2 + 3 + 3 + 2 + 1
    assert schema.slice(3) == slice(4, 7)


def test_overrides(X: pd.DataFrame) -> None:
    schema = Schema.infer(
        X,
        integer=["code"],
        numeric=["age"],
        categorical=["code"],
        ordinal={"colour": ["red", "blue", "green"]},
        bounds={"income": (-1, 10), "age": (0, 100)},
        precision={"income": 2},
        labels={"age": "Age (years)"},
    )
    assert isinstance(schema["age"], Numeric)
    assert not isinstance(schema["age"], Integer)
    assert schema["age"].lower == 0
    assert schema["code"].levels == (1, 3)
    assert isinstance(schema["code"], Binary)
    assert isinstance(schema["colour"], Ordinal)
    assert schema["income"].step == 0.01
    assert schema.label("age") == "Age (years)"
    assert schema.label("job") == "job"


def test_ordinal_levels_may_stand_in_another_order_than_the_categories(X: pd.DataFrame) -> None:
    # The dtype's categories are alphabetical: blue, green, red. Decoding by position would swap the levels.
    schema = Schema.infer(X, ordinal={"colour": ["red", "blue", "green"]})
    assert schema.decode(schema.encode(X))["colour"].tolist() == ["red", "green", "blue"]


def test_an_integer_column_read_as_continuous_answers_in_floats(X: pd.DataFrame) -> None:
    schema = Schema.infer(X[["age"]], numeric=["age"])
    assert schema.decode([[20.5]])["age"].tolist() == [20.5]


def test_precision_snaps_on_the_way_out(X: pd.DataFrame) -> None:
    schema = Schema.infer(X[["income"]], precision={"income": 1}, bounds={"income": (0, 3)})
    assert schema.stored(np.array([0.1 + 0.2])).tolist() == [0.3]
    assert schema.decode([[2.0499]])["income"].tolist() == [2.0]


def test_bounds_move_inwards_to_the_grid(X: pd.DataFrame) -> None:
    schema = Schema.infer(X, bounds={"age": (18.5, 70.2), "income": (0.03, 2.97)}, precision={"income": 1})
    assert (schema["age"].lower, schema["age"].upper) == (19, 70)
    assert (schema["income"].lower, schema["income"].upper) == (0.1, 2.9)
    with pytest.raises(SchemaError, match=r"bounds of 'age' \(20.2, 20.8\) hold no whole number"):
        Schema.infer(X, bounds={"age": (20.2, 20.8)})
    with pytest.raises(SchemaError, match="hold no number with 1 decimals"):
        Schema.infer(X, bounds={"income": (0.31, 0.39)}, precision={"income": 1})


def test_a_value_that_its_dtype_cannot_hold_is_not_wrapped_around(X: pd.DataFrame) -> None:
    schema = Schema.infer(X[["code"]], bounds={"code": (0, 300)})
    assert schema.decode([[255.0]])["code"].dtype == np.uint8
    wide = schema.decode([[300.0]])["code"]
    assert wide.tolist() == [300]
    nullable = Schema.infer(pd.DataFrame({"n": pd.array([1, 2], dtype="UInt8")}), bounds={"n": (-5, 2)})
    assert nullable.decode([[-5.0]])["n"].tolist() == [-5]


def test_with_bounds_leaves_the_original_alone(X: pd.DataFrame) -> None:
    schema = Schema.infer(X)
    wider = schema.with_bounds("age", 0, 200)
    assert wider["age"].upper == 200
    assert schema["age"].upper == 75


def test_raw_values_of_a_canonical_row(X: pd.DataFrame) -> None:
    schema = Schema.infer(X)
    row = schema.encode(X)[0]
    values = [schema.level_values(j, row) for j in range(len(schema))]
    assert values == [19, 1.5, "skilled", "S", "red", True, 3]
    assert isinstance(values[0], int)
    row[schema.slice(2)] = 0.0
    assert schema.level_values(2, row) is None


def test_level_position_tells_true_from_one() -> None:
    feature = Categorical("n", (0, 1, 2))
    assert feature.position(1) == 1
    with pytest.raises(SchemaError, match="Unseen level True"):
        feature.position(True)
    assert Binary("b", (False, True)).position(np.True_) == 1


# -- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"bounds": {"agee": (0, 1)}}, "Unknown column 'agee' in the schema's options. Did you mean 'age'?"),
        ({"bounds": {"job": (0, 1)}}, "'job' is binary. Use Actionability"),
        ({"bounds": {"age": (9, 1)}}, "two finite numbers, lowest first"),
        ({"bounds": {"age": (0, np.inf)}}, "two finite numbers"),
        ({"precision": {"age": 2}}, "'age' is whole-numbered"),
        ({"ordinal": {"job": ["skilled"]}}, "has level 'none', which is not among the ordinal levels"),
        ({"numeric": ["job"]}, "'job' cannot be read as numeric"),
        ({"integer": ["colour"]}, "'colour' cannot be read as integer: its dtype is category"),
    ],
)
def test_overrides_that_make_no_sense(X: pd.DataFrame, options: dict[str, Any], says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.infer(X, **options)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ([np.nan, np.nan], "has no value at all"),
        ([None, None], "has no value at all"),
        (pd.Categorical([None, None]), "has no value at all"),
        ([1.0, np.inf], "Infinity in column 'c' of the training data"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "is a date or duration"),
        (pd.to_timedelta([1, 2], unit="D"), "is a date or duration"),
    ],
)
def test_columns_that_cannot_be_a_feature(column: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        Schema.infer(pd.DataFrame({"c": column}))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("abc", "must be a number, got 'abc' (str)"),
        (pd.Timestamp("2020-01-01"), "must be a number, got Timestamp"),
        ([1], "must be a number, got [1] (list)"),
        (np.inf, "Infinity in column 'age'"),
        (20.5, "declared to have a whole number, got"),
        (2**60, "beyond 2**53"),
    ],
)
def test_numbers_that_are_none(X: pd.DataFrame, value: Any, says: str) -> None:
    schema = Schema.infer(X[["age"]])
    with pytest.raises(SchemaError) as caught:
        schema.encode(pd.DataFrame({"age": pd.Series([value], dtype=object)}))
    assert says in str(caught.value)


def test_numbers_in_other_clothes_are_understood(X: pd.DataFrame) -> None:
    schema = Schema.infer(X[["age"]])
    for value in ("40", np.int8(40), 40.0, pd.array([40], dtype="Int64")[0]):
        assert schema.encode(pd.DataFrame({"age": pd.Series([value], dtype=object)})).tolist() == [[40.0]]


def test_too_many_decimals(X: pd.DataFrame) -> None:
    schema = Schema.infer(X[["income"]], precision={"income": 2})
    with pytest.raises(SchemaError, match=r"2 decimals, got .*1\.234.*numeric=\['income'\]"):
        schema.encode(pd.DataFrame({"income": [1.234]}))


def test_a_category_of_another_dtype_is_matched_by_value(X: pd.DataFrame) -> None:
    schema = Schema.infer(X[["colour"]])
    other = pd.DataFrame({"colour": pd.Categorical(["red", None], categories=["violet", "red"])})
    assert schema.encode(other, missing=True).tolist() == [[0, 0, 1], [0, 0, 0]]
    with pytest.raises(SchemaError, match="Unseen level 'violet'"):
        schema.encode(pd.DataFrame({"colour": pd.Categorical(["violet"])}))


def test_unknown_feature_is_named_with_the_nearest(X: pd.DataFrame) -> None:
    with pytest.raises(SchemaError, match=r"Unknown feature 'incme'\. Did you mean 'income'\? Known: age, "):
        Schema.infer(X)["incme"]
