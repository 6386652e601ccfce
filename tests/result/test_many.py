"""Answers to many rows as tables, files and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ifonly import Actionability, Explainer, Explanations, verify

RNG = np.random.default_rng(5)
X = pd.DataFrame({"income": RNG.integers(10, 90, 60), "debts": RNG.uniform(0, 9, 60).round(2)})
Y = np.where(X.income - 5 * X.debts > 25, "yes", "no")
MODEL = LogisticRegression(max_iter=1000).fit(X, Y)
REFUSED = X[MODEL.predict(X) == "no"].iloc[:5]


@pytest.fixture(scope="module")
def batch() -> Explanations:
    rows = pd.concat([REFUSED, REFUSED.iloc[[0]].assign(income=np.nan)])
    rows.index = pd.Index([f"r{i}" for i in range(len(rows))], name="case")
    return Explainer(MODEL, X).explain_all(rows, want="yes")


def test_repr_is_short(batch: Explanations) -> None:
    assert repr(batch).startswith("Explanations(6 rows, 5 answered")
    assert all(len(repr(o.explanation)) < 200 for o in batch)
    assert len(repr(Explainer(MODEL, X))) < 200
    assert len(repr(batch[0].explanation[0])) < 400  # type: ignore[index]


def test_table_has_one_line_per_row_with_its_reason(batch: Explanations) -> None:
    table = batch.table()
    assert list(table.index) == [f"r{i}" for i in range(6)]
    assert table.index.name == "case"
    assert list(table.status) == list(batch.status())
    assert table.reason.notna().tolist() == [False] * 5 + [True]
    for outcome, (_, line) in zip(batch, table.iterrows(), strict=True):
        if outcome.explanation is not None:
            assert line.changes == len(outcome.explanation[0].changes)
            assert line.objective == outcome.explanation[0].certificate.objective


def test_importance_counts_what_changes(batch: Explanations) -> None:
    table = batch.importance().set_index("feature")
    changes = batch.changes()
    for name in X.columns:
        lines = changes[(changes.feature == name) & (changes.counterfactual == 0)]
        assert table.times[name] == len(lines)
        if len(lines):
            assert table.median_change[name] == pytest.approx((lines["to"] - lines["from"]).abs().median())
    assert table.times.is_monotonic_decreasing


def test_csv_keeps_all_digits(batch: Explanations, tmp_path: Path) -> None:
    batch.to_csv(tmp_path / "t.csv")
    back = pd.read_csv(tmp_path / "t.csv", index_col="case", dtype={"objective": str})
    expected = batch.table()
    assert [float(v) for v in back.objective[:5]] == expected.objective.to_list()[:5]
    assert back.changed.to_list()[:5] == expected.changed.to_list()[:5]


def test_json_holds_a_record_of_every_answer(batch: Explanations) -> None:
    lines = json.loads(batch.to_json())
    assert [line["row"] for line in lines] == [f"r{i}" for i in range(6)]
    assert lines[-1]["record"] is None
    assert lines[-1]["reason"]
    assert all(verify(line["record"], MODEL, X).ok for line in lines[:-1])


def test_an_impossible_row_writes_its_reasons() -> None:
    frozen = Explainer(MODEL, X, criteria=[Actionability(frozen=["income", "debts"])])
    (line,) = json.loads(frozen.explain_all(REFUSED.iloc[:1], want="yes").to_json())
    assert line["record"]["kind"] == "impossible"
    assert line["record"]["conflict"]


def test_html_and_parquet(batch: Explanations, tmp_path: Path) -> None:
    page = batch.to_html(tmp_path / "all.html")
    assert page.count("<tr>") >= 6
    assert "case" not in batch._repr_html_() or len(batch._repr_html_()) < 40_000
    pytest.importorskip("pyarrow")
    batch.to_parquet(tmp_path / "all.parquet")
    back = pd.read_parquet(tmp_path / "all.parquet")
    assert back.status.tolist() == batch.table().status.tolist()


def test_named_and_multiple_indexes_survive() -> None:
    rows = REFUSED.set_axis(pd.MultiIndex.from_tuples([("n", i) for i in range(5)], names=["region", "case"]))
    batch = Explainer(MODEL, X).explain_all(rows, want="yes")
    assert batch.table().index.equals(rows.index)
    assert batch.table().index.names == ["region", "case"]
    assert batch.frame().index.names == ["region", "case", "counterfactual"]
    assert batch.status().index.names == ["region", "case"]


def test_plot_draws_a_bar_per_feature(batch: Explanations) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = batch.plot()
    assert len(ax.patches) == int((batch.importance().times > 0).sum())


def test_no_rows_at_all() -> None:
    batch = Explanations((), 0.0)
    assert batch.table().empty
    assert batch.importance().empty
    assert json.loads(batch.to_json()) == []
    assert "card" in batch._repr_html_()
