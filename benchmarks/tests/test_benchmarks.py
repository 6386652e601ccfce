"""The speed benchmark: the rebuilt formulation, the shared encoding, the wire, the tables, the plots and the bars."""

# ruff: noqa: E402 - benchmarks are not installed, so their folder must be found first

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.client import Died, Hung, Worker
from benchmarks.peers.encoding import Encoding
from benchmarks.peers.environments import Environment, EnvironmentFailed
from benchmarks.speed import bars, growth, page, plot, records, table
from benchmarks.speed.methods import EXACT, METHODS, Unsupported, open_session
from benchmarks.speed.problems import PROBLEMS, QUICK, Case, Kind, Problem, Table, forest, german, prepare
from benchmarks.speed.replies import Reply
from benchmarks.speed.run import Settings, explain_rows, run

from ifonly.data.schema import Schema

ROWS = 3
MODELS: dict[Kind, str] = {
    "forest": "RandomForestClassifier(4, max_depth=3, random_state=0)",
    "boosting": "GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0)",
    "tree": "DecisionTreeClassifier(max_depth=4, random_state=0)",
}


def estimator(kind: Kind) -> object:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    known = {c.__name__: c for c in (GradientBoostingClassifier, RandomForestClassifier, DecisionTreeClassifier)}
    return eval(MODELS[kind], known)


def mixed() -> Table:
    """A small table with a number, a whole number and a category."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "rate": rng.uniform(0, 5, 150).round(3),
            "job": pd.Categorical(rng.choice(["none", "some", "own"], 150)),
            "months": rng.integers(3, 60, 150),
        }
    )
    score = frame["rate"] - 0.05 * frame["months"] + (frame["job"] == "own") + rng.normal(0, 0.3, 150)
    return Table(frame, pd.Series(np.where(score > 1.0, "yes", "no")), Schema.infer(frame, precision=None), "yes")


@pytest.fixture(scope="module", params=list(MODELS))
def case(request: pytest.FixtureRequest) -> Case:
    kind: Kind = request.param
    return prepare(Problem(f"mixed-{kind}", mixed, lambda: estimator(kind), kind), ROWS)


# -- problems and encoding -------------------------------------------------------------------------------------------
def test_both_sides_hold_the_same_model(case: Case) -> None:
    assert (case.estimator.predict(case.matrix) == case.model.predict(case.table.frame)).all()
    assert (case.model.predict(case.table.frame.iloc[case.factuals]) != case.table.wanted).all()


def test_rows_survive_the_encoding(case: Case) -> None:
    for row in case.factuals:
        frame = case.table.frame.iloc[[row]].reset_index(drop=True)
        pd.testing.assert_frame_equal(case.frame_of(case.matrix[row]), frame, check_categorical=False)
        assert (case.row_of(frame) == case.matrix[row]).all()
    again = Encoding.from_json(json.loads(json.dumps(case.encoding.to_json())))
    assert again == case.encoding
    assert (again.matrix(again.codes(case.matrix)) == case.matrix).all()


def test_distance_is_the_normalised_one(case: Case) -> None:
    row = case.matrix[0]
    other, months = row.copy(), next(f for f in case.encoding.fields if f.name == "months")
    other[months.columns[0]] += 2
    job = next(f for f in case.encoding.fields if f.name == "job")
    other[list(job.columns)] = np.roll(other[list(job.columns)], 1)
    assert case.encoding.distance(row, other) == pytest.approx(1 + 2 / months.span)


def test_what_breaks_a_feature_is_not_coherent(case: Case) -> None:
    row = case.matrix[0]
    assert case.encoding.coherent(row, row)
    months, job = (next(f for f in case.encoding.fields if f.name == n) for n in ("months", "job"))
    for columns, values in (
        (months.columns, 10.5),
        (months.columns, months.high + 1),
        (job.columns, 0.0),
        (job.columns, 1.0),
    ):
        broken = row.copy()
        broken[list(columns)] = values
        assert not case.encoding.coherent(broken, row)


def test_problems_are_those_of_the_issue() -> None:
    assert len(PROBLEMS) == 20
    assert {"german-calibrated-1x10", "german-voting-1x20"} <= set(PROBLEMS)  # composites of networks
    assert set(QUICK) <= set(PROBLEMS)
    assert {*METHODS, *EXACT} == {"ifonly", "leafbigm", *PEERS}


# -- the leaf-big-M formulation --------------------------------------------------------------------------------------
def test_leaf_big_m_has_our_optimum(case: Case) -> None:
    rows = [int(r) for r in case.factuals]
    settings = Settings(seconds=30.0)
    ours = list(explain_rows(case, "ifonly", rows, settings))
    theirs = list(explain_rows(case, "leafbigm", rows, settings))
    assert len(ours) == len(theirs) == ROWS
    for a, b in zip(ours, theirs, strict=True):
        assert a.proven
        assert b.proven
        assert a.valid
        assert b.valid
        assert a.coherent
        assert a.objective == pytest.approx(b.objective, abs=1e-4)
        assert a.build + a.solve + a.verify == pytest.approx(a.seconds)


@pytest.mark.frameworks
def test_leaf_big_m_reads_xgboost() -> None:
    xgboost = pytest.importorskip("xgboost")
    data = mixed()
    zero_one = Table(data.frame.drop(columns="job"), (data.target == "yes").astype(int), Schema(()), 1)
    zero_one = Table(zero_one.frame, zero_one.target, Schema.infer(zero_one.frame), 1)
    problem = Problem("xgb", lambda: zero_one, lambda: xgboost.XGBClassifier(n_estimators=5, max_depth=2), "xgboost")
    found = prepare(problem, 2)
    rows = [int(r) for r in found.factuals]
    by = {m: list(explain_rows(found, m, rows, Settings(seconds=30.0))) for m in ("ifonly", "leafbigm")}
    for a, b in zip(*by.values(), strict=True):
        assert a.valid
        assert b.valid
        assert a.objective == pytest.approx(b.objective, abs=1e-4)


# -- the wire --------------------------------------------------------------------------------------------------------
ECHO = """
import sys, time, json
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("sleep"):
        time.sleep(60)
    if asked.get("die"):
        sys.exit(3)
    print(json.dumps(asked), flush=True)
