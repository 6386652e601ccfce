"""The tuned numbers are in one frozen value that is really passed on; each says what it was chosen by."""

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from ifonly import Explainer, Manifold, Proximity, Robustness, Sparsity
from ifonly.models.abilities import parts_of
from ifonly.models.form import Form
from ifonly.models.forms.curves import Curve
from ifonly.models.forms.trees import Trees
from ifonly.runtime import tuning as module
from ifonly.runtime.tuning import DEFAULT, CellSearch, Clouds, KnapsackSearch, NoGoodSearch, Shaping, SignSearch, Tuning
from ifonly.runtime.tuning_tables import CACHES, TABLES
from questions import FACTUAL, labels, people, pipeline

SOURCE = Path(module.__file__).parents[1]
X = people(300)
Y = labels(X)
FOREST = pipeline(X, Y, RandomForestClassifier(20, max_depth=5, random_state=0))
LINEAR = pipeline(X, Y, LogisticRegression(C=0.3))


# All groups: those of a Tuning, and those that are used before there is one.
GROUPS = {one.name: getattr(DEFAULT, one.name) for one in fields(Tuning)} | {"TABLES": TABLES, "CACHES": CACHES}


# -- the numbers, and their reasons ----------------------------------------------------------------------------------
def reasons() -> dict[str, str]:
    """Comment of each number: behind it, or on the lines above that hold nothing else."""
    modules = sorted(Path(module.__file__).parent.glob("tuning*.py"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in modules)
    lines, out = text.splitlines(), {}
    for group in (n for n in ast.parse(text).body if isinstance(n, ast.ClassDef) and n.name != "Tuning"):
        for node in (n for n in group.body if isinstance(n, ast.AnnAssign)):
            above = list(takewhile(lambda line: line.startswith("#"), map(str.strip, lines[node.lineno - 2 :: -1])))
            said = [*above[::-1], lines[node.lineno - 1].partition("#")[2]]
            out[f"{group.name}.{ast.unparse(node.target)}"] = " ".join(line.strip("# ") for line in said)
    return out


def test_each_number_has_its_measurement_or_is_called_a_guess() -> None:
    said = reasons()
    assert len(said) == sum(len(fields(group)) for group in GROUPS.values()) > 80
    assert not [name for name, why in said.items() if ("measured" in why) == ("guess" in why)]


def test_a_measurement_names_a_section_that_is_there() -> None:
    notes = (SOURCE.parents[1] / "docs" / "what-was-tried.md").read_text(encoding="utf-8")
    titles = [part for why in reasons().values() for part in why.split('"')[1::2]]
    assert len(titles) >= 5
    assert not [title for title in titles if f"## {title}\n" not in notes]


def test_every_number_is_used() -> None:
    """By its own name, behind a dot, somewhere outside of the module, or in a kernel; a twin elsewhere is not noticed."""
    trees = [ast.parse(p.read_text(encoding="utf-8")) for p in SOURCE.rglob("*.py") if not p.name.startswith("tuning")]
    used = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    kernels = (p.read_text(encoding="utf-8") for p in SOURCE.rglob("*.[ch]"))
    used |= {name for text in kernels for name in re.findall(r"\bnum(?:\.|->)(\w+)", text)}
    assert not [f"{name}.{one.name}" for name, group in GROUPS.items() for one in fields(group) if one.name not in used]
    assert not [one.name for one in fields(Tuning) if one.name not in used]


def test_it_is_frozen_all_through() -> None:
    with pytest.raises(FrozenInstanceError):
        DEFAULT.cells = CellSearch()  # type: ignore[misc]
    for group in GROUPS.values():
        assert is_dataclass(group)
        with pytest.raises(FrozenInstanceError):
            setattr(group, fields(group)[0].name, 1)
    assert hash(Tuning()) == hash(DEFAULT)


@pytest.mark.parametrize("wrong", [-1, np.inf, np.nan, "many", True, 0.5, None])
def test_what_is_no_number_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"CellSearch.most_parts must be a whole number of at least 0.*400000"):
        CellSearch(most_parts=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0.0, 1.0, 3])
def test_a_share_by_which_a_search_would_not_end_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"NoGoodSearch.next_slack must lie between 0 and 1"):
        NoGoodSearch(next_slack=wrong)
    with pytest.raises(ValueError, match=r"SignSearch.away must lie between 0 and 1"):
        SignSearch(away=wrong)


def test_a_group_in_the_wrong_place_is_refused() -> None:
    with pytest.raises(
        TypeError,
        match=r"be a CellSearch.*Tuning\(cells=replace\(Tuning\(\).cells, .* from ifonly.extend",
    ):
        Tuning(cells=KnapsackSearch())  # type: ignore[arg-type]


# -- passed on -------------------------------------------------------------------------------------------------------
IMPATIENT = Tuning(
    cells=CellSearch(first_look=1, first_look_compiled=1, most_parts=0), knapsack=KnapsackSearch(most_nodes=0)
)


