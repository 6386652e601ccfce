"""The paper's comparison: metrics by hand, records that resume, tables, figures, bars; with the data, every method."""

# ruff: noqa: E402 - benchmarks are not installed, so their folder must be found first

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.paper import answers, authors, bars, enumeration, measure, metrics, radar, remote, tables
from benchmarks.paper.__main__ import options
from benchmarks.paper.answers import Cell
from benchmarks.paper.measure import _made_whole
from benchmarks.paper.models import Fitted
from benchmarks.paper.replies import Reply
from benchmarks.paper.run import plan
from benchmarks.paper.sets import Data, factual_positions
from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.encoding import Encoding, Field
from benchmarks.speed.problems import encode

from ifonly import Actionability, Explainer, Schema
from ifonly.cli import files, main
from ifonly.datasets import Dataset
from ifonly.extend import check_reader

ENCODING = Encoding(
    (
        Field("income", "number", (2,), 0.0, 100.0),
        Field("job", "category", (0, 1), levels=("none", "some")),
        Field("years", "integer", (3,), 0.0, 10.0),
    )
)
CATEGORICAL = np.array([False, True, False])
FACTUAL = np.array([10.0, 0.0, 5.0])


# -- metrics ---------------------------------------------------------------------------------------------------------
def test_metrics_by_hand() -> None:
    """Two answers: income 10 -> 14 with job switched; years 5 -> 2. Three features, one of them a category."""
    rows = np.array([[14.0, 1.0, 5.0], [10.0, 0.0, 2.0]])
    found = metrics.paper_measures(FACTUAL, rows, CATEGORICAL, np.array([True, False]))
    assert found["validity"] == 0.5
    assert found["cat_proximity"] == 1 - 1 / 2
    assert found["cont_proximity"] == -(4 + 3) / 2
    assert found["sparsity"] == pytest.approx(1 - 3 / 6)
    # Between the two: the job differs, l1 is 4 + 3, all three features differ.
    assert [found[m] for m in metrics.DIVERSITY] == [1.0, 7.0, 1.0]


def test_metrics_without_an_answer_or_a_category() -> None:
    none = metrics.paper_measures(FACTUAL, np.zeros((0, 3)), CATEGORICAL, np.zeros(0, dtype=bool))
    assert none["validity"] == 0.0
    assert np.isnan([none[m] for m in (*metrics.PROXIMITY[1:], *metrics.DIVERSITY)]).all()
    numbers = metrics.paper_measures(
        FACTUAL[[0, 2]], np.array([[11.0, 5.0]]), np.zeros(2, dtype=bool), np.array([True])
    )
    assert np.isnan(numbers["cat_proximity"])
    assert np.isnan(numbers["sparsity_diversity"])
    assert numbers["sparsity"] == 0.5


def test_faults_are_counted_per_answer() -> None:
    rows = np.array([[10.0, 0.0, 5.5], [10.0, np.nan, 5.0], [101.0, 0.0, 5.0], [12.0, 1.0, 6.0]])
    found = metrics.faults(FACTUAL, rows, ENCODING, ("job",))
    assert found == {"immutable": 0.5, "integer": 0.25, "category": 0.25, "outside": 0.25}


def test_distances_to_real_rows_and_their_hull() -> None:
    """Rows at the corners (0, 0), (100, 0), (0, 10) of one job: the hull is a triangle in units of the ranges."""
    matrix = np.array([[1, 0, 0, 0], [1, 0, 100, 0], [1, 0, 0, 10]], dtype=float)
    real = metrics.Real.of(matrix, ENCODING)
    assert real.hull_distance(np.array([30.0, 0.0, 3.0])) == pytest.approx(0.0, abs=1e-9)
    # (1, 1) is sqrt(1/2) from the middle of the long side.
    assert real.hull_distance(np.array([100.0, 0.0, 10.0])) == pytest.approx(np.sqrt(0.5))
    # The other job is one unit of l1 away (half a unit in each of two columns).
    assert real.row_distance(np.array([0.0, 1.0, 2.0])) == pytest.approx(1.2)
    assert real.hull_distance(np.array([0.0, 1.0, 0.0])) == pytest.approx(np.sqrt(0.5))


