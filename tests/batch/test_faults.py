"""Faults, one by one: a bad row, a bad file, a full disk, a dead worker, a second runner; never a lost or doubled row."""

from __future__ import annotations

import copy
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import questions
from batch_cases import content, explain, rows
from ifonly import BatchFailed, Explainer, PlanError, Schema
from ifonly.batch import Batch, jobs, journal, writing
from ifonly.batch.plan import Shard
from ifonly.batch.reading import CsvSource
from ifonly.batch.records import Column
from ifonly.batch.shards import CsvWriter, read_shard, shard_path
from ifonly.runtime.tuning import Batches, Tuning


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return questions.explainer()


@pytest.fixture(scope="module")
def whole(explainer: Explainer, tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return explain(explainer, tmp_path_factory.mktemp("whole"), output="csv")


@pytest.fixture
def copied(explainer: Explainer, whole: Batch, tmp_path: Path) -> Batch:
    """A whole batch to spoil, in a folder of its own."""
    shutil.copytree(whole.folder, tmp_path, dirs_exist_ok=True)
    return explain(explainer, tmp_path, output="csv")


def table(batch: Batch) -> pd.DataFrame:
    return pd.read_csv(batch.collect().answers)


# -- rows that cannot be read -------------------------------------------------------------------------------------------
def test_a_bad_row_gets_a_status_and_a_sentence_and_the_shard_goes_on(explainer: Explainer, tmp_path: Path) -> None:
    good = questions.people(8, seed=4)
    good.to_csv(tmp_path / "rows.csv", index=False)
    lines = (tmp_path / "rows.csv").read_bytes().splitlines()
    lines[1] = b",".join([b"thirty", *lines[1].split(b",")[1:]])
    lines[2] = lines[2] + b",one too many"
    lines[3] = (
        lines[3].replace(b"school", b"sch\xffool").replace(b"college", b"coll\xffege").replace(b"degree", b"\xff")
    )
    lines[4] = b",".join([b"", *lines[4].split(b",")[1:]])
    lines[5] = b",".join([b"inf", *lines[5].split(b",")[1:]])
    lines[6] = b",".join([b"30.5", *lines[6].split(b",")[1:]])
    lines.insert(5, b"")  # a blank line is no row
    (tmp_path / "rows.csv").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    found = table(explain(explainer, tmp_path / "out", tmp_path / "rows.csv", output="csv", criteria=[]))
    assert found["row"].tolist() == list(range(8))
    assert found["status"].tolist()[:6] == ["invalid"] * 6
    assert not (found["status"].iloc[6:] == "invalid").any()
    for message, part in zip(
        found["message"],
        [
            "must be a number",
            "8 values, but the file names 7",
            "Unseen level",
            "Missing value",
            "Infinity",
            "whole number",
        ],
        strict=False,
    ):
        assert part in message


def test_quoted_line_ends_and_commas_stay_in_their_value(tmp_path: Path) -> None:
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x, y", "two\nlines", 'a "quote"']})
    X.to_csv(tmp_path / "rows.csv", index=False)
    source = CsvSource(tmp_path / "rows.csv", Schema.infer(X))
    measured = source.measure(1)
    assert measured.rows == 3
    parts = [source.read(Shard(k, k, 1, *measured.offsets[k : k + 2])).frame for k in range(3)]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), X, check_dtype=False)


def test_levels_that_are_numbers_or_flags_are_read_as_such(tmp_path: Path) -> None:
    X = pd.DataFrame({"a": [1, 2, 3], "b": [True, False, True], "c": ["NA", "x", "NA"], "d": [0.1, np.nan, 3e9]})
    schema = Schema.infer(X, categorical=["a"])
    X.to_csv(tmp_path / "rows.csv", index=False)
    source = CsvSource(tmp_path / "rows.csv", schema)
    measured = source.measure(10)
    piece = source.read(Shard(0, 0, 3, *measured.offsets))
    np.testing.assert_array_equal(schema.encode(piece.frame, missing=True), schema.encode(X, missing=True))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("", "is empty"), ("a,a\n1,2\n", "twice"), ("b\n1\n", "no column 'a'")],
)
def test_files_that_are_no_table_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "rows.csv").write_text(text)
    source = CsvSource(tmp_path / "rows.csv", Schema.infer(pd.DataFrame({"a": [1.0]})))
    with pytest.raises(PlanError, match=complaint):
        source.measure(10)


