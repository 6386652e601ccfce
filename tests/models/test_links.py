"""Links and decision rules: forwards, backwards, as rows and as forms, against independent formulas."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from ifonly import Explainer, Proximity, Target
from ifonly.data.schema import Schema
from ifonly.models.forms.bends import SIGMOID
from ifonly.models.forms.curves import Curve
from ifonly.models.forms.linear import Linear
from ifonly.models.links import LINKS, Link, NoLink
from ifonly.models.own_links import OwnLink, ValueLink
from ifonly.models.read import Read
from ifonly.models.readers.sklearn_linear import linear_classifier
from ifonly.models.registry import known_readers
from ifonly.models.rules import RULES, Argmax, Sign
from ifonly.program.mip import Affine

RNG = np.random.default_rng(3)
ONE = np.concatenate([RNG.normal(scale=2.0, size=(60, 1)), [[0.0], [1.0], [-1.0]]])
SHARES = RNG.uniform(0.05, 1.0, size=(60, 3))
SEVERAL = RNG.normal(scale=2.0, size=(60, 3))
FORMULAS = {
    "identity": (lambda s: s, lambda S: S),
    "sigmoid": (expit, None),
    "clip": (lambda s: np.clip((s + 1) / 2, 0, 1), None),
    "softmax": (None, lambda S: softmax(S, axis=1)),
    "normalised": (None, lambda S: expit(S) / expit(S).sum(axis=1, keepdims=True)),
    "shares": (None, lambda S: S / S.sum(axis=1, keepdims=True)),
}
LINEAR = Linear(Schema.infer(pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 2.0]})), np.eye(2)[:1], np.zeros(1))


def several(name: str) -> np.ndarray:
    return SHARES / SHARES.sum(axis=1, keepdims=True) if name == "identity" else SHARES if name == "shares" else SEVERAL


def value(expression: Affine, scores: np.ndarray) -> np.ndarray:
    return scores[:, expression.columns] @ expression.values + expression.constant


@pytest.mark.parametrize("name", FORMULAS)
def test_forwards(name: str) -> None:
    one, each = FORMULAS[name]
    if one is not None:
        p = one(ONE[:, 0])
        np.testing.assert_allclose(LINKS[name].probabilities(ONE), np.column_stack([1 - p, p]))
    if each is not None:
        np.testing.assert_allclose(LINKS[name].probabilities(several(name)), each(several(name)))


def test_no_link_has_no_probabilities() -> None:
    assert LINKS["none"].probabilities(ONE) is None
    assert [link.name for link in LINKS.values() if not link.has_probabilities] == ["none"]
    assert [link.name for link in LINKS.values() if not link.askable] == ["none", "normalised"]


@pytest.mark.parametrize("p", [0.2, 0.5, 0.73])
@pytest.mark.parametrize("name", ["identity", "sigmoid", "clip"])
def test_one_score_clears_its_row_exactly_when_the_probability_is_there(name: str, p: float) -> None:
    link = LINKS[name]
    given = link.probabilities(ONE)
    assert given is not None
    for i in (0, 1):
        (gap,) = link.gaps([Affine.of(0)], i, p, 0.0)
        clear = np.abs(given[:, i] - p) > 1e-9
        np.testing.assert_array_equal((value(gap, ONE) >= 0)[clear], (given[:, i] >= p)[clear])


@pytest.mark.parametrize("name", ["identity", "shares", "softmax"])
def test_several_scores_clear_their_rows_exactly_when_the_probability_is_there(name: str) -> None:
    link, scores, expressions = LINKS[name], several(name), [Affine.of(k) for k in range(3)]
    given = link.probabilities(scores)
    assert given is not None
    for i in range(3):
        wanted = given[:, i] >= 0.4
        assert 0 < wanted.sum() < len(wanted)
        if link.is_curved(3):
            row = link.convex(expressions, i, 0.4, 0.0)
            inner = np.column_stack([value(e, scores) for e in row.inner])
            np.testing.assert_array_equal(np.array([row.function(d) for d in inner]) <= 0, wanted)
        else:
            np.testing.assert_array_equal(value(link.gaps(expressions, i, 0.4, 0.0)[0], scores) >= 0, wanted)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_form_of_probabilities_is_their_function(name: str) -> None:
    U = RNG.uniform(0.1, 1.0, size=(20, 2))
    for n, formula in zip((1, 2), FORMULAS[name], strict=True):
        scores = Linear(LINEAR.schema, np.eye(2)[:n] + 0.25, np.zeros(n))
        form = LINKS[name].form(scores)
        if formula is None:
            continue
        if name == "shares":  # known as a form for sigmoids only
            assert form is None
            scores = Curve(scores, (SIGMOID,) * n)
            form = LINKS[name].form(scores)
        assert form is not None
        np.testing.assert_allclose(form(U), LINKS[name].probabilities(scores(U)), atol=1e-12)


def test_a_value_link_goes_back_and_forth() -> None:
    link = ValueLink(np.exp, lambda v: float(np.log(v)) if v > 0 else -np.inf)
    np.testing.assert_allclose(link.value(ONE), np.exp(ONE[:, 0]))
    low, high = link.interval(0.5, 2.0)
    inside = (ONE[:, 0] >= low) & (ONE[:, 0] <= high)
    np.testing.assert_array_equal(inside, (np.exp(ONE[:, 0]) >= 0.5) & (np.exp(ONE[:, 0]) <= 2.0))
    assert link.interval(-np.inf, 2.0)[0] == -np.inf
    assert NoLink().interval(0.5, 2.0) == (0.5, 2.0)


# -- rules ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("strict", [True, False])
def test_sign_decides_and_ties_as_it_says(strict: bool) -> None:
    rule = Sign(1.0, strict)
    decided = rule.decide(ONE)
    assert decided[-2] == (0 if strict else 1)  # the score that is 1
    for i in (0, 1):
        (gap,) = rule.gaps([Affine.of(0)], i, 0.0, 1e-12)
        np.testing.assert_array_equal(value(gap, ONE) >= 0, decided == i)
        assert rule.wins(i) == (decided[-2] == i)


def test_argmax_decides_and_ties_as_it_says() -> None:
    scores = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    decided = Argmax().decide(scores)
    assert decided.tolist() == [0, 1, 0, 2]
    for i in range(3):
        gaps = Argmax().gaps([Affine.of(k) for k in range(3)], i, 0.0, 1e-12)
        np.testing.assert_array_equal(np.min([value(g, scores) for g in gaps], axis=0) >= 0, decided == i)
    np.testing.assert_array_equal(Argmax().clearance(scores), [0.0, 0.0, 0.0, 1.0])
    weights, constants = Argmax().pairs(3)
    np.testing.assert_allclose(scores @ weights.T + constants, scores[:, [0, 0, 1]] - scores[:, [1, 2, 2]])


# -- a read -----------------------------------------------------------------------------------------------------------
def test_a_read_takes_names_and_objects() -> None:
    named = Read(LINEAR, ("n", "y"), "sign", "sigmoid", threshold=0.5, strict=False)
    assert named.rule == Sign(0.5, False)
    assert named.link is LINKS["sigmoid"]
    assert Read(LINEAR, ("n", "y"), Sign(), LINKS["clip"]).link is LINKS["clip"]
    moved = replace(named, threshold=2.0)
    assert moved.rule == Sign(2.0, False)
    own = replace(named, link_forward=lambda s: s, link_inverse=float)
    assert isinstance(own.link, OwnLink)
    assert (own.link.name, own.link.askable) == ("sigmoid", True)
    assert not Read(LINEAR, ("n", "y"), "sign", "normalised", link_forward=lambda s: s).link.askable
    assert isinstance(Read(LINEAR, link_forward=np.exp).link, ValueLink)
    again = pickle.loads(pickle.dumps(named))
    assert (again.rule, again.link.name) == (named.rule, "sigmoid")


@pytest.mark.parametrize(("wrong", "known"), [({"rule": "max"}, RULES), ({"link": "probit"}, LINKS)])
def test_a_name_that_is_none(wrong: dict[str, Any], known: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"must be one of {', '.join(known)}"):
        Read(LINEAR, **wrong)


def test_a_regression_model_decides_on_no_class() -> None:
    with pytest.raises(TypeError, match="ask for an interval"):
        _ = Read(LINEAR).decision


class Cauchit(LogisticRegression):
    """A classifier whose probability is another function of its score."""

    def predict_proba(self, X: Any) -> np.ndarray:
        p = 0.5 + np.arctan(self.decision_function(X)) / np.pi
        return np.column_stack([1.0 - p, p])


class CauchitLink(Link):
    """``1/2 + arctan(s) / pi``: all that a link of one score has to say."""

    name = "cauchit"

    def second(self, s: np.ndarray) -> np.ndarray:
        return 0.5 + np.arctan(s) / np.pi

    def inverse(self, p: float) -> float:
        return float(np.tan(np.pi * (p - 0.5)))


def read_cauchit(estimator: Any, source: Any) -> Read:
    return replace(linear_classifier(estimator, source, "sigmoid"), link=CauchitLink())


def test_a_link_of_ones_own_is_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(known_readers(), (Cauchit.__module__, "Cauchit"), read_cauchit)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(0, 10, 80).round(1), "b": rng.uniform(0, 10, 80).round(1)})
    model = Cauchit().fit(X, np.where(X.a + X.b > 10, "yes", "no"))
    schema = Schema.infer(X, precision={"a": 1, "b": 1})
    row = X[model.predict(X) == "no"].iloc[0]
    explainer = Explainer(model, X, schema=schema, criteria=[Proximity("l1", scale="none")])
    answer = explainer.explain(row, want=Target("yes", probability=0.9))[0]
    grid = pd.DataFrame([(a / 10, b / 10) for a in range(101) for b in range(101)], columns=["a", "b"])
    grid = grid[(grid >= X.min()).all(axis=1) & (grid <= X.max()).all(axis=1)]
    enough = grid[model.predict_proba(grid)[:, 1] >= 0.9]
    assert answer.certificate.proven
    assert answer.distance == pytest.approx(np.abs(enough - row).sum(axis=1).min(), abs=1e-6)
