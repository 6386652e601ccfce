"""Frames and rows as people have them: pandas, polars, NumPy, dicts, Series."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ifonly import SchemaError
from ifonly.data.tables import align, as_frame, as_row, column_diff

polars = pytest.importorskip("polars")


def test_names_become_text() -> None:
    assert list(as_frame(pd.DataFrame({0: [1], 1: [2]})).columns) == ["0", "1"]
    same = pd.DataFrame({"a": [1]})
    assert as_frame(same) is same


def test_arrays_get_names() -> None:
    assert list(as_frame(np.eye(2)).columns) == ["x0", "x1"]
    assert list(as_frame(np.eye(2), ["a", "b"]).columns) == ["a", "b"]
    assert as_frame([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])["b"].tolist() == ["x", "y"]
    with pytest.raises(SchemaError, match=r"array has 2 columns but 7 are known \(a, b, c, d, e, \.\.\.\)"):
        as_frame(np.eye(2), list("abcdefg"))
    with pytest.raises(SchemaError, match="got list with 1 dimension"):
        as_frame([1, 2, 3])


def test_polars_needs_no_pyarrow() -> None:
    table = polars.DataFrame(
        {
            "i": polars.Series([1, 2], dtype=polars.Int16),
            "f": [0.5, None],
            "t": ["a", None],
            "b": [True, False],
            "e": polars.Series(["lo", "hi"], dtype=polars.Enum(["lo", "mid", "hi"])),
            "c": polars.Series(["u", "v"], dtype=polars.Categorical),
            "n": polars.Series([3, None], dtype=polars.Int8),
        }
    )
    for given in (table, table.lazy()):
        frame = as_frame(given)
        assert frame["i"].dtype == np.int16
        assert frame["f"].isna().tolist() == [False, True]
        assert frame["t"].isna().tolist() == [False, True]
        assert frame["b"].dtype == bool
        assert frame["e"].cat.categories.tolist() == ["lo", "mid", "hi"]
        assert frame["c"].tolist() == ["u", "v"]
        assert frame["n"].iloc[0] == 3
    with pytest.raises(SchemaError, match="polars Series"):
        as_frame(table["i"])


def test_anything_that_turns_into_pandas_will_do() -> None:
    class Table:
        def to_pandas(self) -> pd.DataFrame:
            return pd.DataFrame({"a": [1]})

    assert as_frame(Table()).equals(pd.DataFrame({"a": [1]}))


@pytest.mark.parametrize(
    "row",
    [
        {"a": 1, "b": "x"},
        {"b": "x", "a": 1},
        pd.Series({"a": 1, "b": "x"}),
        pd.DataFrame({"a": [1], "b": ["x"]}),
        polars.DataFrame({"b": ["x"], "a": [1]}),
        [1, "x"],
        (1, "x"),
        np.array([1, "x"], dtype=object),
        np.array([[1, "x"]], dtype=object),
        [{"a": 1, "b": "x"}],
    ],
    ids=lambda r: type(r).__name__,
)
def test_one_row_in_any_form(row: object) -> None:
    frame = align(as_row(row, ["a", "b"]), ["a", "b"])
    assert frame.shape == (1, 2)
    assert frame.iloc[0].tolist() == [1, "x"]


def test_a_row_is_one_row() -> None:
    with pytest.raises(SchemaError, match=r"exactly one row, got 2\. .*explain_all"):
        as_row(pd.DataFrame({"a": [1, 2]}), ["a"])
    with pytest.raises(SchemaError, match="exactly one row, got 0"):
        as_row(pd.DataFrame({"a": []}), ["a"])
    with pytest.raises(SchemaError, match="Duplicated entry 'a'"):
        as_row(pd.Series([1, 2], index=["a", "a"]), ["a"])


def test_duplicated_columns_are_refused() -> None:
    with pytest.raises(SchemaError, match=r"Duplicated columns 'a', 'b'"):
        as_frame(pd.DataFrame([[1, 2, 3, 4]], columns=["a", "b", "a", "b"]))


def test_align_orders_or_explains() -> None:
    frame = pd.DataFrame({"b": [1], "a": [2]})
    assert list(align(frame, ["a", "b"]).columns) == ["a", "b"]
    with pytest.raises(SchemaError) as caught:
        align(frame.rename(columns={"b": "income"}), ["a", "incomes", "job"])
    message = str(caught.value)
    assert "unknown column 'income'. Did you mean 'incomes'?" in message
    assert "missing column 'job'." in message
    assert "  - incomes\n  - job\n  + income" in message


def test_column_diff_shows_what_moved() -> None:
    assert column_diff(["a", "b"], ["b", "a"]).splitlines()[0] == "  position 0: expected a, found b"
    assert column_diff(["a"], ["b"]) == "  - a\n  + b"
