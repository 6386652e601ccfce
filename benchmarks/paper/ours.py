"""Ours: the objectives of the comparison, stated once, and a session that asks for answers under one of them.

With S the sum of the training ranges of the numeric features, in raw units, and the raw l1 distance of an answer:

- ``ifonly``: raw l1 + p S per changed feature + 30 p S per switched category, with p as `PRICE` says. One number that
  weighs what the paper's three measures count;
- ``ifonly-fewest``: (changed features + switched categories) first, raw l1 next: S per change, so that no distance
  outweighs a change. Its sparsity is the greatest that any answer has;
- ``ifonly-nearest``: raw l1 alone; a switched category costs 0.01, so that none is switched for nothing. Its continuous
  proximity is the greatest that any answer has, but for those hundredths;
- ``ifonly_tr``: the first, within 0.1 (l1, in ranges) of the convex hull of the training rows of the wanted class, the
  paper's trust region;
- ``ifonly-diverse``: l1 in ranges + 0.01 per changed feature, any two answers at least so far apart (in ranges, a
  category counting 1, a range of a number as much) as `APART` says. No feature is farther apart than that, so that
  many features differ.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from benchmarks.paper.models import Fitted
from benchmarks.paper.replies import Reply
from ifonly import Actionability, Diversity, Explainer, Manifold, Proximity, Sparsity
from ifonly.errors import IfOnlyError, IfOnlyWarning, NoCounterfactual
from ifonly.extend import Criterion

__all__ = ["APART", "OBJECTIVES", "PRICE", "Ours", "criteria"]

OBJECTIVES = ("ifonly", "ifonly-fewest", "ifonly-nearest", "ifonly_tr", "ifonly-diverse")
# The least distance between answers, and what the range of a number counts.
APART = {"adult": (3.0, 0.2), "compas": (1.5, 1.0), "heloc": (2.0, 1.0), "give_me_some_credit": (2.0, 1.0)}
# What a changed feature costs, as a share of all ranges. Two amounts of money make up all of S on Give Me Some Credit.
PRICE = {"adult": 1 / 100, "compas": 1 / 100, "heloc": 1 / 100, "give_me_some_credit": 1 / 10_000}
_SWITCH = 30.0
_EPSILON = 0.1


def criteria(method: str, source: Fitted) -> list[Criterion]:
    """Return the criteria of a method on a data set."""
    data = source.data
    total = sum(field.high - field.low for field in data.encoding.fields if field.kind != "category")

    def price(change: float, switch: float) -> list[Criterion]:
        """Return the objective raw l1 + change per feature + switch per category, in units of one change."""
        if not change:
            return [Proximity("l1", scale="none", weights=dict.fromkeys(data.categories, switch))]
        same = dict.fromkeys(data.numbers, change)
        weights = dict.fromkeys(data.categories, switch / change)
        return [Proximity("l1", scale=same, weights=weights), Sparsity(price=1.0)]

    house: list[Criterion] = [Actionability(frozen=list(data.frozen))]
    if method == "ifonly-fewest":
        return [*price(total, total), *house]
    if method == "ifonly-nearest":
        return [*price(0.0, 0.01), *house]
    if method == "ifonly-diverse":
        # Distances between answers are counted in ranges, so the objective is too.
        distance, weight = APART[data.name]
        ranges = Proximity("l1", scale="range", weights=dict.fromkeys(data.numbers, weight))
        return [ranges, Sparsity(price=0.01), Diversity("iterate", distance=distance), *house]
    region = [Manifold(epsilon=_EPSILON)] if method == "ifonly_tr" else []
    change = PRICE[data.name] * total
    return [*price(change, _SWITCH * change), *region, *house]


class Ours:
    """An explainer with one objective."""

    def __init__(self, method: str, source: Fitted, n: int) -> None:
        self.source, self.n = source, n
        train = source.data.train
        self.explainer = Explainer(
            source.model, train.frame, train.target, schema=train.schema, criteria=criteria(method, source)
        )

    def explain(self, position: int, seconds: float) -> Reply:
        """Ask; an answer is what `explain` returns, and proven when all of its certificates are."""
        data = self.source.data
        began, worked = time.perf_counter(), time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IfOnlyWarning)
                answer = self.explainer.explain(
                    data.test.frame.iloc[[position]], want=data.train.wanted, n=self.n, time_limit=seconds
                )
        except (NoCounterfactual, IfOnlyError) as error:
            status = type(error).__name__.lower()
            note = " ".join(str(error).split())[:300]
            return Reply(status, time.perf_counter() - began, note=note, cpu=time.process_time() - worked)
        spent, cpu = time.perf_counter() - began, time.process_time() - worked
        rows = data.codes(answer.frame())
        return Reply("found", spent, rows, proven=answer.status == "optimal", note="; ".join(_notes(answer)), cpu=cpu)

    def close(self) -> None:
        """Nothing is held."""


def _notes(answer: Any) -> list[str]:
    return [str(note) for note in getattr(answer, "notes", ()) if str(note).startswith("only")]
