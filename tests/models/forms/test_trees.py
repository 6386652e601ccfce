"""The tree form: its NumPy twin, its leaves as boxes, its program, and optima equal to enumeration."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from ifonly import Actionability, Explainer, Infeasible, Proximity, Sparsity
from ifonly.data.schema import Numeric, Schema
from ifonly.models.forms.trees import Addition
from ifonly.models.reading.assemble import RawTree, assemble, float64_at_most
from ifonly.models.reading.codes import with_hole
from ifonly.models.reading.source import Source
from ifonly.program.box import Box
from ifonly.program.mip import Mip
from ifonly.program.variables import Variables
from portions import one_in
from tree_cases import opened

LEVELS = ["red", "green", "blue"]
GRID = pd.DataFrame(
    list(itertools.product(range(6), range(5), LEVELS, [0, 1])), columns=["size", "weight", "colour", "new"]
).astype({"colour": pd.CategoricalDtype(LEVELS)})
SCHEMA = Schema.infer(GRID)
POINTS = SCHEMA.encode(GRID)


def random_tree(rng, outputs=2, depth=4) -> RawTree:
    """A tree on the grid's columns, splitting numbers by thresholds and colours by sets of codes."""
    n = 2 ** (depth + 1) - 1
    own, inner = np.arange(n), 2**depth - 1
    stop = rng.uniform(size=n) < 0.2
    column = np.where((own < inner) & ~stop, rng.integers(0, 4, n), -1)
    sets = {int(i): frozenset(rng.choice(3, 2).astype(float).tolist()) for i in np.flatnonzero(column == 2)}
    return RawTree(
        column,
        rng.integers(0, 5, n) + rng.choice([0.0, 0.5], n),
        np.where(column >= 0, 2 * own + 1, own),
        np.where(column >= 0, 2 * own + 2, own),
        rng.normal(size=(n, outputs)),
        rng.uniform(size=n) < 0.5,
        sets,
    )


def random_form(seed, trees=5, outputs=2):
    rng = np.random.default_rng(seed)
    source = Source.raw(SCHEMA, SCHEMA.decode, POINTS[0])
    raw = [random_tree(rng, outputs) for _ in range(trees)]
    return assemble(source, raw, rng.normal(size=outputs), float64_at_most), raw


def walk(tree: RawTree, row) -> np.ndarray:
    """The leaf value of a tree at a row of the frame, one node after another."""
    i = 0
    while tree.column[i] >= 0:
        value = row[tree.column[i]]
        if value is None or value != value:
            left = tree.missing_left[i]
        elif i in tree.categories:
            left = float(LEVELS.index(value)) in tree.categories[i]
        else:
            left = value <= tree.threshold[i]
        i = (tree.left if left else tree.right)[i]
    return tree.value[i]


def with_missing(U, seed=0):
    rng, U = np.random.default_rng(seed), U.copy()
    for j, feature in enumerate(SCHEMA.features):
        U[rng.uniform(size=len(U)) < 0.2, SCHEMA.slice(j)] = np.nan if isinstance(feature, Numeric) else 0.0
    return U


def rows_of(U):
    return [[SCHEMA.level_values(j, u) for j in range(len(SCHEMA))] for u in U]


