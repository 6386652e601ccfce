"""``ifonly batch``: from a CSV file to a summary, every refusal, every exit code, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from click.testing import CliRunner, Result

import questions
from ifonly.cli import main

DONE, ERROR, MISUSE, INTERRUPTED = 0, 1, 4, 130


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("files")
    X = questions.people()
    skops.io.dump(questions.pipeline(X, questions.labels(X)), where / "model.skops")
    X.to_csv(where / "train.csv", index=False)
    questions.people(70, seed=9).assign(id=[f"p{i}" for i in range(70)]).to_csv(where / "rows.csv", index=False)
    (where / "policy.toml").write_text('demands.frozen = ["home"]\n')
    return where


def plan(folder: Path, out: Path, *options: object, data: str = "rows.csv") -> Result:
    given = ("--model", folder / "model.skops", "--background", folder / "train.csv", "--want", "good")
    rest = ("--policy", folder / "policy.toml", "--key", "id", "--shard-rows", 30, "--format", "csv", "--reproducible")
    return run("batch", "plan", folder / data, out, *given, *rest, *options)


def test_from_a_file_to_a_summary(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    planned = plan(folder, out)
    assert planned.exit_code == DONE, planned.output
    assert "70 rows in 3 shards" in planned.stdout
    assert set(json.loads((out / "plan.json").read_text())["files"]) == {"data", "model", "background", "policy"}

    status = run("batch", "status", out)
    assert status.exit_code == ERROR
    assert "missing: 0, 1, 2" in status.stdout

    one = run("batch", "run", out, "--shard", 1)
    assert one.exit_code == DONE
    assert "30 of 70 rows are done" in one.stdout
    assert "shard 1: 30 rows" in one.stderr
    assert run("batch", "collect", out).exit_code == ERROR
    rest = run("batch", "run", out)
    assert rest.exit_code == DONE
    assert "shard 1:" not in rest.stderr
    assert run("batch", "status", out).exit_code == DONE

    verified = run("batch", "verify", out)
    assert verified.exit_code == DONE, verified.output
    assert "all is well" in verified.stdout
    collected = run("batch", "collect", out)
    assert "70 of 70 rows" in collected.stdout
    table = pd.read_csv(out / "answers.csv")
    assert table["key"].tolist() == [f"p{i}" for i in range(70)]
    assert not pd.read_csv(out / "changes.csv")["feature"].eq("home").any()


def test_a_plan_is_found_again_or_refused(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert plan(folder, out).exit_code == DONE
    assert plan(folder, out).exit_code == DONE
    other = plan(folder, out, "--n", 2)
    assert other.exit_code == MISUSE
    assert "n (1 -> 2) changed" in other.stderr


@pytest.mark.parametrize("name", ["rows.csv", "model.skops", "policy.toml", "train.csv"])
def test_a_file_that_changed_is_refused_by_name(folder: Path, tmp_path: Path, name: str) -> None:
    import shutil

    copy = tmp_path / "files"
    shutil.copytree(folder, copy)
    out = tmp_path / "out"
    assert plan(copy, out).exit_code == DONE
    with (copy / name).open("ab") as file:
        file.write(b"\n")
    for command in ("run", "verify"):
        refused = run("batch", command, out)
        assert refused.exit_code == MISUSE
        assert name in refused.stderr
        assert "changed since" in refused.stderr
    (copy / name).unlink()
    assert "which is not there" in run("batch", "run", out).stderr


def test_a_plan_and_its_files_move_together(folder: Path, tmp_path: Path) -> None:
    import shutil

    first = tmp_path / "here"
    shutil.copytree(folder, first / "files")
    assert plan(first / "files", first / "out").exit_code == DONE
    shutil.move(first, tmp_path / "there")
    moved = run("batch", "run", tmp_path / "there" / "out")
    assert moved.exit_code == DONE, moved.output


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (
            lambda t: t.rename(columns={"income": "incom"}),
            "no column 'income', which is a feature. Did you mean 'incom'?",
        ),
        (lambda t: t.drop(columns="id"), "no column 'id', which is a key"),
    ],
)
def test_wrong_columns_are_refused_when_planning(folder: Path, tmp_path: Path, edit: Any, complaint: str) -> None:
    edit(pd.read_csv(folder / "rows.csv")).to_csv(folder / "wrong.csv", index=False)
    refused = plan(folder, tmp_path / "out", data="wrong.csv")
    assert refused.exit_code == MISUSE
    assert complaint in refused.stderr


def test_packed_files_are_refused(folder: Path, tmp_path: Path) -> None:
    pd.read_csv(folder / "rows.csv").to_csv(folder / "rows.csv.gz", index=False)
    refused = plan(folder, tmp_path / "out", data="rows.csv.gz")
    assert refused.exit_code == MISUSE
    assert "Unpack it first" in refused.stderr


def test_a_folder_without_a_plan(tmp_path: Path) -> None:
    for command in ("run", "status", "verify", "collect"):
        refused = run("batch", command, tmp_path)
        assert refused.exit_code == MISUSE
        assert "There is no plan" in refused.stderr


def test_a_plan_from_python_is_run_from_python(tmp_path: Path) -> None:
    questions.explainer().explain_all(questions.people(4), want="good", to=tmp_path, output="csv")
    refused = run("batch", "run", tmp_path)
    assert refused.exit_code == ERROR or refused.exit_code == MISUSE
    assert "made from Python" in refused.stderr
    assert run("batch", "verify", tmp_path, "--shallow").exit_code == DONE
    assert run("batch", "collect", tmp_path).exit_code == DONE


def test_verify_says_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan(folder, out)
    run("batch", "run", out)
    shard = out / "shards" / "000001.csv"
    shard.write_bytes(shard.read_bytes()[:-40])
    verified = run("batch", "verify", out)
    assert verified.exit_code == ERROR
    assert "Shard 1 is corrupt" in verified.stdout
    assert "corrupt: 1" in run("batch", "status", out).stdout
    assert run("batch", "run", out).exit_code == DONE
    assert run("batch", "verify", out).exit_code == DONE


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_is_done_and_exits_with_130(folder: Path, tmp_path: Path, jobs: int) -> None:
    out = tmp_path / "out"
    people = questions.people(3000, seed=1)
    people.assign(id=range(3000)).to_csv(folder / "many.csv", index=False)
    assert plan(folder, out, "--shard-rows", 500, data="many.csv").exit_code == DONE
    command = [sys.executable, "-m", "ifonly", "batch", "run", str(out), "--jobs", str(jobs)]
    driver = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    shards = out / "shards"
    for _ in range(600):
        if any(p.stat().st_size > 2000 for p in shards.glob("*.journal")):
            break
        time.sleep(0.1)
    os.killpg(driver.pid, signal.SIGINT)  # a terminal sends it to driver and workers alike
    said = driver.communicate(timeout=60)[1]
    assert driver.returncode == INTERRUPTED, said
    assert "Interrupted. What is done is kept." in said
    assert "more rows are kept in shards under way" in run("batch", "status", out).stdout
    assert not list(shards.glob("stop-*"))


def test_help_names_every_command() -> None:
    text = run("batch", "--help").stdout
    places = [text.index(f"  {name} ") for name in ("plan", "run", "status", "verify", "collect")]
    assert places == sorted(places)
    assert np.all([run("batch", name, "--help").exit_code == DONE for name in ("plan", "run", "verify")])
