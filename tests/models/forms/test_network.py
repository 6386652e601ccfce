"""The network form: its program equals its NumPy twin, its bounds are sound, and small optima equal enumeration."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from ifonly.data.schema import Numeric, Schema
from ifonly.models.form import Form
from ifonly.models.forms.network import Budget, Graph, Network
from ifonly.program.box import Box
from ifonly.program.mip import Affine, Mip
from ifonly.program.variables import Variables
from reading import mixed_frame, rows

FRAME = mixed_frame()
SCHEMA = Schema.infer(FRAME)
ROWS = SCHEMA.encode(FRAME)


def random_network(widths=(8, 8), slope=0.0, residual=False, outputs=2, seed=0) -> Network:
    rng = np.random.default_rng(seed)
    graph = Graph(SCHEMA)
    scale = 1.0 / (ROWS.std(axis=0) + 1e-9)
    h = graph.input(np.diag(scale), -ROWS.mean(axis=0) * scale)
    for width in widths:
        z = h.affine(rng.normal(size=(width, h.size)) * np.sqrt(2 / h.size), 0.1 * rng.normal(size=width))
        y = graph.rectify(z, slope)
        h = y + h if residual and h.size == width else y
    return graph.network(h.affine(rng.normal(size=(outputs, h.size)), rng.normal(size=outputs)))


def solve(mip: Mip) -> tuple[float, np.ndarray]:
    a = mip.arrays()
    constraints = LinearConstraint(a.matrix, a.row_lower, a.row_upper) if a.n_rows else ()
    found = milp(
        a.cost,
        integrality=a.integer.astype(int),
        bounds=Bounds(a.lower, a.upper),
        constraints=constraints,
        options={"mip_rel_gap": 0.0},
    )
    assert found.x is not None, found.message
    return found.fun + a.offset, found.x


def program(network: Network, box: Box, factual: np.ndarray) -> tuple[Mip, Variables, list[Affine]]:
    mip = Mip()
    numeric = {j for j, f in enumerate(box.schema.features) if isinstance(f, Numeric)}
    x = Variables(mip, box, factual, {}, numeric)
    return mip, x, network.embed(mip, x)


def fix(mip: Mip, x: Variables, u: np.ndarray) -> None:
    for j, feature in enumerate(x.schema.features):
        part = u[x.schema.slice(j)]
        if isinstance(feature, Numeric):
            mip.row(x.raw(j), part[0], part[0])
        else:
            mip.row(x.level_table(j, part), 1.0, 1.0)


def narrowed(u: np.ndarray, share: float) -> Box:
    box = Box.of(SCHEMA, u)
    for j, feature in enumerate(SCHEMA.features):
        if isinstance(feature, Numeric):
            room = share * (feature.upper - feature.lower)
            box.narrow(j, u[SCHEMA.starts[j]] - room, u[SCHEMA.starts[j]] + room)
    return box


def inside(box: Box, n: int = 3000) -> np.ndarray:
    """Random rows of a box: half of them at its corners, where bounds are met."""
    rng = np.random.default_rng(1)
    U = np.zeros((n, SCHEMA.width))
    for j, feature in enumerate(SCHEMA.features):
        if isinstance(feature, Numeric):
            share = np.where(rng.random(n) < 0.5, rng.integers(0, 2, n), rng.random(n))
            values = box.lower[j] + share * (box.upper[j] - box.lower[j])
            U[:, SCHEMA.starts[j]] = [feature.snap(v) for v in values]
        else:
            allowed = np.flatnonzero(box.allowed[SCHEMA.slice(j)])
            U[np.arange(n), SCHEMA.starts[j] + rng.choice(allowed, n)] = 1.0
    return U


def sums(network: Network, U: np.ndarray) -> list[np.ndarray]:
    """The pre-activations of every block, by hand."""
    out, H = [], U
    for block in network.blocks:
        out.append(H @ block.weights.T + block.constant)
        H = np.concatenate([H, np.where(out[-1] > 0, out[-1], block.slope * out[-1])], axis=1)
    return out


SHAPES = [
    pytest.param({}, id="two layers"),
    pytest.param({"widths": (16,)}, id="one layer"),
    pytest.param({"widths": (8, 8, 8), "slope": 0.1, "residual": True}, id="leaky residual"),
    pytest.param({"widths": (6, 6), "slope": -1.0}, id="absolute value"),
    pytest.param({"widths": (6, 6), "slope": 1.6}, id="concave"),
    pytest.param({"widths": ()}, id="linear"),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_program_equals_twin_at_a_point_box(shape):
    network = random_network(**shape)
    assert isinstance(network, Form)
    for u in ROWS[:5]:
        box = narrowed(u, 0.0)
        for j, feature in enumerate(SCHEMA.features):
            if not isinstance(feature, Numeric):
                box.keep_levels(j, u[SCHEMA.slice(j)] > 0)
        mip, _, scores = program(network, box, u)
        assert mip.n_columns == 0
        assert [s.constant for s in scores] == pytest.approx(network(u[None])[0], rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [1.0, 0.1])
def test_program_equals_twin_in_a_wide_box_with_fixed_inputs(shape, share):
    network = random_network(**shape)
    box = narrowed(ROWS[0], share)
    for u in inside(box, 6):
        mip, x, scores = program(network, box, ROWS[0])
        fix(mip, x, u)
        _, v = solve(mip)
        assert [s.value(v) for s in scores] == pytest.approx(network(u[None])[0], rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_largest_score_is_attained_and_never_passed(shape):
    network = random_network(**shape)
    box = narrowed(ROWS[0], 0.2)
    mip, x, scores = program(network, box, ROWS[0])
    mip.minimise(-scores[0])
    value, v = solve(mip)
    best = network(x.point(v)[None])[0, 0]
    assert best == pytest.approx(-value, rel=1e-6)
    assert best >= network(inside(box))[:, 0].max() - 1e-6
    assert best <= network.score_bounds(box)[1][0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [1.0, 0.1, 0.01])
def test_bounds_are_sound_over_the_box(shape, share):
    network = random_network(**shape)
    box = narrowed(ROWS[3], share)
    box.keep_levels(3, np.array([True, False, True]))
    U = inside(box)
    for s, (lower, upper) in zip(sums(network, U), network.preactivations(box), strict=True):
        assert (s >= lower).all()
        assert (s <= upper).all()
    lower, upper = network.score_bounds(box)
    assert (network(U) >= lower).all()
    assert (network(U) <= upper).all()


def prices(u: np.ndarray, total: float, fixed: float = 0.0) -> Budget:
    rate = np.ones(SCHEMA.width)
    for j, feature in enumerate(SCHEMA.features):
        if isinstance(feature, Numeric):
            rate[SCHEMA.starts[j]] = 1.0 / (feature.upper - feature.lower)
    return Budget(total, u, rate, np.full(len(SCHEMA), fixed))


def cost(U: np.ndarray, budget: Budget) -> np.ndarray:
    out = np.zeros(len(U))
    for j, feature in enumerate(SCHEMA.features):
        part, hat = U[:, SCHEMA.slice(j)], budget.factual[SCHEMA.slice(j)]
        if isinstance(feature, Numeric):
            out += budget.rate[SCHEMA.starts[j]] * np.abs(part[:, 0] - hat[0])
        else:
            out += (part != hat).any(axis=1) * budget.rate[SCHEMA.starts[j]]
        out += budget.fixed[j] * (part != hat).any(axis=1)
    return out


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("total", "fixed"),
    [
        (0.3, 0.0),
        (1.2, 0.2),
        *(pytest.param(*b, marks=pytest.mark.slow) for b in ((1.2, 0.0), (0.0, 0.0), (50.0, 0.1))),
    ],
)
def test_bounds_are_sound_within_a_budget(shape, total, fixed):
    network, u = random_network(**shape), ROWS[7]
    box, budget = Box.of(SCHEMA, u), prices(u, total, fixed)
    rng = np.random.default_rng(2)
    U = inside(box, 20000)
    keep = rng.random((len(U), len(SCHEMA))) < rng.choice([0.5, 0.8, 0.95], (len(U), 1))
    shrink = rng.random((len(U), 1)) * rng.integers(0, 2, (len(U), 1))
    for j in range(len(SCHEMA)):
        part = SCHEMA.slice(j)
        if SCHEMA.features[j].kind == "numeric":
            U[:, part] = u[part] + (U[:, part] - u[part]) * shrink
        U[np.ix_(keep[:, j], range(part.start, part.stop))] = u[part]
    U = np.concatenate([U[cost(U, budget) <= total], u[None]])
    tight, loose = network.preactivations(box, budget), network.preactivations(box)
    for s, (lower, upper), (low, high) in zip(sums(network, U), tight, loose, strict=True):
        assert (s >= lower).all()
        assert (s <= upper).all()
        assert (lower >= low - 1e-9).all()
        assert (upper <= high + 1e-9).all()


def test_a_budget_bound_is_the_fractional_knapsack():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 6)), columns=list("abcdef"))
    schema = Schema.infer(frame)
    u = schema.encode(frame)[0]
    box, rate = Box.of(schema, u), rng.uniform(0.1, 2.0, 6)
    for total in (0.05, 0.5, 2.0, 100.0):
        weights = rng.normal(size=(9, 6))
        network = Network(schema, (), weights, np.zeros(9))
        _, upper = network.score_bounds(box, Budget(total, u, rate))
        for w, bound in zip(weights, upper, strict=True):
            found = linprog(
                np.concatenate([-w, w]),
                A_ub=np.concatenate([rate, rate])[None],
                b_ub=[total],
                bounds=[
                    *zip(np.zeros(6), box.upper - u, strict=True),
                    *zip(np.zeros(6), u - box.lower, strict=True),
                ],
            )
            assert bound == pytest.approx(w @ u - found.fun, rel=1e-8, abs=1e-8)


def test_a_budget_counts_the_change_that_the_box_demands():
    u = ROWS[0]
    box, budget = Box.of(SCHEMA, u), prices(u, 1.0)
    box.keep_levels(4, u[SCHEMA.slice(4)] == 0)
    weights = np.zeros((1, SCHEMA.width))
    weights[0, SCHEMA.starts[1]] = 1.0
    lower, upper = Network(SCHEMA, (), weights, np.zeros(1)).score_bounds(box, budget)
    assert upper[0] == pytest.approx(u[SCHEMA.starts[1]])
    assert lower[0] == pytest.approx(u[SCHEMA.starts[1]])


def test_backward_substitution_is_tighter_than_intervals():
    network = random_network(widths=(16, 16, 16))
    box = narrowed(ROWS[0], 0.05)
    low = high = np.empty(0)
    for k, (block, (lower, upper)) in enumerate(zip(network.blocks, network.preactivations(box), strict=True)):
        first = Network(SCHEMA, (), block.weights[:, : SCHEMA.width], block.constant).score_bounds(box)
        on_y = block.weights[:, SCHEMA.width :]
        top = first[1] + np.maximum(on_y, 0) @ high + np.minimum(on_y, 0) @ low
        bottom = first[0] + np.maximum(on_y, 0) @ low + np.minimum(on_y, 0) @ high
        assert (upper <= top + 1e-8).all()
        assert (lower >= bottom - 1e-8).all()
        if k:
            assert (upper - lower).mean() < 0.7 * (top - bottom).mean()
        low = np.concatenate([low, np.maximum(bottom, 0)])
        high = np.concatenate([high, np.maximum(top, 0)])


def binaries(mip: Mip) -> int:
    return sum(name.startswith("relu") and "_on" in name for name in mip.arrays().names)


def test_decided_units_are_folded_away():
    network = random_network(widths=(16, 16))
    counts = []
    for share in (1.0, 0.1, 1e-4):
        box = narrowed(ROWS[0], share)
        for j in (3, 4):
            box.keep_levels(j, ROWS[0][SCHEMA.slice(j)] > 0)
        counts.append(binaries(program(network, box, ROWS[0])[0]))
    assert counts[0] > counts[1] > counts[2]
    assert counts[2] <= 2


def test_given_bounds_save_binaries_and_keep_the_optimum():
    network, u = random_network(widths=(12, 12)), ROWS[0]
    box, budget = Box.of(SCHEMA, u), prices(u, 0.6)
    tight = network.with_bounds(network.preactivations(box, budget))
    found = []
    for form in (network, tight):
        mip, x, scores = program(form, box, u)
        mip.row(spending(x, budget), upper=budget.total)
        mip.minimise(-scores[0])
        value, v = solve(mip)
        found.append((binaries(mip), value, network(x.point(v)[None])[0, 0]))
    assert found[1][0] < found[0][0]
    assert found[1][1] == pytest.approx(found[0][1], rel=1e-6)
    assert found[1][2] == pytest.approx(-found[1][1], rel=1e-6)


def spending(x: Variables, budget: Budget) -> Affine:
    terms = []
    for j, feature in enumerate(x.schema.features):
        numeric = isinstance(feature, Numeric)
        terms.append(x.deviation(j) * budget.rate[x.schema.starts[j]] if numeric else x.changed(j))
    return Affine.total(terms)


def test_the_nearest_other_class_equals_enumeration():
    frame = pd.DataFrame(
        list(itertools.product(range(5), range(4), range(3), ["a", "b", "c"])),
        columns=["i", "j", "k", "level"],
    )
    schema = Schema.infer(frame)
    grid = schema.encode(frame)
    rng = np.random.default_rng(5)
    for _ in range(6):
        graph = Graph(schema)
        h = graph.input(np.eye(schema.width), -grid.mean(axis=0))
        h = graph.rectify(h.affine(rng.normal(size=(5, h.size)), rng.normal(size=5)))
        h = graph.rectify(h.affine(rng.normal(size=(4, 5)), rng.normal(size=4)), 0.05)
        network = graph.network(h.affine(rng.normal(size=(1, 4)), [0.0]))
        scores = network(grid)[:, 0]
        middle = np.median(scores)
        network = Network(schema, network.blocks, network.weights, network.constant - middle - 1e-3)
        scores = network(grid)[:, 0]
        u = grid[int(rng.choice(np.flatnonzero(scores < 0)))]
        steps = np.abs(grid[:, :3] - u[:3]).sum(axis=1) + (grid[:, 3:] != u[3:]).any(axis=1)
        expected = steps[scores >= 1e-4].min()
        mip, x, (score,) = program(network, Box.of(schema, u), u)
        mip.row(score, lower=1e-4)
        mip.minimise(Affine.total([*(x.deviation(j) for j in range(3)), x.changed(3)]))
        value, v = solve(mip)
        assert value == pytest.approx(expected)
        assert network(x.point(v)[None])[0, 0] >= 1e-4 - 1e-6


def test_features_without_a_path_to_the_scores_are_left_out():
    graph = Graph(SCHEMA)
    z = graph.input(np.eye(SCHEMA.width), np.zeros(SCHEMA.width))
    live = graph.rectify(z.affine(np.eye(SCHEMA.width)[[0]]))
    graph.rectify(z.affine(np.eye(SCHEMA.width)[[1]]))
    same = np.zeros((1, SCHEMA.width))
    same[0, SCHEMA.slice(3)] = 2.0
    network = graph.network(live + z.affine(same))
    assert network.features() == {0}
    assert network.raw() == {0}
    assert network.cuts() == {}
    assert network.refined(ROWS[0]) is None
    mip = Mip()
    network.embed(mip, Variables(mip, Box.of(SCHEMA, ROWS[0]), ROWS[0], {}, network.raw()))
    assert binaries(mip) == 0


def test_a_dead_unit_costs_no_binary():
    graph = Graph(SCHEMA)
    z = graph.input(np.eye(SCHEMA.width), np.zeros(SCHEMA.width))
    dead = graph.rectify(z.affine(np.full((1, SCHEMA.width), 1e-70), [-1e-68]))
    live = graph.rectify(z.affine(np.eye(SCHEMA.width)[[1]]))
    network = graph.network(dead + live)
    mip, _, _ = program(network, Box.of(SCHEMA, ROWS[0]), ROWS[0])
    assert binaries(mip) == 1


def test_missing_values_count_as_zero_in_both():
    network = random_network()
    u = ROWS[0].copy()
    u[SCHEMA.starts[1]] = np.nan
    u[SCHEMA.slice(3)] = 0.0
    box = Box.of(SCHEMA, u)
    mip, x, scores = program(network, box, u)
    for j in (0, 2):
        mip.row(x.raw(j), u[j], u[j])
    mip.row(x.level_table(4, u[SCHEMA.slice(4)]), 1.0, 1.0)
    _, v = solve(mip)
    assert [s.value(v) for s in scores] == pytest.approx(network(u[None])[0], rel=1e-7, abs=1e-7)


def test_rows_helper_covers_the_box():
    U = rows(SCHEMA, FRAME, 1000)
    assert len(U) == 1000
    assert Box.of(SCHEMA, ROWS[0]).contains(U).all()