def test_a_file_that_is_cut_while_the_batch_runs(explainer: Explainer, tmp_path: Path) -> None:
    questions.people(30).to_csv(tmp_path / "rows.csv", index=False)
    batch = explain(explainer, tmp_path / "out", tmp_path / "rows.csv", output="csv", shard_rows=10)
    (tmp_path / "out" / "shards" / "000002.csv").unlink()
    (tmp_path / "rows.csv").write_text("\n".join((tmp_path / "rows.csv").read_text().splitlines()[:25]))
    with pytest.raises(PlanError, match="is not the file that was planned: shard 2"):
        batch.run()
    assert not batch.verify().ok


# -- the disk -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("where", ["shard", "journal"])
@pytest.mark.parametrize(
    ("code", "said"),
    [(errno.ENOSPC, "No space left"), pytest.param(errno.EACCES, "Permission denied", marks=pytest.mark.slow)],
)
def test_a_disk_that_refuses_is_told_and_the_batch_goes_on_later(
    explainer: Explainer,
    whole: Batch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    code: int,
    said: str,
) -> None:
    def refuse(*_: Any) -> Any:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        if where == "shard":
            shutil.copy(whole.folder / "plan.json", tmp_path)
            patch.setattr(writing.os, "fsync", refuse)
        else:
            real = os.write
            patch.setattr(journal.os, "write", lambda h, b: refuse() if b"optimal" in bytes(b) else real(h, b))
        with pytest.raises(BatchFailed, match=f"{said}.*run the batch again"):
            explain(explainer, tmp_path, output="csv")
    assert not list((tmp_path / "shards").glob("*.tmp"))
    explain(explainer, tmp_path, output="csv")
    assert {n: b for n, b in content(tmp_path).items() if n.endswith(".csv")} == content(whole.folder)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(explainer: Explainer, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o500)
    with pytest.raises((PlanError, BatchFailed), match="Permission denied"):
        explain(explainer, tmp_path / "out", output="csv")


def test_a_folder_that_cannot_be_made(explainer: Explainer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlanError, match="cannot be made"):
        explain(explainer, tmp_path / "file" / "out", output="csv")


