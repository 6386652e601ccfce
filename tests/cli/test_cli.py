"""The command line: every command, every output format, every exit code, and no traceback unless asked for."""

import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from click.testing import CliRunner, Result
from rich.console import Console
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ifonly.cli
import ifonly.cli.demo
import ifonly.solvers.registry
from ifonly.bench import credit_model
from ifonly.cli import files, main, show
from ifonly.errors import Infeasible, NotVerified, OutOfTime, Relaxation
from ifonly.events import Built, Finished, Incumbent
from ifonly.explain import Explainer
from ifonly.result.values import Explanation
from ifonly.search.cells.kernel import kernel_in_use
from ifonly.solvers.registry import known_solvers

FOUND, ERROR, IMPOSSIBLE, MISUSE, OUT_OF_TIME, INTERRUPTED = 0, 1, 3, 4, 5, 130


class Mine(LogisticRegression):  # type: ignore[misc]
    """A type that skops has never heard of."""


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args])


def loans() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    income, debts = rng.integers(10, 90, 60), rng.uniform(0, 9, 60).round(2)
    job = rng.choice(["clerk", "nurse", "smith"], 60)
    repaid = income - 5 * debts + 10 * (job == "nurse") + rng.normal(0, 5, 60) > 25
    return pd.DataFrame({"id": range(100, 160), "income": income, "debts": debts, "job": job, "repaid": repaid})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, a classifier of text labels, one of numbers, and a regression."""
    where = tmp_path_factory.mktemp("loans")
    data = loans()
    data.to_csv(where / "loans.csv", index=False)
    X = data[["income", "debts", "job"]]
    grade = np.where(data.repaid, "yes", "no")
    encode = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder=StandardScaler())
    model = Pipeline([("encode", encode), ("decide", LogisticRegression())]).fit(X, grade)
    skops.io.dump(model, where / "model.skops")
    joblib.dump(model, where / "model.joblib")
    (where / "model.pkl").write_bytes(pickle.dumps(model))
    skops.io.dump(LogisticRegression().fit(X[["income", "debts"]], data.repaid), where / "bool.skops")
    skops.io.dump(LinearRegression().fit(X[["debts"]], X["income"]), where / "value.skops")
    skops.io.dump(LogisticRegression().fit(X[["income", "debts"]].to_numpy(), data.repaid), where / "bare.skops")
    refused = int(np.flatnonzero(model.predict(X) == "no")[0])
    (where / "row.txt").write_text(str(refused))
    return where


@pytest.fixture(scope="module")
def refused(folder: Path) -> int:
    return int((folder / "row.txt").read_text())


@pytest.fixture
def explain(folder: Path, refused: int) -> Callable[..., Result]:
    def call(*options: object, model: str = "model.skops", data: object = "loans.csv", row: bool = True) -> Result:
        rest = (*options, *(("--row", refused) if row else ()))
        return run("explain", folder / model, folder / str(data), *rest)

    return call


# -- the group --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("args", [(), ("--help",), ("-h",)])
def test_help_lists_the_commands_in_order(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == FOUND
    places = [result.stdout.index(f"\n  {name} ") for name in ("demo", "explain", "schema", "solvers", "bench")]
    assert places == sorted(places)


def test_version() -> None:
    assert run("--version").stdout == f"ifonly {ifonly.__version__}\n"


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("explian",), "Try 'main --help'"),
        (("explain",), "Try 'main explain --help'"),
        (("demo", "--row", "x"), "Try 'main demo --help'"),
        (("explain", "nowhere.skops", "nowhere.csv"), "Try 'main explain --help'"),
        (("--nonsense",), "Try 'main --help'"),
    ],
)
def test_usage_errors_are_misuse(args: tuple[str, ...], hint: str) -> None:
    result = run(*args)
    assert result.exit_code == MISUSE
    assert result.stderr.startswith("Error: ")
    assert hint in result.stderr
    assert result.stdout == ""


def test_the_group_can_be_called_from_python() -> None:
    assert main.main(["--version"], standalone_mode=False) == 0


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from ifonly.cli import main; main(['--help'], standalone_mode=False); "
        "print([m for m in ('sklearn', 'skops', 'rich', 'highspy', 'joblib', 'matplotlib') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("[]\n")


# -- explain ----------------------------------------------------------------------------------------------------
def test_text_goes_to_standard_output(explain: Callable[..., Result]) -> None:
    result = explain()
    assert result.exit_code == FOUND
    assert result.stdout.startswith("If only ...")
    assert "then  no (" in result.stdout
    assert "proven optimal · confirmed by the model" in result.stdout
    assert result.stderr == ""


def test_every_output_format(explain: Callable[..., Result], tmp_path: Path) -> None:
    for suffix in ("html", "json", "csv", "txt"):
        path = tmp_path / f"why.{suffix}"
        result = explain("--output", path, "--n", 2, "--want", "yes")
        assert result.exit_code == FOUND
        assert result.stdout == ""
        assert result.stderr == f"Wrote {path}\n"
    answer = Explanation.from_json(tmp_path / "why.json")
    assert len(answer) == 2
    assert json.loads((tmp_path / "why.json").read_text("utf-8"))["want"] == "yes"
    frame = pd.read_csv(tmp_path / "why.csv")
    assert list(frame.columns) == ["income", "debts", "job"]
    assert len(frame) == 2
    assert (tmp_path / "why.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert (tmp_path / "why.txt").read_text("utf-8").startswith("1. If only ...")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("why.docx", "'why.docx' must end in .html, .json, .csv, .txt"),
        ("nowhere/why.txt", "There is no folder"),
        ("x" * 300 + ".txt", "cannot be written: "),
    ],
)
def test_an_output_that_cannot_be(explain: Callable[..., Result], tmp_path: Path, name: str, complaint: str) -> None:
    result = explain("--output", tmp_path / name)
    assert result.exit_code == MISUSE
    assert complaint in result.stderr


def test_rows_are_found_by_their_values(explain: Callable[..., Result], folder: Path, refused: int) -> None:
    by_position = explain().stdout.splitlines()[:-1]
    number = 100 + refused
    result = explain("--where", f"id={number}", row=False)
    assert result.stdout.splitlines()[:-1] == by_position
    job = pd.read_csv(folder / "loans.csv").loc[refused, "job"]
    narrowed = explain("--where", f"id={number}.0", "--where", f"job={job}", "--where", "repaid=false", row=False)
    assert narrowed.exit_code == FOUND


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ((), "Which of the 60 rows? Say --row NUMBER"),
        (("--row", 3, "--where", "id=3"), "Give --row or --where, not both."),
        (("--row", 60), "has 60 rows, counted from 0."),
        (("--where", "idd=3"), "has no column 'idd'. Did you mean 'id'?"),
        (("--where", "id"), "Write COLUMN=VALUE."),
        (("--where", "id=3"), "0 rows of"),
        (("--where", "job=nurse"), ", ...) have job=nurse; one is needed."),
        (("--row", 0, "--target", "repayed"), "has no column 'repayed'. Did you mean 'repaid'?"),
    ],
)
def test_rows_that_are_not_there(explain: Callable[..., Result], options: tuple[object, ...], complaint: str) -> None:
    result = explain(*options, row=False)
    assert result.exit_code == MISUSE
    assert complaint in result.stderr


def test_a_row_of_its_own_with_the_training_data_beside(
    explain: Callable[..., Result], folder: Path, refused: int, tmp_path: Path
) -> None:
    one = pd.read_csv(folder / "loans.csv").iloc[[refused]].drop(columns="repaid").assign(debts=99.0)
    one.to_csv(tmp_path / "one.csv", index=False)
    result = explain("--background", folder / "loans.csv", data=tmp_path / "one.csv", row=False)
    assert result.exit_code == FOUND
    assert result.stderr.startswith("Note: 'debts' is 99 in this row, outside the range")
    assert "99" in result.stdout


def test_targets(explain: Callable[..., Result]) -> None:
    assert "yes (0.9" in explain("--want", "yes", "--probability", 0.9).stdout
    assert "True (" in explain("--want", "true", model="bool.skops").stdout
    value = explain("--at-least", 50.5, model="value.skops").stdout
    assert value.splitlines()[2].startswith("then  ")
    assert "Which" not in value
    bounded = explain("--at-most", 10, "--at-least", 60, model="value.skops")
    assert bounded.exit_code == MISUSE
    unknown = explain("--want", "yess")
    assert unknown.exit_code == MISUSE
    assert "Did you mean 'yes'?" in unknown.stderr
    assert explain("--want", "no").exit_code == MISUSE
    assert explain("--want", "yes", "--probability", 70).exit_code == MISUSE


def test_a_model_without_column_names(explain: Callable[..., Result], folder: Path, tmp_path: Path) -> None:
    loans()[["income", "debts", "repaid"]].to_csv(tmp_path / "slim.csv", index=False)
    options = {"model": "bare.skops", "data": tmp_path / "slim.csv"}
    assert explain("--target", "repaid", **options).exit_code == FOUND
    assert explain(**options).exit_code == MISUSE


def test_solver_and_time_limit(explain: Callable[..., Result]) -> None:
    assert "(HiGHS)" in explain("--solver", "highs only", "--time-limit", 20).stdout
    assert "Unknown solver 'hihgs'. Did you mean 'highs'?" in explain("--solver", "hihgs").stderr
    assert explain("--time-limit", 0).exit_code == MISUSE


# -- policies ---------------------------------------------------------------------------------------------------
def test_a_policy_is_written_edited_and_obeyed(explain: Callable[..., Result], folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    result = run("schema", folder / "loans.csv", "--target", "repaid", "--output", path)
    assert (result.exit_code, result.stdout, result.stderr) == (FOUND, "", f"Wrote {path}\n")
    printed = run("schema", folder / "loans.csv", "--target", "repaid").stdout
    assert printed == path.read_text("utf-8")
    assert "[features.job]" in printed
    assert "[features.id]" in printed  # which the model does not see
    text = printed.replace("frozen = []", 'frozen = ["income"]')
    path.write_text(text.replace('label = ""', 'label = "Owed"'), encoding="utf-8")
    assert "  income  " in explain().stdout
    bound = explain("--policy", path)
    assert bound.exit_code == FOUND
    assert "  Owed  " in bound.stdout
    assert "income" not in bound.stdout
    path.write_text("features.incom.label = 'x'")
    assert "Did you mean 'income'?" in explain("--policy", path).stderr


def test_proven_impossible(explain: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('demands.frozen = ["income", "debts", "job"]')
    result = explain("--policy", path, "--want", "yes")
    assert result.exit_code == IMPOSSIBLE
    lines = result.stdout.splitlines()
    assert lines[0] == "Impossible, and proven: these demands cannot be met together."
    assert lines[1].split(maxsplit=1) == ["demand", "enough by itself"]
    assert any("frozen income" in line and "unfreeze income (it would become" in line for line in lines)
    assert result.stderr == ""


def test_a_policy_with_a_slip(explain: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("[demands]\nfrosen = []")
    result = explain("--policy", path)
    assert result.exit_code == MISUSE
    assert "Did you mean 'frozen'?" in result.stderr
    path.write_bytes(b"\xff\xfe")
    assert "cannot be read" in explain("--policy", path).stderr


def test_a_policy_is_not_written_over(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("mine")
    result = run("schema", folder / "loans.csv", "--output", path)
    assert result.exit_code == MISUSE
    assert "Add --force" in result.stderr
    assert path.read_text() == "mine"
    assert run("schema", folder / "loans.csv", "--output", path, "--force").exit_code == FOUND
    assert path.read_text("utf-8") != "mine"


# -- model files ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["model.pkl", "model.joblib"])
def test_a_pickle_needs_trust(explain: Callable[..., Result], name: str) -> None:
    result = explain(model=name)
    assert result.exit_code == MISUSE
    assert "can run any code" in result.stderr
    assert "--trust" in result.stderr
    trusted = explain("--trust", model=name)
    assert trusted.exit_code == FOUND
    assert trusted.stdout.splitlines()[:-1] == explain().stdout.splitlines()[:-1]


def test_a_refused_pickle_is_not_opened(tmp_path: Path, folder: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Trap()))
    assert run("explain", tmp_path / "model.pkl", folder / "loans.csv", "--row", 0).exit_code == MISUSE
    assert not (tmp_path / "sprung").exists()


def test_a_skops_file_with_strange_types_needs_trust(tmp_path: Path, folder: Path) -> None:
    data = loans()
    skops.io.dump(Mine().fit(data[["income"]], data.repaid), tmp_path / "mine.skops")
    result = run("explain", tmp_path / "mine.skops", folder / "loans.csv", "--row", 0)
    assert result.exit_code == MISUSE
    assert f"{Mine.__module__}.Mine" in result.stderr
    assert "--trust" in result.stderr
    assert isinstance(files.load_model(tmp_path / "mine.skops", trust=True), Mine)


def test_damaged_model_files(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"nothing")
    with zipfile.ZipFile(tmp_path / "b.skops", "w") as archive:
        archive.writestr("schema.json", "{}")
    with zipfile.ZipFile(tmp_path / "c.skops", "w") as archive:
        archive.writestr("other", "")
    for name in ("a.pkl", "b.skops", "c.skops"):
        result = run("explain", tmp_path / name, folder / "loans.csv", "--row", 0, "--trust")
        assert result.exit_code == MISUSE
        assert "cannot be opened as a model" in result.stderr


# -- tables -----------------------------------------------------------------------------------------------------
def test_tables_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = loans()
    data.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    data.to_csv(tmp_path / "b.csv.gz", index=False)
    for name in ("a.tsv", "b.csv.gz"):
        pd.testing.assert_frame_equal(files.read_table(tmp_path / name), data, check_dtype=False)
    monkeypatch.setattr(pd, "read_parquet", lambda _: data)
    assert files.read_table(tmp_path / "c.parquet") is data


def test_tables_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_engine(_: Path) -> None:
        raise ImportError("Unable to find a usable engine")

    monkeypatch.setattr(pd, "read_parquet", no_engine)
    cases = {
        "a.xlsx": "its name must end in .csv, .tsv, .parquet",
        "b.csv": "cannot be read as a table: No columns",
        "c.parquet": "pip install pyarrow",
    }
    for name, complaint in cases.items():
        (tmp_path / name).touch()
        result = run("schema", tmp_path / name)
        assert result.exit_code == MISUSE
        assert complaint in result.stderr


# -- what goes wrong --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("error", "code", "complaint"),
    [
        (OutOfTime("No verified answer within the time limit."), OUT_OF_TIME, "Error: No verified answer"),
        (NotVerified("The optimiser's answer is refused."), ERROR, "Error: The optimiser's answer"),
        (KeyboardInterrupt(), INTERRUPTED, "Error: Interrupted."),
        (ZeroDivisionError("x"), ERROR, "Unexpected ZeroDivisionError: x\nThis is a bug in ifonly"),
    ],
)
def test_errors_become_sentences_and_exit_codes(
    explain: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    complaint: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Explainer, "explain", fail)
    result = explain()
    assert result.exit_code == code
    assert complaint in result.stderr
    assert "Traceback" not in result.output


def test_debug_shows_the_traceback(explain: Callable[..., Result], folder: Path) -> None:
    after = explain("--want", "maybe", "--debug")
    assert after.exit_code == MISUSE
    assert "Traceback (most recent call last)" in after.stderr
    before = run("--debug", "explain", folder / "model.skops", folder / "loans.csv", "--row", 0, "--want", "maybe")
    assert "Traceback (most recent call last)" in before.stderr
    assert "Traceback" not in explain("--want", "maybe").stderr


def test_warnings_of_others_become_notes(explain: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(path: Path, *, trust: bool) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("made by another version", UserWarning, stacklevel=1)
        return skops.io.load(path)

    monkeypatch.setattr(files, "load_model", warn)
    result = explain()
    assert result.exit_code == FOUND
    assert result.stderr == "Note: made by another version\n"


# -- demo, solvers, bench ---------------------------------------------------------------------------------------
def test_demo_and_the_files_it_keeps(tmp_path: Path) -> None:
    shown = run("demo", "--save", tmp_path / "credit").stdout.splitlines()
    assert [line[0] for line in shown[:5]] == ["✓"] * 5
    assert shown[2] == "✓ Applicant 375: the model says bad"
    answer = shown[shown.index("") + 1 : shown.index("Next") - 1]
    assert answer[0].startswith("If only ...")
    page, ten, *_ = (line.split("  ")[1].split()[1:] for line in shown if line.startswith("  ifonly "))
    again = run(*page[: page.index("--output")]).stdout.splitlines()
    assert again[:-1] == answer[:-1]
    lines = run(*ten).stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:10]] == [str(i) for i in range(10)]


def test_demo_hints_at_more_and_takes_options() -> None:
    result = run("demo", "--n", 2, "--row", 285)
    assert result.exit_code == FOUND
    assert "2 answers" in result.stdout
    assert "ifonly demo --row 285 --save credit" in result.stdout
    assert "ifonly demo --row 285 --n 3" in result.stdout


def test_demo_never_suggests_what_was_just_done(capsys: pytest.CaptureFixture[str]) -> None:
    for name, row, n in (("linear", 375, 1), ("linear", 375, 3), ("forest", 9, 3), ("forest", 375, 1)):
        ifonly.cli.demo._next_steps(name, row, n, None)  # type: ignore[arg-type]
        done = f"ifonly demo --model {name}" * (name != "linear") or "ifonly demo"
        done += f" --row {row}" * (row != 375) + f" --n {n}" * (n != 1)
        steps = [line.strip().split("  ")[0] for line in capsys.readouterr().out.splitlines()[1:]]
        assert steps
        assert done not in steps


def test_demo_of_a_forest(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def small(*args: Any) -> Any:
        model = credit_model(*args)
        model[-1].estimators_ = model[-1].estimators_[:10]
        return model

    monkeypatch.setattr(ifonly.cli.demo, "credit_model", small)
    result = run("demo", "--model", "forest")
    assert result.exit_code == FOUND
    assert "A forest of 100 trees" in result.stdout
    assert "ifonly demo --model forest --n 3" in result.stdout
    assert "ifonly demo --model linear" in result.stdout
    # What skops does not trust by itself, its maker can.
    ifonly.cli.demo._next_steps("forest", 375, 1, Path("credit"))
    assert "--trust" in capsys.readouterr().out


def test_demo_of_an_accepted_applicant_and_an_impossible_folder(tmp_path: Path) -> None:
    result = run("demo", "--row", 0)
    assert result.exit_code == MISUSE
    assert "already there" in result.stderr
    (tmp_path / "file").touch()
    blocked = run("demo", "--save", tmp_path / "file" / "credit")
    assert blocked.exit_code == MISUSE
    assert "cannot be written to" in blocked.stderr


def test_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    highs = known_solvers()["highs"]
    result = run("solvers")
    assert result.exit_code == FOUND
    line = next(line for line in result.stdout.splitlines() if line.startswith("highs"))
    assert line.split()[1:3] == ["HiGHS", highs.version()]
    assert f"kernel: {kernel_in_use()}." in result.stdout
    monkeypatch.setenv("IFONLY_KERNEL", "numpy")
    assert "kernel: NumPy." in run("solvers").stdout

    class Absent:
        name, label, capabilities = "absent", "Absent", highs.capabilities
        available = staticmethod(lambda: False)

    monkeypatch.setattr(ifonly.solvers.registry, "known_solvers", lambda: {"absent": Absent()})
    assert "pip install 'ifonly[absent]'" in run("solvers").stdout


def test_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("bench", "--rows", 2)
    assert result.exit_code == FOUND
    assert "2 applicants, 2 answered, 2 proven optimal" in result.stdout
    phases = [line.split()[0] for line in result.stdout.splitlines()[-4:]]
    assert phases == ["build", "solve", "verify", "total"]

    def refuse(*_: object, **__: object) -> None:
        raise Infeasible("no")

    monkeypatch.setattr(Explainer, "explain", refuse)
    assert run("bench", "--rows", 1).stdout.endswith("1 applicants, 0 answered, 0 proven optimal\n")


# -- on a terminal ----------------------------------------------------------------------------------------------
@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    """The bytes that a terminal of 60 columns would be sent."""
    screen = StringIO()
    out = Console(file=screen, force_terminal=True, width=60, color_system="standard", highlight=False)
    monkeypatch.setattr(show, "console", lambda **_: out)
    return screen


def test_a_terminal_gets_colour_and_whole_words(terminal: StringIO) -> None:
    show.error("word " * 30)
    assert "\x1b[31m" in terminal.getvalue()
    assert max(len(line) for line in terminal.getvalue().splitlines()) < 80
    show.answer("If only ...\n  age  1  2\nthen  a  ->  b\n1 of 2 features · far\nnote: rounded")
    assert "\x1b[1;32mb\x1b[0m" in terminal.getvalue()
    assert "\x1b[2mnote: rounded\x1b[0m" in terminal.getvalue()


def test_a_terminal_sees_the_search_live(terminal: StringIO) -> None:
    with show.Progress(show.console()) as progress:
        assert progress.summary() == "no program had to be built"
        for event in (Built(1200, 30), Incumbent(2.0, -np.inf), Incumbent(1.0, 0.5)):
            progress(event)
        assert progress.summary() == "1,200 columns, 30 rows · 2 answers, each better · best 1 · bound 0.5"
        progress(Finished("feasible", 0.1))
        assert progress.bound == 0.5
        progress(Finished("optimal", 0.1))
        assert progress.bound == 1.0
        progress(Incumbent(1.5, 1.25))
        assert progress.summary().endswith("3 answers, each better · best 1.5 · bound 1.25")
    assert "Searching for the least change" in terminal.getvalue()
    with show.Counter(show.console(), "Explaining") as count:
        count(3, 7)
    assert "Explaining" in terminal.getvalue()


def test_impossible_without_a_way_out(terminal: StringIO) -> None:
    show.impossible(Infeasible("no"))
    assert "demand  " not in terminal.getvalue()
    show.impossible(Infeasible("no", ["a", "bb"], []))
    assert "enough" not in terminal.getvalue()
    show.impossible(Infeasible("no", ["a", "bb"], [Relaxation("a", "a 1 -> 2", 1.0)]))
    assert "a 1 -> 2" in terminal.getvalue()


# -- as a process -----------------------------------------------------------------------------------------------
def test_a_process_ends_with_the_code_and_prints_with_few_characters(folder: Path, refused: int) -> None:
    def process(*args: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from ifonly.cli import main; main()", *map(str, args)]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONIOENCODING": "ascii"},
            check=False,
        )

    found = process("explain", folder / "model.joblib", folder / "loans.csv", "--row", refused, "--trust")
    assert found.returncode == FOUND
    assert " ? proven optimal ? " in found.stdout
    assert process("explain", folder / "model.pkl", folder / "loans.csv").returncode == MISUSE


def test_the_package_runs_as_a_module() -> None:
    ran = subprocess.run([sys.executable, "-m", "ifonly", "--help"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("Usage: ifonly")


# -- case studies -----------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_study_is_printed_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ifonly.cli import study

    whole = study.heart_study
    monkeypatch.setattr(study, "heart_study", lambda **options: whole("B", **options))
    shown = run("demo", "--study", "heart")
    assert shown.exit_code == FOUND
    assert "Part B: validity, proximity, coherence, sparsity" in shown.stdout
    assert "validity is 1.00 in all cases" in shown.stdout
    kept = run("demo", "--study", "heart", "--save", tmp_path / "study")
    assert kept.exit_code == FOUND
    assert "Part B" in (tmp_path / "study" / "heart.txt").read_text()
    assert "<svg" in (tmp_path / "study" / "manifold.svg").read_text()
    taken = tmp_path / "taken"
    taken.write_text("")
    refused = run("demo", "--study", "heart", "--save", taken)
    assert refused.exit_code != FOUND


# -- records ----------------------------------------------------------------------------------------------------
def test_verify_a_record_and_a_forged_one(folder: Path, explain: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    assert explain("--output", path, "--target", "repaid").exit_code == FOUND
    given = ("--model", folder / "model.skops", "--data", folder / "loans.csv")
    stands = run("verify", path, *given)
    assert stands.exit_code == FOUND, stands.output
    assert stands.stdout.splitlines()[-1] == "The record stands."
    record = json.loads(path.read_text(encoding="utf-8"))
    record["counterfactuals"][0]["certificate"]["objective"] *= 0.5
    path.write_text(json.dumps(record), encoding="utf-8")
    forged = run("verify", path, *given, "--json")
    assert forged.exit_code == 6
    verdict = json.loads(forged.stdout)
    assert not verdict["ok"]
    assert {c["name"] for c in verdict["checks"] if c["ok"] is False} >= {"cost"}
    path.write_text("[]", encoding="utf-8")
    assert run("verify", path, *given).exit_code == 6


def test_a_proof_is_written_and_replayed(folder: Path, explain: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    assert explain("--proof", "--target", "repaid").exit_code == MISUSE  # there is nothing to write it beside
    assert explain("--proof", "--output", path, "--target", "repaid").exit_code == FOUND
    given = ("--model", folder / "model.skops", "--data", folder / "loans.csv")
    stands = run("verify", path, *given)
    assert stands.exit_code == FOUND, stands.output
    assert "the proof was replayed" in " ".join(stands.stdout.split())
    other = tmp_path / "other.proof"
    other.write_bytes((tmp_path / "record.proof").read_bytes()[:-1])
    assert run("verify", path, *given, "--proof", other).exit_code == 6


def test_an_impossible_question_writes_its_record(folder: Path, explain: Callable[..., Result], tmp_path: Path) -> None:
    policy, path = tmp_path / "p.toml", tmp_path / "no.json"
    policy.write_text('[demands]\nfrozen = ["income", "debts", "job"]\n', encoding="utf-8")
    result = explain("--output", path, "--policy", policy)
    assert result.exit_code == IMPOSSIBLE
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["kind"] == "impossible"
    checked = run("verify", path, "--model", folder / "model.skops", "--data", folder / "loans.csv")
    assert checked.exit_code == FOUND, checked.output


# -- pipes, formats and several rows ---------------------------------------------------------------------------------
def piped(text: str, *args: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args], input=text)


def test_a_row_from_a_pipe_and_an_answer_into_one(folder: Path, refused: int) -> None:
    row = loans().iloc[[refused]]
    asked = (
        "explain",
        folder / "model.skops",
        "-",
        "--background",
        folder / "loans.csv",
        "--format",
        "json",
        "--output",
        "-",
    )
    by_csv = piped(row.to_csv(index=False), *asked)
    assert by_csv.exit_code == FOUND, by_csv.stderr
    answer = json.loads(by_csv.stdout)
    assert answer["kind"] == "explanation"
    for text in (row.to_json(orient="records"), row.to_json(orient="records", lines=True), row.iloc[0].to_json()):
        again = json.loads(piped(text, *asked).stdout)
        assert again["counterfactuals"][0]["changes"] == answer["counterfactuals"][0]["changes"]
    assert "Standard input is empty" in piped("", *asked).stderr
    assert "cannot be read as CSV or JSON" in piped("[1, 2]", *asked).stderr


def test_formats_are_printed(explain: Callable[..., Result], tmp_path: Path) -> None:
    assert explain("--format", "csv").stdout.startswith("income,debts,job\n")
    assert explain("--format", "html").stdout.startswith("<!DOCTYPE html>")
    assert explain("--format", "txt", "--output", "-").stdout.startswith("If only ...")
    path = tmp_path / "why.data"
    assert explain("--output", path, "--format", "json").exit_code == FOUND
    assert json.loads(path.read_text("utf-8"))["kind"] == "explanation"
    strict = tmp_path / "strict.toml"
    strict.write_text('demands.only = ["job"]\ndemands.allow.job = ["clerk"]')
    said = explain("--policy", strict, "--format", "json")
    assert said.exit_code == IMPOSSIBLE
    assert json.loads(said.stdout)["kind"] == "impossible"


def test_several_rows(explain: Callable[..., Result], folder: Path, tmp_path: Path) -> None:
    model, X = skops.io.load(folder / "model.skops"), loans()
    refused = np.flatnonzero(model.predict(X[["income", "debts", "job"]]) == "no")[:3]
    listed = ",".join(map(str, refused))
    table = pd.read_csv(StringIO(explain("--rows", listed, "--want", "yes", "--format", "csv", row=False).stdout))
    assert table.iloc[:, 0].tolist() == refused.tolist()
    path = tmp_path / "all.json"
    result = explain("--rows", "all", "--want", "yes", "--output", path, row=False)
    assert result.exit_code == FOUND
    lines = json.loads(path.read_text("utf-8"))
    assert len(lines) == 60
    assert {line["status"] for line in lines} >= {"optimal"}
    assert explain("--rows", "0-2", row=False).stdout
    for rows, complaint in (("0,x", "'x' is no position"), ("0-99", "has 60 rows"), ("9-3", "has 60 rows")):
        refusal = explain("--rows", rows, row=False)
        assert refusal.exit_code == MISUSE
        assert complaint in refusal.stderr
    assert "takes the place of --row" in explain("--rows", "all").stderr


def test_any_of_several_classes(folder: Path, tmp_path: Path) -> None:
    X = loans()
    grade = np.digitize(X["income"], [30, 60])
    skops.io.dump(LogisticRegression(max_iter=1000).fit(X[["income", "debts"]], grade), tmp_path / "three.skops")
    row = int(np.flatnonzero(X["income"] < 15)[0])
    asked = ("explain", tmp_path / "three.skops", folder / "loans.csv", "--row", row, "--format", "json")
    answer = json.loads(run(*asked, "--want", 1, "--want", 2).stdout)
    assert answer["want"] == [1, 2]
    assert answer["counterfactuals"][0]["prediction"] in (1, 2)


def test_errors_speak_of_options(folder: Path, tmp_path: Path, explain: Callable[..., Result]) -> None:
    value = run("explain", folder / "value.skops", folder / "loans.csv", "--row", 0)
    assert "--at-least NUMBER or --at-most NUMBER" in value.stderr
    unknown = explain("--want", "maybe")
    assert "Target(" not in unknown.stderr
    model = KNeighborsClassifier(weights="distance").fit(loans()[["income", "debts"]], loans()["repaid"])
    joblib.dump(model, tmp_path / "knn.joblib")
    asked = ("explain", tmp_path / "knn.joblib", folder / "loans.csv", "--row", 0, "--trust")
    observed = run(*asked)
    assert "--surrogate" in observed.stderr
    assert "Explainer(" not in observed.stderr
    answer = run(*asked, "--surrogate", "--time-limit", 2)
    assert answer.exit_code == FOUND, answer.stderr
    assert "not proven" in answer.stdout


def test_lint(folder: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[demands.ranges]\nincome = [100, 200]\n")
    slips = run("lint", policy, folder / "loans.csv", "--target", "repaid")
    assert slips.exit_code == ERROR
    assert "The range of 'income' lies outside the data" in slips.stdout
    policy.write_text('demands.frozen = ["job"]')
    sound = run("lint", policy, folder / "loans.csv", "--target", "repaid")
    assert (sound.exit_code, "nothing to mend" in sound.stdout) == (FOUND, True)
    told = run("lint", policy, folder / "loans.csv", "--target", "repaid", "--protected", "income")
    assert "'income' may change" in told.stdout
