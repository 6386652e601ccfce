"""``ifonly studio`` and ``explainer.studio()``: what they open, what they refuse, and that they end."""

import pickle
import re
import signal
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest
import skops.io
from click.testing import CliRunner, Result

from ifonly.cli import main
from ifonly.studio.insight import forecasts
from studio_world import classifier, loans

MISUSE = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("studio")
    model = classifier().explainer.model.estimator
    skops.io.dump(model, where / "model.skops")
    (where / "model.pkl").write_bytes(pickle.dumps(model))
    loans().assign(repaid=1).to_csv(where / "loans.csv", index=False)
    (where / "policy.toml").write_text('demands.frozen = ["debts"]\nlaw.increase = ["income"]', encoding="utf-8")
    return where


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["studio", *map(str, args)])


def test_a_pickle_needs_trust_and_files_come_in_pairs(folder: Path) -> None:
    refused = run(folder / "model.pkl", folder / "loans.csv")
    assert refused.exit_code == MISUSE
    assert "--trust" in refused.stderr
    assert run(folder / "model.skops").exit_code == MISUSE


def test_other_machines_and_taken_ports_are_refused_in_words(folder: Path) -> None:
    files = folder / "model.skops", folder / "loans.csv"
    open_door = run(*files, "--host", "0.0.0.0", "--no-open")
    assert open_door.exit_code == MISUSE
    assert "certificate" in open_door.stderr
    assert run(*files, "--port", "1x").exit_code == MISUSE


@pytest.mark.slow
def test_the_first_line_is_the_address_and_ctrl_c_ends_it_cleanly(folder: Path) -> None:
    command = [sys.executable, "-m", "ifonly", "studio", folder / "model.skops", folder / "loans.csv", "--no-open"]
    studio = subprocess.Popen(
        [*map(str, command), "--policy", str(folder / "policy.toml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert studio.stdout is not None
    line = studio.stdout.readline()
    found = re.fullmatch(r"(http://127\.0\.0\.1:\d+/)\?token=(\S{40,})\n", line)
    assert found is not None, line
    request = urllib.request.Request(f"{found[1]}row?row=2", headers={"Authorization": f"token {found[2]}"})
    with urllib.request.urlopen(request, timeout=30) as response:
        page = response.read().decode()
    assert "house rule: stays as it is" in page
    assert "law: may only go up" in page
    assert "repaid" not in page
    studio.send_signal(signal.SIGINT)
    _, errors = studio.communicate(timeout=30)
    assert studio.returncode == 0
    assert "Traceback" not in errors


def test_from_python_it_runs_beside_and_stops() -> None:
    explainer = classifier().explainer
    studio = explainer.studio(open_browser=False)
    try:
        request = urllib.request.Request(studio.base, headers={"Authorization": f"token {studio.keys.token}"})
        with urllib.request.urlopen(request, timeout=30) as response:
            assert "LogisticRegression" in response.read().decode()
        assert studio.link() != studio.link()
        assert studio.keys.token not in repr(studio)
    finally:
        studio.stop()
    with pytest.raises(OSError, match=r"."):
        urllib.request.urlopen(studio.base, timeout=5)


def test_predictions_are_the_models_own() -> None:
    subject = classifier()
    outcomes, scores = forecasts(subject.explainer, subject.data)
    model = subject.explainer.model.estimator
    assert (outcomes == model.predict(subject.data)).all()
    assert (scores == model.predict_proba(subject.data)).all()


def test_the_wheel_carries_pages_texts_and_scripts(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    from hatchling.builders.wheel import WheelBuilder

    root = Path(__file__).resolve().parents[2]
    wheel = next(WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"]))
    names = set(zipfile.ZipFile(wheel).namelist())
    source = root / "src"
    expected = {
        path.relative_to(source).as_posix()
        for folder in ("templates", "static", "texts")
        for path in (source / "ifonly" / "studio" / folder).iterdir()
    }
    assert len(expected) > 15
    assert expected <= names
    assert "ifonly/studio/static/htmx-LICENSE.txt" in names
