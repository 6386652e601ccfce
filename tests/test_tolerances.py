"""The gap, the certificate and the status say what objective and bound imply, whatever gap was asked for."""

from __future__ import annotations

import ast
import math
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

import questions
from ifonly import Explainer, NotProvenOptimal, Proximity
from ifonly.result.serial import explanation_from_dict, explanation_to_dict
from ifonly.result.values import Certificate, relative_gap, worst_status
from ifonly.tolerances import OPTIMALITY, allowed_gap, closing_gap
from worlds import world_of

COSTS = st.floats(0.0, 1e12)


@given(COSTS, COSTS)
def test_the_gap_is_relative_to_the_objective(objective: float, bound: float) -> None:
    gap = relative_gap(objective, bound)
    assert 0.0 <= gap <= 1.0
    if objective > 0.0 and bound < objective:
        assert gap == pytest.approx(1.0 - bound / objective, abs=1e-15)
        assert objective * (1.0 - gap) == pytest.approx(bound, rel=1e-9, abs=1e-15 * objective)
    else:
        assert gap == 0.0


def test_no_bound_is_an_infinite_gap_except_for_a_cost_of_nothing() -> None:
    assert relative_gap(0.4, -math.inf) == math.inf
    assert relative_gap(0.4, math.nan) == math.inf
    assert relative_gap(0.4, 0.0) == 1.0
    assert relative_gap(0.0, -math.inf) == 0.0


@given(st.floats(0.0, 1e6), st.floats(0.0, 0.9))
def test_a_search_that_closes_is_within_the_gap(value: float, gap: float) -> None:
    """Also when the answer is measured again and costs a little more: a quarter of what is allowed."""
    bound = value - closing_gap(value, gap)
    again = value + 0.25 * allowed_gap(value, gap)
    assert again - bound <= allowed_gap(again, gap) + 1e-15 * max(value, 1.0)


@pytest.mark.parametrize(
    ("objective", "bound", "asked", "status"),
    [
        (1.24, 1.0, 0.5, "within_gap"),
        (1.24, 1.0, 0.1, "feasible"),
        (1.24, 1.0, OPTIMALITY, "feasible"),
        (1.0, 1.0 - 0.9e-6, OPTIMALITY, "optimal"),
        (1.0, 1.0 - 0.9e-6, 0.5, "optimal"),
        (1.0, 1.0 - 1.9e-6, OPTIMALITY, "feasible"),  # twice the gap is not the gap
        (0.05, 0.05 - 1.5e-7, OPTIMALITY, "feasible"),  # 3e-6 of the cost
        (0.05, 0.05 - 0.4e-7, OPTIMALITY, "optimal"),
        (1000.0, 1000.0 - 0.9e-3, OPTIMALITY, "optimal"),
        (0.4, 0.0, OPTIMALITY, "no_bound"),
        (0.4, -math.inf, 0.5, "no_bound"),
        (0.0, -math.inf, OPTIMALITY, "optimal"),
        (1e-9, 0.0, OPTIMALITY, "no_bound"),
        (1e-9, 1e-9 - 0.5e-15, OPTIMALITY, "optimal"),
        (1e-9, 1e-9 - 0.5e-12, OPTIMALITY, "feasible"),  # a small cost has a small gap
        (1e-19, 0.3e-19, OPTIMALITY, "feasible"),
        (0.4, 0.5, OPTIMALITY, "optimal"),
    ],
)
def test_the_status_of_a_certificate(objective: float, bound: float, asked: float, status: str) -> None:
    certificate = Certificate.of(objective, bound, asked_gap=asked)
    assert certificate.status == status
    assert certificate.proven == (status == "optimal")
    assert certificate.bound <= certificate.objective
    assert str(certificate).startswith({"optimal": "proven optimal", "no_bound": "no bound yet"}.get(status, "within "))


def test_of_several_the_worst_counts() -> None:
    optimal, within = Certificate.of(1.0, 1.0), Certificate.of(1.0, 0.9, asked_gap=0.5)
    feasible, nothing = Certificate.of(1.0, 0.9), Certificate.of(1.0, 0.0)
    assert worst_status([optimal, optimal]) == "optimal"
    assert worst_status([within, optimal]) == "within_gap"
    assert worst_status([within, feasible, optimal]) == "feasible"
    assert worst_status([nothing, feasible]) == "no_bound"


@given(st.floats(1e-7, 0.9999999))
def test_the_printed_per_cent_is_not_less_than_the_gap(gap: float) -> None:
    certificate = Certificate(1.0, 1.0 - gap, gap, proven=False)
    printed = float(str(certificate).removeprefix("within ").removesuffix("% of the best, proven"))
    assert gap * (1 - 1e-12) <= printed / 100 <= min(1.11 * gap, 1.0)


