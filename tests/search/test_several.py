"""Several answers: the ways in which a search for more can end, and what else holds for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from ifonly import CriterionError, Diversity, Explainer, NotVerified, OutOfTime, Robustness, Sparsity
from ifonly.criteria.actionability.demands import Between
from ifonly.question.criterion import Criterion
from ifonly.question.demand import Demand
from ifonly.question.found import Ended
from ifonly.question.guidance import Branch
from ifonly.question.query import Query
from ifonly.search.answering import Answer, NoMore
from ifonly.search.several import answers
from worlds import world_of


@dataclass
class Stops:
    """A question whose second answer ends the search in some way."""

    real: Any
    ends: BaseException | None
    interrupted: bool = False

    @property
    def statement(self) -> Any:
        return self.real.statement

    @property
    def deadline(self) -> Any:
        return self.real.deadline

    def one(self, statement: Any, *, first: bool = True) -> Answer:
        if not first:
            assert self.ends is not None
            raise self.ends
        answer = self.real.one(statement, first=first)
        ended = Ended.INTERRUPTED if self.interrupted else answer.found.ended
        return replace(answer, found=replace(answer.found, ended=ended))

    def another(self, u: Any, answer: Answer) -> Answer | None:
        return self.real.another(u, answer)


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        (NoMore(), "every further answer changes all that one of these changes (proven)"),
        (
            NoMore(0.5),
            "every further answer changes all that one of these changes; of those that clear their threshold by 0.5, proven",
        ),
        (OutOfTime("late"), "no other was found"),
        (KeyboardInterrupt(), "interrupted"),
        (NotVerified("no"), "the model itself refuses the next one"),
    ],
)
def test_the_first_answer_survives_however_the_next_one_ends(ends: BaseException, why: str) -> None:
    world = world_of(21, "tree")
    asked = world.explainer()._ask(world.factuals(1)[0], "yes", [Diversity()])
    several = answers(Stops(asked, ends), 3)
    assert len(several.answers) == 1
    assert several.notes == (f"only 1 of 3: {why}",)


def test_an_interrupted_first_answer_is_the_only_one() -> None:
    world = world_of(21, "tree")
    asked = world.explainer()._ask(world.factuals(1)[0], "yes", [Diversity()])
    several = answers(Stops(asked, None, interrupted=True), 2)
    assert several.notes == ("only 1 of 2: interrupted",)


def test_one_answer_needs_no_notes() -> None:
    world = world_of(21, "tree")
    answer = world.explainer().explain(world.factuals(1)[0], want="yes", criteria=[Diversity("incumbents")])
    assert (len(answer), answer.notes) == (1, ())


@pytest.mark.parametrize(
    "how", [Diversity("features"), pytest.param(Diversity("iterate", distance=0.3), marks=pytest.mark.slow)]
)
def test_every_one_of_several_answers_is_robust_and_the_best_of_the_rest(how: Diversity) -> None:
    world = world_of(22, "forest")
    row = world.factuals(2)[1]
    answer = world.explainer().explain(row, want="yes", n=3, criteria=[how, Robustness(radius=0.15)], time_limit=300)
    left = np.where(world.robust(world.said, 0.15, "linf"), world.costs(row), np.inf)
    sets = world.moves(row) > 0
    assert len(answer) == 3
    for found in answer:
        assert found.certificate.objective == pytest.approx(left.min(), abs=1e-5)
        if how.how == "features":
            left = np.where(sets[:, world.moves(row, found.row)[0] > 0].all(axis=1), np.inf, left)
        else:
            left = np.where(world.moves(found.row).sum(axis=1) < 0.3 - 1e-9, np.inf, left)


@dataclass(frozen=True, eq=False)
class OneOf(Demand):
    """A number must lie in one of several intervals, as an answer must lie in one of several hulls."""

    feature: int = 0
    intervals: tuple[tuple[float, float], ...] = ()

    def clusters(self, query: Query) -> list[Demand]:
        return [Between(f"in {i}", self.feature, *i, "step") for i in self.intervals]

    def branches(self, statement: Any, box: Any, deadline: Any) -> Iterator[Branch]:
        for part in self.clusters(statement.query):
            inner = box.copy()
            part.narrow(statement.query, inner)
            yield Branch(0.0, inner, part)

    def holds(self, query: Query, U: Any) -> Any:
        return np.logical_or.reduce([c.holds(query, U) for c in self.clusters(query)])


@dataclass(frozen=True)
class Intervals(Criterion):
    intervals: tuple[tuple[float, float], ...]

    def demands(self, query: Query) -> list[Demand]:
        return [OneOf("one of the intervals", 0, self.intervals)]


def test_one_answer_per_cluster_cheapest_first() -> None:
    world = world_of(24, "forest")
    row = world.factuals(1)[0]
    intervals = ((0, 1), (3, 4), (6, 8))
    explainer = Explainer(world.model, world.X, criteria=[Sparsity(price=0.1), Intervals(intervals)])
    answer = explainer.explain(row, want="yes", n=3, criteria=[Diversity("clusters")])
    costs = np.where(world.said, world.costs(row), np.inf)
    best = [costs[world.grid["n0"].between(*i)].min() for i in intervals]
    assert [a.certificate.objective for a in answer] == pytest.approx(
        sorted(b for b in best if np.isfinite(b)), abs=1e-6
    )
    more = explainer.explain(row, want="yes", n=9, criteria=[Diversity("clusters")])
    assert more.notes == (f"only {len(answer)} of 9: there are 3 clusters",)


def test_clusters_that_hold_no_answer_are_said() -> None:
    world = world_of(24, "tree")
    row = world.factuals(1)[0]
    costs = np.where(world.said, world.costs(row), np.inf)
    here = float(world.grid["n0"][costs.argmin()])
    criteria = [Intervals(((here, here), (50.0, 60.0))), Diversity("clusters")]
    answer = world.explainer().explain(row, want="yes", n=2, criteria=criteria)
    assert answer.notes == ("only 1 of 2: the other clusters hold no answer (proven)",)


def test_clusters_need_a_criterion_that_makes_them() -> None:
    world = world_of(24, "tree")
    with pytest.raises(CriterionError, match="Manifold"):
        world.explainer().explain(world.factuals(1)[0], want="yes", n=2, criteria=[Diversity("clusters")])


def test_the_best_come_first_and_all_are_confirmed() -> None:
    world = world_of(23, "boosting")
    explainer = world.explainer()
    batch = explainer.explain_all(world.X[np.asarray(world.model.predict(world.X)) == "no"].head(4), want="yes", n=3)
    for explanation in batch.found():
        objectives = [a.certificate.objective for a in explanation]
        assert objectives == sorted(objectives)
        assert (world.model.predict(explanation.frame()) == "yes").all()
    assert len(batch.found()) == 4
