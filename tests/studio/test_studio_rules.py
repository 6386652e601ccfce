"""Makers of rules, law, house or person; what a no takes home; several outcomes; criteria of the house in words."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from starlette.testclient import TestClient

from ifonly import (
    Actionability,
    Causality,
    Cause,
    Explainer,
    Explanation,
    Implies,
    Infeasible,
    LinearRow,
    Manifold,
    Proximity,
    Robustness,
    Sparsity,
    verify,
)
from ifonly.policy import read_policy
from ifonly.studio.language import words_of
from ifonly.studio.library import frame_of
from ifonly.studio.opening import subject_of
from ifonly.studio.rules import Question, question
from ifonly.studio.state import Limits, State
from ifonly.studio.subject import Subject
from ifonly.studio.told import Told
from ifonly.studio.wording import house_words, understand
from studio_world import ORIGIN, opened

RNG = np.random.default_rng(4)
X = pd.DataFrame(
    {"income": RNG.integers(10, 90, 150), "debts": RNG.integers(0, 9, 150), "age": RNG.integers(20, 60, 150)}
)
Y = np.where(X.income - 5 * X.debts > 25, "yes", "no")
THREE = np.digitize(X.income - 5 * X.debts, [15, 40])
LAW = Actionability(frozen=["age"], implies=[Implies({"age": (None, 25)}, {"income": (None, 85)})])
HOUSE = Actionability(decrease=["debts"], rows=[LinearRow({"income": 1, "debts": 1}, at_most=95)])


def lender(*criteria: Any, law: tuple[Any, ...] = (), switches: dict[str, Any] | None = None) -> Subject:
    explainer = Explainer(LogisticRegression().fit(X, Y), X, Y, criteria=[Proximity(), *criteria])
    return subject_of(explainer, frame_of(explainer), {} if switches is None else switches, law)


@pytest.fixture(scope="module")
def refused() -> int:
    model = LogisticRegression().fit(X, Y)
    return int(np.flatnonzero((model.predict(X) == "no") & (X.debts > 2) & (X.age > 30) & (X.income + X.debts < 60))[0])


# -- who makes a rule -------------------------------------------------------------------------------------------------
def test_rules_are_said_with_who_makes_them() -> None:
    subject = lender(LAW, HOUSE, law=(LAW,))
    single, between = house_words(subject, words_of("en"))
    assert single == {2: [("law", "stays as it is")], 1: [("house", "may only go down")]}
    assert [by for by, _ in between] == ["law", "house"]
    with opened(subject) as (client, _):
        page = client.get("/row", params={"row": 3, "m0": "up"}).text
    chips = re.findall(r'class="chip (law|house|person)"([^>]*)>([^<]+)<', page)
    assert ("law", "", "law: stays as it is") in chips
    assert ("house", "", "house rule: may only go down") in chips
    mine = re.findall(r'class="chip person" data-mine( hidden)?>', page)
    assert mine == ["", " hidden", " hidden"]


def clashes(subject: Subject, state: State) -> dict[str, str]:
    """Ask for what is impossible, and return each demand of the clash -> who makes it."""
    asked = question(state, subject, "no")
    with pytest.raises(Infeasible) as caught:
        subject.explainer.explain(asked.row, want=asked.want, criteria=asked.criteria)
    error: Infeasible = caught.value
    return {c.text: c.by for c in understand(error, state, asked, subject, words_of("en"))}


def test_a_clash_says_who_demands_what_also_when_house_and_person_limit_the_same(refused: int) -> None:
    tight = Actionability(ranges={"income": (10, 60)}, max_step={"debts": 3})
    subject = lender(tight, LAW, law=(LAW,))
    start = State(subject.key, refused)
    own = start.with_limit(0, Limits(low=10, high=30)).with_limit(1, Limits("lock"))
    assert clashes(subject, own) == {
        "The outcome is to be yes": "wish",
        "income between 10 and 30": "person",
        "debts stays as it is": "person",
    }
    # The same range from both sides is not hers to loosen.
    same = start.with_limit(0, Limits(low=10, high=int(X.income[refused]))).with_limit(1, Limits("lock"))
    strict = lender(Actionability(ranges={"income": (10, int(X.income[refused]))}))
    assert clashes(strict, same)[f"income between 10 and {X.income[refused]}"] == "house"


def test_the_law_between_features_is_told_from_the_house(refused: int) -> None:
    rule = Actionability(rows=[LinearRow({"income": 1}, at_most=int(X.income[refused]))])
    for law, by in (((rule,), "law"), ((), "house")):
        subject = lender(rule, law=law)
        found = clashes(subject, State(subject.key, refused).with_limit(1, Limits("lock")))
        assert by in found.values()


# -- taking home a no, and policies that hold everything --------------------------------------------------------------
def ask(client: TestClient, **fields: Any) -> tuple[str, str]:
    watching = client.post("/ask", data=fields, headers=ORIGIN)
    job = re.search(r"events\?job=(\w+)", watching.text)
    assert job is not None, watching.text
    return job[1], client.get("/events", params={"job": job[1]}).text.rpartition("id: ")[2]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    follows = Causality({"debts": Cause(["income"], coefficients={"income": -0.05})})
    switches = {"robust": Robustness(radius=0.02), "manifold": Manifold(epsilon=0.1), "causal": follows}
    with opened(lender(LAW, Actionability(decrease=["debts"]), law=(LAW,), switches=switches)) as (client, _):
        yield client


def test_a_no_is_a_record_that_stands(client: TestClient, refused: int) -> None:
    job, text = ask(client, row=refused, m0="lock", m1="lock")
    assert "that is proven" in text
    kinds = re.findall(r"as=(\w+)\"", text)
    assert kinds == ["json", "py", "toml"]
    record = client.get("/export", params={"job": job, "as": "json"}).text
    assert json.loads(record)["format"] == "ifonly/2"
    assert verify(record, LogisticRegression().fit(X, Y), X, Y).ok
    for kind in ("html", "csv"):  # there is no answer to write
        assert client.get("/export", params={"job": job, "as": kind}).status_code == 422


@pytest.mark.parametrize("switch", ["robust", "manifold", "causal"])
def test_the_exported_policy_holds_law_house_person_and_switches(client: TestClient, refused: int, switch: str) -> None:
    job, _ = ask(client, row=refused, on=switch, m0="up", k="2")
    answer = Explanation.from_json(client.get("/export", params={"job": job, "as": "json"}).text)
    text = client.get("/export", params={"job": job, "as": "toml"}).text
    policy = read_policy(text)
    assert policy.law == (replace(LAW, frozen=("age",), implies=tuple(LAW.implies)),)
    assert "Left out" not in text
    model = LogisticRegression().fit(X, Y)
    found = Explainer(model, X, Y, schema=policy.schema(X), criteria=policy.criteria).explain(
        X.iloc[[refused]], want="yes"
    )
    assert found[0].certificate.objective == pytest.approx(answer[0].certificate.objective)


def test_criteria_of_the_house_are_listed_in_words() -> None:
    follows = Causality({"debts": Cause(["income"], coefficients={"income": -0.05})})
    subject = lender(Manifold(epsilon=0.1), Robustness(radius=0.02), follows, Sparsity(at_most=1))
    single, between = house_words(subject, words_of("en"))
    assert single[1] == [("house", "follows from income")]
    said = [text for _, text in between]
    assert "The outcome holds even if every number is off by 2 % of its range" in said
    assert "At most 1 feature changes" in said
    assert any("close to rows" in text for text in said)


# -- several outcomes -------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def three() -> Subject:
    explainer = Explainer(DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, THREE), X)
    return subject_of(explainer, frame_of(explainer), {})


def test_any_of_several_outcomes_will_do(three: Subject) -> None:
    row = int(np.flatnonzero(three.known()[0] == 0)[0])
    with opened(three) as (client, _):
        page = client.get("/row", params={"row": row, "want": ["1", "2"]}).text
        assert re.findall(r'name="want" value="(\d)"( checked)?', page) == [
            ("0", ""),
            ("1", " checked"),
            ("2", " checked"),
        ]
        job, text = ask(client, row=row, want=["1", "2"])
        assert "no smaller change would do" in text
        answer = Explanation.from_json(client.get("/export", params={"job": job, "as": "json"}).text)
        assert "want=[1, 2]" in client.get("/export", params={"job": job, "as": "py"}).text
        assert client.post("/ask", data={"row": row, "want": ["1", "2"], "p": "0.7"}, headers=ORIGIN).status_code == 422
    direct = three.explainer.explain(three.data.iloc[[row]], want=[1, 2])
    assert answer[0].certificate.objective == pytest.approx(direct[0].certificate.objective)
    assert answer[0].prediction == direct[0].prediction
    assert f"Probability of {direct[0].prediction}" in text


def test_a_model_that_was_only_observed_is_said_to_be() -> None:
    model = SVC().fit(X, Y)
    explainer = Explainer(model, X, surrogate="auto")
    subject = subject_of(explainer, frame_of(explainer), {})
    row = int(np.flatnonzero(model.predict(X) == "no")[0])
    with opened(subject) as (client, _):
        _, text = ask(client, row=row, want=1, t=5)
    assert "it was only observed" in text
    assert "the model itself was asked" in text


# -- slips ------------------------------------------------------------------------------------------------------------
def test_slips_are_told_in_the_language_of_the_page(client: TestClient) -> None:
    german = client.get("/row", params={"row": 1, "v0": "viel"}, headers={"Accept-Language": "de"})
    assert german.status_code == 422
    assert '<p lang="de">viel ist keine Zahl, und income braucht eine.</p>' in german.text
    assert "viel is no number, which income needs." in client.get("/row", params={"row": 1, "v0": "viel"}).text
    assert str(Told("slip.choice", text="7")) == "7 is not among the choices."


def test_what_is_there_already_is_said_kindly_in_both_languages(client: TestClient) -> None:
    good = int(np.flatnonzero(LogisticRegression().fit(X, Y).predict(X) == "yes")[0])
    for language, said in (("en", "The model says that already"), ("de", "Das sagt das Modell schon")):
        client.headers["Accept-Language"] = language
        _, text = ask(client, row=good, want=1)
        assert said in text
        assert "cannot be asked" not in text


def test_the_address_of_a_search_holds_only_what_is_set(client: TestClient) -> None:
    given = {"q": "3", "o": "", "pmin": "", "a0": "20", "b0": ""}
    pushed = client.get("/", params=given, headers={"HX-Request": "true"}).headers["hx-push-url"]
    assert pushed == "./?q=3&a0=20.0"
    assert "hx-push-url" not in client.get("/", params=given).headers


def test_a_question_holds_what_the_worker_needs(refused: int) -> None:
    subject = lender()
    asked = question(State(subject.key, refused, want=(1,)), subject, "no")
    assert isinstance(asked, Question)
    assert asked.want == "yes"


def test_a_switch_of_ones_own_class_reaches_the_worker() -> None:
    class Careful(Actionability):
        """A criterion of a notebook: no module has it."""

    with opened(lender(LAW, switches={"careful": Careful(frozen=["debts"])})) as (client, _):
        watching = client.post("/ask", data={"row": 0, "on": "careful", "t": 5}, headers=ORIGIN)
        assert watching.status_code == 200, watching.text
        job = re.search(r"events\?job=(\w+)", watching.text)
        assert job is not None
        ended = client.get("/events", params={"job": job[1]}).text
        assert "the model itself was asked" in ended
        assert "Careful" in client.get("/export", params={"job": job[1], "as": "py"}).text