@pytest.mark.parametrize("model", [pytest.param(FOREST, marks=pytest.mark.slow), LINEAR], ids=["forest", "linear"])
def test_an_engine_that_gives_up_at_once_leaves_the_same_optimum_to_the_next(model: object) -> None:
    refused = X[np.asarray(model.predict(X)) == "bad"].iloc[:4]  # type: ignore[attr-defined]
    patient, impatient = Explainer(model, X), Explainer(model, X, tuning=IMPATIENT)
    solvers = set()
    for i in range(len(refused)):
        one, other = (e.explain(refused.iloc[[i]], want="good") for e in (patient, impatient))
        assert one.status == other.status == "optimal"
        assert one.solver == "no solver needed"
        assert other[0].certificate.objective == pytest.approx(one[0].certificate.objective, rel=2e-6, abs=1e-9)
        solvers.add(other.solver)
    assert solvers != {"no solver needed"}


def test_the_sample_and_the_isolation_forest_are_as_large_as_was_said() -> None:
    tuned = Explainer(
        LINEAR, X, tuning=replace(Tuning(), asking=replace(DEFAULT.asking, sample=10), clouds=Clouds(trees=3))
    )
    assert len(tuned.training.sample) == 10
    assert len(Explainer(LINEAR, X).training.sample) == len(X)
    asked = tuned.problem(FACTUAL, want="good", criteria=[Manifold(isolation=0.1)]).statement
    (normal,) = [d for d in asked.demands if type(d).__name__ == "Normal"]
    assert normal.model.read.form.n_trees == 3  # type: ignore[attr-defined]


def test_a_robust_answer_and_a_hull_are_the_same_by_other_numbers() -> None:
    """All of them halved: other ways, the same proven cost."""
    half = Tuning(
        **{
            one.name: type(group)(**{f.name: _halved(getattr(group, f.name)) for f in fields(group)})
            for one in fields(Tuning)
            if (group := getattr(DEFAULT, one.name)) and one.name not in ("clouds", "answering")
        }
    )
    one, other = (Explainer(LINEAR, X, Y, tuning=tuning) for tuning in (DEFAULT, half))
    for criteria in ([Robustness(0.01)], [Manifold()], [Sparsity(at_most=2), Proximity("l2")]):
        proofs = [e.explain(FACTUAL, want="good", criteria=criteria)[0].certificate for e in (one, other)]
        assert all(proof.status == "optimal" for proof in proofs)
        assert proofs[1].objective == pytest.approx(proofs[0].objective, rel=2e-6)


def test_the_forms_of_a_model_have_the_numbers_in_all_their_parts() -> None:
    """A calibrated forest: a curve around a combination of trees, here of fewer pieces and in smaller blocks."""
    shaped = Tuning(forms=Shaping(pieces=3, finer=2.0, rows_at_once=7))
    model = CalibratedClassifierCV(pipeline(X, Y, RandomForestClassifier(5, max_depth=3, random_state=0)), cv=2).fit(
        X, Y
    )
    usual, other = (Explainer(model, X, tuning=tuning) for tuning in (DEFAULT, shaped))
    found = list(parts(other.model.read.form))
    assert {p.rows_at_once for p in found if isinstance(p, Trees)} == {7}
    curves = [p for p in found if isinstance(p, Curve)]
    assert curves
    assert {(c.pieces, c.tuning.finer) for c in curves} == {(3, 2.0)}
    assert {c.pieces for c in parts(usual.model.read.form) if isinstance(c, Curve)} == {DEFAULT.forms.pieces}
    assert np.array_equal(other.model.read.form(other.training.U), usual.model.read.form(usual.training.U))
    costs = [e.explain(FACTUAL, want="good")[0].certificate.objective for e in (usual, other)]
    assert costs[1] == pytest.approx(costs[0], rel=2e-6)


def parts(form: Form) -> Iterator[Form]:
    yield form
    for part in parts_of(form):
        yield from parts(part)


def _halved(number: object) -> object:
    return max(number // 2, 1) if isinstance(number, int) else number / 2 if isinstance(number, float) else number


def test_copies_and_pickles_keep_it() -> None:
    explainer = Explainer(LINEAR, X, tuning=IMPATIENT)
    for twin in (copy.copy(explainer), copy.deepcopy(explainer), pickle.loads(pickle.dumps(explainer))):
        assert twin.training.tuning == IMPATIENT
        assert twin.tuning == IMPATIENT
    assert Explainer(LINEAR, X).tuning == DEFAULT


def test_what_is_no_tuning_is_refused_in_a_sentence() -> None:
    with pytest.raises(TypeError, match=r"must be a Tuning, got \{'cells': 1\}. Write tuning=Tuning"):
        Explainer(LINEAR, X, tuning={"cells": 1})  # type: ignore[arg-type]
