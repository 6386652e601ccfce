"""Many rows: a status each, the same result for any number of workers, and no bad row stops the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import questions
from ifonly import (
    Actionability,
    CriterionError,
    Explainer,
    Explanations,
    Infeasible,
    NotVerified,
    OutOfTime,
    SchemaError,
)
from ifonly.batch.asking import STATUS
from ifonly.result.many import Outcome

NOW = questions.FACTUAL
ROWS = pd.DataFrame(
    [
        NOW,
        {**NOW, "income": np.nan},
        {**NOW, "job": "astronaut"},
        {**NOW, "debts": 3},
        {**NOW, "debts": 0, "income": 6.0, "job": "full", "education": "degree"},
        {**NOW, "age": 95},
        {**NOW, "debts": 8, "income": 0.5, "age": 18},
    ],
    index=list("abcdefg"),
)
POLICY = [Actionability(max_step={"debts": 4, "income": 2.0, "age": 9}, frozen=["home", "job"])]


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return questions.explainer()


@pytest.fixture(scope="module")
def batch(explainer: Explainer) -> Explanations:
    return explainer.explain_all(ROWS, want="good", criteria=POLICY)


def test_every_row_has_a_status(batch: Explanations) -> None:
    status = batch.status()
    assert status.index.tolist() == list("abcdefg")
    assert status[["a", "d", "f"]].tolist() == ["optimal"] * 3
    assert status[["b", "c", "e"]].tolist() == ["error"] * 3
    assert status["g"] == "infeasible"
    by = {o.index: o for o in batch}
    assert isinstance(by["b"].error, SchemaError)
    assert "Missing value" in str(by["b"].error)
    assert "Unseen level 'astronaut'" in str(by["c"].error)
    assert isinstance(by["e"].error, CriterionError)
    assert "already there" in str(by["e"].error)
    assert isinstance(by["g"].error, Infeasible)
    assert by["g"].error.conflict
    assert by["a"].error is None


def test_answers_are_those_of_single_calls(batch: Explanations, explainer: Explainer) -> None:
    one = explainer.explain(ROWS.loc[["d"]], want="good", criteria=POLICY)
    there = batch.frame().loc["d"]
    pd.testing.assert_frame_equal(there.reset_index(drop=True), one.frame())
    assert batch.frame().index.names == ["row", "counterfactual"]
    assert set(batch.changes()["row"]) == {"a", "d", "f"}
    assert batch.changes().columns.tolist() == ["row", "counterfactual", "feature", "from", "to"]
    assert batch.metrics().index.tolist() == ["a", "d", "f"]
    assert len(batch.found()) == 3
    assert len(batch) == 7
    assert len(batch[1:3]) == 2
    assert batch.seconds > 0


def test_the_same_result_for_any_number_of_workers(batch: Explanations, explainer: Explainer) -> None:
    two = explainer.explain_all(ROWS, want="good", criteria=POLICY, n_jobs=2)
    assert two.status().equals(batch.status())
    pd.testing.assert_frame_equal(two.frame(), batch.frame())
    pd.testing.assert_frame_equal(two.changes(), batch.changes())
    assert [str(o.error) for o in two] == [str(o.error) for o in batch]
    assert [o.error.relaxations for o in two if o.index == "g"] == [
        o.error.relaxations for o in batch if o.index == "g"
    ]


def test_several_answers_per_row(explainer: Explainer) -> None:
    batch = explainer.explain_all(ROWS.loc[["a", "d"]], want="good", n=2)
    assert batch.frame().groupby("row").size().tolist() == [2, 2]


def test_progress_is_shown_on_request(explainer: Explainer, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = explainer.explain_all(ROWS.loc[["a"]], want="good")
    assert not any(capsys.readouterr())
    loud = explainer.explain_all(ROWS.loc[["a"]], want="good", progress=True)
    assert "Explaining" in capsys.readouterr().out
    assert loud.status().equals(quiet.status())


def test_an_empty_batch(explainer: Explainer) -> None:
    batch = explainer.explain_all(ROWS.iloc[:0], want="good")
    assert len(batch) == 0
    assert batch.frame().empty
    assert batch.changes().columns.tolist() == ["row", "counterfactual", "feature", "from", "to"]
    assert batch.status().empty


def test_wrong_columns_concern_every_row(explainer: Explainer) -> None:
    with pytest.raises(SchemaError, match="missing column 'debts'"):
        explainer.explain_all(ROWS.drop(columns="debts"), want="good")


def test_a_polars_batch(explainer: Explainer) -> None:
    polars = pytest.importorskip("polars")
    rows = polars.DataFrame(ROWS.loc[["a", "d"]].to_dict("list"))
    assert explainer.explain_all(rows, want="good").status().tolist() == ["optimal", "optimal"]


class Moody(LogisticRegression):
    """A model that cannot stand one row."""

    def predict(self, X: object) -> np.ndarray:
        said = super().predict(X)
        if len(said) < 10 and np.asarray(X)[:, 0].max() > 1.4:
            raise ZeroDivisionError("not that age")
        return said


def test_whatever_the_model_raises_stays_with_its_row() -> None:
    explainer = questions.explainer(last=Moody())
    rows = pd.DataFrame([NOW, {**NOW, "age": 69}, NOW])
    batch = explainer.explain_all(rows, want="good", criteria=[Actionability(frozen=["age"])])
    assert batch[0].status == batch[2].status == "optimal"
    assert batch[1].status == "error"
    assert isinstance(batch[1].error, ZeroDivisionError)


def test_every_ending_has_a_word() -> None:
    assert {Infeasible: "infeasible", OutOfTime: "out_of_time", NotVerified: "not_verified"} == STATUS
    assert Outcome("x", "error").explanation is None


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------
def test_ctrl_c_between_two_rows_keeps_what_is_done(explainer: Explainer, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Explainer.explain
    asked: list[object] = []

    def explain(self: Explainer, row: pd.DataFrame, **options: object) -> object:
        asked.append(row.index[0])
        if len(asked) == 2:
            raise KeyboardInterrupt
        return real(self, row, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Explainer, "explain", explain)
    batch = explainer.explain_all(ROWS.loc[["a", "d", "f"]], want="good")
    assert batch.status().to_dict() == {"a": "optimal", "d": "interrupted", "f": "interrupted"}
    assert len(batch.found()) == 1
    assert "2 interrupted" in str(batch)


def test_ctrl_c_in_a_search_ends_the_batch_with_its_best(explainer: Explainer, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Explainer.explain

    def explain(self: Explainer, row: pd.DataFrame, **options: object) -> object:
        return replace(real(self, row, **options), interrupted=row.index[0] == "d")  # type: ignore[arg-type]

    monkeypatch.setattr(Explainer, "explain", explain)
    batch = explainer.explain_all(ROWS.loc[["a", "d", "f"]], want="good")
    assert batch.status().to_dict() == {"a": "optimal", "d": "optimal", "f": "interrupted"}


def test_workers_do_not_send_the_training_data_back(explainer: Explainer) -> None:
    batch = explainer.explain_all(ROWS.loc[["a", "d"]], want="good", n_jobs=2)
    assert all(e.reference is explainer._frame for e in batch.found())
