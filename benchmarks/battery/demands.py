"""Demands said a second time: as masks over tables of raw values, with the sentences of the library read as a user would."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.battery.truth import Cost, Floats, Mask, Want
from benchmarks.battery.worlds import Column, Data
from ifonly import Implies, LinearRow

__all__ = ["RULES", "Own", "at_most", "draw_rule", "numbers_in"]

Masks = tuple[Mask, Mask]
_NUMBER = r"-?(?:inf|None|\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_DUST = 1e-9


@dataclass(frozen=True)
class Own:
    """One demand.

    Attributes
    ----------
    kind
        What it is called in the report.
    is_named
        Whether a sentence of the library speaks of this demand.
    masks
        Rows that may count as meeting it, and rows that do so beyond doubt.
    loosen
        The demand after a loosening that the library proposes in words; None: the words are not understood.
    wanting
        The demand for another outcome, where it speaks of the outcome.
    """

    kind: str
    is_named: Callable[[str], bool]
    masks: Callable[[pd.DataFrame], Masks]
    loosen: Callable[[str], Own | None]
    wanting: Callable[[Want], Own] | None = None

    def held(self, F: pd.DataFrame) -> Mask:
        """Say which rows may count as meeting it."""
        return self.masks(F)[0]


def nothing(kind: str) -> Own:
    """Return a demand that is always met: what is left of one that was dropped."""
    return Own(kind, lambda _: False, lambda F: (np.ones(len(F), bool),) * 2, lambda _: None)


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a sentence; None and inf are infinite."""
    found = re.findall(rf"(?<![\w.]){_NUMBER}(?![\w.]*\w)", text)
    return [np.inf if t == "None" else float(t) for t in found]


def column_of(F: pd.DataFrame, name: str) -> Floats:
    """Return a numeric column as floats."""
    return np.asarray(F[name].to_numpy(dtype=np.float64))


def _same(masks: Callable[[pd.DataFrame], Any]) -> Callable[[pd.DataFrame], Masks]:
    def both(F: pd.DataFrame) -> Masks:
        mask = np.asarray(masks(F), dtype=np.bool_)
        return mask, mask

    return both


def _dust(c: Column) -> tuple[float, float]:
    """Return by how much a value may miss an end and still count: certainly on a grid, perhaps elsewhere."""
    room = _DUST * 10.0**c.unit
    return room, room if c.step is not None else 0.0


# -- single features ---------------------------------------------------------------------------------------------------
def interval(c: Column, low: float, high: float, kind: str, is_named: Callable[[str], bool], loosen: Any) -> Own:
    """Return ``low <= x <= high``; a missing value that stays missing meets every interval but a range."""
    loose, tight = _dust(c)

    def masks(F: pd.DataFrame) -> Masks:
        x = column_of(F, c.name)
        gone = np.isnan(x) & (kind != "range")
        with np.errstate(invalid="ignore"):
            wide = (x >= low - loose) & (x <= high + loose)
            sure = (x >= low - tight) & (x <= high + tight)
        return wide | gone, sure | gone

    return Own(kind, is_named, masks, loosen)


def levels(c: Column, allowed: set[Any], kind: str, is_named: Callable[[str], bool]) -> Own:
    """Return: the level lies in a set; "also allow ... to be ..." adds one."""

    def loosen(change: str) -> Own | None:
        if not change.startswith(f"also allow {c.name} to be "):
            return None
        more = [v for v in c.values if str(v) == change.removeprefix(f"also allow {c.name} to be ")]
        return levels(c, allowed | set(more), kind, is_named) if more else None

    return Own(kind, is_named, _same(lambda F: [v in allowed for v in F[c.name].to_numpy(dtype=object)]), loosen)


def frozen(c: Column, factual: pd.DataFrame) -> Own:
    """Return: stays as it is."""
    now = factual[c.name].iloc[0]

    def masks(F: pd.DataFrame) -> Any:
        return F[c.name].isna() if pd.isna(now) else [v == now for v in F[c.name].to_numpy(dtype=object)]

    def loosen(change: str) -> Own | None:
        return nothing("frozen") if change.startswith(f"unfreeze {c.name} ") else None

    return Own("frozen", lambda t: t == f"frozen {c.name}", _same(masks), loosen)