# -- shards that are not what they should be ------------------------------------------------------------------------------
def spoil(path: Path, how: str) -> None:
    data = path.read_bytes()
    spoiled = {
        "cut": data[: len(data) // 2],
        "empty": b"",
        "noise": os.urandom(200),
        "foreign": re.sub(rb'"plan": "[0-9a-f]{8}', b'"plan": "00000000', data),
        "flipped": data.replace(b"optimal", b"optimaL", 1),
        "doubled": data.replace(b"\n1,", b"\n0,", 1),
    }
    path.write_bytes(spoiled[how])


@pytest.mark.parametrize(
    ("how", "state"),
    [
        ("cut", "corrupt"),
        *(pytest.param(how, "corrupt", marks=pytest.mark.slow) for how in ("empty", "noise")),
        ("foreign", "foreign"),
    ],
)
def test_a_shard_without_the_plan_s_footer_is_made_again(
    copied: Batch, whole: Batch, tmp_path: Path, how: str, state: str
) -> None:
    batch = copied
    spoil(tmp_path / "shards" / "000000.csv", how)
    assert batch.status()[state] == [0]
    verdict = batch.verify()
    assert not verdict.ok
    assert f"Shard 0 is {state}" in str(verdict)
    with pytest.raises(BatchFailed, match="not done"):
        batch.collect()
    assert batch.run().done == [0]
    assert content(tmp_path) == content(whole.folder)


@pytest.mark.parametrize("how", ["flipped", "doubled"])
def test_a_shard_whose_content_was_changed_is_found(copied: Batch, tmp_path: Path, how: str) -> None:
    batch = copied
    spoil(tmp_path / "shards" / "000000.csv", how)
    assert "is corrupt" in str(batch.verify())
    with pytest.raises(BatchFailed, match="is corrupt"):
        batch.collect()


@pytest.mark.frameworks
def test_parquet_shards_are_guarded_too(explainer: Explainer, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    batch = explain(explainer, tmp_path, output="parquet")
    path = tmp_path / "shards" / "000001.parquet"
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(bytes(data))
    assert not batch.verify().ok
    with pytest.raises(BatchFailed, match="corrupt"):
        batch.collect()
    path.write_bytes(bytes(data[: len(data) // 2]))
    assert batch.status()["corrupt"] == [1]
    other = explain(explainer, tmp_path / "other", want="bad", output="parquet")
    path.write_bytes((other.folder / "shards" / "000001.parquet").read_bytes())
    assert batch.status()["foreign"] == [1]
    batch.run()
    assert batch.verify().ok


def test_verify_measures_answers_anew(copied: Batch, tmp_path: Path) -> None:
    """A shard that is whole, with a right footer, but with wrong answers in it."""
    from ifonly.batch.shards import write_shard

    batch = copied
    shard = batch.plan.shard(0)
    path = shard_path(tmp_path, batch.plan, shard)
    records, right = read_shard(tmp_path, batch.plan, shard), path.read_bytes()
    at = next(i for i, r in enumerate(records) if r["answer"] is not None)
    one, home = records[at], rows()["home"].iloc[records[at]["row"]]
    moved = [*one["changes"], {"feature": "home", "from": str(home), "to": str(not home)}]
    for wrong, complaint in (
        ({"changes": [], "changed": 0}, "the model says 'bad' of its answer, not 'good'"),
        ({"objective": one["objective"] + 0.5}, "its cost is"),
        ({"bound": one["objective"] + 0.5}, "is below the bound"),
        ({"changes": moved}, "the demand .*home.* is not met"),
    ):
        write_shard(tmp_path, batch.plan, shard, [*records[:at], one | wrong, *records[at + 1 :]])
        verdict = batch.verify()
        path.write_bytes(right)
        assert any(re.search(complaint, fault) for fault in verdict.faults), verdict
    assert batch.verify().ok
    write_shard(tmp_path, batch.plan, shard, [*records[1:], records[-1], records[2] | {"row": 99}])
    verdict = str(batch.verify())
    assert "Row 0 is missing" in verdict
    assert "is doubled" in verdict
    assert "Row 99 is in shard 0" in verdict


def test_a_journal_with_a_torn_line_or_of_another_plan(copied: Batch, whole: Batch, tmp_path: Path) -> None:
    batch = copied
    shard = batch.plan.shard(0)
    records = read_shard(tmp_path, batch.plan, shard)
    place = tmp_path / "shards"
    (place / "000000.csv").unlink()
    with journal.Journal(place, shard, batch.plan.fingerprint, 2.0) as ours:
        for record in records[:5]:
            ours.keep([record])
    with journal.Journal(place, shard, "another plan", 2.0) as foreign:
        foreign.keep([records[6] | {"status": "nonsense"}])
    (path,) = [p for p in journal.journals(place, shard) if batch.plan.fingerprint.encode() in p.read_bytes()]
    path.write_bytes(path.read_bytes()[:-7])
    assert sorted(journal.kept_rows(place, shard, batch.plan.fingerprint)) == [0, 1, 2, 3]
    batch.run()
    assert content(tmp_path) == content(whole.folder)


# -- workers that die, and runners that meet --------------------------------------------------------------------------------
class Fatal(LogisticRegression):
    """A model that kills its process when it sees a certain age, as a bug in native code would; once, or always."""

    def predict(self, X: Any) -> np.ndarray:
        if (np.asarray(X)[:, 0] > 4.0).any() and len(X) < 100:
            mark = Path(os.environ["IFONLY_TEST_MARK"])
            if mark.read_text() == "always" or not mark.with_suffix(".died").exists():
                mark.with_suffix(".died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().predict(X)


@pytest.mark.parametrize("how", [pytest.param(how, marks=pytest.mark.slow) for how in ("once", "always")])
def test_a_worker_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    mark = tmp_path / "mark"
    mark.write_text(how)
    monkeypatch.setenv("IFONLY_TEST_MARK", str(mark))
    explainer, X = questions.explainer(last=Fatal()), rows()
    X.loc[30, "age"] = 200
    given: dict[str, Any] = {"table": X, "output": "csv", "n_jobs": 2, "criteria": [], "shard_rows": 20}
    if how == "once":
        batch = explain(explainer, tmp_path / "out", **given)
        assert batch.is_complete()
        assert table(batch)["row"].tolist() == list(range(60))
        assert mark.with_suffix(".died").exists()
        assert batch.last_run is not None
        assert sorted(batch.last_run.done) == [0, 1, 2]
    else:
        with pytest.raises(BatchFailed, match="1 of 3 shards killed their worker 2 times, alone: 1"):
            explain(explainer, tmp_path / "out", **given)
        assert Batch.open(tmp_path / "out").status()["missing"] == [1]


class Breaking(Executor):
    """An executor of somebody else, which breaks."""

    def submit(self, work: Any, /, *task: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(BrokenProcessPool("gone"))
        return future


def test_an_executor_that_breaks_is_told(explainer: Explainer, tmp_path: Path) -> None:
    with pytest.raises(BatchFailed, match="The executor broke"):
        explain(explainer, tmp_path, output="csv", executor=Breaking())


def test_two_runners_share_the_shards(explainer: Explainer, whole: Batch, tmp_path: Path) -> None:
    """Two drivers on one folder: the claims divide the work, and every row is there once."""
    batch = explain(explainer, tmp_path, rows(30), output="csv", shard_rows=5)
    for path in (tmp_path / "shards").iterdir():
        path.unlink()
    with ThreadPoolExecutor(2) as both:
        # one explainer each: as two processes would have
        other = Batch(batch.folder, batch.plan, questions.explainer(), batch.source, batch.options)
        ends = list(both.map(lambda b: b.run(), [batch, other]))
    # whoever found a shard held by the other left it; between them, nothing was left
    assert {k for end in ends for k in end.done} == set(range(6))
    assert batch.is_complete()
    assert batch.verify().ok


def test_two_runners_of_one_shard_write_the_same_file(copied: Batch, whole: Batch, tmp_path: Path) -> None:
    batch = copied
    for path in (tmp_path / "shards").iterdir():
        path.unlink()
    other = Batch(batch.folder, batch.plan, questions.explainer(), batch.source, batch.options)
    with ThreadPoolExecutor(2) as both:
        ends = list(both.map(lambda b: b.run(shards=[0, 1, 2]), [batch, other]))
    assert all(end.done == [0, 1, 2] for end in ends)
    assert {n: b for n, b in content(tmp_path).items() if n.endswith(".csv")} == content(whole.folder)


def test_a_shard_that_another_runner_holds_is_left_to_it(copied: Batch, tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="no locks on this system")
    batch = copied
    (tmp_path / "shards" / "000001.csv").unlink()
    hold = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); "
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", hold, str(tmp_path / "shards" / "000001.lock")]
    held = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert held.stdout is not None
    assert held.stdout.readline() == "held\n"
    try:
        assert batch.run().busy == [1]
        assert batch.run(shards=[1]).done == [1]  # asked for by its number, it is run all the same
        (tmp_path / "shards" / "000001.csv").unlink()
    finally:
        held.kill()
        held.communicate()
    assert batch.run().done == [1]  # a runner that dies holds nothing


# -- time ---------------------------------------------------------------------------------------------------------------
def test_a_clock_that_jumps_changes_nothing(
    explainer: Explainer, whole: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = iter(np.random.default_rng(0).uniform(0, 4e9, 10**6).tolist())
    monkeypatch.setattr(time, "time", lambda: next(wall))
    explain(explainer, tmp_path, output="csv")
    for path in (tmp_path / "shards").iterdir():
        os.utime(path, (0, 4e9))
    assert explain(explainer, tmp_path, output="csv").last_run.done == []  # type: ignore[union-attr]
    assert content(tmp_path) == content(whole.folder)


def test_stopping_workers_by_a_file(explainer: Explainer, copied: Batch, whole: Batch, tmp_path: Path) -> None:
    """Workers under Ctrl-C: they stop between two rows and keep what they have."""
    batch = copied
    (tmp_path / "shards" / "000000.csv").unlink()
    stop = tmp_path / "stop"
    stop.touch()
    job = jobs.Job(batch.plan, explainer, batch.options, batch.source)
    always = copy.copy(explainer)
    always.training = replace(always.training, tuning=Tuning(batches=Batches(look_seconds=0.0)))
    report = jobs.run_shard(replace(job, explainer=always), tmp_path, 0, stop=stop)
    assert not report.done
    assert 0 < report.rows < 25
    assert len(journal.kept_rows(tmp_path / "shards", batch.plan.shard(0), batch.plan.fingerprint)) == report.rows
    assert jobs.run_shard(job, tmp_path, 0).kept == report.rows
    assert content(tmp_path) == content(whole.folder)


def test_memory_that_runs_out_is_no_fault_of_a_row(
    explainer: Explainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: Any, **__: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Explainer, "explain", explode)
        with pytest.raises(MemoryError):
            explain(explainer, tmp_path, output="csv")
    assert explain(explainer, tmp_path, output="csv").is_complete()


def test_empty_text_is_nothing_in_a_csv_file(tmp_path: Path) -> None:
    with (tmp_path / "t.csv").open("wb") as file:
        CsvWriter(file, [Column("a", "text", ""), Column("b", "bool", ""), Column("c", "float", "")]).write(
            [{"a": None, "b": True, "c": 0.1}, {"a": 'x,"y"\n', "b": None, "c": 1e-300}]
        )
    assert (tmp_path / "t.csv").read_text() == 'a,b,c\n,true,0.1\n"x,""y""\n",,1e-300\n'


def test_threads_of_a_worker_share_the_parcel_that_is_open() -> None:
    from ifonly.batch.parcels import Parcel

    parcel = Parcel.of({"a": [1]})
    seen: list[int] = []

    def open_twice() -> None:
        assert parcel.open() is parcel.open()
        seen.append(id(parcel.open()))
        time.sleep(0.05)

    threads = [threading.Thread(target=open_twice) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 1
