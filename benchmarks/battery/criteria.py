"""Manifold, causality and robustness, said to the library and judged without it."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

from benchmarks.battery.demands import Own, at_most, column_of, nothing
from benchmarks.battery.truth import Hull, Mask, Oracle, Want, in_ball, reach
from benchmarks.battery.worlds import Column, grid_of
from ifonly import Causality, Cause, Diversity, Manifold, Robustness

if TYPE_CHECKING:
    from benchmarks.battery.ask import Question

__all__ = ["draw_causality", "draw_hull", "draw_robustness"]

_BALL = 600  # rows of one ball that are looked at


# -- robustness --------------------------------------------------------------------------------------------------------
def draw_robustness(rng: np.random.Generator, q: Question) -> Question:
    """Demand a ball, a margin, other models, or several of these."""
    oracle = q.world.oracle
    form = str(rng.choice(["radius", "radius", "margin", "models", "radius+models"]))
    if q.world.family.adapt is not None:
        form = "radius"  # what is adapted cannot be trained again
    options: dict[str, Any] = {}
    reals = [c.name for c in q.data.columns if c.kind == "real"]
    if form == "margin" and (q.want.kind == "probability" or not _has_scores(q)):
        form = "radius"
    if "radius" in form:
        if q.want.kind == "probability" and q.world.n_classes > 2:
            return replace(q, kind="plain")  # refused before anything is solved
        options["radius"] = float(rng.choice([0.05, 0.12, 0.2, round(float(rng.uniform(0.02, 0.4)), 3)]))
        options["norm"] = str(rng.choice(["linf", "l2"]))
        if reals and rng.random() < 0.6:
            options["features"] = [n for n in q.data.numbers if n not in reals] or None
    if form == "margin":
        lead = oracle.lead(q.grid, q.want)
        assert lead is not None
        top = float(np.quantile(lead[q.exists], rng.uniform(0.6, 1.0)))
        if not top > 0:
            return replace(q, kind="plain")
        options["margin"] = float(f"{top * rng.uniform(0.5, 1.1):.3g}")
    models: list[Any] = []
    if "models" in form:
        sample = rng.integers(0, len(q.data.X), len(q.data.X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                other = clone(q.world.model).fit(q.world.data.X.iloc[sample], q.world.y.iloc[sample])
            except (ValueError, IndexError):  # the latter of KBinsDiscretizer, for a column of one value
                return replace(q, kind="plain")  # a sample with too few rows of a class, or too few values
        if len(getattr(other, "classes_", ())) != len(getattr(q.world.model, "classes_", ())):
            return replace(q, kind="plain")
        models = options["models"] = [other]
    made = Robustness(**options)
    owns = [
        _robust(q, Oracle(m, q.world.family.steps, q.world.family.single), options, i)
        for i, m in enumerate([q.world.model, *models])
    ]
    open_ball = "radius" in options and bool(set(reals) & set(options.get("features") or q.data.numbers))
    return replace(q, criteria=(*q.criteria, made), demands=(*q.demands, *owns), ball=open_ball)


def _has_scores(q: Question) -> bool:
    """Whether the model's own scores can be read from outside: where a margin is counted is documented for these."""
    name = q.world.family.name
    return name in ("logistic", "linear regression") or (
        name in ("forest", "tree", "bagging") and q.world.n_classes > 0
    )


def _robust(q: Question, oracle: Oracle, options: dict[str, Any], i: int) -> Own:
    """Return the demand on one model: its outcome all over the ball, a tie not counted."""
    radius, norm, features = options.get("radius", 0.0), options.get("norm", "linf"), options.get("features")
    margin = options.get("margin", 0.0)

    def masks(F: pd.DataFrame) -> tuple[Mask, Mask]:
        if F is not q.grid:
            rows = [bool(_ball_holds(q, oracle, F.iloc[[r]], options)) for r in range(len(F))]
            return np.array(rows, dtype=bool), np.array(rows, dtype=bool)
        maybe, sure = oracle.masks(F, q.want, margin)
        sure = sure & _clear(oracle, F, q.want) if radius or i else sure
        if not radius:
            return maybe, sure
        wide = in_ball(q.data, maybe, q.exists, radius, norm, features, -1e-6)
        return wide, in_ball(q.data, sure, q.exists, radius, norm, features, 1e-6)

    def is_named(text: str) -> bool:
        if i:
            return text.startswith(f"models[{i - 1}] also says")
        return not text.startswith(("want", "models[")) and ("anywhere within" in text or "by a margin" in text)

    def loosen(change: str) -> Own | None:
        for word in ("radius", "margin"):
            if change.startswith(f"{word} "):
                less = float(change.split(" -> ")[1])
                return _robust(q, oracle, {**options, word: less}, i) if less > 0 else nothing("robust")
        return None

    kind = "robust " + "+".join(k for k in ("radius", "margin", "models") if options.get(k))
    kind += f" {norm}" if radius else ""
    return Own(kind, is_named, masks, loosen, lambda want: _robust(replace(q, want=want), oracle, options, i))