def direction(c: Column, factual: pd.DataFrame, sign: int) -> Own:
    """Return: only up, or only down."""
    now, word = factual[c.name].iloc[0], "increase" if sign > 0 else "decrease"
    other = "decrease" if sign > 0 else "increase"

    def is_named(text: str) -> bool:
        return text == f"{c.name} may only {word}"

    def said(change: str) -> str | None:
        start = f"let {c.name} {other} to "
        return change.removeprefix(start) if change.startswith(start) else None

    if c.numeric:

        def loosen(change: str) -> Own | None:
            end = said(change)
            if end is None:
                return None
            low, high = (float(end), np.inf) if sign > 0 else (-np.inf, float(end))
            return interval(c, low, high, word, is_named, lambda _: None)

        low, high = (float(now), np.inf) if sign > 0 else (-np.inf, float(now))
        return interval(c, low, high, word, is_named, loosen)
    order = list(c.values)[::sign]

    def loosen_levels(change: str) -> Own | None:
        end = said(change)
        return levels(c, set(order[order.index(end) :]), word, is_named) if end in order else None

    own = levels(c, set(order[order.index(now) :]), word, is_named)
    return Own(word, is_named, own.masks, loosen_levels)


def ranged(c: Column, low: float | None, high: float | None) -> Own:
    """Return: the new value lies in a range."""
    a, b = -np.inf if low is None else low, np.inf if high is None else high

    def loosen(change: str) -> Own | None:
        ends = re.search(rf"-> \(({_NUMBER}), ({_NUMBER})\)$", change)
        if ends is None:
            return None
        left, right = ends.groups()
        return ranged(
            c, None if left in ("None", "-inf") else float(left), None if right in ("None", "inf") else float(right)
        )

    return interval(c, a, b, "range", lambda t: t.startswith(f"range of {c.name} ("), loosen)


def stepped(c: Column, factual: pd.DataFrame, step: float) -> Own:
    """Return: moves by no more than a step."""
    now = factual[c.name].iloc[0]

    def is_named(text: str) -> bool:
        return text.startswith(f"{c.name} moves by at most ")

    if c.numeric:

        def loosen(change: str) -> Own | None:
            if not change.startswith(f"max_step of {c.name} "):
                return None
            return stepped(c, factual, float(change.split(" -> ")[1]))

        return interval(c, float(now) - step, float(now) + step, "max_step", is_named, loosen)
    at = c.values.index(now)
    return levels(c, {v for i, v in enumerate(c.values) if abs(i - at) <= step}, "max_step", is_named)


# -- between features --------------------------------------------------------------------------------------------------
def row(weights: dict[str, float], low: float, high: float, on_grid: bool = True) -> Own:
    """Return a linear rule; on grids exact ties count, whatever dust a sum of decimals leaves."""
    ulps = 4.0 if on_grid else -2.0  # a real number can keep its distance: what rounding decides is not sure

    def masks(F: pd.DataFrame) -> Masks:
        parts = [w * column_of(F, name) for name, w in weights.items()]
        total, size = sum(parts), sum(np.abs(p) for p in parts)
        near, wide = ulps * np.finfo(np.float64).eps * size, _DUST * size
        with np.errstate(invalid="ignore"):
            sure = (total >= low - near) & (total <= high + near)
            return (total >= low - wide) & (total <= high + wide), np.asarray(sure)

    def is_named(text: str) -> bool:
        return " in (" in text and all(name in text for name in weights) and not text.startswith(("want", "range of"))

    def loosen(change: str) -> Own | None:
        if " -> " not in change:
            return None
        end = float(change.split(" -> ")[1])
        ends = (low, end) if change.startswith("at_most") else (end, high)
        return row(weights, *ends, on_grid)

    return Own("row", is_named, masks, loosen)


def implies(rule: Implies) -> Own:
    """Return: if this, then that."""

    def meets(F: pd.DataFrame, condition: Any) -> Any:
        out = np.ones(len(F), dtype=np.bool_)
        for name, value in condition.items():
            if isinstance(value, tuple):
                x = column_of(F, name)
                low, high = (-np.inf if value[0] is None else value[0]), (np.inf if value[1] is None else value[1])
                with np.errstate(invalid="ignore"):
                    out &= (x >= low) & (x <= high)
            else:
                wanted = value if isinstance(value, list) else [value]
                out &= np.array([v in wanted for v in F[name].to_numpy(dtype=object)])
        return out

    def masks(F: pd.DataFrame) -> Any:
        return ~meets(F, rule.if_) | meets(F, rule.then)

    return Own("implies", lambda t: t.startswith("if ") and " then " in t, _same(masks), lambda _: None)


def at_most(cost: Cost, factual: pd.DataFrame, most: int) -> Own:
    """Return: no more than so many features change."""

    def loosen(change: str) -> Own | None:
        return at_most(cost, factual, int(change.split(" -> ")[1])) if change.startswith("at_most ") else None

    return Own(
        "at_most", lambda t: t.startswith("change at most "), _same(lambda F: cost.count(F, factual) <= most), loosen
    )


