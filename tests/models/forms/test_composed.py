"""Planes above composites of networks: above at every point that meets the goal, whose scores no narrowing excludes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ifonly import Schema
from ifonly.models.form import Form
from ifonly.models.forms.backward import Layers
from ifonly.models.forms.bends import EXP, EXPM1, LOG_SIGMOID, SIGMOID, SOFTPLUS, SQUARE, Bend, Broken
from ifonly.models.forms.compose import combine, mean, stack
from ifonly.models.forms.composed import Composed, Inputs, is_of_networks
from ifonly.models.forms.curves import Curve, Softmax
from ifonly.models.forms.enclosing import Enclosure
from ifonly.models.forms.envelopes import reached
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.median import Median
from ifonly.models.forms.network import Graph
from ifonly.models.forms.planes import Rows
from ifonly.models.forms.votes import Votes
from ifonly.models.links import shares
from ifonly.models.read import Read
from ifonly.program.box import Box
from ifonly.search.inputs.free import Free
from ifonly.search.inputs.nodes import Nodes
from portions import one_in

STEPS = Broken(np.array([-2.0, -1.0, -0.5, 0.0, 0.7, 2.5]), np.array([0.0, 0.0, 0.3, 0.3, 0.9, 1.0]))
N = 4
TABLE = Schema.infer(pd.DataFrame({name: [-3.5, 3.25] for name in "abcd"}))
WHOLE = Box(TABLE, np.full(N, -3.0), np.full(N, 3.0), np.ones(N, dtype=np.bool_), np.zeros(N, dtype=np.bool_))


def network(n: int, seed: int, layers: tuple[int, ...] = (6,)) -> Form:
    """Return scores of a network with weights that are drawn."""
    rng, graph = np.random.default_rng(seed), Graph(TABLE)
    signal = graph.input(np.eye(N), np.zeros(N))
    for k, width in enumerate(layers):
        slope = 0.1 * k
        signal = graph.rectify(signal.affine(rng.normal(size=(width, signal.size)), rng.normal(size=width)), slope)
    return graph.network(signal.affine(rng.normal(size=(n, signal.size)), rng.normal(size=n)))


def line(n: int, seed: int) -> Form:
    """Return linear scores."""
    rng = np.random.default_rng(seed)
    return Linear(TABLE, rng.normal(size=(n, N)), rng.normal(size=n))


def composites(seed: int) -> dict[str, Form]:
    """Return a form of each kind over networks and lines."""
    two = np.array([[-1.0], [1.0]])

    def share(form: Form, bend: Bend = SIGMOID) -> Form:
        return combine(Curve(form, (bend,)), two, np.array([1.0, 0.0]))

    one, deep = network(1, seed), network(1, seed + 1, (5, 4))
    soft = Softmax(network(3, seed, (4, 3)))
    second = Read(one, (0, 1), "sign", "sigmoid", 0.25)
    return {
        "one curve": share(one),
        "curve of a curve": share(combine(Curve(deep, (SIGMOID,)), np.array([[4.0]]), np.array([-2.0])), STEPS),
        "soft vote": mean([share(one), share(line(1, seed))], np.array([1.0, 1.0])),
        "calibrated folds": mean([share(one, STEPS), share(deep), share(network(1, seed + 5))], np.ones(3)),
        "softmax": soft,
        "soft votes of classes": mean([soft, Softmax(line(3, seed + 1))], np.array([1.0, 2.5])),
        "shares": mean([shares(network(3, seed)), shares(network(3, seed + 9))], np.ones(2)),
        "votes": combine(
            stack([Votes(Read(network(2, seed), (0, 1), "argmax")), Votes(second), Votes(Read(deep, (0, 1), "sign"))]),
            np.tile(np.eye(2), 3),
        ),
        "median": Median(Curve(network(3, seed), (SIGMOID, SIGMOID, STEPS)), np.array([0.5, 0.2, 0.3])),
        "sum": combine(stack([deep, Curve(network(2, seed), (SOFTPLUS, EXP))]), np.array([[1.0, -1.0, 0.01]])),
    }


def free() -> Free:
    """Return the four numbers, free, at a cost of their distance from 0."""
    zero, none = np.zeros(N), np.empty(0)
    return Free(
        home=zero, origin=zero, rate=np.ones(N), square=zero, price=zero, step=zero, size=np.full(N, 3.0),
        level_cost=none, first=np.empty(0, dtype=np.int64), level_home=np.empty(0, dtype=np.bool_), elsewhere=0.0, most=N,
    )  # fmt: skip


def nodes(rng: np.random.Generator, n: int = 12, budget: float = np.inf) -> Nodes:
    """Return boxes of many widths."""
    middle, width = rng.uniform(-2.0, 2.0, (n, N)), rng.choice([2.0, 0.7, 0.1, 1e-3], (n, 1)) * rng.uniform(size=(n, N))
    low, high = np.maximum(middle - width, -3.0), np.minimum(middle + width, 3.0)
    return Nodes(free(), low, high, np.ones((n, 0), dtype=np.bool_), np.zeros(n, dtype=np.int64), budget)


def goals(form: Form, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that some points meet, of one score against the others, or of any sums."""
    k = form.n_outputs
    rows = rng.normal(size=(2, k))
    if k > 1 and rng.random() < 0.7:
        rows = np.array([np.eye(k)[0] - np.eye(k)[m] for m in range(1, k)])
    value = form(rng.uniform(-2.0, 2.0, (200, N))) @ rows.T
    return rows, -np.quantile(value, float(rng.uniform(0.2, 0.8)), axis=0)


