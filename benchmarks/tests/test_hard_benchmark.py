"""The hard regime: its lines, its goals as bars, a run of a small line, the page, and the peers that take it."""

# ruff: noqa: E402 - benchmarks are not installed, so their folder must be found first

import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.calls import Calls
from benchmarks.hard import __main__ as command
from benchmarks.hard import page, tables
from benchmarks.hard.goals import Goal, evaluate
from benchmarks.hard.lines import LINES, Line
from benchmarks.hard.run import Options, run_line
from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.memory import forget_peak, peak_memory
from benchmarks.speed import records, sections
from benchmarks.speed.asking import PLAIN, Ask
from benchmarks.speed.growth import synthetic
from benchmarks.speed.methods import EXACT
from benchmarks.speed.ours import Ours
from benchmarks.speed.problems import Problem, breast_cancer, forest, prepare
from benchmarks.speed.records import Record

from ifonly import Diversity, Sparsity

GROUPS = {
    "l-infinity",
    "l1, breast cancer",
    "l1, HELOC",
    "several classes",
    "networks",
    "robust balls",
    "linear, wide",
    "hulls",
    "ten answers",
    "latency",
}


def small(rows: int = 300) -> tables.Table:
    return synthetic(rows, 4)


def line(ask: Ask = PLAIN) -> Line:
    return Line(
        "small", Problem("small", small, forest(4, 3), "forest", ask), Goal(30.0), "nothing", limit=20.0, rows=2
    )


# -- the table -------------------------------------------------------------------------------------------------------
def test_lines_are_those_of_the_issue() -> None:
    assert {known.group for known in LINES.values()} == GROUPS
    assert len(LINES) == 51
    for known in LINES.values():
        assert known.before
        assert any(value is not None for name, value in asdict(known.goal).items() if name != "within")
        assert not set(known.name) & set(" |,")


def test_names_and_groups_choose_lines() -> None:
    assert [known.name for known in command._chosen("latency")] == [
        "german-logistic",
        "german-tree",
        "breast-logistic",
        "breast-tree",
    ]
    assert {known.name for known in command._chosen("wine,l-infinity")} >= {"wine-voting", "breast-rf-50x5-linf"}
    assert len(command._chosen(None)) == len(LINES)


def test_scaled_numbers_have_a_range_of_one() -> None:
    table = tables.scaled(breast_cancer)()
    assert (table.frame.min() == 0.0).all()
    assert (table.frame.max() == 1.0).all()
    assert (table.frame == table.frame.astype(np.float32)).all(axis=None)
    assert set(table.target) == {0, 1}
    assert table.target.sum() == (breast_cancer().target == "benign").sum()


