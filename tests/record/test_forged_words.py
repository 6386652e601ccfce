"""Forged records whose numbers are right and whose words are not: what people read must be what is checked."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from sklearn.ensemble import RandomForestClassifier

import ifonly
from ifonly import Actionability, Explainer, Proximity, Sparsity
from ifonly.record.fingerprints import of_json
from proof_cases import table

Record = dict[str, Any]


@pytest.fixture(scope="module")
def case() -> tuple[Any, Any, Record, bytes]:
    X, y = table(4)
    X = X[["whole", "decimal", "real"]]
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(X, y)
    house = [Proximity("l1", scale="range"), Sparsity(price=0.01), Actionability(ranges={"whole": (0, 5)})]
    answer = Explainer(model, X, criteria=house).explain(X.iloc[[3]], proof=True)
    assert answer.proof is not None
    return model, X, answer.record(), answer.proof


def resealed(record: Record) -> None:
    policy = record["origin"]["policy"]
    record["origin"]["sha256"]["policy"] = of_json([policy["house"], policy["call"]])


def after(record: Record) -> None:
    change = record["counterfactuals"][0]["changes"][0]
    change["after"] = change["after"] + 1


def before(record: Record) -> None:
    change = record["counterfactuals"][0]["changes"][0]
    change["before"] = change["before"] - 1


def fewer(record: Record) -> None:
    record["counterfactuals"][0]["changes"].pop()


def wish(record: Record) -> None:
    record["wanted"] = "'maybe'"


def demand(record: Record) -> None:
    record["origin"]["demands"].pop()


def cost(record: Record) -> None:
    record["origin"]["costs"][0] = "l2 distance, nothing else"


def distance(record: Record) -> None:
    record["counterfactuals"][0]["distance"] *= 0.5


def gap(record: Record) -> None:
    record["counterfactuals"][0]["certificate"]["gap"] = 0.5


def status(record: Record) -> None:
    record["counterfactuals"][0]["certificate"]["status"] = "feasible"


def cheaper_claim(record: Record) -> None:
    record["counterfactuals"][0]["certificate"]["bound"] *= 0.5
    record["counterfactuals"][0]["certificate"]["proven"] = False
    record["counterfactuals"][0]["certificate"]["gap"] = 0.5
    record["counterfactuals"][0]["certificate"]["status"] = "feasible"


def schema(record: Record) -> None:
    record["schema"] = record["schema"][:-1]


def narrower_schema(record: Record) -> None:
    record["origin"]["schema"][0]["upper"] = 1
    record["schema"][0]["upper"] = 1


def other_cost(record: Record) -> None:
    record["origin"]["policy"]["house"][0]["norm"] = "l2"
    resealed(record)


def other_rule(record: Record) -> None:
    record["origin"]["policy"]["house"][2]["frozen"] = [record["counterfactuals"][0]["changes"][0]["feature"]]
    resealed(record)


def free_changes(record: Record) -> None:
    record["origin"]["policy"]["house"][1]["price"] = 0.02
    resealed(record)


def margin(record: Record) -> None:
    record["counterfactuals"][0]["certificate"]["margin"] = 0.25


FORGERS = (
    *(after, before, fewer, wish, demand, cost, distance, gap, status, cheaper_claim, schema, narrower_schema),
    *(other_cost, other_rule, free_changes, margin),
)  # fmt: skip


def test_the_record_itself_stands(case: Any) -> None:
    model, X, record, proof = case
    verdict = ifonly.verify(record, model, X, proof=proof)
    assert verdict.ok, str(verdict)
    assert not [c for c in verdict.checks if c.name == "words"]


@pytest.mark.parametrize("forger", FORGERS, ids=lambda f: f.__name__)
def test_forged_words_are_refused(case: Any, forger: Callable[[Record], None]) -> None:
    model, X, record, proof = case
    forged = copy.deepcopy(record)
    forger(forged)
    assert forged != record
    verdict = ifonly.verify(forged, model, X, proof=proof)
    assert not verdict.ok, str(verdict)


def test_another_version_may_say_it_otherwise(case: Any) -> None:
    model, X, record, proof = case
    other = copy.deepcopy(record)
    other["origin"]["versions"]["ifonly"] = "0.0.1"
    wish(other)
    verdict = ifonly.verify(other, model, X, proof=proof)
    assert verdict.ok
    assert [c.ok for c in verdict.checks if c.name == "words"] == [None]


def test_a_declared_schema_is_named(case: Any) -> None:
    model, X, _, _ = case
    declared = ifonly.Schema.infer(X, bounds={"whole": (0, 3)})
    row = X[(X.whole <= 3)].iloc[[0]]
    answer = Explainer(model, X, schema=declared).explain(row)
    verdict = ifonly.verify(answer.record(), model, X)
    assert verdict.ok, str(verdict)
    assert [c.sentence for c in verdict.checks if c.name == "schema" and c.ok is None] == [
        "What these may be is declared, not read off the data: whole."
    ]