def test_least_norm_of_random_hulls_is_optimal() -> None:
    """At the nearest point x of a hull, no point p of it has p x < x x."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        points = rng.normal(size=(40, 4)) + rng.normal(size=4) * 2
        least = metrics.least_norm(points)
        # A bound from below by a few thousand directions, and from above by random mixtures.
        directions = rng.normal(size=(4000, 4))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        assert (points @ directions.T).min(axis=0).max() <= least + 1e-9
        mixtures = rng.dirichlet(np.full(40, 0.1), size=4000) @ points
        assert np.linalg.norm(mixtures, axis=1).min() >= least - 1e-9


def test_a_category_with_two_levels_is_no_code() -> None:
    rows = np.array([[1.0, 0.0, 5.0, 1.0], [1.0, 1.0, 5.0, 1.0], [0.4, 0.6, 5.0, 1.0]])
    codes = remote.coded(rows, ENCODING)
    assert codes[0].tolist() == [5.0, 0.0, 1.0]
    assert np.isnan(codes[1:, 1]).all()


@pytest.mark.parametrize("limit", [0.1, 0.37, 1 / 3, 0.9])
def test_thresholds_are_moved_to_the_last_float(limit: float) -> None:
    cut = remote._last_below(limit, 1 / 771.0, -0.002, (0.0, 771.0))
    above = float(np.nextafter(np.float32(cut), np.float32(np.inf), dtype=np.float32))
    assert cut == np.float32(cut)
    scaled = [float(np.float32(x * (1 / 771.0) - 0.002)) for x in (cut, above)]
    assert scaled[0] <= limit < scaled[1]


# -- what is kept ----------------------------------------------------------------------------------------------------
def test_factuals_are_thirty_different_rows_of_each_set() -> None:
    found = factual_positions()
    assert {name: (len(rows), len(set(rows))) for name, rows in found.items()} == dict.fromkeys(found, (30, 30))
    assert len(found) == 4


def test_published_figures_are_those_of_the_paper() -> None:
    one, three = measure.published(1), measure.published(3)
    assert (len(one), len(three)) == (24, 60)
    line = one[(one["data"] == "compas") & (one["method"] == "CE-OCL")].iloc[0]
    assert (line["cont_proximity"], line["sparsity"]) == (-15.23, 0.85)


def test_answers_are_kept_and_found_again(tmp_path: Path) -> None:
    path, cell = tmp_path / "answers.csv", Cell("compas", "rf", "face", 1)
    rows = np.array([[1.0, np.nan, 3.5]])
    answers.append(path, answers.line_of(cell, 7, Reply("found", 0.25, rows, note="two\nlines"), 60.0))
    answers.append(path, answers.line_of(cell, 8, Reply("killed", 60.0), 60.0))
    answers.append(path, answers.not_opened(Cell("compas", "rf", "nice", 1), "unsupported", "why", 60.0))
    assert answers.done(path) == {(cell, 7), (cell, 8), (Cell("compas", "rf", "nice", 1), -1)}
    lines = answers.read(path)
    np.testing.assert_array_equal(answers.rows_of(lines["answers"][0], 3), rows)
    assert answers.rows_of(lines["answers"][1], 3).shape == (0, 3)
    assert lines["note"][0] == "two lines"
    assert lines["limit"].tolist() == [60.0] * 3


# -- tables, figures and bars ----------------------------------------------------------------------------------------
def fake_instances() -> pd.DataFrame:
    """Ours and two peers on one model, two factuals each; one peer hangs on the second."""
    lines = []
    figures = {
        "ifonly": (1.0, 1.0, -4.0, 0.86),
        "ifonly-fewest": (1.0, 1.0, -5.0, 0.87),
        "ifonly-nearest": (1.0, 0.9, -3.0, 0.80),
        "dice-genetic": (1.0, 0.9, -40.0, 0.60),
        "face": (0.5, 0.7, -90.0, 0.40),
        "ifonly-diverse": (1.0, 0.9, -50.0, 0.7),
    }
    for method, values in figures.items():
        for factual in (8, 25):
            lost = method == "face" and factual == 25
            line = {"data": "compas", "model": "rf", "method": method, "factual": factual, "proven": True, "note": ""}
            line |= {"n": 3 if method == "ifonly-diverse" else 1, "status": "killed" if lost else "found"}
            line |= dict.fromkeys(measure.MEASURES, np.nan) | {"seconds": 1.0, "answered": float(not lost)}
            if not lost:
                line |= dict(zip(metrics.PROXIMITY, values, strict=True)) | dict.fromkeys(metrics.QUALITY, 0.0)
                line["cont_proximity"] = values[2] - (factual == 25)
            else:
                line["validity"] = 0.0
            lines.append(line)
            if method in ("ifonly-diverse", "dice-genetic"):
                lines.append(line | {"n": 3, "sparsity_diversity": 0.3 if method == "ifonly-diverse" else 0.2})
    return pd.DataFrame(lines)


def test_tables_show_mean_error_best_and_the_paper() -> None:
    cells = measure.summary(fake_instances())
    text = tables.markdown(tables.combined(cells, 1), 1)
    assert "### compas, rf" in text
    assert "| ifonly | 2/2 | **1.00** (0.00) | **1.00** (0.00) | -4.50 (0.50) | 0.86 (0.00) |  |" in text
    assert "**-3.50** (0.50)" in text
    assert "| face | 1/2 | 0.25 (0.25) |" in text
    assert "| 1 killed |" in text
    assert "| paper: CE-OCL | 30 | 1.00 (0.00) | 1.00 (0.00) | -15.23 (5.84) | 0.85 (0.01) |  |" in text
    lines = tables.latex(tables.combined(cells, 1), 1).splitlines()
    assert lines[0] == "\\begin{tabular}{lllcccc}"
    assert any(line.startswith("compas & rf & ifonly & \\textbf{1.00} (0.00)") for line in lines)
    assert any("paper: CE-OCL\\_tr" in line for line in lines)
    assert "| compas | face | 1 |" in tables.faults_markdown(cells)


def test_radar_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    cells = measure.summary(fake_instances())
    scaled = radar.rescaled(cells[cells["n"] == 1], metrics.PROXIMITY)
    assert scaled["cont_proximity"].min() == 0.0
    assert scaled["cont_proximity"].max() == 1.0
    paths = radar.save(radar.draw(cells, "compas", "rf", 1), tmp_path, "radar")
    assert [p.suffix for p in paths] == [".png", ".svg"]
    assert all(p.stat().st_size > 1000 for p in paths)
    assert radar.draw(cells, "adult", "rf", 1) is None


def test_bars_of_a_fake_run() -> None:
    table = fake_instances()
    found = {bar.text: bar for bar in bars.all_bars(table, measure.summary(table))}
    assert all(bar.holds for text, bar in found.items() if "forest" not in text), found
    text = bars.markdown(list(found.values()))
    assert "| yes |" in text
    worse = table.copy()
    worse.loc[worse["method"] == "ifonly", ["validity", "integer", "cont_proximity"]] = [0.5, 0.5, -100.0]
    broken = {bar.text: bar for bar in bars.all_bars(worse, measure.summary(worse))}
    lost = [text for text, bar in broken.items() if bar.holds is False]
    assert len(lost) == 4
    exceptions = [e for text in lost for e in broken[text].exceptions]
    assert "compas, rf, ifonly, 1: 0.50 ()" in exceptions
    assert any("-100.00 here, -15.23 printed; ifonly-nearest has -3.50" in e for e in exceptions), exceptions
    # A peer that beats the balanced row on its own instances is named.
    better = table.copy()
    better.loc[better["method"] == "dice-genetic", "cont_proximity"] = -0.5
    named = [e for bar in bars.against_peers(better) for e in bar.exceptions]
    assert "compas, rf, dice-genetic: -3.500 against -0.500 (2 instances)" in named


# -- the command line ------------------------------------------------------------------------------------------------
def test_bench_paper_needs_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "checkout", lambda: None)
    result = CliRunner().invoke(main, ["bench", "paper", "--data", "adult"])
    assert result.exit_code == 4
    assert "runs from a checkout" in result.stderr
    assert files.checkout is not None


def test_bench_paper_runs_from_a_checkout(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert files.checkout() == ROOT
    asked = ["bench", "paper", "--data", "compas", "--models", "rf", "--report", "--out", str(tmp_path)]
    assert CliRunner().invoke(main, asked).exit_code == 4
    assert "nothing to report yet" in capfd.readouterr().err


def test_a_stranger_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options(["--data", "iris"])
    assert "'iris' is none of adult" in capsys.readouterr().err
    quick = options(["--quick"])
    assert (quick.factuals, quick.models) == (3, ["lr", "rf"])
    assert not set(quick.methods) & set(PEERS)


# -- with the data ---------------------------------------------------------------------------------------------------
@pytest.mark.data
def test_compas_is_asked_resumed_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.paper.__main__ import main as compare

    methods = "ifonly,ifonly-fewest,ifonly_tr,face,growing-spheres,actionable-recourse"
    asked = {"--data": "compas", "--models": "rf", "--methods": methods, "--answers": "1", "--factuals": "2"}
    chosen = ["--quick", "--out", str(tmp_path), *(word for pair in asked.items() for word in pair)]
    assert compare(chosen) == 0
    lines = answers.read(tmp_path / "answers.csv")
    assert set(lines["method"]) == set(methods.split(","))
    unsupported = lines[lines["factual"] == answers.NOT_OPENED]
    assert set(unsupported["status"]) == {"unsupported"}
    assert set(unsupported["method"]) == {"actionable-recourse"}
    cells = pd.read_csv(tmp_path / "cells.csv")
    own = cells[cells["method"].str.startswith("ifonly")]
    assert (own["validity"] == 1.0).all()
    assert (own[["immutable", "integer", "category", "outside"]] == 0.0).all(axis=None)
    for name in ("table2_one_answer.md", "table2_one_answer.tex", "bars.md", "instances.csv"):
        assert (tmp_path / name).stat().st_size > 100
    # Interrupted: half of the lines are lost. What is there is not asked again, and the figures are the same.
    text = (tmp_path / "answers.csv").read_text().splitlines(keepends=True)
    half = len(text) // 2
    (tmp_path / "answers.csv").write_text("".join(text[:half]))
    assert compare(chosen) == 0
    again = (tmp_path / "answers.csv").read_text().splitlines(keepends=True)
    assert again[:half] == text[:half]
    assert len(again) == len(text)
    measures = ["cont_proximity", "sparsity", "validity"]
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "cells.csv")[measures], cells[measures])
    capsys.readouterr()


@pytest.mark.data
def test_peers_hold_the_same_models() -> None:
    from benchmarks.paper.local import linear_parts
    from benchmarks.paper.models import fitted

    for name in ("rf", "svm", "lr"):
        source = fitted(name, "compas")
        data = source.data
        frame = data.test.frame
        matrix = data.matrix(frame)
        expected = source.wanted(frame)
        assert (source.wanted(data.frame(data.codes(frame))) == expected).all()
        assert ((remote.on_matrix(source).predict(matrix) == data.train.wanted) == expected).all()
        if name == "rf":
            assert ((remote.raw_forest(source).predict(matrix) == data.train.wanted) == expected).all()
        else:
            parts = linear_parts(source)
            codes = data.codes(frame)
            score = parts.intercept + sum(parts.part(j, codes[:, j]) for j in range(codes.shape[1]))
            assert ((score > 0) == expected).all()


@pytest.mark.data
def test_listed_factuals_are_located(tmp_path: Path) -> None:
    """The positions lead to rows of the right size; the script finds rows again from their values."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from locate_paper_factuals import positions

    from ifonly import datasets

    test = datasets.compas("test")
    rows = list(factual_positions()["compas"])
    listed = test.frame.iloc[rows].assign(score=test.target.iloc[rows])
    found, farthest = positions(listed, test)
    assert farthest == 0.0
    assert sorted(found) == sorted(rows)
    assert json.loads((ROOT / "benchmarks" / "paper" / "factuals.json").read_text())["compas"] == rows
    assert os.environ.get("IFONLY_DATA")