def _clear(oracle: Oracle, F: pd.DataFrame, want: Want) -> Mask:
    """Say where the outcome is no tie: the library leaves a millionth of the scores' spread for that."""
    lead = oracle.lead(F, want)
    if lead is None:
        return np.ones(len(F), dtype=np.bool_)
    spread = float(np.std(lead[np.isfinite(lead)])) or 1.0
    return np.asarray(lead > 3e-6 * spread)


def _ball_holds(q: Question, oracle: Oracle, row: pd.DataFrame, options: dict[str, Any]) -> bool:
    """Attack the ball around one row: every point of the grid in it, corners and random points where it is continuous."""
    if "margin" in options:
        return bool(oracle.masks(row, q.want, options["margin"])[0][0])
    if "radius" not in options:
        return bool(oracle.met(row, q.want)[0])
    points = ball_points(q, row, options["radius"], options.get("norm", "linf"), options.get("features"))
    return bool(oracle.met(points, q.want).all())


def ball_points(q: Question, row: pd.DataFrame, radius: float, norm: str, features: Any) -> pd.DataFrame:
    """Return points of the ball around a row."""
    rng = np.random.default_rng(0)
    steps = reach(q.data, radius, features, -1e-6)
    lists, spans = [], []
    for c in q.data.columns:
        now = row[c.name].iloc[0]
        span = 1.0
        values: list[Any] = [now]
        if c.numeric and not pd.isna(now) and (features is None or c.name in features):
            x = q.data.X[c.name].to_numpy(dtype=float)
            span = float(np.nanmax(x) - np.nanmin(x)) or 1.0
            hat = float(q.factual[c.name].iloc[0])
            low, high = (min(c.low, hat), max(c.high, hat)) if not np.isnan(hat) else (c.low, c.high)
            if c.step is not None:
                unit = -c.unit if c.kind == "decimal" else 0
                moved = [round(float(now) + d * c.step, unit) for d in range(-steps[c.name], steps[c.name] + 1)]
            else:
                far = radius * span * (1.0 - 1e-6)
                moved = [float(now), *(float(now) + far * s for s in (-1.0, 1.0, *rng.uniform(-1, 1, 3)))]
            values = [v for v in moved if low <= v <= high] or [now]
        lists.append(values)
        spans.append(span)
    rows = list(itertools.islice(itertools.product(*lists), _BALL))
    if norm == "l2":
        here = [row[c.name].iloc[0] for c in q.data.columns]
        numeric = [i for i, c in enumerate(q.data.columns) if c.numeric and not pd.isna(here[i])]
        rows = [r for r in rows if sum(((r[i] - here[i]) / spans[i]) ** 2 for i in numeric) <= radius**2 * (1 - 1e-9)]
    out = pd.concat([row] * max(len(rows), 1), ignore_index=True)
    for i, c in enumerate(q.data.columns):
        if rows:
            out[c.name] = pd.Series([r[i] for r in rows], dtype=row[c.name].dtype)
    return out


# -- manifold ----------------------------------------------------------------------------------------------------------
def draw_hull(rng: np.random.Generator, q: Question) -> Question:
    """Demand to lie in a hull, near to it, in one of several, or where an isolation forest finds it normal."""
    X, y = q.world.data.X, q.world.y
    with_y = bool(q.world.n_classes and rng.random() < 0.5)
    of = str(rng.choice(["wanted", "all"], p=[0.7, 0.3]))
    mine = np.ones(len(X), dtype=bool)
    if of == "wanted":
        by_label = with_y and q.want.kind == "class"
        mine = np.array([v == q.want.label for v in y]) if by_label else q.world.oracle.met(X, q.want)
        if not by_label and (mine != q.world.oracle.met_alone(X, q.want)).any():
            return replace(q, kind="plain")  # at the very edge a row is of the cloud or not, depending on its company
    if mine.sum() < 2:
        return replace(q, kind="plain")
    if rng.random() < 0.2 and not X.isna().any(axis=None):
        return _isolated(rng, replace(q, with_y=with_y), mine, of)
    present = tuple(c.name for c in q.data.columns if not pd.isna(q.factual[c.name].iloc[0]))
    mine &= ~X[list(present)].isna().any(axis=1).to_numpy()
    if mine.sum() < 2:
        return replace(q, kind="plain")
    norm = str(rng.choice(["l1", "l2", "linf"]))
    epsilon = float(rng.choice([0.0, 0.0, 0.05, 0.1, 0.3, 1.1]))
    labels = rng.integers(0, 2, len(X)) if rng.random() < 0.4 else None
    made = Manifold(epsilon=epsilon, norm=norm, of=of, clusters=None if labels is None else list(labels))  # type: ignore[arg-type]
    parts = [mine] if labels is None else [mine & (labels == g) for g in np.unique(labels[mine])]
    groups = tuple(X[part].reset_index(drop=True) for part in parts)
    hull = Hull(q.data, groups, present, norm)
    q = replace(q, criteria=(*q.criteria, made), slow=(_near(hull, epsilon),), with_y=with_y)
    if labels is not None and rng.random() < 0.5 and len(groups) == 2:
        each = tuple(_near(replace(hull, groups=(g,)), epsilon) for g in groups)
        diversity = Diversity("clusters")
        q = replace(q, n=2, diversity=diversity, criteria=(*q.criteria, diversity), clusters=each)
    return q


