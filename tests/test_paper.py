"""The paper's German Credit case study, parts A, B and D, to the printed digit.

Applicant 775 is refused by a linear support vector machine on one-hot categories and min-max-scaled numbers; the
objective is the squared l2 distance over the scaled numbers. The case study reads four integer columns as real ones and
part A knows no lower bounds, so an amount of credit may be negative: both are choices of the schema.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from sklearn.svm import LinearSVC

from ifonly import Actionability, Explainer, Explanation, LinearRow, Proximity, Schema, Sparsity
from ifonly.datasets import german_credit

FACTUAL = 775
REAL = ["duration", "credit_amount", "installment_commitment", "age"]
WHOLE = ["residence_since", "existing_credits", "num_dependents"]
NUMERIC = REAL + WHOLE
NO_BOUND = (-1e6, 1e6)
NOT_NEGATIVE = ["duration", "credit_amount", "installment_commitment", "existing_credits", "num_dependents"]
TABLE_3 = Actionability(
    frozen=["foreign_worker", "personal_status", "purpose"],
    increase=["age", "residence_since"],
    ranges=dict.fromkeys(NOT_NEGATIVE, (0, None)),
    conditional={"employment": {"1<=X<4": ["4<=X<7", ">=7"]}},
)


@dataclass
class Study:
    train: pd.DataFrame
    test: pd.DataFrame
    good: pd.Series
    good_test: pd.Series
    model: Pipeline
    factual: pd.DataFrame


@pytest.fixture(scope="module")
def study() -> Study:
    credit = german_credit()
    good = credit.target == "good"
    X, X_test, y, y_test = train_test_split(credit.frame, good, test_size=0.2, random_state=0, stratify=good)
    categories = [c for c in X if c not in NUMERIC]
    encode = ColumnTransformer(
        [("number", MinMaxScaler(), NUMERIC), ("category", OneHotEncoder(sparse_output=False), categories)]
    )
    svc = LinearSVC(C=0.1, dual=False, random_state=0)
    model = Pipeline([("encode", encode), ("svc", svc)]).fit(X, y)
    return Study(X, X_test, y, y_test, model, credit.frame.iloc[[FACTUAL]])


@pytest.fixture(scope="module", params=["auto", "highs only"])
def raw(study: Study, request: pytest.FixtureRequest) -> Explainer:
    """The Pipeline, in raw units; squares by whatever solver is here, and by the tangents of the one that always is."""
    schema = Schema.infer(study.train, numeric=REAL, bounds=dict.fromkeys(NUMERIC, NO_BOUND))
    criteria = [Proximity("l2", scale="range")]
    return Explainer(study.model, study.train, schema=schema, criteria=criteria, solver=request.param)


def test_model_is_that_of_the_paper(study: Study) -> None:
    auc = [
        roc_auc_score(y, study.model.decision_function(X))
        for X, y in ((study.train, study.good), (study.test, study.good_test))
    ]
    assert np.round(auc, 4).tolist() == [0.8246, 0.8286]
    assert study.factual[NUMERIC].iloc[0].tolist() == [24, 1371, 4, 25, 4, 1, 1]
    assert not study.model.predict(study.factual)[0]


def changes(answer: Explanation) -> dict[str, float]:
    return {change.feature: change.after for change in answer[0].changes}


def confirmed(answer: Explanation, study: Study) -> bool:
    return bool(study.model.predict(answer.frame())[0])


def test_part_a_validity_proximity_coherence(raw: Explainer, study: Study) -> None:
    answer = raw.explain(study.factual, want=True, gap=1e-8)
    changed = changes(answer)
    assert sorted(changed) == sorted(REAL)
    assert round(changed["duration"], 2) == 15.02
    assert changed["credit_amount"] == pytest.approx(-334, abs=1)
    assert round(changed["installment_commitment"], 2) == 3.86
    assert round(changed["age"], 2) == 27.03
    certificate = answer[0].certificate
    assert certificate.proven
    assert round(certificate.objective, 5) == 0.03276
    assert confirmed(answer, study)


def test_part_a_is_the_projection_on_the_separating_plane(raw: Explainer, study: Study) -> None:
    # Only the real columns move, so the answer is the foot of the perpendicular, in scaled units.
    weights = study.model["svc"].coef_[0][: len(REAL)]
    scales = (study.train[REAL].max() - study.train[REAL].min()).to_numpy()
    score = study.model.decision_function(study.factual)[0]
    step = -score * weights / (weights @ weights)
    answer = raw.explain(study.factual, want=True, gap=1e-8)
    found = answer.frame()[REAL].iloc[0].to_numpy(dtype=float)
    there = study.factual[REAL].iloc[0].to_numpy(dtype=float) + step * scales
    assert np.abs((found - there) / scales).max() < 1e-4
    assert answer[0].certificate.objective == pytest.approx(step @ step, abs=1e-6)


@pytest.mark.parametrize("sparsity", [Sparsity(at_most=1), Sparsity(price=10.0)], ids=["bound", "price"])
def test_part_b_sparsity_first(raw: Explainer, study: Study, sparsity: Sparsity) -> None:
    answer = raw.explain(study.factual, want=True, criteria=[sparsity])
    assert {k: round(v, 2) for k, v in changes(answer).items()} == {"duration": 7.12}
    assert round(answer[0].distance, 4) == 0.0616
    assert answer.status == "optimal"
    assert confirmed(answer, study)


def test_part_d_actionability(raw: Explainer, study: Study) -> None:
    answer = raw.explain(study.factual, want=True, criteria=[Sparsity(at_most=1), TABLE_3])
    assert {k: round(v, 2) for k, v in changes(answer).items()} == {"duration": 7.12}
    assert round(answer[0].distance, 4) == 0.0616
    assert answer.status == "optimal"
    assert confirmed(answer, study)


def test_part_d_age_alone_is_another_answer(raw: Explainer, study: Study) -> None:
    others = Actionability(frozen=[c for c in study.train if c != "age"])
    answer = raw.explain(study.factual, want=True, criteria=[TABLE_3, others])
    assert {k: round(v, 2) for k, v in changes(answer).items()} == {"age": 75.52}
    assert round(answer[0].distance, 4) == 0.8139
    assert confirmed(answer, study)


def test_part_d_actionability_excludes_part_a(raw: Explainer, study: Study) -> None:
    answer = raw.explain(study.factual, want=True, criteria=[TABLE_3], gap=1e-8)
    changed = changes(answer)
    assert changed["credit_amount"] == pytest.approx(0.0, abs=1e-3)  # would be -334, were it not for the lower bound
    assert changed["age"] > 25
    assert 0.03276 < answer[0].certificate.objective < 0.0616


# -- the same with a model on an encoded frame: scaled numbers, and one 0/1 column per level ---------------------------
# Nothing tells the library which columns belong together, so coherence is a linear row per category. The whole-numbered
# columns are ordinal on the scaled frame: one step of k is 1/k of the swing, which is the scaled difference.


@pytest.fixture(scope="module")
def encoded(study: Study) -> tuple[Explainer, pd.DataFrame, LinearSVC]:
    encoder = study.model["encode"]
    names = [name.split("__", 1)[1] for name in encoder.get_feature_names_out()]

    def frame(X: pd.DataFrame) -> pd.DataFrame:
        table = pd.DataFrame(encoder.transform(X), columns=names)
        return table.astype(dict.fromkeys(names[len(NUMERIC) :], "int64"))

    X, factual = frame(study.train), frame(study.factual)
    model = LinearSVC(C=0.1, dual=False, random_state=0).fit(X, study.good)
    levels = {name: sorted(X[name].unique().tolist()) for name in WHOLE}
    schema = Schema.infer(X, ordinal=levels, bounds=dict.fromkeys(REAL, (-100.0, 100.0)))
    rows = [
        LinearRow({n: 1 for n in names if n.startswith(f"{category}_")}, at_least=1, at_most=1)
        for category in study.train
        if category not in NUMERIC
    ]
    criteria = [Proximity("l2", scale=dict.fromkeys(REAL, 1.0)), Actionability(rows=rows)]
    return Explainer(model, X, schema=schema, criteria=criteria), factual, model


def unscaled(study: Study, answer: Explanation) -> dict[str, float]:
    low = study.train[NUMERIC].min()
    width = study.train[NUMERIC].max() - low
    return {c.feature: float(low[c.feature] + width[c.feature] * c.after) for c in answer[0].changes}


def test_part_a_encoded_by_hand(study: Study, encoded: tuple[Explainer, pd.DataFrame, LinearSVC]) -> None:
    explainer, factual, model = encoded
    answer = explainer.explain(factual, want=True, gap=1e-8)
    changed = unscaled(study, answer)
    assert sorted(changed) == sorted(REAL)
    assert round(changed["duration"], 2) == 15.02
    assert changed["credit_amount"] == pytest.approx(-334, abs=1)
    assert round(changed["installment_commitment"], 2) == 3.86
    assert round(changed["age"], 2) == 27.03
    assert round(answer[0].certificate.objective, 5) == 0.03276
    assert model.predict(answer.frame())[0]


def test_part_b_encoded_by_hand(study: Study, encoded: tuple[Explainer, pd.DataFrame, LinearSVC]) -> None:
    explainer, factual, model = encoded
    answer = explainer.explain(factual, want=True, criteria=[Sparsity(at_most=1)])
    changed = unscaled(study, answer)
    assert {k: round(v, 2) for k, v in changed.items()} == {"duration": 7.12}
    assert round(answer[0].distance, 4) == 0.0616
    assert model.predict(answer.frame())[0]


def test_part_d_encoded_by_hand(study: Study, encoded: tuple[Explainer, pd.DataFrame, LinearSVC]) -> None:
    explainer, factual, model = encoded
    frozen = [c for c in factual if c.startswith(("foreign_worker", "personal_status", "purpose", "employment"))]
    zero = -study.train[NUMERIC].min() / (study.train[NUMERIC].max() - study.train[NUMERIC].min())
    ranges = {c: (float(zero[c]), None) for c in ("duration", "credit_amount", "installment_commitment")}
    actions = Actionability(frozen=frozen, increase=["age", "residence_since"], ranges=ranges)
    answer = explainer.explain(factual, want=True, criteria=[Sparsity(at_most=1), actions])
    assert {k: round(v, 2) for k, v in unscaled(study, answer).items()} == {"duration": 7.12}
    assert round(answer[0].distance, 4) == 0.0616
    others = Actionability(frozen=[c for c in factual if c != "age"])
    alone = explainer.explain(factual, want=True, criteria=[others])
    assert {k: round(v, 2) for k, v in unscaled(study, alone).items()} == {"age": 75.52}
    assert round(alone[0].distance, 4) == 0.8139
    assert model.predict(alone.frame())[0]
