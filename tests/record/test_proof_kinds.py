"""Proofs of further kinds: largest changes, tables, percentiles, any of several classes, impossible questions, duals."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import ifonly
from ifonly import (
    Actionability,
    Explainer,
    IfOnlyWarning,
    Infeasible,
    LinearRow,
    Manifold,
    NoCounterfactual,
    Proximity,
    Sparsity,
    Target,
)
from ifonly.question.trail import Alternative, Duals, Leaf, Ledger, events
from ifonly.record.checker import NotReplayable, Refused, replay
from ifonly.record.proof import pack, unpack
from ifonly.search.cells import kernel
from portions import diagonals, one_in
from proof_cases import NEVER, Case, optimum, table

NUMBERS = ["whole", "decimal", "real"]
TREES: dict[str, Any] = {
    "tree": lambda seed: DecisionTreeClassifier(max_depth=4, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(6, max_depth=4, random_state=seed),
    "boosting": lambda seed: GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=seed),
}


def asked(model: Any, X: pd.DataFrame, criteria: list[Any], row: int = 0, **options: Any) -> Case | None:
    explainer = Explainer(model, X, criteria=criteria)
    one = X.iloc[[row]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IfOnlyWarning)
        try:
            answer = explainer.explain(one, proof=True, **options)
        except NoCounterfactual:
            return None
    return Case(model, X, explainer, answer, one, options.get("want"))


def held(case: Case) -> None:
    """The proof stands, and the same trail proves nothing above the optimum."""
    verdict = ifonly.verify(case.answer.record(), case.model, case.X, proof=case.answer.proof)
    assert verdict.ok, str(verdict)
    assert [c.ok for c in verdict.checks if c.name == "proof"] == [True], str(verdict)
    best = optimum(case)
    assert best >= case.bound * (1.0 - 1e-9) - 1e-12
    with pytest.raises(Refused):
        case.replayed(case.trail, best * (1.0 + 1e-6) + 1e-12)


@pytest.mark.parametrize(("by", "kind"), diagonals(2, ["compiled", "numpy"], TREES))
def test_the_largest_change(kind: str, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if by == "numpy":
        monkeypatch.setenv("IFONLY_KERNEL", "numpy")
    elif kernel._built is None:
        pytest.skip("the package was installed without a compiler")
    seen = 0
    for seed in range(6):
        X, y = table(seed)
        X = X[NUMBERS]
        criteria = [Proximity("linf"), *([Sparsity(at_most=2)] if seed % 2 else [])]
        case = asked(TREES[kind](seed).fit(X, y), X, criteria)
        if case is not None and case.trail:
            held(case)
            seen += 1
    assert seen >= 3


@pytest.mark.parametrize("kind", one_in(2, TREES))
@pytest.mark.parametrize(
    "distance",
    one_in(
        2,
        [
            Proximity("l1", scale="percentile"),
            Proximity("linf", scale="percentile"),
            Proximity("l1", tables={"whole": {-2: 1.0, -1: 0.9, 1: 0.1, 3: 2.0}, "real": {0.5: 0.0, 1.0: 3.0}}),
            Proximity("linf", tables={"whole": {1: 0.5, 2: 0.6}}, weights={"real": 1e-9}),
        ],
    ),
)
def test_tables_and_percentiles(kind: str, distance: Proximity) -> None:
    seen = 0
    for seed in range(5):
        X, y = table(seed + 20)
        X = X[NUMBERS]
        case = asked(TREES[kind](seed).fit(X, y), X, [distance])
        if case is not None and case.trail and case.answer[0].certificate.objective > 0.0:
            held(case)
            seen += 1
    assert seen >= 2


@pytest.mark.parametrize(("norm", "unit"), diagonals(4, ["l1", "l2", "linf"], [1e-9, 1e-4, 1e6, 1e12]))
def test_units(unit: float, norm: Any) -> None:
    seen = 0
    for seed in range(4):
        X, y = table(seed + 40)
        X = X[["real", "whole"]].assign(real=lambda X: X.real * unit)
        for model in (TREES["forest"](seed), LogisticRegression()):
            fitted = model.fit(X / [unit, 1.0], y) if isinstance(model, LogisticRegression) else model.fit(X, y)
            if isinstance(model, LogisticRegression):
                fitted.coef_ = fitted.coef_ / [unit, 1.0]
            for scale in ("range", "none"):
                case = asked(fitted, X, [Proximity(norm, scale=scale)])
                if case is None or not case.trail:
                    continue
                verdict = ifonly.verify(case.answer.record(), case.model, case.X, proof=case.answer.proof)
                assert verdict.ok, str(verdict)
                assert [c.ok for c in verdict.checks if c.name == "proof"] == [True], str(verdict)
                with pytest.raises(Refused):
                    case.replayed(case.trail, 1.01 * case.answer[0].certificate.objective)
                seen += 1
    assert seen >= 6


def three(seed: int) -> tuple[pd.DataFrame, Any]:
    X, _ = table(seed, n=80)
    X = X[NUMBERS]
    score = X.whole - 3 * X.decimal + X.real
    return X, np.array(["low", "middle", "high"])[np.digitize(score, score.quantile([0.4, 0.7]))]


@pytest.mark.parametrize("kind", one_in(3, ["tree", "forest", "boosting"]))
def test_any_of_several_classes(kind: str) -> None:
    seen = 0
    for seed in range(6):
        X, y = three(seed)
        model = TREES[kind](seed).fit(X, y)
        row = int(np.flatnonzero(model.predict(X) == "low")[0])
        case = asked(model, X, [Proximity("l1")], row, want=["middle", "high"])
        if case is None or not case.trail:
            continue
        held(case)
        seen += 1
        # without the trail of one class the proof is none
        second = next(at for at in range(1, len(case.trail)) if _begins(case.trail, at))
        for part in (
            case.trail[:second],
            case.trail[second:],
            case.trail[:second] * 2,
            case.trail + case.trail[:second],
        ):
            with pytest.raises(Refused):
                case.replayed(part)
        with pytest.raises(Refused):
            case.replayed(b"\x00")
    assert seen >= 3


def _begins(trail: bytes, at: int) -> bool:
    """Whether an alternative begins at a byte: all before it are whole events, and the next is one."""
    try:
        list(events(trail[:at]))
        return isinstance(next(events(trail[at:])), Alternative)
    except ifonly.SchemaError:
        return False


# -- impossible ------------------------------------------------------------------------------------------------------
def impossible(model: Any, X: pd.DataFrame, criteria: list[Any], want: Any = None) -> Infeasible | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IfOnlyWarning)
        try:
            Explainer(model, X, criteria=criteria).explain(X.iloc[[0]], want=want, proof=True)
        except Infeasible as error:
            return error
        except ifonly.CriterionError:
            return None
    return None


@pytest.mark.parametrize(
    "kind", [*(pytest.param(k, marks=pytest.mark.slow) for k in (*TREES, "linear") if k != "tree"), "tree"]
)
def test_impossible_questions(kind: str, tmp_path: Path) -> None:
    seen = 0
    for seed in range(14):
        X, y = table(seed + 60)
        X = X[NUMBERS]
        model = (LogisticRegression() if kind == "linear" else TREES[kind](seed)).fit(X, y)
        other = "no" if model.predict(X.iloc[[0]])[0] == "yes" else "yes"
        criteria = [Actionability(frozen=["real"]), *([Sparsity(at_most=1)] if seed % 2 else [])]
        error = impossible(model, X, criteria, Target(other, probability=0.9) if kind != "tree" else other)
        if error is None:
            continue
        assert error.trail, "no solver was needed, and the proof was not kept"
        record, proof = error.write_record(tmp_path / f"{seed}.json")
        verdict = ifonly.verify(record, model, X)
        assert verdict.ok, str(verdict)
        assert [c.ok for c in verdict.checks if c.name == "proof"] == [True], str(verdict)
        seen += 1
        # the same trail proves nothing of a question that has an answer
        explainer = Explainer(model, X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IfOnlyWarning)
            question = explainer._ask(X.iloc[[0]], other, ())
            with pytest.raises((Refused, ifonly.SchemaError)):
                replay(question.statement, question.goal, np.inf, error.trail, NEVER)
        proof.write_bytes(pack([b""]))
        assert not ifonly.verify(record, model, X).ok
    assert seen >= (1 if kind == "tree" else 2)


@pytest.mark.slow
def test_an_empty_box_is_its_own_proof() -> None:
    X, y = table(3)
    X = X[NUMBERS]
    model = TREES["forest"](0).fit(X, y)
    low = float(X.decimal.iloc[0])
    criteria = [Actionability(frozen=["decimal"], ranges={"decimal": (low + 0.2, low + 0.4)})]
    error = impossible(model, X, criteria)
    assert error is not None
    verdict = ifonly.verify(error.record(), model, X, proof=error.proof)
    assert verdict.ok, str(verdict)
    assert [c.ok for c in verdict.checks if c.name == "proof"] == [True]


@pytest.mark.parametrize("want", [None, pytest.param(["middle", "high"], marks=pytest.mark.slow)])
def test_an_empty_box_closes_whatever_else_is_asked(want: Any) -> None:
    X, y = three(2)
    model = TREES["forest"](0).fit(X, y) if want else TREES["forest"](0).fit(X, y == "low")
    row = int(np.flatnonzero(y == "low")[0])
    low = float(X.decimal.iloc[row])
    criteria = [
        Proximity("mahalanobis"),
        Actionability(frozen=["decimal"], ranges={"decimal": (low + 0.2, low + 0.4)}),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IfOnlyWarning)
        with pytest.raises(Infeasible) as raised:
            Explainer(model, X, criteria=criteria).explain(X.iloc[[row]], want=want, proof=True)
    verdict = ifonly.verify(raised.value.record(), model, X, proof=raised.value.proof)
    assert [c.ok for c in verdict.checks if c.name == "proof"] == [True], str(verdict)


# -- linear programs -------------------------------------------------------------------------------------------------
def reals(seed: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    return X, (X.a + X.b - X.c + rng.normal(0, 0.1, 60) > 0).map({True: "yes", False: "no"})


@pytest.mark.parametrize(
    "criteria",
    [
        [Proximity("linf")],
        [Proximity("l1"), Manifold(epsilon=0.05)],
        pytest.param([Proximity("l1"), Manifold(epsilon=0.01, norm="linf", of="all")], marks=pytest.mark.slow),
        [Proximity("l1"), Actionability(rows=[LinearRow({"a": 1.0, "b": 1.0}, at_most=1.0)])],
    ],
)
def test_duals_of_linear_programs(criteria: list[Any]) -> None:
    seen = 0
    for seed in range(6):
        X, y = reals(seed)
        model = LogisticRegression().fit(X, y)
        case = asked(model, X, criteria)
        if case is None or not case.trail:
            continue
        (event,) = events(case.trail)
        assert isinstance(event, Duals)
        verdict = ifonly.verify(case.answer.record(), model, X, proof=case.answer.proof)
        assert verdict.ok, str(verdict)
        assert [c.ok for c in verdict.checks if c.name == "proof"] == [True], str(verdict)
        cost = case.answer[0].certificate.objective
        for wrong in (cost * 1.0001, cost * 2.0, np.inf):
            with pytest.raises(Refused):
                case.replayed(case.trail, wrong)
        rng = np.random.default_rng(seed)
        for _ in range(20):  # no duals whatever prove more
            values = np.zeros(event.n_rows)
            values[event.row] = event.dual * rng.uniform(0.5, 1.5, len(event.dual)) + rng.normal(
                0, 0.1, len(event.dual)
            )
            ledger = Ledger()
            ledger.duals(values)
            with pytest.raises(Refused):
                case.replayed(bytes(ledger.data), cost * 1.0001)
        with pytest.raises(Refused):
            case.replayed(case.trail + case.trail)
        with pytest.raises(Refused):  # parts in the place of duals are no proof, and are not passed over either
            case.replayed(b"\x00\x00")
        seen += 1
    assert seen >= 3


def test_impossible_linear_programs() -> None:
    seen = 0
    for seed in range(6):
        X, y = reals(seed)
        model = LinearRegression().fit(X, np.where(y == "yes", 1.0, 0.0) + X.a)
        error = impossible(model, X, [Proximity("linf")], Target(at_least=1e6))
        assert error is not None
        if not error.trail:
            continue
        verdict = ifonly.verify(error.record(), model, X, proof=error.proof)
        assert verdict.ok, str(verdict)
        assert [c.ok for c in verdict.checks if c.name == "proof"] == [True], str(verdict)
        seen += 1
    assert seen >= 1


def test_parts_and_files() -> None:
    X, y = table(1)
    X = X[NUMBERS]
    case = asked(TREES["forest"](1).fit(X, y), X, [Proximity("linf")])
    assert case is not None
    assert case.answer.proof is not None
    parts = sum(isinstance(event, Leaf) for event in events(unpack(case.answer.proof)[0]))
    assert case.answer.record()["proof"]["parts"] == [parts]
    with pytest.raises(NotReplayable):
        case.replayed(b"")
