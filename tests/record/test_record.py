"""Records: what they say can be checked by a stranger, and what was tampered with does not stand."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

import ifonly
from ifonly import (
    Actionability,
    Diversity,
    Explainer,
    Implies,
    Infeasible,
    LinearRow,
    Manifold,
    Proximity,
    Robustness,
    SchemaError,
    Sparsity,
    Target,
)
from ifonly.record.criteria import criteria_from_data, criteria_to_data
from ifonly.record.reading import read_record, record_schema
from portions import one_in


def data(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "income": rng.integers(10, 90, n),
            "debts": rng.uniform(0, 9, n).round(2),
            "job": rng.choice(["clerk", "nurse", "smith"], n),
        }
    )


X = data()
Y = np.where(X.income - 5 * X.debts + 10 * (X.job == "nurse") > 25, "yes", "no")
ENCODE = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
LINEAR = Pipeline([("encode", ENCODE), ("decide", LogisticRegression(max_iter=1000))]).fit(X, Y)
FOREST = Pipeline([("encode", ENCODE), ("decide", RandomForestClassifier(10, max_depth=4, random_state=0))]).fit(X, Y)
VALUE = LinearRegression().fit(X[["debts"]], X["income"])
REFUSED = X[LINEAR.predict(X) == "no"].iloc[[0]]


def failing(verdict: ifonly.record.Verdict) -> set[str]:  # type: ignore[name-defined]
    return {check.name for check in verdict.checks if check.ok is False}


QUESTIONS: dict[str, Callable[[], tuple[Any, pd.DataFrame, Any]]] = {
    "linear": lambda: (LINEAR, X, Explainer(LINEAR, X).explain(REFUSED, want="yes", n=2)),
    "forest": lambda: (FOREST, X, Explainer(FOREST, X).explain(REFUSED, want="yes")),
    "probability": lambda: (LINEAR, X, Explainer(LINEAR, X).explain(REFUSED, want=Target("yes", probability=0.8))),
    "value": lambda: (
        VALUE,
        X[["debts"]],
        Explainer(VALUE, X[["debts"]]).explain({"debts": 8.0}, want=Target(at_least=49.2)),
    ),
    "policy": lambda: (
        LINEAR,
        X,
        Explainer(LINEAR, X, criteria=[Actionability(frozen=["job"]), Sparsity(at_most=2)]).explain(
            REFUSED, criteria=[Proximity("l2", scale="std"), Manifold(epsilon=0.5)]
        ),
    ),
    "robust": lambda: (
        FOREST,
        X,
        Explainer(FOREST, X).explain(REFUSED, want="yes", criteria=[Robustness(radius=0.02)]),
    ),
    "out of range": lambda: (LINEAR, X, Explainer(LINEAR, X).explain(REFUSED.assign(income=5), want="yes")),
}


@pytest.mark.filterwarnings("ignore::ifonly.OutsideTrainingRange")
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_record_stands_after_json(name: str) -> None:
    model, X, answer = QUESTIONS[name]()
    record = json.loads(json.dumps(answer.record(), allow_nan=False))
    verdict = ifonly.verify(record, model, X)
    assert verdict.ok, str(verdict)
    assert {"bound", "policy", "model", "schema", "training", "prediction", "demands", "cost"} <= {
        c.name for c in verdict.checks
    }
    assert record == json.loads(answer.to_json())
    assert record["origin"]["asked_at"].endswith("Z")


def changed(record: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    out = copy.deepcopy(record)
    part: Any = out
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = to(part[path[-1]]) if callable(to) else to
    return out


@pytest.mark.parametrize(
    ("path", "to", "fails"),
    [
        (("counterfactuals", 0, "certificate", "objective"), lambda v: 0.9 * v, "cost"),
        (("counterfactuals", 0, "certificate", "bound"), lambda v: v + 1.0, "bound"),
        (("counterfactuals", 0, "certificate", "bound"), 0.0, "bound"),
        (("counterfactuals", 0, "row", "columns", "income", 0), lambda v: v - 40, "prediction"),
        (("counterfactuals", 0, "row", "columns", "income", 0), lambda v: v + 1, "cost"),
        (("counterfactuals", 0, "prediction"), "no", "prediction"),
        (("counterfactuals", 0, "changes"), [], "changes"),
        (("factual", "columns", "income", 0), lambda v: v + 1, "cost"),
        (("prediction",), "yes", "factual"),
        (("origin", "policy", "call"), [{"kind": "Sparsity", "price": 0.3}], "policy"),
        (("origin", "sha256", "model"), "0" * 64, "model"),
        (("origin", "sha256", "training"), "0" * 64, "training"),
        (("origin", "schema", 0, "upper"), 1000.0, "schema"),
        (("origin", "want", "label"), "no", "prediction"),
    ],
)
def test_a_forged_record_does_not_stand(path: tuple[Any, ...], to: Any, fails: str) -> None:
    record = Explainer(LINEAR, X).explain(REFUSED, want="yes").record()
    verdict = ifonly.verify(changed(record, *path, to=to), LINEAR, X)
    assert not verdict.ok
    assert fails in failing(verdict), str(verdict)


def test_another_model_and_other_data_are_named() -> None:
    record = Explainer(LINEAR, X).explain(REFUSED, want="yes").record()
    assert "model" in failing(ifonly.verify(record, FOREST, X))
    assert "training" in failing(ifonly.verify(record, LINEAR, X.iloc[1:]))
    older = changed(record, "origin", "versions", "ifonly", to="0.0.1")
    verdict = ifonly.verify(older, LINEAR, X)
    assert verdict.ok
    assert any(c.name == "versions" and "ifonly 0.0.1 then" in c.sentence for c in verdict.checks)


def test_a_demand_that_was_broken_is_found() -> None:
    explainer = Explainer(LINEAR, X, criteria=[Actionability(ranges={"income": (None, 200)})])
    record = explainer.explain(REFUSED, want="yes").record()
    tight = changed(record, "origin", "policy", "house", 0, "ranges", "map", 0, 1, 1, to=0)
    assert "demands" in failing(ifonly.verify(tight, LINEAR, X))


# -- impossible ------------------------------------------------------------------------------------------------------
def impossible() -> Infeasible:
    with pytest.raises(Infeasible) as caught:
        Explainer(LINEAR, X).explain(REFUSED, want="yes", criteria=[Actionability(frozen=["income", "debts", "job"])])
    return caught.value


def test_an_impossibility_is_a_record_that_is_asked_again() -> None:
    error = impossible()
    record = json.loads(json.dumps(error.record(), allow_nan=False))
    assert record["conflict"] == list(error.conflict)
    assert len(record["relaxations"]) == len(error.relaxations)
    verdict = ifonly.verify(record, LINEAR, X)
    assert verdict.ok, str(verdict)
    assert "conflict" in {c.name for c in verdict.checks}
    free = changed(record, "origin", "policy", "call", to=[])
    assert {"conflict", "policy"} <= failing(ifonly.verify(free, LINEAR, X))


def test_an_impossibility_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(impossible()))
    assert error.record()["origin"]["options"]["n"] == 1


def test_an_error_of_ones_own_is_no_record() -> None:
    with pytest.raises(ifonly.CriterionError, match="was not raised by Explainer"):
        Infeasible("no").record()


# -- what is left out ------------------------------------------------------------------------------------------------
def test_a_record_without_the_factual_holds_none_of_its_values() -> None:
    explainer = Explainer(LINEAR, X)
    answer = explainer.explain(REFUSED.assign(debts=7.77), want="yes")
    record = answer.record(factual="omitted")
    kept = {c["feature"] for c in record["counterfactuals"][0]["changes"]}
    assert "debts" not in kept or answer[0].row.debts.item() != 7.77
    assert "7.77" not in json.dumps({k: v for k, v in record.items() if k != "origin"})
    verdict = ifonly.verify(record, LINEAR, X)
    assert verdict.ok
    assert [c.ok for c in verdict.checks if c.name == "factual"] == [None]
    whole = ifonly.verify(record, LINEAR, X, factual=answer.factual)
    assert whole.ok, str(whole)
    assert "cost" in {c.name for c in whole.checks}
    assert not ifonly.verify(record, LINEAR, X, factual=REFUSED.assign(debts=1.0)).ok


def test_a_salted_record_knows_its_row_again() -> None:
    salt = bytes(range(16))
    record = Explainer(LINEAR, X).explain(REFUSED, want="yes").record(factual="salted", salt=salt)
    assert ifonly.verify(record, LINEAR, X, factual=REFUSED, salt=salt).ok
    other = X[LINEAR.predict(X) == "no"].iloc[[1]]
    assert "factual" in failing(ifonly.verify(record, LINEAR, X, factual=other, salt=salt))
    with pytest.raises(ifonly.CriterionError, match="at least 16 bytes"):
        Explainer(LINEAR, X).explain(REFUSED, want="yes").record(factual="salted", salt=b"short")


# -- criteria as data ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "criterion",
    [
        Proximity("linf", scale={"income": 2.0}, weights={"debts": 3.0}),
        Sparsity(at_most=2, price=0.1),
        Diversity("iterate", distance=0.2),
        Manifold(epsilon=0.1, clusters="auto"),
        Robustness(radius=0.1, norm="l2", features=["income"]),
        Actionability(
            frozen=("job",),
            ranges={"income": (None, 50)},
            conditional={"job": {"clerk": ("nurse",)}},
            rows=(LinearRow({"income": 1.0, "debts": -1.0}, at_most=9.0),),
            implies=(Implies({"job": "clerk"}, {"income": (None, 40)}),),
        ),
    ],
)
def test_criteria_survive_as_data(criterion: Any) -> None:
    data = json.loads(json.dumps(criteria_to_data([criterion]), allow_nan=False))
    (after,) = criteria_from_data(data)
    assert type(after) is type(criterion)
    assert criteria_to_data([after]) == criteria_to_data([criterion])


def test_a_model_within_a_criterion_is_known_by_its_fingerprint() -> None:
    robust = Robustness(models=[FOREST])
    record = Explainer(LINEAR, X).explain(REFUSED, want="yes", criteria=[robust]).record()
    refused = ifonly.verify(record, LINEAR, X)
    assert not refused.ok
    assert "only by its SHA-256" in str(refused)
    house = ifonly.explain.DEFAULT_CRITERIA  # type: ignore[attr-defined]
    assert ifonly.verify(record, LINEAR, X, criteria=[*house, robust]).ok


# -- hostile ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("record", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"format": ' * 60 + "1" + "}" * 60, "must be"),
        ("{", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        ('{"format": NaN}', "no JSON"),
        ("[1, 2]", "a JSON object"),
        ({"format": "ifonly/1"}, "of before records"),
        ({"format": "ifonly/2", "kind": "explanation"}, "lacks 'status'"),
        ({"format": "ifonly/2", "kind": "something"}, "must be"),
        ({}, "lacks 'format'"),
    ],
)
def test_what_is_no_record_ends_in_a_sentence(record: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        ifonly.verify(record, LINEAR, X)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "zeros.json"
    with path.open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(SchemaError, match="more than the"):
        ifonly.verify(path, LINEAR, X)


@pytest.mark.parametrize("parts", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_every_part_with_another_type_ends_in_a_sentence(parts: int) -> None:
    record = json.loads(json.dumps(Explainer(LINEAR, X).explain(REFUSED, want="yes").record()))

    def paths(part: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        return [at, *(p for key, value in inner for p in paths(value, (*at, key)))]

    every = [p for p in paths(record) if p]
    rng = np.random.default_rng(0)
    for path in [every[i] for i in rng.permutation(len(every))[:parts]]:
        for bad in ({"closed": "x"}, [[[]]], "text", 1e308, None, -1):
            try:
                verdict = ifonly.verify(changed(record, *path, to=bad), LINEAR, X)
            except ifonly.IfOnlyError:
                continue
            assert isinstance(verdict.ok, bool)


def test_the_schema_of_the_docs_is_one_that_a_library_agrees_with() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(dict(record_schema()))
    for make in ("linear", "policy"):
        record = json.loads(json.dumps(QUESTIONS[make]()[2].record()))
        validator.validate(record)
        assert read_record(record) == record
    validator.validate(json.loads(json.dumps(impossible().record())))
    assert list(validator.iter_errors({"format": "ifonly/2"}))


def test_an_older_file_stays_readable() -> None:
    answer = Explainer(LINEAR, X).explain(REFUSED, want="yes")
    old = {k: v for k, v in answer.to_dict().items() if k not in ("kind", "origin", "wanted", "want")}
    old |= {"format": "ifonly/1", "want": answer.want}
    assert ifonly.Explanation.from_dict(old).want == answer.want


@pytest.mark.parametrize("n_jobs", one_in(2, [1, 2]))
def test_answers_of_a_batch_carry_their_origin(n_jobs: int) -> None:
    rows = X[LINEAR.predict(X) == "no"].iloc[:3]
    for outcome in Explainer(LINEAR, X).explain_all(rows, want="yes", n_jobs=n_jobs):
        assert outcome.explanation is not None
        assert ifonly.verify(outcome.explanation.record(), LINEAR, X).ok
    answer = pickle.loads(pickle.dumps(Explainer(LINEAR, X).explain(REFUSED, want="yes")))
    assert ifonly.verify(answer.record(), LINEAR, X).ok


@pytest.mark.parametrize(("offset", "dust"), [(0.0, 1e-15), (1e9, 1e-7)])
def test_a_value_is_compared_up_to_the_rounding_of_its_model(offset: float, dust: float) -> None:
    rng = np.random.default_rng(3)
    U = pd.DataFrame({"far": rng.normal(size=80).round(2), "near": rng.normal(size=80).round(2)})
    far = U.assign(far=U["far"] + offset)
    model = LinearRegression().fit(far, 0.7 * U["far"] - 0.5 * U["near"])  # of some 1e9 little is left
    value = float(model.predict(far.iloc[[0]])[0])
    record = Explainer(model, far).explain(far.iloc[[0]], want=Target(at_least=value + 0.5)).to_dict()
    written = record["prediction"]
    for off, ok in ((dust, True), (1e-4, False)):
        record["prediction"] = written + off
        checks = [c for c in ifonly.verify(record, model, far).checks if c.name == "factual"]
        assert [c.ok for c in checks] == [ok], checks
