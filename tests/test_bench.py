"""The benchmark times every phase of an answer, and its phases add up."""

import time

import pytest

from ifonly.bench import Benchmark, Timing, _Watched, benchmark, credit_model
from ifonly.datasets import german_credit
from ifonly.errors import Infeasible
from ifonly.explain import Explainer
from ifonly.solvers.highs import BACKEND


def test_phases_add_up_to_what_a_caller_waits_for() -> None:
    seen: list[tuple[int, int]] = []
    began = time.perf_counter()
    found = benchmark(3, on_answer=lambda done, total: seen.append((done, total)))
    waited = time.perf_counter() - began
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert [t.status for t in found.timings] == ["optimal"] * 3
    assert all(t.build > 0 and t.solve >= 0 and t.verify >= 0 for t in found.timings)
    assert sum(t.solve for t in found.timings) > 0
    assert sum(t.total for t in found.timings) < waited
    table = found.table()
    assert list(table.index) == ["build", "solve", "verify", "total"]
    assert list(table.columns) == ["median", "p90", "max"]
    assert (table["median"] <= table["max"]).all()


def test_an_impossible_row_is_counted_and_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Infeasible("no")

    monkeypatch.setattr(Explainer, "explain", refuse)
    found = benchmark(2)
    assert [t.status for t in found.timings] == ["Infeasible"] * 2
    assert found.answered() == []
    assert all(t.solve == 0 and t.build > 0 for t in found.timings)


def test_a_watched_solver_is_still_a_solver() -> None:
    watched = _Watched(BACKEND)
    assert watched.available()
    assert (watched.name, watched.label, watched.version()) == (
        BACKEND.name,
        BACKEND.label,
        BACKEND.version(),
    )


def test_table_is_in_milliseconds() -> None:
    timings = (Timing("optimal", 0.001, 0.002, 0.003), Timing("OutOfTime", 9.0, 9.0, 9.0))
    table = Benchmark("linear", "HiGHS", timings).table()
    assert table.loc["total", "median"] == pytest.approx(6.0)
    assert table.loc["solve", "max"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("name", "estimator"), [("linear", "LogisticRegression"), ("forest", "RandomForestClassifier")]
)
def test_models_take_raw_columns(name: str, estimator: str) -> None:
    credit = german_credit()
    model = credit_model(name, credit.frame, credit.target)  # type: ignore[arg-type]
    assert type(model[-1]).__name__ == estimator
    assert model.score(credit.frame, credit.target) > 0.7
    assert list(model.feature_names_in_) == list(credit.frame.columns)
