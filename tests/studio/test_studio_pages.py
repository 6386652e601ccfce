"""The pages over HTTP: rows are found, questions are put, answered, refused, stopped and taken home; in both languages."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

from ifonly import Actionability, Explainer, Explanation, Robustness, Sparsity
from ifonly.policy import read_policy
from ifonly.studio import table
from ifonly.studio.language import LANGUAGES, negotiated, words_of
from ifonly.studio.state import Limits, State, read_state
from ifonly.studio.subject import Subject
from portions import one_in
from studio_world import HOSTILE, ORIGIN, classifier, loans, opened, regression

STUDIO = Path(__file__).resolve().parents[2] / "src" / "ifonly" / "studio"


@pytest.fixture(scope="module")
def subject() -> Subject:
    return classifier()


@pytest.fixture(scope="module")
def client(subject: Subject) -> Iterator[TestClient]:
    strict = replace(classifier(criteria=[Actionability(frozen=subject.schema.names[:3])]), key="strict")
    switched = replace(classifier({"robust": Robustness(radius=0.3)}), key="switched")
    with opened(subject, regression(), strict, switched) as (client, _):
        yield client


@pytest.fixture(scope="module")
def refused(subject: Subject) -> int:
    """A row that the model refuses."""
    return int(np.flatnonzero(subject.known()[0] == "no")[0])


def ask(client: TestClient, **fields: Any) -> tuple[str, str]:
    """Put a question, follow its events to the end, and return the job and the last fragment."""
    response = client.post("/ask", data=fields, headers=ORIGIN)
    assert response.status_code == 200, response.text
    job = re.search(r"events\?job=(\w+)", response.text)
    assert job is not None
    messages: list[str] = []
    with client.stream("GET", "/events", params={"job": job[1]}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        data: list[str] = []
        for line in stream.iter_lines():
            if line.startswith("data: "):
                data.append(line.removeprefix("data: "))
            elif not line and data:
                messages.append("\n".join(data))
                data = []
    assert messages[-1] == "done"
    return job[1], messages[-2]


# -- finding a row ----------------------------------------------------------------------------------------------------
def rows_shown(text: str) -> list[int]:
    return [int(n) for n in re.findall(r'href="row\?(?:s=\w+&amp;)?row=(\d+)" aria-label', text)]


def test_filters_find_what_pandas_finds(client: TestClient, subject: Subject) -> None:
    X, outcomes = subject.data, subject.known()[0]
    names = {name: j for j, name in enumerate(subject.schema.names)}
    job = names[f"job {HOSTILE}"]
    nurse = subject.schema.features[job].levels.index("nurse")
    params = {f"a{names['income']}": 30, f"b{names['income']}": 60, f"l{job}": nurse, "o": 0}
    expected = np.flatnonzero(
        X.income.between(30, 60) & (X[f"job {HOSTILE}"] == "nurse") & (outcomes == subject.classes[0])
    )
    text = client.get("/", params=params).text
    assert rows_shown(text) == expected[: table.PAGE].tolist()
    assert f"{len(expected)} of {len(X)} rows" in text


def test_sorting_paging_and_scores(client: TestClient, subject: Subject) -> None:
    seen: list[int] = []
    for page in range(20):
        shown = rows_shown(client.get("/", params={"sort": "v0", "down": "1", "page": page}).text)
        seen += [i for i in shown if i not in seen]
    expected = subject.data.income.sort_values(ascending=False, kind="stable").index.tolist()
    assert seen == expected
    scores = subject.known()[1][:, subject.classes.index(subject.wanted)]
    found = rows_shown(client.get("/", params={"pmin": "0.4", "pmax": "0.6"}).text)
    assert found == np.flatnonzero((scores >= 0.4) & (scores <= 0.6))[: table.PAGE].tolist()


def test_search_finds_levels_numbers_and_the_row_itself(subject: Subject) -> None:
    X = subject.data
    found = table.find(table.Search(text="NURS"), subject)
    assert found.total == (X[f"job {HOSTILE}"] == "nurse").sum()
    assert 17 in table.find(table.Search(text="17", sort="row"), subject).rows
    assert table.find(table.Search(text="nothing like it"), subject).total == 0


def test_a_random_row_is_among_those_found(client: TestClient, subject: Subject) -> None:
    for _ in range(5):
        where = client.get("/random", params={"o": 1}, follow_redirects=False).headers["location"]
        row = int(dict(parse_qsl(urlsplit(where).query))["row"])
        assert subject.known()[0][row] == subject.classes[1]


@pytest.mark.parametrize("form", ["header", "bare", "json", "tabs"])
def test_a_pasted_row_opens_with_its_values(client: TestClient, subject: Subject, form: str) -> None:
    names, row = subject.schema.names, ["33", "1.25", "nurse", "mid"]
    text = {
        "header": ",".join(f'"{n}"' for n in names) + "\n" + ",".join(row),
        "bare": ";".join(row),
        "tabs": "\t".join(row),
        "json": json.dumps(dict(zip(names, row, strict=True))),
    }[form]
    answer = client.post("/paste", data={"text": text}, headers=ORIGIN, follow_redirects=False)
    given = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    assert given == {"v0": "33", "v1": "1.25", "v2": "nurse", "v3": "mid"}
    assert 'value="33"' in client.get("/" + answer.headers["location"]).text


@pytest.mark.parametrize("text", ["", "1,2", "[1]", "{", "a,b\n1,2", "x,1,nurse,mid", "1,1,nobody,mid"])
def test_what_is_no_row_is_said_to_be_none(client: TestClient, text: str) -> None:
    assert client.post("/paste", data={"text": text}, headers=ORIGIN).status_code == 422


# -- one row ----------------------------------------------------------------------------------------------------------
def test_the_prediction_is_the_models_own(client: TestClient, subject: Subject, refused: int) -> None:
    row = subject.data.iloc[[refused]].assign(income=88)
    expected = subject.explainer.model.estimator.predict_proba(row)[0]
    text = client.get("/predict", params={"row": refused, "v0": "88"}).text
    shown = [float(n) for n in re.findall(r'class="number">([\d.]+)<', text)]
    assert shown == [round(float(p), 2) for p in expected]


def test_names_levels_and_labels_are_escaped_everywhere(client: TestClient, refused: int) -> None:
    _, answer = ask(client, row=refused, n=2, on="robust")
    pages = [client.get("/").text, client.get(f"/row?row={refused}").text, answer, client.get("/bookmarks").text]
    for text in pages:
        assert HOSTILE not in text
    assert unescape(pages[1]).count(HOSTILE) > 3


def test_the_state_survives_its_address(subject: Subject) -> None:
    state = State(
        subject.key,
        3,
        {0: 55, 2: "clerk"},
        {0: Limits("up", 20, 80, 10, (), 5), 2: Limits(levels=(0, 2)), 3: Limits("lock", effort=1)},
        want=(1,),
        probability=0.7,
        ways=3,
        changes=2,
        seconds=5,
        on=("robust",),
    )
    assert read_state(parse_qsl(state.query("yes")), subject) == state
    assert State(subject.key, 3).query("yes") == "row=3"


def test_the_address_remembers_and_leaves_out_what_is_usual(client: TestClient) -> None:
    given = {"row": 3, "v0": loans().income[3], "m1": "", "e0": 3, "n": 1, "t": 30, "lo0": 10, "hi0": 89, "p": ""}
    assert client.get("/remember", params=given).headers["hx-push-url"] == "row?row=3"
    assert "m1=down" in client.get("/remember", params={**given, "m1": "down"}).headers["hx-push-url"]


@pytest.mark.parametrize("query", ["row=999999", "row=-1", "row=x", "v0=abc", "s=nobody", "m0=sideways", "p=2", "n=9"])
def test_nonsense_is_refused_in_words(client: TestClient, query: str) -> None:
    response = client.get(f"/row?{query}")
    assert response.status_code == 422
    assert "<h1>" in response.text


# -- asking -----------------------------------------------------------------------------------------------------------
def test_an_answer_is_the_librarys_own(client: TestClient, subject: Subject, refused: int) -> None:
    job, text = ask(client, row=refused, m0="lock", k=3)
    row = subject.data.iloc[[refused]]
    own = [Actionability(frozen=["income"]), Sparsity(at_most=3)]
    expected = subject.explainer.explain(row, want=subject.wanted, criteria=own)
    exported = Explanation.from_json(client.get("/export", params={"job": job, "as": "json"}).text)
    pd.testing.assert_frame_equal(exported.frame(), expected.frame())
    assert exported[0].certificate == expected[0].certificate
    assert "no smaller change would do" in text
    assert "the model itself was asked" in text
    assert ("same outcome for" in text) == (
        "Whether rules and other wishes would be met as well was not checked" in text
    )
    assert text.count("was not checked") <= 1


def test_what_the_changes_buy_adds_up_and_the_reach_holds(subject: Subject, refused: int) -> None:
    from ifonly.studio.insight import insights

    explanation = subject.explainer.explain(subject.data.iloc[[refused]], want=subject.wanted, n=3)
    model = subject.explainer.model.estimator
    column = list(model.classes_).index(subject.wanted)
    for way, insight in zip(explanation, insights(subject.explainer, explanation, subject.wanted), strict=True):
        before, after = (float(model.predict_proba(r)[0, column]) for r in (explanation.factual, way.row))
        assert sum(insight.buys.values()) == pytest.approx(after - before, abs=1e-12)
        for name, reach in insight.reach.items():
            for value in (reach.low, reach.high):
                moved = way.row.assign(**{name: np.asarray([value]).astype(way.row[name].dtype)})
                assert model.predict(moved)[0] == subject.wanted
            beyond = reach.low - 1
            if name == "income" and beyond >= subject.schema[name].lower:  # type: ignore[union-attr]
                assert model.predict(way.row.assign(income=int(beyond)))[0] != subject.wanted


LOOSE = [
    {"m0": "lock", "m1": "lock", "m2": "lock", "m3": "lock"},
    {"m0": "down", "m2": "lock", "m3": "lock", "m1": "lock"},
    {"st0": "1", "m1": "lock", "m2": "lock", "m3": "lock"},
    {"lo0": "10", "hi0": "12", "m1": "lock", "m2": "lock", "m3": "lock"},
    {"lv2": "1", "m0": "lock", "m1": "lock", "m3": "lock"},
    {"k": "1", "hi0": "14", "hi1": "3", "p": "0.995"},
    {"p": "0.99", "hi0": "55", "m1": "lock", "m2": "lock", "m3": "lock"},
    {"s": "value", "hi0": "60", "m1": "lock", "ge": "75"},
]


@pytest.mark.parametrize("limits", one_in(2, LOOSE), ids="-".join)
def test_every_loosening_button_leads_to_an_answer(client: TestClient, refused: int, limits: dict[str, str]) -> None:
    _, text = ask(client, row=refused, **limits)
    assert "that is proven" in text
    buttons = [unescape(href) for href in re.findall(r'class="button loosen" href="row\?([^"]+)"', text)]
    assert buttons
    for query in buttons:
        fields = {k: v for k, v in parse_qsl(query) if k != "ask"}
        _, again = ask(client, **fields)
        assert "the model itself was asked" in again, (text, query)


def test_a_switch_that_asks_too_much_can_be_switched_off(client: TestClient, refused: int) -> None:
    limits = {"s": "switched", "hi0": "55", "m1": "lock", "m2": "lock", "m3": "lock"}
    _, text = ask(client, row=refused, on="robust", **limits)
    assert "that is proven" in text
    assert "switched on" in text
    assert "Switch the extra criteria off" in text
    _, again = ask(client, row=refused, **limits)
    assert "the model itself was asked" in again


def test_rules_of_the_house_have_no_button(client: TestClient, refused: int) -> None:
    _, text = ask(client, s="strict", row=refused, m3="lock")
    assert "that is proven" in text
    assert "house rule" in text
    assert "not yours to change" in text


def test_a_regression_is_asked_for_an_interval(client: TestClient) -> None:
    assert client.post("/ask", data={"s": "value", "row": 1}, headers=ORIGIN).status_code == 422
    job, text = ask(client, s="value", row=1, ge=70, le=71)
    answer = Explanation.from_json(client.get("/export", params={"job": job, "as": "json"}).text)
    assert 70 <= float(answer[0].prediction) <= 71
    assert "then the model says" in text


def test_a_question_that_makes_no_sense_is_refused_in_words(client: TestClient, subject: Subject) -> None:
    good = int(np.flatnonzero(subject.known()[0] == subject.wanted)[0])
    _, text = ask(client, row=good, want=subject.classes.index(subject.wanted))
    assert "The model says that already" in text


def test_a_job_is_known_to_its_own_visitor_only(client: TestClient, refused: int) -> None:
    job, _ = ask(client, row=refused)
    assert client.get("/export", params={"job": "0" * 32, "as": "json"}).status_code == 404
    assert client.get("/export", params={"job": job, "as": "exe"}).status_code == 404
    assert client.get("/events", params={"job": "0" * 32}).status_code == 404


# -- taking it home ---------------------------------------------------------------------------------------------------
def test_the_exported_policy_gives_the_same_answer(client: TestClient, subject: Subject, refused: int) -> None:
    job, _ = ask(client, row=refused, m0="up", hi0="80", e1="5", k="3", lv2=["0", "2"])
    answer = Explanation.from_json(client.get("/export", params={"job": job, "as": "json"}).text)
    policy = read_policy(client.get("/export", params={"job": job, "as": "toml"}).text)
    model = subject.explainer.model.estimator
    again = Explainer(model, subject.data, schema=policy.schema(subject.data), criteria=policy.criteria)
    found = again.explain(subject.data.iloc[[refused]], want=subject.wanted)
    assert found[0].certificate.objective == pytest.approx(answer[0].certificate.objective)
    assert found.changes().equals(answer.changes())


def test_exports_have_their_kind_and_are_files(client: TestClient, subject: Subject, refused: int) -> None:
    job, _ = ask(client, row=refused, n=2)
    for kind, begins in {"html": "<!doctype html>", "json": "{", "csv": "income", "py": "from", "toml": "#"}.items():
        response = client.get("/export", params={"job": job, "as": kind})
        assert response.text.lower().startswith(begins)
        assert response.headers["content-disposition"].startswith("attachment")
    table = pd.read_csv(pd.io.common.StringIO(client.get("/export", params={"job": job, "as": "csv"}).text))
    assert (subject.explainer.model.estimator.predict(table[list(subject.schema.names)]) == subject.wanted).all()


@pytest.mark.slow
def test_the_exported_code_of_the_demo_gives_the_same_answer() -> None:
    from ifonly.studio.demo import demo_subjects

    demo = demo_subjects()
    with opened(*demo) as (client, _):
        job, text = ask(client, s="linear", row=11, m1="down", p="0.55", on="causal", e4="4")
        assert "no smaller change would do" in text
        answer = Explanation.from_json(client.get("/export", params={"job": job, "as": "json"}).text)
        code = client.get("/export", params={"job": job, "as": "py"}).text
    namespace: dict[str, Any] = {"print": lambda *_: None}
    exec(compile(code, "exported", "exec"), namespace)
    found = namespace["answer"]
    assert found.changes().equals(answer.changes())
    assert found[0].certificate.objective == pytest.approx(answer[0].certificate.objective)


def test_bookmarks_are_kept_noted_forgotten_and_survive(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    with opened(classifier(), keep=file) as (client, _):
        client.post("/keep", data={"row": 5, "m0": "lock", "note": f"call back {HOSTILE}"}, headers=ORIGIN)
        client.post("/keep", data={"row": 6}, headers=ORIGIN)
    with opened(classifier(), keep=file) as (client, _):
        text = client.get("/bookmarks").text
        assert "call back" in text
        assert HOSTILE not in text
        kept = client.get("/bookmarks.json").json()
        assert [k["query"] for k in kept] == ["row=5&m0=lock", "row=6"]
        client.post("/forget", data={"id": kept[0]["id"]}, headers=ORIGIN)
        assert [k["query"] for k in client.get("/bookmarks.json").json()] == ["row=6"]


# -- languages --------------------------------------------------------------------------------------------------------
def test_catalogues_have_the_same_keys_and_gaps() -> None:
    first, *others = (words_of(name).texts for name in LANGUAGES)
    assert set(LANGUAGES) >= {"de", "en"}
    for other in others:
        assert other.keys() == first.keys()
        for key, text in first.items():
            assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", other[key])), key


def test_every_text_is_used_and_every_used_text_is_there() -> None:
    sources = "".join(p.read_text("utf-8") for p in (*STUDIO.glob("*.py"), *STUDIO.glob("templates/*.html")))
    used = set(re.findall(r"""(?:\bt|words|words_for\(request\))\(\s*f?["']([\w.]+)["']""", sources))
    known = words_of("en").texts
    assert {key for key in used if not key.endswith((".", "_"))} <= known.keys() | {"language"}
    composed = [
        *re.findall(r"""["'](\w+\.(?:\w+_)?)(?:["'] ~|\{)""", sources),
        "row.effort",
        "loosen.",
        "no.",
        "reach.",
    ]
    unused = {k for k in known if k not in used and f'"{k}"' not in sources and not k.startswith(tuple(composed))}
    assert unused <= {"decimal", "language"}, unused


def test_the_page_speaks_the_language_of_the_browser(client: TestClient) -> None:
    german = client.get("/", headers={"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}).text
    assert '<html lang="de">' in german
    assert "Eine Zeile finden" in german
    assert negotiated(None, "fr, en;q=0.2, de;q=0.1") == "en"
    assert negotiated(None, ";;q=x,,") == "en"
    chosen = client.get("/", params={"lang": "de"})
    assert "ifonly_language=de" in chosen.headers["set-cookie"]
    client.cookies.delete("ifonly_language")


# -- the queue --------------------------------------------------------------------------------------------------------
def test_a_full_queue_says_so(client: TestClient, refused: int) -> None:
    answers = [client.post("/ask", data={"row": refused, "n": 5}, headers=ORIGIN).status_code for _ in range(12)]
    assert set(answers) <= {200, 429}
    deadline = time.monotonic() + 30
    while client.post("/ask", data={"row": refused}, headers=ORIGIN).status_code == 429:
        assert time.monotonic() < deadline
        time.sleep(0.2)