# -- in whole answers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", ["logistic", "tree", "forest", "network"])
@pytest.mark.parametrize("gap", [1e-6, 0.1, 0.5, 0.9])
def test_what_an_answer_claims_is_true_by_enumeration(family: str, gap: float) -> None:
    world = world_of(21, family)
    explainer = world.explainer()
    for row in world.factuals(3):
        answer = explainer.explain(row, want="yes", gap=gap)  # a warning is an error here
        best = float(world.costs(row)[world.said].min())
        certificate = answer[0].certificate
        assert certificate.bound <= best + 1e-9
        assert certificate.objective >= best - 1e-9
        assert certificate.gap == pytest.approx(1 - certificate.bound / certificate.objective, abs=1e-12)
        assert certificate.gap <= gap
        assert answer.status == certificate.status in ("optimal", "within_gap")
        if certificate.proven:
            assert certificate.objective == pytest.approx(best, rel=2e-6)
            assert "proven optimal" in str(answer)
        else:
            assert "of the best, proven" in str(answer)
            assert "proven optimal" not in str(answer) + answer.to_html()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_small_cost_is_proven_as_a_large_one_is(scale: float) -> None:
    """The same question with all costs times a factor: the same answer, and the same word for it."""
    world = world_of(22, "forest")
    row = world.factuals(1)[0]
    weights = dict.fromkeys([*world.names, "colour"], scale)
    answer = Explainer(world.model, world.X, criteria=[Proximity(weights=weights)]).explain(row, want="yes")
    moves = world.moves(row).sum(axis=1)
    assert answer.status == "optimal"
    assert answer[0].certificate.objective == pytest.approx(scale * moves[world.said].min(), rel=2e-6)


def test_a_batch_has_the_same_words() -> None:
    world = world_of(23, "forest")
    rows = pd.concat(world.factuals(6))
    explainer = world.explainer()
    batch = explainer.explain_all(rows, want="yes", gap=0.9)
    singles = [explainer.explain(rows.iloc[[i]], want="yes", gap=0.9).status for i in range(len(rows))]
    assert batch.status().tolist() == singles
    assert "within_gap" in singles
    assert "within gap" in str(batch)


def test_a_search_that_was_stopped_says_what_it_knows() -> None:
    X = questions.people()
    forest = RandomForestClassifier(40, max_depth=6, random_state=0)
    explainer = Explainer(questions.pipeline(X, questions.labels(X), forest), X, schema=questions.schema(X))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        answer = explainer.explain(questions.FACTUAL, want="good", time_limit=1e-9)
    certificate = answer[0].certificate
    assert answer.status == certificate.status
    if answer.status != "optimal":
        assert [w.category for w in heard] == [NotProvenOptimal]
        assert f"not proven optimal after {answer.seconds:.1f} s: {certificate}." in str(heard[0].message)
        assert str(certificate) in str(answer)
        assert str(certificate) in answer.to_html()


# -- files -----------------------------------------------------------------------------------------------------------
def test_an_old_file_is_read_with_what_its_numbers_prove() -> None:
    """Written when the gap was relative to at least 1 and `proven` to the gap that was asked for."""
    world = world_of(21, "logistic")
    answer = world.explainer().explain(world.factuals(1)[0], want="yes", n=2)
    assert explanation_from_dict(explanation_to_dict(answer)).status == "optimal"
    for bound, status in ((0.76, "feasible"), (0.0, "no_bound"), (1.0, "optimal")):
        data = explanation_to_dict(answer)
        for each in data["counterfactuals"]:
            old = each["certificate"]
            del old["asked_gap"], old["status"]
            old["bound"] = bound * old["objective"]
            old["gap"] = (1 - bound) * min(1.0, old["objective"])
        back = explanation_from_dict(data)
        assert back.status == status
        assert [c.certificate.proven for c in back] == [status == "optimal"] * 2
        assert back[0].certificate.gap == pytest.approx(1 - bound, abs=1e-12)


def test_a_file_keeps_the_gap_that_was_asked_for() -> None:
    world = world_of(23, "forest")
    explainer = world.explainer()
    answers = [explainer.explain(row, want="yes", gap=0.9) for row in world.factuals(6)]
    loose = next(a for a in answers if a.status == "within_gap")
    data = explanation_to_dict(loose)
    assert data["status"] == data["counterfactuals"][0]["certificate"]["status"] == "within_gap"
    back = explanation_from_dict(data)
    assert back[0].certificate == loose[0].certificate
    assert back.status == "within_gap"
    assert np.isclose(back[0].certificate.asked_gap, 0.9)


# -- one place for all of them -----------------------------------------------------------------------------------------
SOURCE = Path(__file__).resolve().parents[1] / "src" / "ifonly"
SMALL = 1e-4

# Small numbers that are no tolerances, with the reason.
ALLOWED = {
    ("models/readers/lightgbm.py", 1e-35): "LightGBM's own constant kZeroThreshold",
    ("models/readers/onnx.py", 1e-5): "the default of BatchNormalization's epsilon in the ONNX standard",
    ("runtime/tuning.py", 2.5e-6): "seconds per entry",
    ("runtime/tuning.py", 3e-6): "seconds per entry",
    ("runtime/tuning.py", 5e-6): "seconds per leaf",
    ("runtime/tuning.py", 6e-6): "seconds per weight",
    ("runtime/tuning_forests.py", 1e-6): "by how much steps overshoot a goal, not what counts as missing it",
    ("runtime/tuning.py", 1e-7): "share of a search that must be done by its first look",
    ("studies/cases.py", 1e-8): "the gap that a study asks for",
}