def _near(hull: Hull, epsilon: float) -> Own:
    def masks(F: pd.DataFrame) -> tuple[Mask, Mask]:
        away = np.array([hull.distance(F.iloc[[r]]) for r in range(len(F))])
        with np.errstate(invalid="ignore"):
            sure = np.asarray(away <= epsilon + 1e-9)
            return ~(away > epsilon + 1e-6), sure if epsilon else sure & hull.between_ends(F)

    def loosen(change: str) -> Own | None:
        return _near(hull, float(change.split(" -> ")[1])) if change.startswith("epsilon ") else None

    kind = "hull " + hull.norm + (" epsilon" if epsilon else "") + (" clusters" if len(hull.groups) > 1 else "")
    return Own(kind, lambda t: t.startswith("lie in "), masks, loosen)


def _isolated(rng: np.random.Generator, q: Question, mine: Mask, of: str) -> Question:
    """Demand normality by an isolation forest, fitted here a second time with the same settings."""
    share = float(rng.choice([0.1, 0.3, 0.6]))
    X = q.world.data.X[mine].reset_index(drop=True)
    levels = {c.name: list(q.world.schema[c.name].levels) for c in q.data.columns if not c.numeric}  # type: ignore[union-attr]
    encode = OneHotEncoder(categories=list(levels.values()))
    columns = ColumnTransformer([("levels", encode, list(levels))], remainder="passthrough")
    forest = IsolationForest(n_estimators=30, max_samples=min(64, len(X)), random_state=0)
    estimator = Pipeline([("columns", columns), ("forest", forest)]).fit(X)
    made = Manifold(isolation=share, of=of)  # type: ignore[arg-type]
    own = _normal(estimator, estimator.score_samples(X), share)
    return replace(q, criteria=(*q.criteria, made), demands=(*q.demands, own))


def _normal(estimator: Any, scores: Any, share: float) -> Own:
    """Return: at least as normal as a share of the rows."""
    least = float(np.quantile(scores, share))

    def masks(F: pd.DataFrame) -> tuple[Mask, Mask]:
        score = estimator.score_samples(F)
        return np.asarray(score >= least - 1e-8), np.asarray(score >= least + 1e-12)

    def loosen(change: str) -> Own | None:
        return _normal(estimator, scores, float(change.split(" -> ")[1])) if change.startswith("isolation ") else None

    return Own("isolation", lambda t: t.startswith("be at least as normal as"), masks, loosen)


# -- causality ---------------------------------------------------------------------------------------------------------
def draw_causality(rng: np.random.Generator, q: Question) -> Question:
    """Let a number follow from another feature, by coefficients or by a fitted model."""
    named = {n for d in q.criteria for n in getattr(d, "frozen", ())}
    effects = [c for c in q.data.columns if c.numeric and c.name not in named]
    parents = [c for c in q.data.columns if c.kind != "real"]
    if q.factual.isna().any(axis=None) or not effects or len(parents) < 2:
        return replace(q, kind="plain")
    effect = effects[int(rng.integers(len(effects)))]
    parents = [c for c in parents if c.name != effect.name]
    parent = parents[int(rng.integers(len(parents)))]
    cause, follows = _cause(rng, q, effect, parent)
    if cause is None:
        return replace(q, kind="plain")
    count = str(rng.choice(["actions", "all"]))
    own = _follows(q, effect, parent.name, follows)
    made = Causality({effect.name: cause}, count=count)  # type: ignore[arg-type]
    cost = replace(q.cost, free=frozenset({effect.name}) if count == "actions" else frozenset())
    demands = [d if d.kind != "at_most" else _recount(cost, q) for d in q.demands]
    q = replace(q, criteria=(*q.criteria, made), cost=cost, demands=(*demands, own))
    return _with_effects(q, effect, parent.name, follows) if effect.step is None else q


