"""Progress of a batch: a bar on a terminal, lines elsewhere; and Ctrl-C, once and twice."""

from __future__ import annotations

import io
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

import questions
from batch_cases import explain
from ifonly.batch import Batch
from ifonly.batch.jobs import Report
from ifonly.batch.progress import Bar, Lines, Silent, listener
from ifonly.batch.running import Run, _Crew


def heard(hears: Silent) -> None:
    with hears:
        hears.began(100, 20, 4)
        hears.beat(5)
        hears.ended(Report(3, True, {"optimal": 15, "already": 5}, kept=0, rows=20, seconds=2.0))
        hears.ended(Report(1, False, busy=True))
        hears.told("A worker died.")


def test_a_bar_shows_rows_rate_rest_and_counts() -> None:
    out = io.StringIO()
    heard(Bar(Console(file=out, force_terminal=True, width=160, highlight=False)))
    text = out.getvalue()
    for part in ("40 of 100 rows", "rows/s", "left", "15 optimal, 5 already", "A worker died."):
        assert part in text


def test_lines_say_each_shard() -> None:
    out = io.StringIO()
    heard(Lines(Console(file=out, width=160)))
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("shard 3: 20 rows in 2.0 s (5 already, 15 optimal); 40 of 100 rows, ")
    assert lines[1:] == ["A worker died."]


def test_silence_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="ifonly.batch"):
        heard(Silent())
    assert "20 of 100 rows are done, 4 shards to go" in caplog.text
    assert "shard 3" in caplog.text


@pytest.mark.parametrize(("seconds", "words"), [(3.0, "3 s"), (300.0, "5 min"), (7200.0, "2.0 h"), (float("inf"), "?")])
def test_times_are_coarse(seconds: float, words: str) -> None:
    from ifonly.batch.progress import _duration

    assert _duration(seconds) == words


def test_who_listens() -> None:
    assert type(listener(False)) is Silent
    assert isinstance(listener(True), (Bar, Lines))


def test_explain_all_shows_progress_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explain(questions.explainer(), tmp_path / "a", questions.people(5), output="csv")
    assert not any(capsys.readouterr())
    explain(questions.explainer(), tmp_path / "b", questions.people(5), output="csv", progress=True)
    assert "shard 0: 5 rows" in capsys.readouterr().err


SLEEPER = """
import sys, time
sys.path.insert(0, {tests!r})
import questions
from pathlib import Path
from sklearn.linear_model import LogisticRegression

class Sleeper(LogisticRegression):
    def predict(self, X):
        if len(X) < 100:
            Path({mark!r}).touch()
            time.sleep(120)
        return super().predict(X)

if __name__ == "__main__":
    explainer = questions.explainer(last=Sleeper())
    rows = questions.people(40, seed=3)
    batch = explainer.explain_all(rows, want="good", to={out!r}, output="csv", n_jobs={jobs}, shard_rows=20, progress=True)
    sys.exit(130 if batch.last_run.interrupted else 0)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals to a process group")
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_second_ctrl_c_stops_at_once(tmp_path: Path, jobs: int) -> None:
    tests, mark, out = str(Path(__file__).resolve().parents[1]), tmp_path / "asleep", tmp_path / "out"
    (tmp_path / "sleeper.py").write_text(SLEEPER.format(tests=tests, mark=str(mark), out=str(out), jobs=jobs))
    driver = subprocess.Popen(
        [sys.executable, str(tmp_path / "sleeper.py")], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    for _ in range(1000):
        if mark.exists():
            break
        time.sleep(0.1)
    for _ in range(2):
        os.killpg(driver.pid, signal.SIGINT)
        time.sleep(1.5)
    began = time.monotonic()
    said = driver.communicate(timeout=60)[1]
    assert driver.returncode == 130, said
    assert time.monotonic() - began < 60
    assert ("Ctrl-C again stops at once" in said) == (jobs == 2)
    assert not Batch.open(out).is_complete()


@pytest.mark.parametrize("again", [False, True])
def test_workers_are_told_to_stop_once(tmp_path: Path, again: bool) -> None:
    """loky keeps the last word: a plain shutdown after one that kills leaves the workers alive, and the driver waits."""
    told: list[dict[str, bool]] = []

    class Pool:
        def shutdown(self, **how: bool) -> None:
            told.append(how)

    class Row:
        def cancel(self) -> None: ...

        def cancelled(self) -> bool:
            return False

        def result(self) -> Report:
            if again:
                raise KeyboardInterrupt
            return Report(0, False)

    crew = _Crew(Run(), None, tmp_path, Silent(), None, 2, True)  # type: ignore[arg-type]
    crew.pool, crew.stop = Pool(), tmp_path / "stop"
    with crew._stopping({Row(): None}, own=True):  # type: ignore[dict-item]
        raise KeyboardInterrupt
    assert told == [{"wait": False, "kill_workers": again}]
    assert crew.result.interrupted
    assert crew.stop.exists()
