"""The lines of the table: each a problem, its goal, and what was measured when the goal was set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.hard import models, tables
from benchmarks.hard.goals import Goal
from benchmarks.speed.asking import PLAIN, Ask
from benchmarks.speed.problems import (
    PROBLEMS,
    Kind,
    Problem,
    Table,
    adult,
    breast_cancer,
    forest,
    german,
    heloc,
    network,
)
from ifonly import Diversity, Manifold, Robustness, Sparsity
from ifonly.extend import Criterion

__all__ = ["LINES", "Line"]

# In the unit of a feature's range: the ball of the questions beside the published table, which has its own radii.
_RADIUS = 0.02


@dataclass(frozen=True)
class Line:
    """A named problem of the table.

    Attributes
    ----------
    group
        The question of the table that it belongs to.
    before
        What was measured when the table was written, on another fit of the same kind; processor seconds.
    limit
        Seconds per answer.
    rows
        How many rows are asked, drawn by a fixed seed among those with another outcome.
    """

    group: str
    problem: Problem
    goal: Goal
    before: str
    limit: float = 60.0
    rows: int = 20

    @property
    def name(self) -> str:
        """That of its problem."""
        return self.problem.name


def _line(
    group: str,
    name: str,
    table: Callable[[], Table],
    estimator: Callable[[], Any],
    kind: Kind,
    goal: Goal,
    before: str,
    ask: Ask = PLAIN,
    limit: float = 60.0,
) -> Line:
    return Line(group, Problem(name, table, estimator, kind, ask), goal, before, limit)


# -- demands ---------------------------------------------------------------------------------------------------------
def _with(*criteria: Criterion, **options: Any) -> Ask:
    def demands() -> Sequence[Criterion]:
        return criteria

    return Ask(demands=demands, **options)


def _in_a_million() -> Sequence[Criterion]:
    return [Manifold(rows=tables.million()[1])]


def _known_of_a_million() -> Table:
    return tables.million()[0]


_BALL = _with(Robustness(radius=_RADIUS))
_PRICED = _with(Sparsity(price=0.1))
_BOTH = (("", PLAIN), ("-priced", _PRICED))  # the distance alone, and with the default policy's price per change

# -- groups ----------------------------------------------------------------------------------------------------------
_largest = partial(_line, "l-infinity", ask=Ask("linf"))
_scaled_breast, _scaled_heloc = tables.scaled(breast_cancer), tables.scaled(heloc)
_breast = partial(_line, "l1, breast cancer", table=breast_cancer)
_heloc = partial(_line, "l1, HELOC", table=heloc)
_wine = partial(_line, "several classes", table=tables.wine)
_digits = partial(_line, "several classes", table=tables.digits, goal=Goal(proven=0.8))
_wide = partial(_line, "linear, wide", estimator=models.wide_logistic, kind="linear")
_WINES: tuple[tuple[str, Callable[[], Any], Kind, Goal, str], ...] = (
    ("wine-extra-40x6", models.extra_trees(40, 6), "extra", Goal(0.3), "2.9 s"),
    ("wine-voting", models.soft_voting, "composite", Goal(0.5), "5.4 s"),
    ("wine-calibrated", models.calibrated_forest, "composite", Goal(0.5), "19 s"),
)
_SHAPES: dict[str, tuple[Callable[[], Table], tuple[int, ...], Goal, str]] = {
    "german-mlp-1x100": (german, (100,), Goal(0.2), "0.7 s"),
    "german-mlp-2x64": (german, (64, 64), Goal(0.5, proven=1.0), "1.2 s, 4 of 5 proven in 90 s"),
    "german-mlp-1x500": (german, (500,), Goal(2.0), "17 s, 3 of 4 proven"),
    "german-mlp-2x128": (german, (128, 128), Goal(proven=0.9), "open, answer 0.457 where 0.294 exists"),
    "german-mlp-3x64": (german, (64, 64, 64), Goal(proven=0.8), "open, gap 78%"),
    "heloc-mlp-1x100": (heloc, (100,), Goal(0.2, most=2.0), "0.6 s, most 14 s"),
    "heloc-mlp-2x32": (heloc, (32, 32), Goal(0.3), "1.0 s"),
    "heloc-mlp-2x64": (heloc, (64, 64), Goal(proven=0.8), "open at 60 s with bound 0"),
}

_LIST = (
    _largest("breast-rf-50x5-linf", _scaled_breast, forest(50, 5), "forest", Goal(0.05), "0.7 to 3.3 s"),
    _largest(
        "breast-rf-100x8-linf",
        _scaled_breast,
        forest(100, 8),
        "forest",
        Goal(proven=1.0, within=5.0),
        "1 of 5 proven in 12 s, answers up to 9 times too far",
    ),
    _largest("breast-xgb-100x4-linf", _scaled_breast, models.xgboost(100, 4), "xgboost", Goal(0.02), "0.28 to 0.59 s"),
    _largest("heloc-xgb-100x6-linf", _scaled_heloc, models.xgboost(100, 6), "xgboost", Goal(0.05), "0.06 to 3.2 s"),
    _breast("breast-rf-50x5", estimator=forest(50, 5), kind="forest", goal=Goal(0.5), before="1.7 to 5 s"),
    _breast(
        "breast-rf-default", estimator=models.default_forest(), kind="forest", goal=Goal(2.0), before="12 s, most 28 s"
    ),
    _breast("breast-histgb-200", estimator=models.histgb(200), kind="histgb", goal=Goal(0.5), before="4.5 s"),
    _breast(
        "breast-catboost-default",
        estimator=models.catboost,
        kind="catboost",
        goal=Goal(proven=0.8),
        before="0 of 2 proven in 80 s (gap 10%, 1.4 GB)",
    ),
    _heloc(
        "heloc-rf-1000-deep",
        estimator=models.default_forest(1000),
        kind="forest",
        goal=Goal(2.0),
        before="14 s, most 37 s, 1.15 GB",
    ),
    _heloc("heloc-rf-300x8", estimator=forest(300, 8), kind="forest", goal=Goal(most=2.0), before="worst 15 s"),
    _heloc(
        "heloc-xgb-300x6-batch",
        estimator=models.xgboost(300, 6),
        kind="xgboost",
        goal=Goal(0.05),
        before="0.40 s a row, predict 0.003 s",
        ask=Ask(batch=True),
    ),
    _heloc(
        "heloc-rf-200-likely",
        estimator=models.default_forest(200),
        kind="forest",
        goal=Goal(answered=1.0, peak=1000.0),
        before="probability 0.8, at most 4 changes: out of time at 5, 10 and 20 s, 2.6 GB",
        ask=_with(Sparsity(at_most=4), probability=0.8),
        limit=5.0,
    ),
    *(
        _wine(f"{name}{end}", estimator=estimator, kind=kind, goal=goal, before=before, ask=ask)
        for name, estimator, kind, goal, before in _WINES
        for end, ask in _BOTH
    ),
    _digits("digits-rf-100x5", estimator=forest(100, 5), kind="forest", before="1 of 2 proven in 30 to 50 s"),
    _digits(
        "digits-rf-default", estimator=models.default_forest(), kind="forest", before="0 of 1 proven in 30 to 50 s"
    ),
    _digits("digits-lightgbm", estimator=models.lightgbm, kind="lightgbm", before="0 of 1 proven in 30 to 50 s"),
    *(
        _line("networks", f"{name}{end}", table, network(*shape), "network", goal, before, ask)
        for name, (table, shape, goal, before) in _SHAPES.items()
        for end, ask in _BOTH
    ),
    _line(
        "robust balls", "german-rf-100x5-ball", german, forest(100, 5), "forest", Goal(0.1), "0.4 to 0.6 s", ask=_BALL
    ),
    _line(
        "robust balls",
        "heloc-rf-100x5-ball",
        heloc,
        forest(100, 5),
        "forest",
        Goal(proven=1.0, within=20.0),
        "0 of 5",
        ask=_BALL,
    ),
    _line(
        "robust balls",
        "adult-mlp-1x100-ball",
        adult,
        network(100),
        "network",
        Goal(proven=1.0, within=20.0),
        "0 of 3",
        ask=_BALL,
    ),
    _wide(
        "wide-10000",
        table=tables.wide(10_000),
        goal=Goal(0.2, made=2.0, made_mb=500.0),
        before="constructor 43 s and 4.9 GB, answer 3.4 s",
        ask=Ask(schema=False),
    ),
    _wide("wide-1000-l2", table=tables.wide(1_000), goal=Goal(0.3), before="60 s (l1 takes 0.15 s)", ask=Ask("l2")),
    _wide(
        "wide-1000-mahalanobis",
        table=tables.wide(1_000, rows=3_000),  # fewer rows than features have no covariance to speak of
        goal=Goal(5.0, proven=1.0),
        before="open, gap 100%",
        ask=Ask("mahalanobis"),
    ),
    _line(
        "hulls",
        "heloc-hull",
        tables.heloc_whole,
        forest(100, 5),
        "forest",
        Goal(most=10.0, proven=1.0),
        "the worst known question 67 s",
        ask=_with(Manifold()),
        limit=90.0,
    ),
    _line(
        "hulls",
        "million-hull",
        _known_of_a_million,
        forest(100, 5),
        "forest",
        Goal(proven=1.0, within=30.0),
        "1 of 2 in 60 s, 1.45 GB",
        ask=Ask(demands=_in_a_million),
    ),
    *(
        _line(
            "ten answers",
            f"heloc-ten-{how}",
            heloc,
            forest(100, 5),
            "forest",
            Goal(goal),
            before,
            ask=_with(Diversity(how), answers=10),
        )
        for how, goal, before in (("features", 2.0, "11 s"), ("iterate", 10.0, "open at 29 s"))
    ),
    *(
        Line("latency", PROBLEMS[name], Goal(own=0.003), "4 to 6 ms beside the model's own predict")
        for name in ("german-logistic", "german-tree", "breast-logistic", "breast-tree")
    ),
)
LINES: dict[str, Line] = {line.name: line for line in _LIST}