# -- NumPy's side ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(5))
def test_twin(seed):
    form, raw = random_form(seed)
    U = np.concatenate([POINTS, with_missing(POINTS, seed)])
    truth = [sum((walk(t, row) for t in raw), form.base) for row in rows_of(U)]
    assert np.allclose(form(U), truth, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_every_point_lies_in_one_leaf_of_each_tree(seed):
    form, _ = random_form(seed)
    leaves, cuts = form.leaves, form.cuts()
    for u in np.concatenate([POINTS[::7], with_missing(POINTS[::7], seed)]):
        inside = np.ones(len(leaves.node), dtype=bool)
        for j in form.features():
            part = u[SCHEMA.slice(j)]
            if isinstance(SCHEMA.features[j], Numeric) and not np.isnan(part[0]):
                at = np.searchsorted(cuts[j], part[0])
                inside &= (leaves.low[:, j] < at) & (at <= leaves.high[:, j])
            elif part.any() and not np.isnan(part[0]):
                inside &= leaves.levels[:, SCHEMA.slice(j)][:, int(part.argmax())]
            else:
                inside &= leaves.when_missing[:, j]
        assert (np.bincount(leaves.tree[inside], minlength=form.n_trees) == 1).all()
        assert (leaves.node[inside] == form.leaf_of(u[None, :])[0]).all()


def test_one_tree_at_a_time_from_left_to_right():
    value = np.array([[1e16], [1.0], [-1e16], [1.0]])
    leaf = np.array([[0, 1, 2, 3], [1, 3, 0, 2]])
    assert Addition(value, np.zeros(1))(leaf).ravel().tolist() == [1.0, 2.0]
    single = Addition(np.array([[1.0], [2.0**-24]]), np.zeros(1), dtype=np.float32)
    assert single(np.array([[0, 1, 1]]))[0, 0] == 1.0
    assert single(np.array([[1, 1, 0]]))[0, 0] == 1.0 + 2.0**-23
    assert Addition(value, np.ones(1), over=4.0)(leaf[:, 1:2]).ravel().tolist() == [0.5, 0.5]


def test_a_node_that_sends_everything_one_way_is_left_out():
    tree = RawTree(
        np.array([0, -1, -1]),
        np.array([np.inf, 0.0, 0.0]),
        np.array([1, 1, 2]),
        np.array([2, 1, 2]),
        np.array([[0.0], [3.0], [5.0]]),
        np.array([True, False, False]),
    )
    form = assemble(Source.raw(SCHEMA, SCHEMA.decode, POINTS[0]), [tree], np.zeros(1), float64_at_most)
    assert form.features() == frozenset()
    assert (form(with_missing(POINTS)) == 3.0).all()
    assert len(form.leaves.node) == 1


def test_no_trees_at_all():
    form = assemble(Source.raw(SCHEMA, SCHEMA.decode, POINTS[0]), [], np.array([1.5, 2.5]))
    assert (form(POINTS[:3]) == [1.5, 2.5]).all()


@pytest.mark.parametrize("seed", range(6))
def test_a_hole_goes_where_missing_values_go(seed):
    """Including thresholds inside the hole, at its ends and beside them."""
    rng = np.random.default_rng(seed)
    first, last = 1.5, 3.0
    drawn = random_tree(rng, outputs=1, depth=3)
    rest = drawn.threshold, drawn.left, drawn.right, drawn.value, drawn.missing_left
    tree = RawTree(np.minimum(drawn.column, 1), *rest)
    pierced = with_hole(tree, first, last, np.nextafter(first, -9), last, float64_at_most)
    x = np.array([-1, 0, 1, 1.4999, np.nextafter(first, -9), first, 2, 2.5, last, np.nextafter(last, 9), 3.5, 4, 9])
    frame = pd.DataFrame({"a": x, "b": x[::-1]})
    schema = Schema.infer(frame)
    source = Source.raw(schema, schema.decode, schema.encode(frame)[0])
    form = assemble(source, [pierced], np.zeros(1), float64_at_most)
    U = np.array(list(itertools.product([*x, np.nan], repeat=2)))
    holed = np.where(np.logical_and(first <= U, last >= U), np.nan, U)
    truth = [walk(tree, row) for row in holed]
    assert (form(U) == truth).all()


# -- the optimiser's side -------------------------------------------------------------------------------------------
def solve(mip: Mip):
    a = mip.arrays()
    if not a.n_columns:
        return a.offset, np.empty(0)
    rows = LinearConstraint(a.matrix, a.row_lower, a.row_upper) if a.n_rows else ()
    bounds, options = Bounds(a.lower, a.upper), {"mip_rel_gap": 0.0}
    found = milp(a.cost, integrality=a.integer.astype(int), bounds=bounds, constraints=rows, options=options)
    assert found.x is not None, found.message
    return found.fun + a.offset, found.x


def random_box(u, rng) -> Box:
    box = Box.of(SCHEMA, u)
    for j, feature in enumerate(SCHEMA.features):
        part = u[SCHEMA.slice(j)]
        if box.missing[j]:
            continue
        if isinstance(feature, Numeric):
            box.narrow(j, part[0] - rng.integers(0, 4), part[0] + rng.integers(0, 4))
        else:
            box.keep_levels(j, (rng.uniform(size=feature.width) < 0.7) | (part > 0))
    return box


def within(box: Box, u) -> np.ndarray:
    """All points of the grid inside a box; missing features stay missing."""
    U = POINTS.copy()
    for j in np.flatnonzero(box.missing):
        U[:, SCHEMA.slice(j)] = u[SCHEMA.slice(j)]
    return U[box.contains(U)]


@pytest.mark.parametrize("seed", one_in(3, range(12)))
def test_program(seed):
    """Fixed at a point, it says what the form says there; free, its extremes are those of all points of the box."""
    form, _ = random_form(seed, trees=4)
    rng = np.random.default_rng(seed)
    source = POINTS if seed % 2 else with_missing(POINTS, seed)
    u = source[rng.integers(len(source))]
    box = random_box(u, rng)
    points = within(box, u)
    scores = form(points)
    for sign, truth in ((1.0, scores[:, 0].min()), (-1.0, -scores[:, 0].max())):
        mip = Mip()
        x = Variables(mip, box, u, form.cuts(), ())
        outputs = form.embed(mip, x)
        mip.minimise(outputs[0] * sign)
        value, v = solve(mip)
        assert value == pytest.approx(truth, abs=1e-7)
        found = x.point(v)
        assert box.contains(found[None, :])[0]
        assert form(found[None, :])[0] == pytest.approx([o.value(v) for o in outputs], abs=1e-7)
    for point in points[rng.integers(0, len(points), 4)]:
        mip = Mip()
        x = Variables(mip, box, u, form.cuts(), ())
        outputs = form.embed(mip, x)
        for j in sorted(form.features() - set(np.flatnonzero(box.missing))):
            part = point[SCHEMA.slice(j)]
            if isinstance(SCHEMA.features[j], Numeric):
                mip.row(x.in_cell(j, int(x.cells(j).index(part[0]))), 1.0, 1.0)
            else:
                mip.row(x.level_table(j, part), 1.0, 1.0)
        _, v = solve(mip)
        assert [o.value(v) for o in outputs] == pytest.approx(form(point[None, :])[0], abs=1e-7)


def test_a_box_of_one_point_leaves_nothing_to_solve():
    form, _ = random_form(0)
    for u in (POINTS[17], with_missing(POINTS)[17]):
        box = Box.of(SCHEMA, u)
        for j, feature in enumerate(SCHEMA.features):
            part = u[SCHEMA.slice(j)]
            if isinstance(feature, Numeric) and not box.missing[j]:
                box.narrow(j, part[0], part[0])
            elif not box.missing[j]:
                box.keep_levels(j, part > 0)
        mip = Mip()
        outputs = form.embed(mip, Variables(mip, box, u, form.cuts(), ()))
        assert all(o.is_constant for o in outputs)
        assert [o.constant for o in outputs] == pytest.approx(form(u[None, :])[0], abs=1e-12)


# -- the oracle -----------------------------------------------------------------------------------------------------
def encoded(estimator):
    columns = ColumnTransformer([("one", OneHotEncoder(), ["colour"])], remainder="passthrough")
    return make_pipeline(columns, estimator)


SMALL = {
    "tree": lambda s: encoded(DecisionTreeClassifier(max_depth=5, random_state=s)),
    "forest": lambda s: encoded(RandomForestClassifier(6, max_depth=4, random_state=s)),
    "extra trees": lambda s: encoded(ExtraTreesClassifier(6, max_depth=4, random_state=s)),
    "boosting": lambda s: encoded(GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=s)),
    "adaboost": lambda s: encoded(AdaBoostClassifier(n_estimators=6, random_state=s)),
    "bagging": lambda s: encoded(BaggingClassifier(n_estimators=5, max_features=3, random_state=s)),
    "hist": lambda s: HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5, random_state=s),
    "xgboost": lambda s: pytest.importorskip("xgboost").XGBClassifier(
        n_estimators=6, max_depth=3, enable_categorical=True, max_cat_to_onehot=1, n_jobs=1, random_state=s
    ),
    "lightgbm": lambda s: pytest.importorskip("lightgbm").LGBMClassifier(
        n_estimators=6, max_depth=3, min_child_samples=3, verbose=-1, n_jobs=1, random_state=s
    ),
    "catboost": lambda s: pytest.importorskip("catboost").CatBoostClassifier(
        iterations=6, depth=3, one_hot_max_size=9, cat_features=["colour"], verbose=0, allow_writing_files=False
    ),
}
OPTIONAL = {"xgboost", "lightgbm", "catboost"}
FAMILIES = [pytest.param(f, marks=pytest.mark.frameworks) if f in OPTIONAL else f for f in SMALL]