def test_a_whole_number_that_is_off_by_rounding_is_whole() -> None:
    fields = (Field("late", "integer", (0,), 0.0, 9.0), Field("share", "number", (1,), 0.0, 1.0))
    rows = np.array([[0.99999997, 0.99999997], [2.4, 0.5], [np.nan, 0.1]])
    made = _made_whole(rows, Encoding(fields))
    assert made.tolist()[:2] == [[1.0, 0.99999997], [2.4, 0.5]]
    assert np.isnan(made[2, 0])


# -- the authors' own forests ----------------------------------------------------------------------------------------
# Two trees on (age, income / 100, job=some): the share of class 1 is high from an income of 40 on with a job, and 60 without.
SMALL_FOREST = {
    "columns": ["age", "income", "job=some"],
    "minimum": {"age": 20.0, "income": 0.0},
    "maximum": {"age": 60.0, "income": 100.0},
    "trees": [
        {
            "column": [2, 1, -2, -2, 1, -2, -2],
            "threshold": [0.5, 0.595, -2.0, -2.0, 0.395, -2.0, -2.0],
            "left": [1, 2, -1, -1, 5, -1, -1],
            "right": [4, 3, -1, -1, 6, -1, -1],
            "p1": [0.5, 0.5, 0.1, 0.9, 0.5, 0.1, 0.9],
        },
        {
            "column": [0, -2, -2],
            "threshold": [0.5, -2.0, -2.0],
            "left": [1, -1, -1],
            "right": [2, -1, -1],
            "p1": [0.5, 0.4, 0.3],
        },
    ],
    "check_rows": [[0.0, 0.6, 0.0], [1.0, 0.5, 0.0], [1.0, 0.5, 1.0]],
    "check_p1": [0.65, 0.2, 0.6],
}


