"""Proofs: the replay accepts what searches prove without a solver, and says what cannot be replayed."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import ifonly
from ifonly import (
    Explainer,
    Proximity,
)
from ifonly.bench import credit_model
from ifonly.datasets import german_credit
from ifonly.question.trail import Duals, Leaf, events
from ifonly.record.checker import replay
from ifonly.record.proof import pack, unpack
from portions import one_in
from proof_cases import MODELS, NEVER, Case, cases, question, table


# -- what is proven is accepted --------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", one_in(5, MODELS))
def test_proofs_of_searches_are_accepted(kind: str) -> None:
    asked = [question(kind, seed) for seed in range(50)]
    found = [case for case in asked if case is not None]
    kept = [case for case in found if case.trail]
    for case in kept:
        assert case.answer.solver == "no solver needed"
        done = case.replayed(case.trail)
        assert done.parts == sum(isinstance(event, Leaf) for event in events(case.trail))
        assert len(case.trail) <= 100 * done.parts
    # no solver but for rows that the box excludes
    assert len(kept) >= len(found) - (10 if kind == "linear" else 2)
    assert len(kept) >= 30


def test_the_record_says_that_the_proof_was_replayed(tmp_path: Path) -> None:
    for kind in MODELS:
        case = next(cases(kind, range(3)))
        record, proof = case.answer.write_record(tmp_path / f"{kind}.json")
        assert proof.read_bytes() == case.answer.proof
        verdict = ifonly.verify(record, case.model, case.X)
        assert verdict.ok, str(verdict)
        (check,) = (c for c in verdict.checks if c.name == "proof")
        assert check.ok is True
        assert "replayed" in check.sentence
        proof.unlink()
        (check,) = (c for c in ifonly.verify(record, case.model, case.X).checks if c.name == "proof")
        assert check.ok is None  # nothing was shown, nothing was refuted


def test_without_being_asked_nothing_is_kept() -> None:
    X, y = table(0)
    model = DecisionTreeClassifier(max_depth=3).fit(X[["whole"]], y)
    answer = Explainer(model, X[["whole"]]).explain(X[["whole"]].iloc[[0]])
    assert answer.proof is None
    assert "proof" not in answer.record()


def test_what_a_solver_closed_cannot_be_replayed() -> None:
    X, y = table(1)
    X = X[["whole", "real"]]
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    for options in ({"criteria": [Proximity("mahalanobis")]}, {"solver": "highs only"}):
        answer = Explainer(model, X, **options).explain(X.iloc[[0]], proof=True)  # type: ignore[arg-type]
        verdict = ifonly.verify(answer.record(), model, X, proof=answer.proof)
        (check,) = (c for c in verdict.checks if c.name == "proof")
        assert check.ok is None
        assert "cannot be replayed" in check.sentence


@pytest.mark.slow
def test_german_credit() -> None:
    credit = german_credit()
    X = credit.frame
    for kind in ("linear", "forest"):
        model = credit_model(kind, X, credit.target)  # type: ignore[arg-type]
        explainer = Explainer(model, X)
        refused = X[model.predict(X) == "bad"].iloc[:4]
        for i in range(len(refused)):
            answer = explainer.explain(refused.iloc[[i]], want="good", proof=True)
            if not answer[0].trail:
                continue
            verdict = ifonly.verify(answer.record(), model, X, proof=answer.proof)
            assert [c.ok for c in verdict.checks if c.name == "proof"] == [True], str(verdict)


def test_pack_and_unpack() -> None:
    trails = [b"", b"\x00", b"\x01" * 100]
    assert unpack(pack(trails)) == tuple(trails)


# -- what a replay rests on ------------------------------------------------------------------------------------------
REPLAY = (
    *("cell_costs", "checker", "checks", "duals", "linear_parts", "network_bounds", "network_parts", "parts"),
    *("price_parts", "proof", "replaying", "tree_parts"),
)  # fmt: skip


def test_the_checker_shares_nothing_with_searches_and_solvers() -> None:
    source = Path(ifonly.__file__).parent / "record"
    for name in REPLAY:
        for node in ast.walk(ast.parse((source / f"{name}.py").read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in filter(None, names):
                assert not module.startswith(("ifonly.search", "ifonly.solvers")), (name, module)
                if module.startswith("ifonly.record"):
                    assert module.removeprefix("ifonly.record.") in REPLAY, (name, module)


def executed(run: Callable[[], Any]) -> set[str]:
    """The modules of the package of which a function runs."""
    source, seen = str(Path(ifonly.__file__).parent), set()

    def watch(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(source):
            seen.add(str(Path(frame.f_code.co_filename).relative_to(source).with_suffix("")).replace("/", "."))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(before)
    return seen


def test_no_function_of_a_search_or_a_solver_runs_in_a_replay() -> None:
    """Not even through what the checker imports; of linear programs, only the columns of hulls are written down by one."""
    for kind in MODELS:
        for case in itertools.islice(cases(kind, range(12)), 3):
            asked = case.asked()
            run = partial(replay, asked.statement, asked.goal, case.bound, case.trail, NEVER)
            seen = executed(run)
            assert "record.checker" in seen
            assert not [name for name in seen if name.startswith(("search", "solvers"))], seen
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    model = LogisticRegression().fit(X, X.a + X.b > 0)
    explainer = Explainer(model, X, criteria=[Proximity("linf")])
    row = X.iloc[[0]]
    answer = explainer.explain(row, proof=True)
    case = Case(model, X, explainer, answer, row, None)
    assert isinstance(next(events(case.trail), None), Duals)
    asked = case.asked()
    seen = executed(partial(replay, asked.statement, asked.goal, case.bound, case.trail, NEVER))
    assert "record.duals" in seen
    assert {name for name in seen if name.startswith(("search", "solvers"))} <= {"solvers.priced_lp"}
