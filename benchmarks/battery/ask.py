"""Drawing a world, and a question in it: said once to the library and once to the enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.battery.criteria import draw_causality, draw_hull, draw_robustness
from benchmarks.battery.demands import RULES, Own, at_most, draw_rule
from benchmarks.battery.families import FAMILIES, Family
from benchmarks.battery.fitting import fit
from benchmarks.battery.latest import ALL, LATEST, with_latest
from benchmarks.battery.more import LATER, with_more
from benchmarks.battery.truth import Cost, Mask, Oracle, Want
from benchmarks.battery.worlds import Data, draw_data, grid_of
from ifonly import Actionability, Diversity, Proximity, Schema, Sparsity, Target

__all__ = ["BLOCK", "KINDS", "Question", "Unfit", "World", "draw_question", "draw_world", "is_meant"]

BLOCK = 6  # questions asked in one world
KINDS = ("plain", "diversity", "robust", "manifold", "causality", "units", "limit", "batch")
_SHARES = (0.43, 0.14, 0.13, 0.09, 0.07, 0.07, 0.04, 0.03)
_NORMS = ("l1", "l2", "linf", "mahalanobis")
_SCALES = ("range", "mad", "std", "none", "own")
_BEFORE = 0.25  # of the questions are the second of their explainer
_SOLVERS = ("auto", "auto", "highs", "highs only", "highs only", "scip only", "gurobi only")


class Unfit(Exception):
    """A draw that makes no question: the model has one class, or every row has the outcome."""


@dataclass(frozen=True)
class World:
    """A table, a fitted model, and every row of the grid."""

    data: Data
    family: Family
    model: Any
    y: Any
    n_classes: int
    schema: Schema
    grid: pd.DataFrame
    words: tuple[str, ...]

    @property
    def oracle(self) -> Oracle:
        """The model, asked on tables."""
        return Oracle(self.model, self.family.steps, self.family.single)


@dataclass(frozen=True)
class Question:
    """One question, both ways.

    Attributes
    ----------
    demands
        All that is demanded beside the outcome, cheap to judge; `slow` needs a linear program per row.
    exists
        Rows of the grid that are within the bounds, and missing where they must be.
    filled
        Columns that the factual lacks and a range gives a value.
    house
        How many of the criteria are given to the explainer, the others to the call.
    before
        A row that the same explainer is asked about first: what it keeps of a question may not change the next.
    partial
        Whether the grid shows only a part of what is possible, because something is continuous.
    ball
        Whether the optimum over a continuous ball cannot be enumerated at all.
    """

    world: World
    data: Data
    kind: str
    factual: pd.DataFrame
    want: Want
    target: Any
    cost: Cost
    criteria: tuple[Any, ...]
    demands: tuple[Own, ...]
    slow: tuple[Own, ...]
    grid: pd.DataFrame
    exists: Mask
    solver: str
    n: int = 1
    diversity: Diversity | None = None
    clusters: tuple[Own, ...] = ()
    limit: float = 20.0
    gap: float = 1e-6
    partial: bool = False
    ball: bool = False
    with_y: bool = False
    house: int = 0
    before: pd.DataFrame | None = None
    filled: frozenset[str] = frozenset()
    tags: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()


# -- worlds ------------------------------------------------------------------------------------------------------------
def draw_family(rng: np.random.Generator, block: int) -> Family:
    """Return the family of a world: the first thing that is drawn of it."""
    known = list((FAMILIES if block * BLOCK < LATEST else ALL).values())
    shares = np.array([f.share for f in known])
    return known[int(rng.choice(len(known), p=shares / shares.sum()))]


def is_meant(seed: int, index: int, only: Sequence[str]) -> bool:
    """Whether a question is of a kind, or asked of a family, that is named; known before anything is fitted."""
    kind = str(np.random.default_rng([seed, index, 7]).choice(KINDS, p=_SHARES))
    family = draw_family(np.random.default_rng([seed, index // BLOCK, 1]), index // BLOCK).name
    kinds, families = [o for o in only if o in KINDS], [o for o in only if o in ALL]
    return (not kinds or kind in kinds) and (not families or family in families)


def draw_world(seed: int, block: int, *, rescale: bool = False) -> World:
    """Return the world of a block of questions; with `rescale`, one of its columns is in another unit."""
    rng = np.random.default_rng([seed, block, 1])
    family = draw_family(rng, block)
    k = int(rng.choice(family.classes))
    gaps = bool(rng.random() < (0.35 if family.missing else 0.1))
    largest = int(rng.choice([150, 250, 600, 1200]))
    data = draw_data(np.random.default_rng([seed, block, 2]), largest=largest, gaps=gaps, real=bool(rng.random() < 0.6))
    if rescale:
        data = _rescaled(np.random.default_rng([seed, block, 3]), data)
    model, y, words = fit(family, np.random.default_rng([seed, block, 4]), data, k)
    if k and len(getattr(model, "classes_", ())) < 2:
        raise Unfit("one class")
    schema = data.schema()
    for c in data.columns:
        if c.kind == "real":
            data = data.with_values(c.name, _with_edges(np.random.default_rng([seed, block, 5]), data, c.name, model))
    return World(data, family, model, y, k, schema, grid_of(data), (*words, *data.words))


def _rescaled(rng: np.random.Generator, data: Data) -> Data:
    able = [c for c in data.columns if c.kind == "decimal" or (c.kind == "real" and c.dtype == "float64")]
    if not able:
        raise Unfit("no column with a unit")
    c = able[int(rng.integers(len(able)))]
    return data.rescaled(c.name, int(rng.integers(-9, 13)) - c.unit)


def _with_edges(rng: np.random.Generator, data: Data, name: str, model: Any) -> list[float]:
    """Return the values of a real column, and two neighbouring floats between which the model changes its mind."""
    c = data[name]
    values = sorted(v for v in c.values if c.low <= v <= c.high)
    base = data.X.iloc[[int(rng.integers(len(data.X)))]]
    rows = pd.concat([base] * len(values), ignore_index=True)
    rows[name] = np.array(values, dtype=c.dtype)
    said = np.asarray(model.predict(rows)).reshape(-1)
    turns = [i for i in range(len(values) - 1) if said[i] != said[i + 1]]
    if not turns:
        return values
    low, high = values[turns[0]], values[turns[0] + 1]
    one = rows.iloc[[0]].copy()
    for _ in range(60):
        middle = float(np.dtype(c.dtype).type(0.5 * (low + high)))
        if middle in (low, high):
            break
        one[name] = np.array([middle], dtype=c.dtype)
        low, high = (middle, high) if np.asarray(model.predict(one)).reshape(-1)[0] == said[turns[0]] else (low, middle)
    return sorted({*values, low, high})


# -- questions ---------------------------------------------------------------------------------------------------------
def draw_question(seed: int, index: int, world: World) -> Question:
    """Return a question; in a world that differs by a unit alone, the same one."""
    rng = np.random.default_rng([seed, index, 7])
    kind = str(rng.choice(KINDS, p=_SHARES))
    data, factual = _factual_and_data(rng, world)
    oracle = world.oracle
    grid = grid_of(data) if data is not world.data else world.grid
    want, target = _target(rng, world, grid, on_values=world.family.steps or index >= LATEST)
    if bool(oracle.met(factual, want)[0]):
        others = np.flatnonzero(~oracle.met(grid, want) & _exists(data, grid, factual))
        if not len(others):
            raise Unfit("every row has the outcome")
        factual = grid.iloc[[int(rng.choice(others))]].reset_index(drop=True)
    cost, criteria = _cost(rng, data, factual, kind)
    question = Question(
        world, data, kind, factual, want, target, cost, tuple(criteria), (), (), grid, _exists(data, grid, factual),
        str(rng.choice(_SOLVERS)), partial=data.has_real,
    )  # fmt: skip
    if index >= LATER:
        question = with_more(np.random.default_rng([seed, index, 8]), question)
    if index >= LATEST:
        question = with_latest(np.random.default_rng([seed, index, 9]), question)
    question = _with_sparsity(rng, question)
    question = _with_rules(rng, question)
    question = _with_kind(rng, question)
    question = replace(question, house=int(rng.integers(0, len(question.criteria) + 1)) if rng.random() < 0.3 else 0)
    if index >= LATEST:
        question = replace(question, before=_before(np.random.default_rng([seed, index, 10]), world))
    return replace(question, tags=_tags(question))


def _before(rng: np.random.Generator, world: World) -> pd.DataFrame | None:
    """Draw the row that is asked about before the factual; often there is none."""
    at = int(rng.integers(len(world.data.X)))
    return world.data.X.iloc[[at]].reset_index(drop=True) if rng.random() < _BEFORE else None


def _factual_and_data(rng: np.random.Generator, world: World) -> tuple[Data, pd.DataFrame]:
    """Draw a factual: a row of the table, or of the grid; where it lacks a value, the grid of that column is empty."""
    data, X = world.data, world.data.X
    inside = np.ones(len(X), dtype=bool)
    for c in data.columns:  # outliers stay out: the grid could not reach back to them
        if c.numeric:
            x = X[c.name].to_numpy(dtype=float)
            inside &= np.isnan(x) | ((x >= min(c.values)) & (x <= max(c.values)))
    some = X[inside & X.isna().any(axis=1)]
    if len(some) and rng.random() < 0.5:
        factual = some.iloc[[int(rng.integers(len(some)))]].reset_index(drop=True)
        columns = tuple(replace(c, values=(np.nan,)) if pd.isna(factual[c.name].iloc[0]) else c for c in data.columns)
        return replace(data, columns=columns), factual
    whole = X[inside & ~X.isna().any(axis=1)]
    if len(whole) and rng.random() < 0.6:
        return data, whole.iloc[[int(rng.integers(len(whole)))]].reset_index(drop=True)
    return data, world.grid.iloc[[int(rng.integers(len(world.grid)))]].reset_index(drop=True)


def _exists(data: Data, grid: pd.DataFrame, factual: pd.DataFrame) -> Mask:
    """Say which rows are within the bounds, which the factual widens where it lies outside."""
    out = np.ones(len(grid), dtype=np.bool_)
    for c in data.columns:
        if c.numeric and not pd.isna(factual[c.name].iloc[0]):
            now = float(factual[c.name].iloc[0])
            x = grid[c.name].to_numpy(dtype=np.float64)
            out &= (x >= min(c.low, now)) & (x <= max(c.high, now))
    return out


def _target(rng: np.random.Generator, world: World, grid: pd.DataFrame, *, on_values: bool) -> tuple[Want, Any]:
    oracle = world.oracle
    if not world.n_classes:
        said = np.unique(np.asarray(world.model.predict(grid), dtype=float).reshape(-1))
        a, b = sorted(_level(rng, said, on_values) for _ in range(2))
        low, high = [(b, np.inf), (-np.inf, a), (a, b)][int(rng.integers(3))]
        target = Target(at_least=low if np.isfinite(low) else None, at_most=high if np.isfinite(high) else None)
        return Want("interval", low=low, high=high), target
    label = world.model.classes_[int(rng.integers(len(world.model.classes_)))]
    label = label.item() if hasattr(label, "item") else label
    if hasattr(world.model, "predict_proba") and rng.random() < 0.35:
        p = _level(rng, np.unique(oracle.probability(grid, label)), on_values)
        if 0.001 < p < 0.999:
            return Want("probability", label, p), Target(label, probability=p)
    return Want("class", label), None if world.n_classes == 2 and rng.random() < 0.1 else label


def _level(rng: np.random.Generator, values: Any, on_values: bool) -> float:
    """Return a threshold among attained values: on one of them where it may be, else between two, or rounded."""
    at = int(rng.integers(len(values)))
    if on_values and rng.random() < 0.5:
        return float(values[at])
    other = values[min(at + 1, len(values) - 1)]
    middle = 0.5 * (values[at] + other)
    return float(f"{middle:.4g}") if rng.random() < 0.3 else float(middle)


def _cost(rng: np.random.Generator, data: Data, factual: pd.DataFrame, kind: str) -> tuple[Cost, list[Any]]:
    absent = bool(factual.isna().any(axis=None))
    norm = str(rng.choice(_NORMS, p=[0.4, 0.25, 0.2, 0.15]))
    if norm == "mahalanobis" and (absent or len(data.numbers) < 2):
        norm = "l2"
    scale: Any = str(rng.choice(_SCALES, p=[0.4, 0.15, 0.15, 0.1, 0.2]))
    if scale == "none" and kind == "units":
        scale = "range"
    if scale == "own":
        scale = {n: float(rng.uniform(0.5, 3)) * 10.0 ** data[n].unit for n in data.numbers if rng.random() < 0.6}
    weights = {
        c.name: float(rng.choice([0.5, 2.0, 0.0], p=[0.45, 0.45, 0.1])) for c in data.columns if rng.random() < 0.25
    }
    criteria: list[Any] = [Proximity(norm, scale=scale, weights=weights)]  # type: ignore[arg-type]
    price = float(rng.choice([0.0, 0.05, 0.1, round(float(rng.uniform(0.01, 1.0)), 3)]))
    if price:
        criteria.append(Sparsity(price=price))
    return Cost(data, norm, scale, weights, price), criteria


def _with_sparsity(rng: np.random.Generator, q: Question) -> Question:
    if rng.random() > 0.25:
        return q
    most = int(rng.integers(1, 4))
    own = at_most(q.cost, q.factual, most)
    return replace(q, criteria=(*q.criteria, Sparsity(at_most=most)), demands=(*q.demands, own))


def _with_rules(rng: np.random.Generator, q: Question) -> Question:
    """Add demands of actionability: often none, sometimes so many that they clash."""
    how_many = int(rng.choice([0, 1, 2, 3, 5], p=[0.3, 0.25, 0.2, 0.15, 0.1]))
    options: dict[str, Any] = {}
    own: list[Own] = []
    for rule in rng.choice(RULES, size=how_many, replace=False):
        made = draw_rule(rng, str(rule), q.world.data if rule == "ranges" else q.data, q.factual)
        if made is None:
            continue
        name, value, demand = made
        moves = {*options.get("increase", ()), *options.get("decrease", ()), *options.get("frozen", ())}
        if name in ("frozen", "increase", "decrease") and {*value} & moves:
            continue  # refused before anything is solved
        if name == "ranges" and any(pd.isna(q.factual[n].iloc[0]) for n in value):
            q = _filled(q, next(iter(value)))  # a range gives a missing value a value
        options[name] = value
        own.append(demand)
    if not options:
        return q
    return replace(q, criteria=(*q.criteria, Actionability(**options)), demands=(*q.demands, *own))


def _filled(q: Question, name: str) -> Question:
    """Return the question with values of a column that the factual lacks in its grid."""
    columns = tuple(q.world.data[name] if c.name == name else c for c in q.data.columns)
    data = replace(q.data, columns=columns)
    grid = grid_of(data)
    x = grid[name].to_numpy(dtype=np.float64)
    exists = _exists(data, grid, q.factual) & (x >= data[name].low) & (x <= data[name].high)
    return replace(q, data=data, grid=grid, exists=exists, filled=q.filled | {name}, cost=replace(q.cost, data=data))


def _with_kind(rng: np.random.Generator, q: Question) -> Question:
    if q.filled and q.kind in ("robust", "manifold", "causality"):
        q = replace(q, kind="plain")
    if q.kind == "robust":
        return draw_robustness(rng, q)
    if q.kind == "manifold":
        return draw_hull(rng, q) if len(q.grid) <= 260 else replace(q, kind="plain")
    if q.kind == "causality":
        return draw_causality(rng, q)
    if q.kind == "limit":
        return replace(q, limit=float(rng.choice([0.05, 0.2, 0.5])))
    if q.kind == "diversity" or (q.kind == "units" and rng.random() < 0.3):
        how = str(rng.choice(["features", "nested", "iterate", "incumbents"], p=[0.35, 0.25, 0.25, 0.15]))
        made = Diversity("features", nested=True) if how == "nested" else Diversity(how)  # type: ignore[arg-type]
        if how == "iterate":
            made = Diversity("iterate", distance=round(float(rng.uniform(0.1, 1.2)), 3))
        return replace(q, n=int(rng.integers(2, 5)), diversity=made, criteria=(*q.criteria, made))
    return q


def _tags(q: Question) -> dict[str, str]:
    scale = q.cost.scale if isinstance(q.cost.scale, str) else "own"
    units = sorted({str(c.unit) for c in q.data.columns if c.numeric and c.kind != "whole"})
    outcome = q.want.kind if q.want.kind != "class" else f"class of {q.world.n_classes}"
    return {
        "kind": q.kind,
        "family": q.world.family.name + {0: ", regression", 3: ", 3 classes"}.get(q.world.n_classes, ""),
        "norm": q.cost.norm,
        "scale": scale,
        "target": outcome,
        "solver": q.solver,
        "criteria": "|".join(sorted({d.kind for d in (*q.demands, *q.slow)})),
        "diversity": "" if q.diversity is None else q.diversity.how + (" nested" if q.diversity.nested else ""),
        "units": "|".join(units),
        "columns": "|".join(sorted({c.kind for c in q.data.columns})),
        "special": "|".join(_special(q)),
    }


def _special(q: Question) -> list[str]:
    """Return what makes the numbers of a question hard to handle."""
    numeric = [c for c in q.data.columns if c.numeric]
    said = {
        "missing": bool(q.factual.isna().any(axis=None)),
        "filled": bool(q.filled),
        "outlier": bool(q.data.words),
        "far unit": any(not -3 <= c.unit <= 3 for c in numeric),
        "offset": any(c.kind == "whole" and abs(c.low) > 1e6 for c in numeric),
        "outside": not bool(q.exists.all()),
        "wide gap": q.gap > 1e-6,
        "second": q.before is not None,
    }
    return [name for name, here in said.items() if here] or ["nothing"]