def small_authors_set(folder: Path) -> Data:
    """A data set of 60 people, of whom two are the factuals, and its forest in a file."""
    rng = np.random.default_rng(0)
    levels = pd.CategoricalDtype(["none", "some"])
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 61, 60),
            "job": pd.Series(rng.choice(["none", "some"], 60), dtype=levels),
            "income": rng.integers(0, 101, 60),
        }
    )
    frame.loc[:1, ["age", "income"]] = [[20, 0], [60, 100]]
    frame.loc[2:3, ["age", "job", "income"]] = [[30, "none", 35], [50, "some", 20]]
    target = pd.Series((frame["income"] > 50).astype(int), name="y")
    schema = Schema.infer(frame)
    people = Dataset("people", frame, target, schema, 1, ("age",), "made up", "nobody", "none")
    (folder / "authors_forest_people.json").write_text(json.dumps(SMALL_FOREST))
    return Data("people", people, people, (2, 3), encode(schema))


def test_the_authors_forests_are_read_as_a_third_party_reads(tmp_path: Path) -> None:
    data = small_authors_set(tmp_path)
    model = authors.pipeline(tmp_path / "authors_forest_people.json", data)
    assert model.predict(data.factuals).tolist() == [0, 0]
    check_reader(model, data.train.frame, schema=data.train.schema)
    explainer = Explainer(model, data.train.frame, schema=data.train.schema)
    house = [Actionability(frozen=["age"])]
    first, second = (explainer.explain(data.test.frame.iloc[[p]], want=1, criteria=house) for p in (2, 3))
    # By hand: without a job from 35 to 60 is 0.25 of the range, a job costs 1 and 40 would still be needed.
    assert [(c.feature, c.after) for c in first[0].changes] == [("income", 60)]
    assert [(c.feature, c.after) for c in second[0].changes] == [("income", 40)]