def composed(form: Form, goal: tuple[np.ndarray, np.ndarray], most: int = 6) -> Composed:
    enclosure = Enclosure.of(form, WHOLE)
    assert enclosure is not None
    assert is_of_networks(enclosure)
    return Composed.of(enclosure, goal, Inputs(np.arange(N), np.zeros(N), np.full(N, 3.0), np.zeros(N)), most)


@pytest.mark.parametrize("seed", one_in(4, range(12)))
@pytest.mark.parametrize("kind", list(composites(0)))
def test_planes_lie_above_points_that_meet_the_goal(kind: str, seed: int) -> None:
    form, rng = composites(10 * seed)[kind], np.random.default_rng(seed)
    met = 0
    for budget in (np.inf, 2.0):
        rows, constant = goals(form, rng)
        layers, boxes = composed(form, (rows, constant), 1 + seed % 6), nodes(rng, budget=budget)
        boxes = boxes.reduced()
        planes = layers.planes(boxes)
        assert planes.slopes.shape[1] == len(layers.off_by) == planes.constant.shape[1]
        for i in range(len(boxes)):
            U = boxes.low[i] + rng.uniform(size=(400, N)) * (boxes.high[i] - boxes.low[i])
            U = np.concatenate([U, np.where(rng.random((100, N)) < 0.5, boxes.low[i], boxes.high[i])])
            good = (form(U) @ rows.T + constant >= 0.0).all(axis=1) & (np.abs(U).sum(axis=1) <= budget)
            met += int(good.sum())
            above = U[good] @ planes.slopes[i].T + planes.constant[i]
            assert (above >= 0.0).all()
            value = form(U[good]) @ rows.T + constant
            assert (above[:, : len(rows)] >= value).all()
    assert met > 50


@pytest.mark.parametrize("seed", one_in(4, range(12)))
@pytest.mark.parametrize("kind", list(composites(0)))
def test_scores_of_points_that_meet_the_goal_are_kept(kind: str, seed: int) -> None:
    form, rng = composites(10 * seed + 1)[kind], np.random.default_rng(seed)
    enclosure = Enclosure.of(form, WHOLE)
    assert enclosure is not None
    rows, constant = goals(form, rng)
    narrowed = 0
    for width in (3.0, 1.0, 0.2, 0.01):
        U = rng.uniform(-1.0, 1.0, (1, N)) + width * rng.uniform(-1.0, 1.0, (400, N))
        scores = np.zeros((len(U), enclosure.n_places))
        for atom in enclosure.atoms:
            scores[:, atom.place] = atom.form(U)
        ends = enclosure.bounds(scores.min(axis=0)[None], scores.max(axis=0)[None])
        goal = Rows(rows[None], constant[None], rows[None])
        rest, low, high, closed = enclosure.narrowed(goal, *ends)
        good = (form(U) @ rows.T + constant >= 0.0).all(axis=1)
        assert not (closed[0] and good.any())
        inner = enclosure.inner
        kept = scores[good][:, inner]
        assert (kept >= low[0, inner] - 1e-12).all()
        assert (kept <= high[0, inner] + 1e-12).all()
        assert not np.delete(rest.slopes, inner, axis=2).any()
        narrowed += int((low[0, inner] > ends[0][0, inner]).any() or (high[0, inner] < ends[1][0, inner]).any())
        narrowed += int(closed[0] or good.all())
    assert narrowed or kind == "median"