def small_numbers(text: str) -> set[float]:
    """The numbers written in a module that lie strictly between 0 and 1e-4, powers such as ``10**-9`` included."""
    out = set()
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and ast.unparse(node.left) in {"10", "10.0"}:
            with suppress(ValueError):  # a power that is computed
                value = 10.0 ** ast.literal_eval(node.right)
        if isinstance(value, float) and 0.0 < abs(value) < SMALL:
            out.add(value)
    return out


def modules() -> dict[str, Path]:
    return {p.relative_to(SOURCE).as_posix(): p for p in SOURCE.rglob("*.py") if p.name != "tolerances.py"}


@pytest.mark.parametrize("where", sorted(modules()))
def test_tolerances_are_in_one_place(where: str) -> None:
    found = small_numbers(modules()[where].read_text(encoding="utf-8"))
    left = sorted(n for n in found if (where, n) not in ALLOWED)
    assert not left, f"give {left} a name in ifonly.tolerances, with what it is derived from"


def test_what_is_allowed_is_there() -> None:
    paths = modules()
    for where, number in ALLOWED:
        assert number in small_numbers(paths[where].read_text(encoding="utf-8")), (where, number)


# Units of rounding, so many of which are a tolerance as well.
UNITS = {"HALF_ULP", "SPACING", "SPACING_OF_FLOAT32"}


def roundings(text: str) -> list[str]:
    """Units of rounding that a module writes down, and written multiples of those of tolerances.py."""
    out = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.BinOp(ast.Constant(2 | 2.0), ast.Pow(), ast.UnaryOp(ast.USub(), ast.Constant())):
                out.append(ast.unparse(node))
            case ast.BinOp(left, ast.Mult(), right):
                factors = [*factors_of(left), *factors_of(right)]
                named = any(isinstance(f, ast.Name) and f.id in UNITS for f in factors)
                if named and any(isinstance(f, ast.Constant) for f in factors):
                    out.append(ast.unparse(node))
    return out


def factors_of(node: ast.expr) -> list[ast.expr]:
    """The factors of a product."""
    match node:
        case ast.BinOp(left, ast.Mult(), right):
            return [*factors_of(left), *factors_of(right)]
    return [node]


@pytest.mark.parametrize("where", sorted(name for name in modules() if name.startswith("record/")))
def test_the_checker_of_proofs_rounds_by_named_numbers(where: str) -> None:
    left = roundings(modules()[where].read_text(encoding="utf-8"))
    assert not left, f"give {left} a name in ifonly.tolerances, with its derivation"


@pytest.mark.parametrize("text", ["_AWAY = 2.0**-50", "x = 8.0 * HALF_ULP * y", "x = y * (z * SPACING) * 4.0"])
def test_a_rounding_elsewhere_is_seen(text: str) -> None:
    assert roundings(text)


@pytest.mark.parametrize(
    "text", ["x = TWICE * HALF_ULP * y", "x = 2.0**53", "x = 2.0 * square", "1.0 - SOME * HALF_ULP"]
)
def test_other_products_are_left_alone(text: str) -> None:
    assert not roundings(text)


def tolerances_of_numpy(text: str) -> list[str]:
    """The comparisons of a module that leave NumPy its own tolerances: without both of them, and without a group of ours."""
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    compared = (call for call in calls if ast.unparse(call.func).rpartition(".")[2] in {"allclose", "isclose"})
    given = ((call, {keyword.arg for keyword in call.keywords}) for call in compared)
    return [ast.unparse(call) for call, names in given if None not in names and not names >= {"rtol", "atol"}]


@pytest.mark.parametrize("where", sorted(modules()))
def test_no_comparison_has_tolerances_of_its_own(where: str) -> None:
    left = tolerances_of_numpy(modules()[where].read_text(encoding="utf-8"))
    assert not left, f"say rtol and atol in {left}, by names of ifonly.tolerances: **SAME_POINT"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("np.allclose(a, b)", True),
        ("isclose(a, b, rtol=DUST)", True),
        ("np.isclose(a, b, rtol=DUST, atol=0.0)", False),
        ("np.allclose(a, b, **SAME_POINT)", False),
    ],
)
def test_a_comparison_with_tolerances_of_its_own_is_seen(text: str, *, seen: bool) -> None:
    assert bool(tolerances_of_numpy(text)) == seen


@pytest.mark.parametrize("text", ["_DUST = 1e-9", "x <= y + 1e-12", "f(gap=0.00001)", "a > 10.0**-9", "b = -1e-6"])
def test_a_tolerance_elsewhere_is_seen(text: str) -> None:
    assert small_numbers(text)


@pytest.mark.parametrize("text", ["share = 0.01", "x = 1e9", "y = 0.0", "z = 2.0**-52"])
def test_other_numbers_are_left_alone(text: str) -> None:
    assert not small_numbers(text)