def test_enumeration_counts_the_changes_that_are_needed(tmp_path: Path) -> None:
    data = small_authors_set(tmp_path)
    model = authors.pipeline(tmp_path / "authors_forest_people.json", data)
    found = enumeration.fewest(Fitted(data, "authors", model, (2, 3), ()))
    assert (found.by_one, found.by_two, found.more, found.features) == (2, 0, 0, 3)
    # With income at most 50, the one without a job needs both; frozen jobs as well, and nothing turns it.
    for frozen, expected in ((("age",), (1, 1, 0)), (("age", "job"), (1, 0, 1))):
        people = replace(data.train, immutable=frozen)
        fields = tuple(replace(f, high=50.0) if f.name == "income" else f for f in data.encoding.fields)
        narrow = replace(data, train=people, encoding=Encoding(fields))
        found = enumeration.fewest(Fitted(narrow, "authors", model, (2, 3), ()))
        assert (found.by_one, found.by_two, found.more) == expected
    assert found.sparsity == pytest.approx(1 - (1 + 3) / (2 * 3))
    assert "| people | 1 | 0 | 1 | at most 0.333 |" in enumeration.markdown([found])


def test_a_damaged_or_missing_forest_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = small_authors_set(tmp_path)
    path = tmp_path / "authors_forest_people.json"
    path.write_text(json.dumps(SMALL_FOREST | {"check_p1": [0.65, 0.3, 0.6]}))
    with pytest.raises(ValueError, match="damaged"):
        authors.pipeline(path, data)
    path.write_text(json.dumps(SMALL_FOREST | {"columns": ["age", "income", "job=other"]}))
    with pytest.raises(ValueError, match="the data's levels are"):
        authors.pipeline(path, data)
    monkeypatch.delenv(authors.FOLDER, raising=False)
    with pytest.raises(authors.ForestMissing, match="--forests FOLDER"):
        authors.forest_file("people")
    monkeypatch.setenv(authors.FOLDER, str(tmp_path))
    assert authors.forest_file("people") == path
    with pytest.raises(authors.ForestMissing, match="authors_forest_adult"):
        authors.forest_file("adult")


def test_the_printed_forest_stands_beside_the_authors_own() -> None:
    table = fake_instances()
    table["model"] = "authors"
    cells = measure.summary(table)
    text = tables.markdown(tables.combined(cells, 1), 1)
    assert "### compas, authors" in text
    assert "| paper: CE-OCL | 30 | 1.00 (0.00) | 1.00 (0.00) | -15.23 (5.84) | 0.85 (0.01) |  |" in text
    said = {bar.text: bar.holds for bar in bars.against_paper(cells)}
    assert said["sparsity: at least the paper's CE-OCL in every cell of its table 2, on the authors' own forests"]
    cells_planned = plan(["compas"], ["authors"], ["ifonly", "nice"])
    assert [c.method for c in cells_planned] == ["ifonly", "ifonly"]