def _cause(rng: np.random.Generator, q: Question, effect: Column, parent: Column) -> tuple[Any, Any]:
    """Return a cause for the library, and what follows from it as a function of a table."""
    step, hat = float(effect.step or 10.0**effect.unit), q.factual[parent.name].iloc[0]
    if rng.random() < 0.4:
        X = q.world.data.X
        if not parent.numeric or X[[parent.name, effect.name]].isna().any(axis=None):
            return None, None
        kind = LinearRegression() if rng.random() < 0.5 else DecisionTreeRegressor(max_depth=2, random_state=0)
        fitted = kind.fit(X[[parent.name]], X[effect.name])
        at = float(fitted.predict(q.factual[[parent.name]])[0])
        return Cause([parent.name], model=fitted), lambda F: fitted.predict(F[[parent.name]]) - at
    if parent.numeric:
        rate = float(rng.choice([0.37, -0.6, 1.0, 0.5, 2.0])) * step / float(parent.step or 1.0)
        cause = Cause([parent.name], coefficients={parent.name: rate})
        return cause, lambda F: rate * (column_of(F, parent.name) - float(hat))
    table = {v: float(rng.choice([0.0, 1.0, -1.0, 0.7])) * step for v in parent.values}
    cause = Cause([parent.name], coefficients={parent.name: table})
    return cause, lambda F: np.array([table[v] - table[hat] for v in F[parent.name].to_numpy(dtype=object)])


def _with_effects(q: Question, effect: Column, parent: str, follows: Any) -> Question:
    """Return the question with the continuous effect computed in every row of its grid, in place of its own values."""
    hat = float(q.factual[effect.name].iloc[0])
    columns = tuple(replace(c, values=(hat,)) if c.name == effect.name else c for c in q.data.columns)
    data = replace(q.data, columns=columns)
    grid = grid_of(data)
    moved = np.array([v != q.factual[parent].iloc[0] for v in grid[parent].to_numpy(dtype=object)])
    value = np.where(moved, hat + follows(grid), hat)
    grid[effect.name] = value.astype(effect.dtype)
    exists = (value >= min(effect.low, hat)) & (value <= max(effect.high, hat))
    for c in q.data.columns:
        if c.numeric and c.name != effect.name:
            x, now = column_of(grid, c.name), float(q.factual[c.name].iloc[0])
            exists &= (x >= min(c.low, now)) & (x <= max(c.high, now))
    return replace(q, data=data, grid=grid, exists=exists, cost=replace(q.cost, data=data))


def _recount(cost: Any, q: Question) -> Own:
    """Return the bound on the number of changes, with what follows not counted."""
    most = next(c.at_most for c in q.criteria if getattr(c, "at_most", None) is not None)
    return at_most(cost, q.factual, most)


def _follows(q: Question, effect: Column, parent: str, follows: Any, more: float = 0.0) -> Own:
    """Return: what follows, to half a step of a grid, or to a millionth of the range; as it is where nothing changed.

    A loosening lets it differ by some more, also where nothing changed.
    """
    now, hat = q.factual[parent].iloc[0], float(q.factual[effect.name].iloc[0])
    x = q.world.data.X[effect.name].to_numpy(dtype=np.float64)
    half = 0.5 * float(effect.step or 0.0)
    dust = 1e-6 * float(effect.step or np.nanmax(x) - np.nanmin(x)) + 1e-12 * abs(hat)
    grain = float(np.finfo(effect.dtype).eps) if effect.kind == "real" else 0.0

    def masks(F: pd.DataFrame) -> tuple[Mask, Mask]:
        value = column_of(F, effect.name)
        off = np.abs(value - hat - follows(F))
        still = np.array([v == now for v in F[parent].to_numpy(dtype=object)])
        near = off <= half + dust + 4.0 * grain * np.abs(value)
        sure = off <= half - dust if half else off <= 2.0 * grain * np.maximum(np.abs(value), abs(hat))
        if more:
            return off <= half + more + dust, off <= half + more - dust
        return np.where(still, value == hat, near), np.where(still, value == hat, sure)

    def loosen(change: str) -> Own | None:
        start = f"let {effect.name} differ from what follows by "
        return (
            _follows(q, effect, parent, follows, float(change.removeprefix(start)))
            if change.startswith(start)
            else None
        )

    return Own("causality", lambda t: t.startswith(f"{effect.name} follows from"), masks, loosen)