def demands(rng, factual):
    """Random criteria, and which rows of the grid they allow."""
    size, weight = int(factual["size"]), int(factual["weight"])
    low, high = sorted(int(v) for v in rng.integers(0, 5, 2))
    allowed = list(rng.choice(LEVELS, 2, replace=False))
    options = [
        ({}, np.ones(len(GRID), dtype=bool)),
        ({"frozen": ["colour"]}, GRID["colour"] == factual["colour"]),
        ({"frozen": ["new", "size"]}, (GRID["new"] == factual["new"]) & (GRID["size"] == size)),
        ({"increase": ["size"]}, GRID["size"] >= size),
        ({"decrease": ["weight"]}, GRID["weight"] <= weight),
        ({"ranges": {"weight": (low, high)}}, GRID["weight"].between(low, high)),
        ({"allow": {"colour": allowed}}, GRID["colour"].isin(allowed)),
        ({"max_step": {"size": 2}}, (GRID["size"] - size).abs() <= 2),
    ]
    options = [o for o in options if bool(o[1][factual.name])]
    kept = [options[k] for k in rng.choice(len(options), min(2, len(options)), replace=False)]
    return [Actionability(**o) for o, _ in kept], np.logical_and.reduce([mask for _, mask in kept])


@pytest.mark.parametrize("seed", one_in(3, range(3)))
@pytest.mark.parametrize("family", FAMILIES)
def test_optimum_equals_enumeration(family, seed):
    """The model's own predictions on the whole grid say which rows are right; the cheapest of them is the answer."""
    rng = np.random.default_rng(100 * seed + len(family))
    noise = rng.uniform(size=len(GRID)) < 0.15
    score = GRID["size"] + 2 * (GRID["colour"] == "green") - GRID["weight"] * GRID["new"]
    classes = 3 if family != "boosting" and seed == 2 else 2
    y = np.digitize(score + rng.normal(0, 1, len(GRID)), [2.0, 4.5][: classes - 1]) * ~noise
    estimator = SMALL[family](seed).fit(GRID, y)
    said = np.asarray(opened(estimator, GRID).predict(POINTS))
    explainer = Explainer(estimator, GRID)
    for _ in range(6):
        factual = GRID.iloc[int(rng.integers(len(GRID)))]
        want = int(rng.choice([c for c in set(said) if c != said[factual.name]]))
        criteria, allowed = demands(rng, factual)
        at_most = int(rng.integers(1, 4))
        changed = (factual != GRID).to_numpy()
        away = (GRID["size"] - factual["size"]).abs() / 5 + (GRID["weight"] - factual["weight"]).abs() / 4
        cost = away + changed[:, 2] + (GRID["new"] - factual["new"]).abs()
        good = (said == want) & allowed & (changed.sum(axis=1) <= at_most)
        house = [Proximity("l1", scale="range"), Sparsity(at_most=at_most), *criteria]
        explainer.criteria = tuple(house)
        if not good.any():
            with pytest.raises(Infeasible):
                explainer.explain(factual, want=want)
            continue
        answer = explainer.explain(factual, want=want)[0]
        assert answer.certificate.proven
        assert answer.certificate.objective == pytest.approx(cost[good].min(), abs=1e-6)
        row = (answer.row.iloc[0].to_numpy() == GRID).all(axis=1)
        assert good[row].all()
        assert row.any()
