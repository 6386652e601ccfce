"""Parts that cannot be replayed: the record says so and why, and no verdict claims otherwise; the exact second run."""

from __future__ import annotations

import copy
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import ifonly
from ifonly import Actionability, CriterionError, Explainer, Infeasible, SolverMissing, Sparsity
from ifonly.question.problem import build
from ifonly.record.proof import pack, unpack
from ifonly.runtime.tuning import PriceSearch, Tuning
from ifonly.solvers import exact
from proof_cases import table

HIDDEN = 4


@pytest.fixture(scope="module")
def network() -> tuple[Any, pd.DataFrame]:
    X, y = table(2)
    X = X[["whole", "decimal", "real"]]
    return MLPClassifier((HIDDEN,), solver="lbfgs", max_iter=2000, random_state=0).fit(X, y), X


def proof_check(verdict: Any) -> Any:
    (check,) = (c for c in verdict.checks if c.name == "proof")
    return check


def test_a_network_that_a_solver_closed_has_no_parts(network: Any) -> None:
    model, X = network
    answer = Explainer(model, X, solver="highs only").explain(X.iloc[[0]], proof=True)
    assert answer.proof is not None
    record = json.loads(json.dumps(answer.record()))
    if unpack(answer.proof) != (b"",):
        pytest.skip("its duals suffice")
    assert record["proof"]["parts"] == [0]
    (why,) = record["proof"]["not_replayable"]
    assert "HiGHS" in why
    verdict = ifonly.verify(record, model, X, proof=answer.proof)
    assert verdict.ok, str(verdict)
    check = proof_check(verdict)
    assert check.ok is None
    assert "cannot be replayed" in check.sentence
    assert "was replayed" not in str(verdict)
    record["proof"]["not_replayable"] = [None]
    assert proof_check(ifonly.verify(record, model, X, proof=answer.proof)).ok is False


def test_records_of_networks_from_before_stay_readable(network: Any) -> None:
    """The versions before kept no parts of networks: their records are verified as they were, and the reason is told."""
    model, X = network
    answer = Explainer(model, X).explain(X.iloc[[0]], proof=True)
    assert answer[0].certificate.solver == "no solver needed"
    assert answer.proof is not None
    assert proof_check(ifonly.verify(answer.record(), model, X, proof=answer.proof)).ok is True
    record, data = copy.deepcopy(answer.record()), pack([b""])
    why = "it was closed without a solver, but by a search that keeps no parts: that of networks"
    record["proof"] = {"sha256": sha256(data).hexdigest(), "parts": [0], "not_replayable": [why]}
    verdict = ifonly.verify(record, model, X, proof=data)
    assert verdict.ok, str(verdict)
    check = proof_check(verdict)
    assert check.ok is None
    assert "kept none of these or of networks" in check.sentence


@pytest.mark.parametrize("most", [10, 10**7])
def test_what_prices_close_stays_proven_and_their_parts_are_kept_up_to_a_limit(most: int) -> None:
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.normal(size=(200, 5)).round(2), columns=list("abcde"))
    y = (X.sum(axis=1) + np.sin(3 * X["a"]) > 0).astype(int)
    model = RandomForestClassifier(12, max_depth=4, random_state=0).fit(X, y)
    tuning = Tuning(prices=PriceSearch(plain_parts=1, plain_parts_compiled=1, kept_bytes=most))
    plain = Explainer(model, X).explain(X[model.predict(X) == 0].iloc[[0]], want=1)
    answer = Explainer(model, X, tuning=tuning).explain(X[model.predict(X) == 0].iloc[[0]], want=1, proof=True)
    assert answer[0].certificate.proven
    assert answer[0].certificate.solver == "no solver needed"
    assert answer[0].certificate.objective == pytest.approx(plain[0].certificate.objective, rel=1e-9)
    assert answer.proof is not None
    verdict = ifonly.verify(answer.record(), model, X, proof=answer.proof)
    assert verdict.ok, str(verdict)
    check, parts = proof_check(verdict), answer.record()["proof"]["parts"]
    if most > 10:
        assert parts[0] > 1
        assert check.ok is True
    else:
        assert parts == [0]
        assert check.ok is None
        assert "more prices of the splits" in check.sentence


def test_parts_of_a_network_are_looked_at(network: Any) -> None:
    """A record that claims one part in the place of all, and more than there is to prove."""
    model, X = network
    answer = Explainer(model, X).explain(X.iloc[[0]], proof=True)
    record = copy.deepcopy(answer.record())
    data = pack([b"\x00"])
    record["proof"] = {"sha256": sha256(data).hexdigest(), "parts": [1]}
    certificate = record["counterfactuals"][0]["certificate"]
    certificate["objective"] = certificate["bound"] = 2.0 * certificate["objective"]
    assert proof_check(ifonly.verify(record, model, X, proof=data)).ok is False


def test_an_impossible_network_says_so_too(network: Any) -> None:
    model, X = network
    frozen = Actionability(ranges={name: (float(v), float(v)) for name, v in X.iloc[0].items()})
    with pytest.raises(Infeasible) as caught:
        Explainer(model, X).explain(X.iloc[[0]], criteria=[frozen], proof=True)
    record = json.loads(caught.value.to_json())
    assert record == caught.value.record()
    verdict = ifonly.verify(record, model, X, proof=caught.value.proof)
    assert verdict.ok, str(verdict)
    parts = record["proof"]["parts"][0]
    assert (proof_check(verdict).ok is True) == (parts > 0)
    assert ("not_replayable" in record["proof"]) == (parts == 0)