"""


@pytest.fixture
def echo(tmp_path: Path) -> Worker:
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    return Worker(Path(sys.executable), script, tmp_path / "log.txt")


def test_a_worker_answers(echo: Worker) -> None:
    assert echo.ask({"value": [0.1, 1e-300]}, 30.0) == {"value": [0.1, 1e-300]}
    echo.close()
    assert not echo.alive


def test_a_hanging_worker_is_ended(echo: Worker) -> None:
    with pytest.raises(Hung):
        echo.ask({"sleep": True}, 0.3)
    assert not echo.alive


def test_a_worker_that_ends_is_noticed(echo: Worker) -> None:
    with pytest.raises(Died):
        echo.ask({"die": True}, 30.0)
    echo.close()


def test_no_python_is_said(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailed, match=r"No Python 2\.0"):
        Environment("none", (), ("2.0",)).python(tmp_path)


def test_a_model_that_a_method_does_not_take_is_recorded(case: Case, tmp_path: Path) -> None:
    network = PROBLEMS["german-mlp-1x50"]
    fake = Case(
        network.name, "network", case.table, case.model, case.estimator, case.encoding, case.matrix, case.factuals
    )
    with pytest.raises(Unsupported):
        open_session("treecf", fake, cache=tmp_path)
    (line,) = explain_rows(fake, "leafbigm", [0], Settings())
    assert (line.status, line.factual) == ("unsupported", -1)


# -- records, table, plots, bars -------------------------------------------------------------------------------------
def test_run_writes_and_resumes(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    tiny = Problem("mixed", mixed, lambda: estimator("forest"), "forest")
    run([tiny], ["ifonly"], Settings(factuals=2, seconds=30.0), path)
    first = records.load(path)
    assert len(first) == 2
    assert first["valid"].all()
    run([tiny], ["ifonly", "leafbigm"], Settings(factuals=2, seconds=30.0), path)
    both = records.load(path)
    assert list(both["method"]) == ["ifonly"] * 2 + ["leafbigm"] * 2
    pd.testing.assert_frame_equal(both.iloc[:2], first, check_dtype=False)


def test_a_hopeless_peer_is_given_up_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        def explain(self, row: int, seconds: float) -> Reply:
            return Reply("out of time", seconds)

        def close(self) -> None:
            pass

    case = prepare(Problem("mixed", mixed, lambda: estimator("forest"), "forest"), 5)
    monkeypatch.setattr("benchmarks.speed.run.open_session", lambda *_, **__: Slow())
    rows = [int(r) for r in case.factuals]
    asked = {m: [r.status for r in explain_rows(case, m, rows, Settings(give_up=2))] for m in ("ifonly", "nice")}
    assert asked["ifonly"] == ["out of time"] * 5
    assert asked["nice"] == ["out of time"] * 2 + ["given up"] * 3
    assert [r.factual for r in explain_rows(case, "nice", rows, Settings(give_up=2))] == rows
    within = [r.status for r in explain_rows(case, "nice", rows, Settings(budget=1.0))]
    assert within == ["out of time"] * 3 + ["given up"] * 2


def fake_results(factor: float = 100.0) -> pd.DataFrame:
    """Every problem by every method: ours takes 4 ms, the others `factor` times as long."""
    lines = []
    for problem in PROBLEMS:
        for method in METHODS:
            seconds = 0.004 if method == "ifonly" else 0.004 * factor
            sure = method in ("ifonly", "treecf", "oceanpy", "leafbigm")
            lines += [
                records.Record(
                    problem, method, k, "found", seconds * (1 + k / 10), sure, True, True, 0.5 if sure else 1.0
                )
                for k in range(4)
            ]
    lines.append(records.Record("german-logistic", "nobody", -1, "unsupported", np.nan))
    return pd.DataFrame(lines)


BATCH = pd.DataFrame(
    {
        "jobs": [1, 1, 2, 2],
        "rows": [200, 1000] * 2,
        "rate": [10.0, 10.0, 18.0, 19.0],
        "peak_mb": [200.0] * 4,
        "worker_peak_mb": [0.0, 0.0, 200.0, 210.0],
    }
)


def test_table_of_a_fake_run(tmp_path: Path) -> None:
    summary = table.summarise(fake_results())
    ours = summary[(summary["problem"] == "german-tree") & (summary["method"] == "ifonly")].iloc[0]
    assert ours["median"] == pytest.approx(0.0046)
    assert ours["max"] == pytest.approx(0.0052)
    assert (ours["proven"], ours["valid"], ours["relative"]) == (1.0, 1.0, 1.0)
    nice = summary[(summary["problem"] == "german-tree") & (summary["method"] == "nice")].iloc[0]
    assert (nice["proven"], nice["relative"]) == (0.0, 2.0)
    table.write(summary, tmp_path)
    text = (tmp_path / "table.md").read_text()
    assert text.count("### ") == len(PROBLEMS)
    assert "| ifonly | 4 | 4.6 ms | 5.1 ms | 5.2 ms |  | 100% | 100% | 1.000, 1.000 |  |" in text
    assert "| nobody | | | | | | | | | unsupported |" in text
    assert len(pd.read_csv(tmp_path / "table.csv")) == len(summary)


def test_failures_are_in_the_table() -> None:
    lines = fake_results()
    lost = (lines["problem"] == "german-tree") & (lines["method"] == "dice-random") & (lines["factual"] < 2)
    lines.loc[lost, ["status", "objective", "valid"]] = ["killed", np.nan, False]
    summary = table.summarise(lines)
    line = summary[(summary["problem"] == "german-tree") & (summary["method"] == "dice-random")].iloc[0]
    assert line["valid"] == 0.5
    assert line["note"] == "2 killed"


@pytest.mark.slow
def test_plots_of_a_fake_run(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    lines = fake_results()
    grown = pd.concat([lines[lines["problem"] == "german-tree"].assign(curve="trees", size=size) for size in (10, 20)])
    paths = plot.save(plot.draw_speed(table.summarise(lines)), tmp_path, "speed")
    paths += plot.save(plot.draw_growth(grown), tmp_path, "growth")
    assert [p.suffix for p in paths] == [".png", ".svg"] * 2
    assert all(p.stat().st_size > 1000 for p in paths)


def test_bars_of_a_fake_run_pass() -> None:
    found = bars.evaluate(fake_results(), BATCH)
    assert len(found) > 20
    assert all(bar.passed for bar in found), [str(b) for b in found if not b.passed]


def test_bars_fail_for_a_slow_run(tmp_path: Path) -> None:
    slow = fake_results(factor=0.5)
    slow.to_csv(tmp_path / "results.csv", index=False)
    text, fine = bars.report(tmp_path)
    assert not fine
    assert "median at least 50 times faster than leafbigm | 0.5 times on 4 rows | FAIL |" in text
    assert "rows per second of one |  | not measured |" in text


def test_bars_by_the_processor_of_a_busy_machine() -> None:
    lines = fake_results().assign(cpu=lambda f: f["seconds"] / np.where(f["method"] == "ifonly", 50, 1))
    slow = lines.assign(seconds=lambda f: np.where(f["method"] == "ifonly", 50, 1) * f["seconds"])
    by_clock, by_processor = (
        {b.text: b.passed for b in bars.evaluate(slow, by=by) if "oceanpy" in b.text} for by in ("seconds", "cpu")
    )
    assert len(by_clock) == 4
    assert not any(by_clock.values())
    assert all(by_processor.values())


def test_a_peer_is_compared_on_the_rows_it_was_asked_for() -> None:
    lines = fake_results(factor=60.0)
    peer = (lines["problem"] == "german-rf-100x5") & (lines["method"] == "leafbigm") & (lines["factual"] > 0)
    ours = (lines["problem"] == "german-rf-100x5") & (lines["method"] == "ifonly") & (lines["factual"] > 0)
    lines.loc[peer, ["status", "seconds", "proven"]] = ["given up", np.nan, False]
    lines.loc[ours, "seconds"] = 100.0
    bar = next(b for b in bars.evaluate(lines) if b.text.startswith("german-rf-100x5: median at least 50"))
    assert bar.passed
    assert bar.measured == "60.0 times on 1 rows"


def test_page_of_a_fake_run(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    lines = fake_results().assign(load=4.0)
    lines.to_csv(tmp_path / "results.csv", index=False)
    BATCH.assign(start=1.0).to_csv(tmp_path / "throughput.csv", index=False)
    tree = lines[lines["problem"] == "german-tree"]
    pd.concat([tree.assign(curve="trees", size=n) for n in (10, 20)]).to_csv(tmp_path / "growth.csv", index=False)
    (tmp_path / "machine.json").write_text(json.dumps({"cores": 2, "processor": "Abacus", "time_limit": 7}))
    docs = tmp_path / "docs"
    text = page.write(tmp_path, docs).read_text()
    assert "2 cores of Abacus" in text
    assert "7 seconds per" in text
    assert "load average was 4.0" in text
    assert text.count("### german-") == sum(name.startswith("german-") for name in PROBLEMS)
    assert "| trees | 20 | ifonly | 4.6 ms | 5.2 ms | 100% |" in text
    assert "| 1000 | 2 | 19.0 | 1.0 s | 200 MB | 210 MB |" in text
    assert sorted(p.name for p in docs.iterdir()) == ["benchmarks-growth.svg", "benchmarks-speed.svg", "benchmarks.md"]


def test_bars_need_what_they_compare() -> None:
    only_ours = fake_results()
    only_ours = only_ours[only_ours["method"] == "ifonly"]
    unknown = [bar for bar in bars.evaluate(only_ours) if bar.passed is None]
    assert any("treecf" in bar.text for bar in unknown)
    assert any("oceanpy" in bar.text for bar in unknown)


def test_a_cheaper_answer_of_a_peer_is_an_error_of_ours() -> None:
    lines = fake_results()
    assert records.beaten(lines).empty
    cheaper = (lines["problem"] == "breast-rf-50x5") & (lines["method"] == "treecf") & (lines["factual"] == 1)
    lines.loc[cheaper, "objective"] = 0.49
    assert len(records.beaten(lines)) == 1
    assert not bars.evaluate(lines)[0].passed


# -- growth ----------------------------------------------------------------------------------------------------------
def test_a_growth_curve_runs(tmp_path: Path) -> None:
    curve = growth.Curve("trees", (3, 5), lambda n: Problem(f"trees-{n}", german, forest(n, 5), "forest"))
    path = tmp_path / "growth.csv"
    found = growth.grow([curve], ["ifonly"], Settings(factuals=1, seconds=30.0), path)
    assert list(found["size"]) == [3, 5]
    assert found["proven"].all()
    assert len(pd.read_csv(path)) == 2


def test_growth_covers_what_the_issue_asks_for() -> None:
    spans = {name: (curve.sizes[0], curve.sizes[-1]) for name, curve in growth.CURVES.items()}
    assert spans["trees"] == (10, 300)
    assert spans["depth"] == (3, 10)
    assert spans["features"] == (10, 60)
    assert spans["rows"] == (1000, 100_000)
    assert spans["classes"] == (2, 10)
    assert spans["layers"] == (1, 4)
    assert spans["radius"] == (0.001, 0.1)
    assert set(spans) == {"trees", "depth", "features", "rows", "classes", "width", "layers", "hull", "radius"}
    assert growth.synthetic(50, 10).frame.shape == (50, 10)
    assert growth.synthetic(500, 12, 5).target.nunique() == 5
