"""Every numbered example runs from an empty folder and ends well."""

import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
PROCESSES = {"01_quickstart.py"}  # a fresh process each; for the others its imports are most of the work
LONG = {"04_batch.py", "10_german_study.py", "11_heart_study.py"}  # tests/batch and test_studies.py ask the same


def test_examples_are_found() -> None:
    if not (ROOT / "README.md").exists():
        pytest.skip("the project has no README yet")
    assert EXAMPLES, "examples/ has no numbered example"


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, marks=pytest.mark.slow) if path.name in LONG else path for path in EXAMPLES],
    ids=lambda path: path.name,
)
def test_example_runs(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if example.name not in PROCESSES | LONG:
        monkeypatch.chdir(tmp_path)
        with warnings.catch_warnings(action="default"):
            runpy.run_path(str(example), run_name="__main__")
        return
    run = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