def test_a_single_score_is_compared_with_a_threshold() -> None:
    for kind in ("one curve", "curve of a curve"):
        form = composites(3)[kind]
        rows, constant = np.array([[-1.0, 1.0]]), np.array([-0.2])
        layers = composed(form, (rows, constant))
        whole = nodes(np.random.default_rng(0), 1).pick(np.array([0]))
        whole = Nodes(free(), np.full((1, N), -3.0), np.full((1, N), 3.0), whole.allowed, whole.name)
        bare = layers.threshold(whole, 64)
        assert isinstance(bare, Layers)
        U = np.random.default_rng(1).uniform(-3.0, 3.0, (2000, N))
        slopes, shift = bare.tangents(U)
        lead = ((slopes @ U[:, :, None])[:, :, 0] + shift).min(axis=1)
        value = form(U) @ rows[0] + constant[0]
        assert (lead[value >= 0.0] >= -1e-9).all()
        assert (lead[value < -1e-6] < 1e-6).all()
        assert 0 < (value >= 0.0).sum() < len(U)
    assert composed(composites(3)["soft vote"], (rows, constant)).threshold(whole, 64) is None


def test_tangents_touch_the_rows() -> None:
    for kind, form in composites(5).items():
        if kind in ("votes", "median"):
            continue
        rng = np.random.default_rng(5)
        rows, constant = goals(form, rng)
        layers = composed(form, (rows, constant))
        U = rng.uniform(-2.0, 2.0, (20, N))
        slopes, shift = layers.tangents(U)
        for step in (0.0, 1e-6):
            V = U + step * rng.normal(size=U.shape)
            value = form(V) @ rows.T + constant
            off = np.abs((slopes @ V[:, :, None])[:, :, 0] + shift - value)
            assert np.quantile(off, 0.9) <= 1e-7 * (1.0 + np.abs(value).max())


# -- inverses of curves ------------------------------------------------------------------------------------------------
BENDS: dict[str, Any] = {
    "sigmoid": SIGMOID, "log sigmoid": LOG_SIGMOID, "softplus": SOFTPLUS, "exp": EXP, "expm1": EXPM1, "steps": STEPS,
}  # fmt: skip


@pytest.mark.parametrize("name", BENDS)
def test_an_inverse_loses_no_score(name: str) -> None:
    bend, rng = BENDS[name], np.random.default_rng(1)
    s = np.sort(rng.uniform(-40.0, 40.0, (2000, 2)) * rng.choice([1.0, 0.1], (2000, 1)), axis=1)
    low, high = reached(bend, bend(s[:, 0]), bend(s[:, 1]))
    assert (low <= s[:, 0]).all()
    assert (high >= s[:, 1]).all()
    near = np.abs(s[:, 0]) < 2.0
    if name != "steps":
        assert (s[near, 0] - low[near] < 1e-9).all()


def test_where_there_is_no_inverse_nothing_is_known() -> None:
    low, high = reached(SQUARE, np.array([1.0]), np.array([4.0]))
    assert low[0] == -np.inf
    assert high[0] == np.inf
    low, high = reached(STEPS, np.array([1.5, -0.5]), np.array([2.0, -0.1]))  # values that it has nowhere
    assert low[0] == np.inf
    assert high[1] == -np.inf