def test_an_impossibility_as_json(network: Any, tmp_path: Path) -> None:
    model, X = network
    with pytest.raises(Infeasible) as caught:
        Explainer(model, X).explain(X.iloc[[0]], criteria=[Actionability(frozen=list(X.columns))])
    path = tmp_path / "never.json"
    text = caught.value.to_json(path)
    assert path.read_text(encoding="utf-8") == text + "\n"
    assert ifonly.verify(path, model, X).ok


# -- the exact second run --------------------------------------------------------------------------------------------
@pytest.fixture
def linear() -> tuple[Any, pd.DataFrame]:
    X, y = table(5)
    X = X[["whole", "decimal", "real"]]
    return LogisticRegression().fit(X, y), X


def test_without_the_exact_mode_there_is_a_sentence(linear: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = linear
    for said, why in (
        ({"status": "absent", "version": "SCIP 10.0"}, "built without it .SCIP 10.0."),
        ({}, "unknown version"),
    ):
        monkeypatch.setattr(exact, "_child", lambda *_, told=said: told)
        monkeypatch.setattr(exact.util, "find_spec", lambda name: name)
        with pytest.raises(SolverMissing, match=why) as caught:
            Explainer(model, X).explain(X.iloc[[0]], proof="exact")
        assert "EXACTSOLVE=on" in str(caught.value)  # what next
        assert "proof=True" in str(caught.value)
    monkeypatch.setattr(exact.util, "find_spec", lambda name: None)
    with pytest.raises(SolverMissing, match="PySCIPOpt is not installed"):
        Explainer(model, X).explain(X.iloc[[0]], proof="exact")


def test_other_words_are_no_proof(linear: Any) -> None:
    model, X = linear
    with pytest.raises(CriterionError, match="True, False or 'exact'"):
        Explainer(model, X).explain(X.iloc[[0]], proof="sure")  # type: ignore[arg-type]


def test_the_probe_asks_the_library_itself() -> None:
    """The probe's verdict is that of enabling the mode, whichever SCIP is here."""
    scip = pytest.importorskip("pyscipopt")
    model = scip.Model()
    model.freeProb()
    try:
        model.enableExactSolving(True)
        has = bool(model.isExact())
    except Exception:  # noqa: BLE001 - PySCIPOpt raises plain exceptions
        has = False
    assert (exact.why_not_exact() == "") == has


def in_floats(path: Path, seconds: float) -> dict[str, Any]:
    return exact._solved(path, seconds, exact=False)


def test_the_program_in_the_file_is_the_program(linear: Any) -> None:
    """The same file, solved by SCIP in floats, has the optimum that HiGHS found; every number is written whole."""
    pytest.importorskip("pyscipopt")
    model, X = linear
    explainer = Explainer(model, X, criteria=[Sparsity(at_most=2, price=0.1)], solver="highs only")
    for i in range(4):
        asked = explainer._ask(X.iloc[[i]], None, ())
        program = build(asked.goal.with_first_margin(asked.statement)).arrays()
        found = explainer.explain(X.iloc[[i]])
        least = exact.exact_minimum(program, 30.0, run=in_floats)
        assert least == pytest.approx(found[0].certificate.objective, rel=1e-6)
        numbers = [w for line in exact._mps(program) for w in line.split()[-1:]]
        assert {repr(float(n)) for n in numbers if n[-1].isdigit() and "." in n} >= {
            repr(float(c)) for c in program.cost if c and c != round(c)
        }
    nothing = exact.exact_minimum(program, 30.0, run=lambda path, seconds: {"status": "infeasible"})
    assert nothing == np.inf
    assert exact.exact_minimum(program, 30.0, run=lambda path, seconds: {"status": "timelimit", "bound": 0.0}) is None


def test_what_was_run_again_is_told(linear: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyscipopt")
    model, X = linear
    monkeypatch.setattr(exact, "why_not_exact", lambda: "")
    monkeypatch.setattr(exact, "_in_child", in_floats)
    explainer = Explainer(model, X, criteria=[Sparsity(at_most=2, price=0.1)], solver="highs only")
    answer = explainer.explain(X.iloc[[0]], proof="exact")
    record = answer.record()
    assert record["origin"]["options"]["proof"] == "exact"
    if record["proof"]["parts"] == [0]:
        assert answer[0].certificate.solver.endswith("and again by SCIP in rational arithmetic")
    assert answer[0].certificate.proven
    verdict = ifonly.verify(record, model, X, proof=answer.proof)
    assert verdict.ok, str(verdict)
    monkeypatch.setattr(exact, "_in_child", lambda path, seconds: {"status": "optimal", "bound": 0.0})
    with pytest.warns(ifonly.NotProvenOptimal):
        lower = explainer.explain(X.iloc[[0]], proof="exact")
    assert not lower[0].certificate.proven
    assert lower[0].certificate.bound <= 0.0
