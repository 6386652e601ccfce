"""A batch in a folder: planned, run by anybody, resumed, verified, collected; the oracle is `explain_all` in memory."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import questions
from batch_cases import POLICY, content, explain, rows
from ifonly import BatchFailed, CriterionError, Explainer, PlanError, Sparsity, Target
from ifonly.batch import Batch, jobs
from ifonly.batch.folder import check_explainer
from ifonly.batch.plan import read_plan


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return questions.explainer()


@pytest.fixture(scope="module")
def whole(explainer: Explainer, tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """An undisturbed batch, in CSV, which needs nothing installed."""
    return explain(explainer, tmp_path_factory.mktemp("whole"), output="csv")


def answers(batch: Batch) -> pd.DataFrame:
    return pd.read_csv(batch.collect().answers, dtype={"key": str})


def test_the_table_is_what_explain_all_gives_in_memory(explainer: Explainer, whole: Batch) -> None:
    table, here = answers(whole), explainer.explain_all(rows(), want="good", criteria=POLICY)
    assert table["row"].tolist() == list(range(60))
    assert table["key"].tolist() == [str(i) for i in range(60)]
    words = {"already": "error", "invalid": "error"}
    assert [words.get(s, s) for s in table["status"]] == here.status().tolist()
    assert set(table["status"]) == {"optimal", "infeasible", "already", "invalid"}
    found = table[table["answer"].notna()]
    best = [e[0] for e in here.found()]
    assert found["objective"].tolist() == [c.certificate.objective for c in best]
    assert found["bound"].tolist() == [c.certificate.bound for c in best]
    assert found["score"].tolist() == [c.score for c in best]
    assert found["prediction"].tolist() == ["good"] * len(best)
    assert found["proven"].all()
    assert table["seconds"].isna().all()
    assert not table["clock"].any()


def test_the_model_s_word_on_every_readable_row(explainer: Explainer, whole: Batch) -> None:
    table, X = answers(whole), rows()
    readable = table["status"] != "invalid"
    said = explainer.model.estimator.predict(X[readable.to_numpy()])
    assert table.loc[readable, "factual_prediction"].tolist() == said.tolist()
    assert (table.loc[table["status"] == "already", "factual_prediction"] == "good").all()


def test_the_tidy_table_of_changes_makes_the_answers(explainer: Explainer, whole: Batch) -> None:
    collected = whole.collect()
    changes = pd.read_csv(collected.changes, dtype=str)
    X = rows().astype(object)
    for change in changes.itertuples():
        kind = type(X.loc[int(change.row), change.feature])
        assert X.loc[int(change.row), change.feature] == kind(change[5])
        X.loc[int(change.row), change.feature] = kind(change[6])
    ours = explainer.explain_all(rows(), want="good", criteria=POLICY).frame().droplevel("counterfactual")
    for row in ours.index:
        assert X.loc[row].tolist() == ours.loc[row].tolist()


def test_rows_without_recourse_say_why(explainer: Explainer, whole: Batch) -> None:
    table = answers(whole)
    impossible = table[table["status"] == "infeasible"]
    assert len(impossible)
    for line in impossible.itertuples():
        alone = explainer.explain_all(rows().iloc[[line.row]], want="good", criteria=POLICY)[0].error
        assert json.loads(line.conflict) == list(alone.conflict)
        assert json.loads(line.relaxations) == [way.change for way in alone.relaxations]
    invalid = table[table["status"] == "invalid"]["message"].tolist()
    assert "Unseen level 'astronaut'" in invalid[0]
    assert "Missing value in column 'income':" in invalid[1]


def test_the_summary_counts(whole: Batch) -> None:
    table, data = answers(whole), json.loads(whole.collect().summary_file.read_text())
    assert data["rows"] == data["rows_collected"] == 60
    assert data["statuses"] == table["status"].value_counts().to_dict()
    assert data["answered"] == data["proven_optimal"] == table["answer"].notna().sum()
    assert data["cost"]["median"] == pytest.approx(table["objective"].median())
    changed = [c["feature"] for text in table["changes"].dropna() for c in json.loads(text)]
    assert data["levers"] == pd.Series(changed).value_counts().to_dict()
    assert sum(data["without_recourse"]["proven_impossible"].values()) == (table["status"] == "infeasible").sum()
    assert sum(data["without_recourse"]["other_reasons"].values()) == 2
    assert "60 of 60 rows" in str(whole.collect().summary)


def test_verify_finds_nothing_wrong(whole: Batch) -> None:
    verdict = whole.verify()
    assert verdict.ok
    assert verdict.rows_in == verdict.rows_out == 60
    assert verdict.checked == verdict.answers > 10
    assert "all is well" in str(verdict)


# -- the same bytes, whoever runs it ---------------------------------------------------------------------------------
def test_any_runner_writes_the_same_bytes(explainer: Explainer, whole: Batch, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        two = explain(explainer, tmp_path / "threads", output="csv", executor=threads)
    assert content(two.folder) == content(whole.folder)


@pytest.mark.slow
def test_processes_write_the_same_bytes(explainer: Explainer, whole: Batch, tmp_path: Path) -> None:
    three = explain(explainer, tmp_path / "loky", output="csv", n_jobs=2)
    assert content(three.folder) == content(whole.folder)
    four = explain(explainer, tmp_path / "multi", output="csv", n_jobs=2, executor="multiprocessing")
    assert content(four.folder) == content(whole.folder)


def test_a_file_gives_the_answers_of_the_frame(explainer: Explainer, whole: Batch, tmp_path: Path) -> None:
    rows().to_csv(tmp_path / "rows.csv", index_label="id")
    batch = explain(explainer, tmp_path / "out", tmp_path / "rows.csv", output="csv", key="id")
    assert content(batch.folder).keys() == content(whole.folder).keys()
    pd.testing.assert_frame_equal(answers(batch), answers(whole))
    assert batch.verify().ok


@pytest.mark.frameworks
def test_parquet_in_and_out(explainer: Explainer, whole: Batch, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    table = rows().assign(id=[f"k{i}" for i in range(60)])
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=13)
    batch = explain(explainer, tmp_path / "out", tmp_path / "rows.parquet", key="id")
    assert batch.plan.output == "parquet"
    found = pd.read_parquet(batch.collect().answers)
    assert found["key"].tolist() == table["id"].tolist()
    other = answers(whole)
    assert found["status"].tolist() == other["status"].tolist()
    np.testing.assert_array_equal(found["objective"].to_numpy(), other["objective"].to_numpy())
    assert found["answer"].dtype.kind in "fi"
    assert found["proven"].dropna().map(type).eq(bool).all()
    assert batch.verify().ok
    # several row groups in the collected file, one per shard
    assert len(batch.plan.shards()) == 3


def test_several_answers_per_row(explainer: Explainer, tmp_path: Path) -> None:
    batch = explain(explainer, tmp_path, rows(12), n=2, criteria=[], output="csv")
    table = answers(batch)
    here = explainer.explain_all(rows(12), want="good", n=2)
    assert table["answer"].dropna().tolist() == here.frame().index.get_level_values("counterfactual").tolist()
    assert table["row"].drop_duplicates().tolist() == list(range(12))
    assert batch.verify().ok


@pytest.mark.parametrize("want", [Target("good", probability=0.6), None], ids=str)
def test_other_wishes_are_verified_too(explainer: Explainer, tmp_path: Path, want: Any) -> None:
    batch = explain(explainer, tmp_path, rows(20), want=want, criteria=[Sparsity(at_most=2)])
    assert batch.verify().ok


def test_the_clock_is_told(explainer: Explainer, tmp_path: Path) -> None:
    batch = explain(explainer, tmp_path, rows(4), reproducible=False, time_limit=1e-9, output="csv", criteria=[])
    table = answers(batch)
    asked = ~table["status"].isin(["already", "invalid"])
    assert table.loc[asked, "clock"].all()
    assert (table["seconds"] >= 0).all()
    assert batch.plan.settings["time_limit"] == 1e-9


def test_an_empty_batch(explainer: Explainer, tmp_path: Path) -> None:
    batch = explain(explainer, tmp_path, rows().iloc[:0], output="csv")
    assert answers(batch).empty
    assert batch.verify().ok
    assert batch.is_complete()


# -- going on ---------------------------------------------------------------------------------------------------------
def test_a_batch_goes_on_where_it_was_stopped(
    explainer: Explainer, whole: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = Explainer.explain, []

    def explain_until(most: int) -> None:
        def stopped(self: Explainer, row: pd.DataFrame, **options: Any) -> Any:
            if len(asked) >= most:
                raise KeyboardInterrupt
            asked.append(row.index[0])
            return real(self, row, **options)

        monkeypatch.setattr(Explainer, "explain", stopped)

    for most in (10, 33, 40, 1000):
        explain_until(most)
        batch = explain(explainer, tmp_path, output="csv")
        assert batch.last_run is not None
        assert batch.last_run.interrupted == (most < 1000)
    # every row was asked once, however often the run was stopped; the last row of `cases.rows` that repeats is not asked
    assert sorted(asked) == [i for i in range(60) if i != 20]
    assert content(tmp_path) == content(whole.folder)
    assert explain(explainer, tmp_path, output="csv").last_run.done == []  # type: ignore[union-attr]


def test_one_shard_at_a_time(explainer: Explainer, whole: Batch, tmp_path: Path) -> None:
    shutil.copytree(whole.folder, tmp_path, dirs_exist_ok=True)
    batch = explain(explainer, tmp_path, output="csv")
    for path in (tmp_path / "shards").iterdir():
        path.unlink()
    for number in (2, 0):
        assert batch.run(shards=[number]).done == [number]
    assert batch.status()["missing"] == [1]
    with pytest.raises(BatchFailed, match="1 of 3 shards are not done: 1"):
        batch.collect()
    assert batch.collect(partial=True).summary.statuses.total() == 35
    assert batch.run().done == [1]
    assert content(tmp_path) == content(whole.folder)
    with pytest.raises(PlanError, match="no shard 3"):
        batch.run(shards=[3])


def test_a_batch_can_be_looked_at_without_its_explainer(whole: Batch) -> None:
    batch = Batch.open(whole.folder)
    assert batch.is_complete()
    verdict = batch.verify()
    assert verdict.ok
    assert verdict.checked == 0 < verdict.answers
    assert batch.collect().summary.answered == verdict.answers
    with pytest.raises(PlanError, match="without its explainer"):
        batch.run()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"want": "bad"}, "the wish"),
        ({"criteria": []}, "the policy"),
        ({"shard_rows": 30}, "rows per shard"),
        ({"n": 2}, r"n \(1 -> 2\)"),
        ({"reproducible": False}, "reproducible"),
        ({"table": rows(59)}, "the rows"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_another_plan_is_refused_with_what_changed(
    explainer: Explainer, whole: Batch, change: dict[str, Any], word: str
) -> None:
    with pytest.raises(PlanError, match=word):
        explain(explainer, whole.folder, **({"output": "csv"} | change))


def test_another_model_is_refused_and_the_same_one_fitted_anew_is_not(whole: Batch) -> None:
    other = questions.explainer(y=lambda X: np.where(X["age"] > 40, "good", "bad"))
    with pytest.raises(PlanError, match="the model"):
        explain(other, whole.folder, output="csv")
    assert explain(questions.explainer(), whole.folder, output="csv").last_run.done == []  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "words"), [("tuning", "the tuned numbers"), ("engines", "the engines")])
def test_an_explainer_without_what_was_planned_with_is_refused(
    explainer: Explainer, whole: Batch, name: str, words: str
) -> None:
    planned = replace(whole.plan, prints={**whole.plan.prints, name: "another"})
    with pytest.raises(PlanError, match=words):
        check_explainer(planned, whole.folder, explainer, "good")


def test_options_of_a_folder_need_a_folder(explainer: Explainer) -> None:
    with pytest.raises(CriterionError, match="to='out'"):
        explainer.explain_all(rows(4), want="good", shard_rows=5)  # type: ignore[call-overload]


def test_the_plan_is_readable_and_guarded(whole: Batch, tmp_path: Path) -> None:
    data = json.loads((whole.folder / "plan.json").read_text())
    assert data["bounds"] == [0, 25, 50, 60]
    assert set(data["sha256"]) == {"ifonly", "input", "model", "policy", "schema", "training", "wish"}
    with pytest.raises(PlanError, match="no plan"):
        read_plan(tmp_path)
    for text, complaint in [
        ("{", "cannot be read"),
        ("{}", "its format is None"),
        (json.dumps({"format": "ifonly-batch/1"}), "lacks 'sha256'"),
        (json.dumps(data | {"rows": 61}), "was edited"),
    ]:
        (tmp_path / "plan.json").write_text(text)
        with pytest.raises(PlanError, match=complaint):
            read_plan(tmp_path)


def test_the_worker_s_report_is_what_the_shard_holds(explainer: Explainer, whole: Batch) -> None:
    job = jobs.Job(whole.plan, explainer, whole.options, whole.source)
    again = jobs.run_shard(job, whole.folder, 1)
    assert again.done
    assert again.kept == again.rows == 25
