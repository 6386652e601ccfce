"""Forgeries at the edges of floats, orders and lists: signed zeros, denormals, single precision, levels, ``only=``."""

from __future__ import annotations

import copy
import itertools
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.proofs.trails import written
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import ifonly
from ifonly import Actionability, Explainer, Proximity, Schema
from ifonly.question.trail import Split, events
from ifonly.record.checker import Refused
from ifonly.record.fingerprints import of_json, of_schema
from portions import one_in
from proof_cases import Case, cases, optimum, table


def beside(value: float) -> tuple[float, ...]:
    single = np.float32(value)
    return (
        *(-0.0, 0.0, 5e-324, -5e-324, float(np.nextafter(value, np.inf)), float(np.nextafter(value, -np.inf))),
        *(
            float(np.nextafter(single, np.float32(np.inf))),
            float(np.nextafter(single, np.float32(-np.inf))),
            float(single),
        ),
    )


@pytest.mark.parametrize("kind", one_in(2, ["tree", "forest", "boosting"]))
def test_splits_moved_by_the_least_prove_no_more_than_is_true(kind: str) -> None:
    """Moved splits, by an ulp of either precision, to a zero or a denormal: no dearer answer is proven."""
    tried = 0
    for case in itertools.islice((c for c in cases(kind, range(24)) if len(c.trail) > 1), 3):
        best, parts = optimum(case), list(events(case.trail))
        cuts = [i for i, part in enumerate(parts) if isinstance(part, Split) and part.value is not None]
        for i in cuts[:4]:
            for value in beside(parts[i].value):  # type: ignore[union-attr, arg-type]
                moved = [*parts[:i], replace(parts[i], value=value), *parts[i + 1 :]]  # type: ignore[type-var]
                with pytest.raises(Refused):
                    case.replayed(written(moved), best * (1.0 + 1e-6) + 1e-12)
                tried += 1
    assert tried >= (9 if kind != "tree" else 1)


def zeros() -> tuple[pd.DataFrame, Any]:
    """Trees whose thresholds are at 0, at denormals, and between neighbours of single precision."""
    one = np.float32(1.0)
    edge = float(np.nextafter(one, np.float32(2.0)))
    X = pd.DataFrame(
        {
            "sign": np.tile([-1e-310, -0.0, 0.0, 1e-310, -1.0, 1.0], 8),
            "single": np.repeat([1.0, edge, 1.0 + 1e-12, 2.0], 12),
            "far": np.tile([0.0, 1.0, 2.0, 3.0], 12),
        }
    )
    return X, np.where((X.sign > 0) & (X.single > 1.0) | (X.far > 2), "yes", "no")


@pytest.mark.parametrize("trees", one_in(2, [1, 5]))
def test_zeros_denormals_and_single_precision_in_the_data(trees: int) -> None:
    X, y = zeros()
    last = DecisionTreeClassifier(random_state=0) if trees == 1 else RandomForestClassifier(trees, random_state=0)
    model = last.fit(X, y)
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale={"sign": 1.0, "single": 1.0, "far": 1.0})])
    stood = 0
    for i in range(0, 48, 7):
        row = X.iloc[[i]]
        if model.predict(row)[0] == "yes":
            continue
        answer = explainer.explain(row, want="yes", proof=True)
        case = Case(model, X, explainer, answer, row, "yes")
        record = json.loads(json.dumps(answer.record()))
        verdict = ifonly.verify(record, model, X, proof=answer.proof)
        assert verdict.ok, str(verdict)
        if not case.trail:
            continue
        stood += 1
        with pytest.raises(Refused):
            case.replayed(case.trail, answer[0].certificate.objective * (1.0 + 1e-6) + 5e-324 + 1e-300)
        for name in ("bound", "objective"):  # a bound of nothing is none, whatever its sign
            forged = copy.deepcopy(record)
            forged["counterfactuals"][0]["certificate"][name] = -0.0
            assert not ifonly.verify(forged, model, X, proof=answer.proof).ok
        signed = copy.deepcopy(record)
        at = signed["factual"]["columns"]["sign"]
        if at[0] == 0.0:  # the same number
            at[0] = -at[0]
            assert ifonly.verify(signed, model, X, proof=answer.proof).ok
    assert stood >= 1


# -- orders and lists ------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def levelled() -> tuple[Any, pd.DataFrame, Any]:
    X, y = table(7)
    encode = ColumnTransformer([("level", OneHotEncoder(), ["level"])], remainder="passthrough")
    model = Pipeline([("encode", encode), ("model", RandomForestClassifier(6, max_depth=4, random_state=0))]).fit(X, y)
    schema = Schema.infer(X, ordinal={"level": ["a", "b", "c"]})
    house = [Proximity("l1", scale="range"), Actionability(only=["whole", "level"], increase=["level"])]
    explainer = Explainer(model, X, schema=schema, criteria=house)
    for i in range(len(X)):
        row = X.iloc[[i]]
        try:
            answer = explainer.explain(row, proof=True)
        except (ifonly.NoCounterfactual, ifonly.CriterionError):
            continue
        if answer[0].trail:
            return model, X, answer
    raise AssertionError("no question with a proof")


def test_the_record_of_levels_stands(levelled: Any) -> None:
    model, X, answer = levelled
    assert ifonly.verify(answer.record(), model, X, proof=answer.proof).ok


@pytest.mark.parametrize("order", [["c", "b", "a"], ["b", "a", "c"], ["a", "b"], ["a", "b", "c", "d"]])
def test_another_order_of_levels_is_refused(levelled: Any, order: list[str]) -> None:
    model, X, answer = levelled
    record = copy.deepcopy(answer.record())
    for schema in (record["schema"], record["origin"]["schema"]):
        (feature,) = (f for f in schema if f["name"] == "level")
        feature["levels"] = order
    record["origin"]["sha256"]["schema"] = of_schema(record["origin"]["schema"])
    with suppress(ifonly.IfOnlyError):  # a schema without a level of the data is no schema of theirs
        assert not ifonly.verify(record, model, X, proof=answer.proof).ok


@pytest.mark.parametrize("only", [["whole"], ["level"], ["whole", "level", "real"], ["real", "decimal"], []])
def test_another_list_of_what_may_change_is_refused(levelled: Any, only: list[str]) -> None:
    model, X, answer = levelled
    record = copy.deepcopy(answer.record())
    policy = record["origin"]["policy"]
    policy["house"][1]["only"] = only
    if "level" not in only:
        policy["house"][1]["increase"] = []
    record["origin"]["sha256"]["policy"] = of_json([policy["house"], policy["call"]])
    assert not ifonly.verify(record, model, X, proof=answer.proof).ok
