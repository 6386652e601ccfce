"""The queue: nobody starves, everybody is told his place, limits hold; and large tables stay quick to look through."""

import pickle
import re
import time
from collections import OrderedDict
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import urljoin

import numpy as np
import pytest

from ifonly import OutOfTime
from ifonly.studio import table
from ifonly.studio.fragments import latest
from ifonly.studio.pool import Busy, Pool
from ifonly.studio.state import State
from studio_world import classifier, opened


@pytest.fixture
def pool() -> Pool:
    """A queue without workers: what is asked waits."""
    return Pool({}, size=0)


def ask(pool: Pool, visitor: str) -> Any:
    nothing: Any = None
    return pool.ask(visitor, State("x"), nothing)


def test_who_asks_much_waits_behind_who_asks_little(pool: Pool) -> None:
    first, second, third = (ask(pool, "greedy") for _ in range(3))
    late = ask(pool, "late")
    assert [pool.place(job) for job in (first, late, second, third)] == [1, 2, 3, 4]


def test_who_was_served_last_is_served_later(pool: Pool) -> None:
    pool._served = OrderedDict(greedy=time.monotonic())
    again, new = ask(pool, "greedy"), ask(pool, "new")
    assert (pool.place(new), pool.place(again)) == (1, 2)


def test_one_visitor_cannot_fill_the_queue_and_all_together_cannot_either(pool: Pool) -> None:
    for _ in range(4):
        ask(pool, "greedy")
    with pytest.raises(Busy):
        ask(pool, "greedy")
    for i in range(56):
        ask(pool, f"visitor {i}")
    with pytest.raises(Busy):
        ask(pool, "one too many")


def test_a_cancelled_question_leaves_the_queue(pool: Pool) -> None:
    first, second = ask(pool, "a"), ask(pool, "b")
    pool.cancel(first)
    assert first.status == "cancelled"
    assert pool.place(second) == 1
    assert pool.job(first.id, "b") is None
    assert pool.job(first.id, "a") is first


def test_what_is_remembered_has_a_limit(pool: Pool) -> None:
    first = ask(pool, "first")
    for i in range(400):
        job = ask(pool, f"visitor {i}")
        pool.cancel(job)
    assert len(pool._jobs) == 300
    assert pool.job(first.id, "first") is first, "a question that waits is never forgotten"
    assert pool.job(job.id, "visitor 399") is job


def test_a_chart_of_very_many_points_keeps_its_ends(pool: Pool) -> None:
    job = ask(pool, "a")
    for i in range(5000):
        job.progress(i / 10, 5000.0 - i, float(i))
    assert len(job.points) <= 400
    assert job.points[0] == (0.0, 5000.0, 0.0)
    assert job.points[-1] == (499.9, 1.0, 4999.0)
    assert job.points == sorted(job.points)


def test_kept_answers_are_small_and_whole(pool: Pool) -> None:
    subject = classifier()
    row = int(np.flatnonzero(subject.known()[0] != subject.wanted)[0])
    found = subject.explainer.explain(subject.data.iloc[[row]], want=subject.wanted)
    job = ask(pool, "a")
    assert (job.explanation, job.error) == (None, None)
    job.explanation = replace(found, reference=None)
    assert job.explanation.to_json() == found.to_json()
    assert len(pickle.dumps(job._answer)) < 10_000
    job.error = OutOfTime("too late")
    assert isinstance(job.error, OutOfTime)
    assert str(job.error) == "too late"


def test_each_way_has_a_chart_of_its_own() -> None:
    points = [(0.1, 3.0, 0.0), (0.2, 2.0, 1.0), (0.3, 5.0, 2.0), (0.4, 4.0, 3.0)]
    assert latest(points) == points[2:]
    assert latest([]) == []


def test_a_hundred_thousand_rows_are_found_as_pandas_finds_them() -> None:
    subject = classifier(rows=100_000)
    X = subject.data
    found = table.find(table.Search(numbers={0: (20, 30)}, sort="v1", down=True, page=3), subject)
    expected = X[X.income.between(20, 30)].sort_values("debts", ascending=False, kind="stable")
    assert found.total == len(expected)
    assert list(found.rows) == expected.index[75:100].tolist()


def test_links_are_relative_so_that_any_prefix_will_do() -> None:
    prefix = "/user/me/proxy/8123"
    with opened(classifier()) as (client, _):
        for page in ("/", "/row?row=3&ask=1", "/bookmarks"):
            text = client.get(page).text
            links = {unescape(link) for link in re.findall(r'\s(?:href|src|action|hx-get)="([^"#]*)"', text)}
            assert len(links) > 5
            for link in links:
                seen = urljoin(f"http://hub.example{prefix}{page}", link)
                assert seen.startswith(f"http://hub.example{prefix}/"), link
                # The proxy takes the prefix off.
                if "/paste" not in seen and "/forget" not in seen:
                    assert client.get(seen.removeprefix(f"http://hub.example{prefix}")).status_code < 400, link
        assert client.get("/random", follow_redirects=False).headers["location"].startswith("row?")
        assert client.get("/remember?row=3").headers["hx-push-url"].startswith("row?")