# -- drawing -----------------------------------------------------------------------------------------------------------
RULES = ("frozen", "increase", "decrease", "ranges", "max_step", "allow", "conditional", "rows", "implies")


def draw_rule(rng: np.random.Generator, rule: str, data: Data, factual: pd.DataFrame) -> tuple[str, Any, Own] | None:
    """Return an argument of `Actionability`, its value, and the same demand said here; None: this world has none."""
    here = [c for c in data.columns if not pd.isna(factual[c.name].iloc[0])]
    pick = {"frozen": list(data.columns), "ranges": [c for c in data.columns if c.numeric]}
    ordered = [c for c in here if c.numeric or c.kind == "order"]
    named = [c for c in here if c.kind in ("category", "order")]
    pick |= {"increase": ordered, "decrease": ordered, "max_step": ordered, "allow": named, "conditional": named}
    if rule in ("rows", "implies"):
        return _rows(rng, here) if rule == "rows" else _implies(rng, here)
    if not pick[rule]:
        return None
    c = pick[rule][int(rng.integers(len(pick[rule])))]
    now = factual[c.name].iloc[0]
    if rule == "frozen":
        return rule, [c.name], frozen(c, factual)
    if rule in ("increase", "decrease"):
        return rule, [c.name], direction(c, factual, 1 if rule == "increase" else -1)
    if rule == "ranges":
        return _range(rng, c)
    if rule == "max_step":
        step = float(rng.choice([1.0, 2.0, 1.5])) * (c.step or 0.5 * 10.0**c.unit) if c.numeric else 1
        return rule, {c.name: step}, stepped(c, factual, step)
    some = [v for v in c.values if rng.random() < 0.5] or [c.values[-1]]
    if rule == "allow":
        words = f"{c.name} only "
        return rule, {c.name: some}, levels(c, set(some), rule, lambda t: t.startswith(words))
    table = {v: [u for u in c.values if rng.random() < 0.4] or [c.values[0]] for v in c.values[:2]}
    allowed = {*table[now], now} if now in table else set(c.values)
    return rule, {c.name: table}, levels(c, allowed, rule, lambda t: t.startswith(f"{c.name} from "))


def _range(rng: np.random.Generator, c: Column) -> tuple[str, Any, Own]:
    wobble = 0.4 * (c.step or 0.01 * 10.0**c.unit)
    ends = [float(v) + float(rng.choice([-wobble, 0.0, 0.0, wobble])) for v in rng.choice(np.array(c.values, float), 2)]
    low, high = (float(e) for e in (min(ends), max(ends)))
    open_end = rng.random()
    pair = (None, high) if open_end < 0.2 else (low, None) if open_end < 0.4 else (low, high)
    return "ranges", {c.name: pair}, ranged(c, *pair)


def _rows(rng: np.random.Generator, here: list[Column]) -> tuple[str, Any, Own] | None:
    numeric = [c for c in here if c.numeric]
    if len(numeric) < 2:
        return None
    chosen = [numeric[int(i)] for i in rng.permutation(len(numeric))[:2]]
    weights = {c.name: float(rng.choice([-1.0, 1.0, 2.0])) * float(10.0**-c.unit) for c in chosen}
    values = np.meshgrid(*(np.array(c.values, float) * weights[c.name] for c in chosen))
    total = np.sort(np.sum(values, axis=0).reshape(-1))
    end = float(total[int(rng.integers(len(total)))]) + float(rng.choice([0.0, -0.3, 0.3]))
    on_grid = all(c.step for c in chosen)
    if rng.random() < 0.5:
        return "rows", [LinearRow(weights, at_least=end)], row(weights, end, np.inf, on_grid)
    return "rows", [LinearRow(weights, at_most=end)], row(weights, -np.inf, end, on_grid)


def _implies(rng: np.random.Generator, here: list[Column]) -> tuple[str, Any, Own] | None:
    if len(here) < 2:
        return None
    first, second = (here[int(i)] for i in rng.permutation(len(here))[:2])
    rule = Implies({first.name: _condition(rng, first)}, {second.name: _condition(rng, second)})
    return "implies", [rule], implies(rule)


def _condition(rng: np.random.Generator, c: Column) -> Any:
    if c.numeric:
        cut = float(c.values[int(rng.integers(len(c.values)))])
        return (cut, None) if rng.random() < 0.5 else (None, cut)
    some = [v for v in c.values if rng.random() < 0.5]
    return some if len(some) > 1 else c.values[int(rng.integers(len(c.values)))]
