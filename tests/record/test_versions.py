"""Records under other versions: what differs is named, and the right file is blamed."""

from __future__ import annotations

import copy
import json
from typing import Any

import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

import ifonly
from ifonly import Actionability, Explainer, Implies
from ifonly.record.fingerprints import of_json, of_schema
from proof_cases import table


@pytest.fixture(scope="module")
def case() -> tuple[Any, pd.DataFrame, dict[str, Any], bytes]:
    X, y = table(4)
    X["level"] = X["level"].astype("category")
    encode = ColumnTransformer([("level", OneHotEncoder(), ["level"])], remainder="passthrough")
    model = Pipeline([("encode", encode), ("model", RandomForestClassifier(6, max_depth=4, random_state=0))]).fit(X, y)
    rule = Implies({"level": ["a", "b"]}, {"whole": (0, 5)})
    answer = Explainer(model, X, criteria=[Actionability(implies=[rule])]).explain(X.iloc[[3]], proof=True)
    assert answer.proof is not None
    return model, X, json.loads(json.dumps(answer.record())), answer.proof


def stored(value: Any, where: str) -> Any:
    """The same plain values, with texts in another library's memory."""
    if isinstance(value, dict):
        return {k: where if k == "string" and "missing" in value else stored(v, where) for k, v in value.items()}
    return [stored(v, where) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("where", ["python", "pyarrow"])
def test_texts_in_other_memory_make_the_same_schema(case: Any, where: str) -> None:
    model, X, record, proof = case
    told = {"string": "python", "missing": "nan"}
    other = copy.deepcopy(record)
    for schema in (other["schema"], other["origin"]["schema"]):
        for feature in schema:
            feature["dtype"] = stored(feature["dtype"], where)
    assert of_schema(other["origin"]["schema"]) == record["origin"]["sha256"]["schema"]
    assert of_schema([{"dtype": told}]) == of_schema([{"dtype": {**told, "string": "pyarrow"}}])
    assert of_schema([{"dtype": told}]) != of_schema([{"dtype": {**told, "missing": "NA"}}])
    verdict = ifonly.verify(other, model, X, proof=proof)
    assert verdict.ok, str(verdict)
    other["origin"]["sha256"]["schema"] = of_json(other["origin"]["schema"])  # as records were once written
    assert ifonly.verify(other, model, X, proof=proof).ok
    other["origin"]["sha256"]["schema"] = "0" * 64
    assert not ifonly.verify(other, model, X, proof=proof).ok


def test_data_after_a_journey_through_csv(case: Any, tmp_path: Any) -> None:
    model, X, record, proof = case
    X.to_csv(tmp_path / "data.csv", index=False)
    verdict = ifonly.verify(record, model, pd.read_csv(tmp_path / "data.csv"), proof=proof)
    assert verdict.ok, str(verdict)


def broken(model: Any, error: Exception) -> Any:
    """The model with a last step that lacks an attribute that this version asks for."""
    other = copy.deepcopy(model)

    def predict(*_: Any, **__: Any) -> Any:
        raise error

    for name in ("predict", "predict_proba"):
        setattr(other.steps[-1][1], name, predict)
    return other


@pytest.mark.parametrize(
    "error",
    [AttributeError("'X' object has no attribute 'multi_class'"), ValueError("odd"), RuntimeError("no"), IndexError(3)],
)
def test_a_model_that_cannot_predict_is_blamed_with_the_versions(case: Any, error: Exception) -> None:
    model, X, record, proof = case
    other = copy.deepcopy(record)
    other["origin"]["versions"]["scikit-learn"] = "0.1"
    verdict = ifonly.verify(other, broken(model, error), X, proof=proof)
    (check,) = (c for c in verdict.checks if c.ok is False)
    assert check.name == "model"
    assert check.sentence.startswith("The model cannot be asked here: ")
    assert "scikit-learn 0.1 then, " in check.sentence
    assert "damaged" not in str(verdict)
    same = ifonly.verify(record, broken(model, error), X, proof=proof)
    assert "The versions are those of the record" in str(same)


def test_a_damaged_record_is_still_called_one(case: Any) -> None:
    model, X, record, _ = case
    other = copy.deepcopy(record)
    other["factual"]["columns"]["whole"] = []
    try:
        verdict = ifonly.verify(other, model, X)
    except ifonly.SchemaError as error:
        assert "cannot be asked" not in str(error)  # noqa: PT017 - either way is an answer
    else:
        assert not verdict.ok
        assert "cannot be asked here" not in str(verdict)