# -- asking ----------------------------------------------------------------------------------------------------------
def test_a_small_line_is_run_and_resumed(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    run_line(line(), Options(path))
    found = records.load(path)
    assert list(found["status"]) == ["opened", "found", "found"]
    asked = found[found["factual"] >= 0]
    assert asked["proven"].all()
    assert asked["valid"].all()
    assert (asked["calls"] >= 1).all()
    assert (asked["cpu"] >= asked["model_cpu"]).all()
    assert (asked["peak"] > 1.0).all()
    assert np.allclose(asked["cost"], asked["objective"])
    run_line(line(), Options(path))
    assert len(path.read_text().splitlines()) == 3
    run_line(line(), Options(path, rows=3))
    assert len(records.load(path)) == 4


@pytest.mark.parametrize(
    "ask",
    [
        Ask("linf"),
        Ask("l2"),
        Ask(probability=0.6),
        Ask(batch=True),
        Ask(schema=False),
        Ask(demands=lambda: [Sparsity(at_most=2)]),
        Ask(answers=2, demands=lambda: [Diversity("features")]),
    ],
)
def test_every_kind_of_question_is_asked_and_judged(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    run_line(line(ask), Options(path))
    asked = records.load(path).query("factual >= 0")
    assert asked["valid"].all()
    assert asked["proven"].all()
    if ask.plain:
        assert np.allclose(asked["cost"], asked["objective"])
    else:
        assert not ask.plain


def test_an_answer_below_the_probability_is_refused() -> None:
    case = prepare(Problem("small", small, forest(4, 3), "forest"), 1)
    frame = case.table.frame.iloc[: len(case.table.frame) // 2]
    one = frame[case.model.predict(frame) == "yes"].iloc[[0]]
    reached = float(case.model.predict_proba(one)[0, case.want])
    assert Ask(probability=reached).accepts(case.model, one, "yes")
    assert not Ask(probability=min(1.0, reached + 1e-9) + 1e-9).accepts(case.model, one, "yes")


def test_calls_of_the_model_are_counted_once_and_end() -> None:
    case = prepare(Problem("small", small, forest(4, 3), "forest"), 1)
    calls = Calls(case.model)
    case.model.predict(case.table.frame)  # a forest asks for its own probabilities
    assert calls.count == 1
    assert calls.seconds > 0.0
    calls.end()
    assert not set(vars(case.model)) & {"predict", "predict_proba"}
    session = Ours(case, "auto")
    session.close()
    assert not set(vars(case.model)) & {"predict", "predict_proba"}


def test_the_peak_of_memory_is_forgotten() -> None:
    big = np.ones(30_000_000)
    assert peak_memory() > 200.0
    del big
    forget_peak()
    before = peak_memory()
    held = np.ones(5_000_000)
    assert peak_memory() >= before + 30.0
    del held


# -- goals -----------------------------------------------------------------------------------------------------------
def record(method: str, row: int, **values: object) -> Record:
    base = Record(
        "small", method, row, "found", 1.0, True, True, True, 0.5, cpu=0.1, model_cpu=0.01, calls=1.0, peak=100.0
    )
    return replace(base, **values)  # type: ignore[arg-type]


def held(goal: Goal, *lines: Record) -> dict[str, bool | None]:
    return {bar.text: bar.passed for bar in evaluate(pd.DataFrame(map(asdict, lines)), {"small": goal})}


def test_goals_become_bars() -> None:
    lines = [record("ifonly", k, cpu=0.1 * (k + 1)) for k in range(4)]
    opened = replace(record("ifonly", -1), status="opened", cpu=1.5, peak=30.0)
    goal = Goal(0.3, most=0.35, proven=0.8, within=0.3, answered=1.0, own=0.2, peak=50.0, made=2.0, made_mb=20.0)
    assert held(goal, *lines, opened) == {
        "no answer of a peer, confirmed by predict, is better than a proven one of ours": True,
        "every answer of ours is confirmed by the model": True,
        "every answer of ours keeps its time limit, within 10% or 50 ms": True,
        "small: median under 0.3 s": True,
        "small: every answer under 0.35 s": False,
        "small: median under 0.2 s, not counting the predict of the model itself": False,
        "small: at least 80% proven within 0.3 s": False,
        "small: all answered": True,
        "small: peak memory at most 50 MB": False,
        "small: constructor at most 2 s": True,
        "small: memory of the constructor at most 20 MB": False,
    }
    assert set(held(goal, opened).values()) == {True, None}


def test_a_better_peer_is_a_failure_and_a_faster_one_a_bar() -> None:
    ours = [record("ifonly", k) for k in range(2)]
    peer = [record("veritas", 0, cpu=0.05), record("veritas", 1, cpu=0.05, valid=False, objective=0.1)]
    bars = held(Goal(1.0), *ours, *peer)
    assert bars["no answer of a peer, confirmed by predict, is better than a proven one of ours"]
    assert bars["small: median no slower than veritas"] is False
    better = record("veritas", 1, objective=0.4)
    first = next(iter(held(Goal(1.0), *ours, better).values()))
    assert first is False


def test_an_unconfirmed_answer_of_ours_is_a_failure() -> None:
    assert held(Goal(1.0), record("ifonly", 0, valid=False))["every answer of ours is confirmed by the model"] is False


def test_late_answers_are_counted_by_the_clock() -> None:
    text = "every answer of ours keeps its time limit, within 10% or 50 ms"
    assert held(Goal(1.0), record("ifonly", 0, seconds=1.09, limit=1.0))[text]
    assert held(Goal(1.0), record("ifonly", 0, seconds=0.14, limit=0.1))[text]
    assert held(Goal(1.0), record("ifonly", 0, seconds=1.2, limit=1.0))[text] is False
    assert held(Goal(1.0), record("ifonly", 0), record("veritas", 0, seconds=9.0, limit=1.0))[text]


# -- peers -----------------------------------------------------------------------------------------------------------
def test_peers_take_what_they_know() -> None:
    assert set(EXACT) <= set(PEERS)
    assert PEERS["veritas"].refuses("forest", "l1", 2) == "l1 distance"
    assert PEERS["veritas"].refuses("forest", "linf", 2) == ""
    assert PEERS["treecf"].refuses("forest", "l1", 3) == "model of 3 classes"
    assert PEERS["oceanpy-maxsat"].refuses("network", "l1", 2) == "network model"
    assert PEERS["oceanpy"].refuses("forest", "l1", 10) == ""
    assert all(peer.path.is_file() for peer in PEERS.values())


# -- the page --------------------------------------------------------------------------------------------------------
def test_sections_are_put_in_their_place(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Title\n\nHead.\n\n## One\n\n```bash\n## no title\n```\n\n## Two\n\nsecond\n")
    sections.put(path, "One", "first\n")
    sections.put(path, "Three", "third\n")
    assert sections.titles(path) == ["One", "Two", "Three"]
    assert path.read_text() == "# Title\n\nHead.\n\n## One\n\nfirst\n\n## Two\n\nsecond\n\n## Three\n\nthird\n"


def test_the_page_has_the_table_the_bars_and_a_place_for_balls(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path, docs = tmp_path / "records.jsonl", tmp_path / "docs"
    name = "breast-rf-50x5-linf"
    lines = [replace(record(m, k), problem=name, load=3.0) for m in ("ifonly", "veritas") for k in range(2)]
    lines.append(replace(record("oceanpy", -1), problem=name, status="unsupported"))
    records.append(path, lines)
    text = page.write(path, docs).read_text()
    assert sections.titles(docs / "benchmarks.md") == [page.TITLE, page.ROBUST]
    assert f"| {name} | median 0.05 s | 0.7 to 3.3 s | ifonly | 0.10 s | 0.10 s | 2 of 2 | 2 of 2 | 1.0 |" in text
    assert f"| {name}: median no slower than veritas | 1.0 times on 2 rows | pass |" in text
    assert "| | | | oceanpy | unsupported |" in text
    assert [p.name for p in docs.glob("*.svg")] == ["benchmarks-hard.svg"]
    assert not list(docs.glob("*.png"))
    sections.put(docs / "benchmarks.md", page.ROBUST, "216 cells\n")
    assert "216 cells" in page.write(path, docs).read_text()
