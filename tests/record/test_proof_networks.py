"""Proofs of networks: bounds of the checker hold to the last digit, and a search that is wrong on purpose is refused."""

from __future__ import annotations

import itertools
import struct
import warnings
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import inf
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.proofs.forging import other_weight
from benchmarks.proofs.trails import written
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ifonly
from ifonly import Actionability, Explainer, IfOnlyWarning, Infeasible, NoCounterfactual, Proximity, Sparsity, Target
from ifonly.models.forms.backward import Layers
from ifonly.question.trail import Leaf, Split, events
from ifonly.record.checker import NotReplayable, Refused, replay
from ifonly.record.network_bounds import Boxes, Layer, Prices, bounds_of_rows
from ifonly.record.proof import unpack
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT, Checking, Tuning
from ifonly.search.inputs.nodes import Nodes
from portions import one_in
from proof_cases import NEVER, Case, judged

GRID = pd.DataFrame(
    list(itertools.product(range(6), np.round(np.arange(-2, 3) * 0.1, 1), [0, 1, 2, 3])),
    columns=["size", "weight", "rooms"],
)


# -- bounds ----------------------------------------------------------------------------------------------------------
def some_prices(rng: np.random.Generator, most: int = 5) -> Prices:
    return Prices(
        hat=np.array([3.0, 0.3, -1.0]),
        rate=rng.uniform(0.0, 2.0, 3) * (rng.random(3) < 0.8),
        square=rng.uniform(0.0, 1.0, 3) * (rng.random(3) < 0.4),
        price=rng.uniform(0.0, 0.5, 3) * (rng.random(3) < 0.5),
        step=np.array([1.0, 0.0, 0.5]),
        level=np.array([0.0, 1.0, 0.7, 0.3, 0.0]),
        home=np.array([True, False, False, False, True]),
        first=np.array([0, 3]),
        owner=np.array([0, 0, 0, 1, 1]),
        most=most,
    )


def some_layers(rng: np.random.Generator, scale: float = 1.0) -> tuple[Layer, ...]:
    """Two layers of units, some with slopes below 0 of all kinds, and two rows, over three numbers and five levels."""
    slopes = np.array([0.0, 0.1, 1.0, -0.5, 2.0])
    units = (8, 12, 15)  # inputs; and with the units of each layer
    sums = [
        (rng.normal(size=(4, units[0])) * scale, rng.normal(size=4), rng.choice(slopes, 4)),
        (rng.normal(size=(3, units[1])) * scale, rng.normal(size=3), rng.choice(slopes, 3)),
        (rng.normal(size=(2, units[2])) * scale, rng.normal(size=2), np.ones(2)),
    ]
    return Layer.all_of(sums, np.array([6.0, 3.0, 5.0, 1.0, 1.0, 1.0, 1.0, 1.0]))


def some_boxes(rng: np.random.Generator, prices: Prices, n: int = 6) -> Boxes:
    low = np.stack([rng.integers(0, 5, n) * 1.0, rng.uniform(-1, 1, n), rng.integers(-4, 2, n) * 0.5], axis=1)
    high = low + np.stack([rng.integers(0, 3, n) * 1.0, rng.uniform(0, 1, n), rng.integers(0, 4, n) * 0.5], axis=1)
    allowed = rng.random((n, 5)) < 0.7
    allowed[:, 0] |= ~allowed[:, :3].any(axis=1)
    allowed[:, 4] |= ~allowed[:, 3:].any(axis=1)
    return Boxes(prices, low, np.minimum(high, [6.0, 3.0, 5.0]), allowed, np.arange(n))


def points_of(boxes: Boxes, i: int) -> Iterator[tuple[list[Fraction], Fraction, int]]:
    """Yield points of a part, what each costs, and how many features it changes."""
    prices, columns = boxes.prices, []
    for k in range(3):
        low, high, step, hat = (float(a[k]) for a in (boxes.low[i], boxes.high[i], prices.step, prices.hat))
        values = set(np.arange(low, high + 0.1 * step, step).tolist() if step else np.linspace(low, high, 5).tolist())
        columns.append(sorted(values | ({hat} if low <= hat <= high else set())))
    levels = [np.flatnonzero(boxes.allowed[i] & (prices.owner == c)).tolist() for c in (0, 1)]
    for *numbers, one, two in itertools.product(*columns, *levels):
        x = [*map(Fraction, numbers), *(Fraction(int(e in (one, two))) for e in range(5))]
        cost, changed = Fraction(0), 0
        for k, v in enumerate(numbers):
            way = abs(Fraction(v) - Fraction(float(prices.hat[k])))
            rate, square, price = (Fraction(float(a[k])) for a in (prices.rate, prices.square, prices.price))
            cost += rate * way + square * way**2 + (price if way else 0)
            changed += way > 0
        cost += Fraction(float(prices.level[one])) + Fraction(float(prices.level[two]))
        yield x, cost, changed + (not prices.home[one]) + (not prices.home[two])


def exactly(layers: tuple[Layer, ...], x: list[Fraction]) -> list[Fraction]:
    """The rows of a network at a point, in fractions."""
    h = list(x)
    for layer in layers:
        sums = [
            sum((Fraction(float(w)) * v for w, v in zip(row, h, strict=True)), Fraction(float(c)))
            for row, c in zip(layer.weights, layer.constant, strict=True)
        ]
        if layer is layers[-1]:
            return sums
        h += [s if s > 0 else Fraction(float(a)) * s for s, a in zip(sums, layer.slope, strict=True)]
    raise AssertionError


@pytest.mark.parametrize("seed", one_in(4, range(12)))
def test_bounds_hold_at_every_point_in_exact_arithmetic(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prices, layers = some_prices(rng, most=int(rng.integers(1, 6))), some_layers(rng, (1.0, 1e-6, 1e5)[seed % 3])
    boxes = some_boxes(rng, prices)
    budget = float(rng.choice([inf, 0.5, 1.5, 4.0]))
    left = boxes.left(budget)
    bounds = bounds_of_rows(layers, left, budget) if len(left) else np.zeros((0, 2))
    seen = 0
    for i in range(len(boxes)):
        (at,) = np.flatnonzero(left.which == i).tolist() or [None]
        for x, cost, changed in points_of(boxes, i):
            if cost > budget or changed > prices.most:
                continue
            assert at is not None, "a part that holds such a point was dropped"
            inside = left.low[at] <= np.array(list(map(float, x[:3])))
            assert inside.all()
            assert all(v <= Fraction(float(b)) for v, b in zip(exactly(layers, x), bounds[at], strict=True))
            seen += 1
            if seen % 400 == 0:  # fractions take long: some hundred points of each part are enough
                break
    assert seen or budget < 1.0


def test_a_bound_on_one_point_is_as_tight_as_its_rounding() -> None:
    """So the derived error is not an excuse: at a single point nothing is loose but the rounding."""
    rng = np.random.default_rng(5)
    prices, layers = some_prices(rng), some_layers(rng)
    point = np.array([[4.0, 0.7, 0.5]])
    boxes = Boxes(prices, point, point, np.array([[True, False, False, False, True]]), np.arange(1))
    x = [*map(Fraction, point[0].tolist()), *map(Fraction, (1, 0, 0, 0, 1))]
    for value, bound, room in zip(
        exactly(layers, x), bounds_of_rows(layers, boxes, inf)[0], layers[-1].room, strict=True
    ):
        assert value <= Fraction(float(bound)) <= value + Fraction(4.0 * float(room))


def test_what_is_no_number_closes_nothing() -> None:
    rng = np.random.default_rng(0)
    prices, layers = some_prices(rng), some_layers(rng)
    boxes = some_boxes(rng, prices)
    with np.errstate(all="ignore"):
        broken = (*layers[:-1], layers[-1]._replace(constant=np.full(2, np.nan)))
        assert not (bounds_of_rows(broken, boxes, inf) < 0.0).any()


# -- against enumeration -----------------------------------------------------------------------------------------------
def on_grid(seed: int, proof: bool = True) -> Case | None:
    """A question about a network all of whose columns lie on a grid, so that every row can be looked at."""
    rng = np.random.default_rng(seed)
    score = GRID["size"] - 15 * GRID["weight"] * GRID["rooms"] + rng.normal(0, 1.5, len(GRID))
    network = MLPClassifier(((6,), (5, 4))[seed % 2], solver="lbfgs", max_iter=150, random_state=seed, alpha=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make_pipeline(StandardScaler(), network).fit(GRID, np.where(score > score.median(), "yes", "no"))
    house = [
        Proximity(("l1", "l2")[seed // 2 % 2], scale="range"),
        Sparsity(price=0.1 * (seed % 3), at_most=3 - seed % 2),
    ]
    schema = ifonly.Schema.infer(GRID, precision={"weight": 1})
    explainer = Explainer(model, GRID, schema=schema, criteria=house)
    row = GRID.iloc[[int(rng.integers(len(GRID)))]]
    want = "no" if model.predict(row)[0] == "yes" else "yes"
    try:
        return Case(model, GRID, explainer, explainer.explain(row, want=want, proof=proof), row, want)
    except NoCounterfactual:
        return None


known = cache(on_grid)  # by the search as it is


def optimum(case: Case) -> float:
    asked = case.asked()
    U = asked.query.schema.encode(GRID)
    for demand in asked.statement.demands:
        U = U[demand.holds(asked.query, U)]
    return float(asked.statement.objective(U).min(initial=inf))


def test_no_trail_proves_more_than_is_true() -> None:
    """Moved splits, flipped bits and missing parts: what is accepted is true, and what is false is refused."""
    rng, tried = np.random.default_rng(0), 0
    for case in filter(None, map(known, range(12))):
        assert case.trail
        case.replayed(case.trail)
        best, parts = optimum(case), list(events(case.trail))
        assert best >= case.bound * (1.0 - 1e-9)
        false = best * (1.0 + 1e-5)
        with pytest.raises(Refused):
            case.replayed(case.trail, false)
        for i, part in itertools.islice(((i, p) for i, p in enumerate(parts) if isinstance(p, Split)), 6):
            if part.value is not None:
                moved = replace(part, value=part.value + float(rng.choice([-1.0, -0.1, 0.1, 1.0])))
                with pytest.raises(Refused):
                    case.replayed(written([*parts[:i], moved, *parts[i + 1 :]]), false)
                tried += 1
        leaf = next(i for i, p in enumerate(parts) if isinstance(p, Leaf))
        if len(parts) > 1:
            with pytest.raises(Refused):
                case.replayed(written([*parts[:leaf], *parts[leaf + 1 :]]))
    assert tried >= 10


def test_another_weight_is_another_network() -> None:
    """By some per cent: where a cheaper answer has become possible, the trail is refused."""
    rng, refused = np.random.default_rng(0), 0
    for case in filter(None, map(known, range(12))):
        for _ in range(8):
            other = other_weight(case.model, rng)
            explainer = Explainer(other, GRID, schema=case.explainer.schema, criteria=case.explainer.criteria)
            changed = replace(case, model=other, explainer=explainer)
            asked = changed.asked()
            if other.predict(case.row)[0] != case.want and optimum(changed) < case.bound * (1.0 - 1e-6):
                with pytest.raises(Refused):
                    replay(asked.statement, asked.goal, case.bound, case.trail, NEVER)
                refused += 1
    assert refused >= 2


# -- searches that are wrong on purpose ----------------------------------------------------------------------------------
@pytest.mark.parametrize("rule", one_in(3, ["bounds", "costs", "children"]))
def test_a_search_that_prunes_too_much_is_refused(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ifonly.search.inputs.networks import Search

    planes, cheapest, intervals = Layers.planes, Nodes.cheapest, Search._intervals
    if rule == "bounds":  # rows count as further from the goal than they are

        def lowered(self: Layers, boxes: Any) -> Any:
            found = planes(self, boxes)
            return replace(found, constant=found.constant - 2.0)

        monkeypatch.setattr(Layers, "planes", lowered)
    elif rule == "costs":  # what has to be spent counts twice

        def dearer(self: Nodes, *arguments: Any) -> Any:
            found = cheapest(self, *arguments)
            return found._replace(cost=2.0 * found.cost)

        monkeypatch.setattr(Nodes, "cheapest", dearer)
    else:  # one side of a split is forgotten
        monkeypatch.setattr(Search, "_intervals", lambda self, node: intervals(self, node)[1:])
    monkeypatch.setattr("ifonly.search.incumbents.Incumbents.near_rows", lambda self, most: [])
    monkeypatch.setattr("ifonly.question.goal.Goal.candidates", lambda *_: ())
    wrong, refused = judged(filter(None, map(on_grid, range(16))), optimum)
    assert refused >= wrong >= 1


# -- kinds -------------------------------------------------------------------------------------------------------------
def proof_check(verdict: Any) -> Any:
    (check,) = (c for c in verdict.checks if c.name == "proof")
    return check


def test_nothing_to_be_found_is_replayed() -> None:
    shown = 0
    for seed in range(6):
        case = known(seed)
        if case is None:
            continue
        try:
            case.explainer.explain(case.row, want=case.want, criteria=[Actionability(only=["rooms"])], proof=True)
        except Infeasible as error:
            verdict = ifonly.verify(error.record(), case.model, case.X, proof=error.proof)
            assert verdict.ok, str(verdict)
            if error.trail:
                assert proof_check(verdict).ok is True
                asked = case.explainer._ask(case.row, case.want, ())  # without the demand there is an answer
                with pytest.raises(Refused, match="may be an answer"):
                    replay(asked.statement, asked.goal, inf, error.trail, NEVER)
                shown += 1
    assert shown >= 2


def test_values_are_bounded_from_both_sides() -> None:
    score = GRID["size"] / 5.0 + GRID["weight"] * GRID["rooms"]
    network = MLPRegressor(hidden_layer_sizes=(8,), solver="lbfgs", max_iter=2000, random_state=0)
    model = make_pipeline(StandardScaler(), network).fit(GRID, score)
    explainer = Explainer(model, GRID)
    answer = explainer.explain(GRID.iloc[[0]], want=Target(at_least=0.5, at_most=0.55), proof=True)
    assert unpack(answer.proof)[0]
    verdict = ifonly.verify(answer.record(), model, GRID, proof=answer.proof)
    assert proof_check(verdict).ok is True, str(verdict)


def continuous() -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    y = np.where(X.a + X.b * X.c > 0.2, "yes", "no")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MLPClassifier((6, 4), solver="lbfgs", max_iter=150, alpha=0.05, random_state=1).fit(X, y), X


def in_single_precision(kind: str, network: Any) -> Any:
    """A network of scikit-learn as a module of PyTorch, or as an ONNX file."""
    if kind == "torch":
        pytest.importorskip("torch")
        from benchmarks.battery.families import _as_torch

        return _as_torch(network, None, 2)
    pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    from benchmarks.battery.families import _as_onnx

    return _as_onnx(network, None, 2)


@pytest.mark.parametrize("kind", ["torch", "onnx"])
def test_networks_in_single_precision_are_replayed(kind: str) -> None:
    network, X = continuous()
    model = in_single_precision(kind, network)
    explainer = Explainer(model, X)
    margins = set()
    for i in np.flatnonzero(np.asarray(model.predict(X)) == "no")[:4]:
        answer = explainer.explain(X.iloc[[i]], want="yes", proof=True)
        assert answer[0].certificate.solver == "no solver needed"
        verdict = ifonly.verify(answer.record(), model, X, proof=answer.proof)
        assert proof_check(verdict).ok is True, str(verdict)
        margins.add(answer[0].certificate.margin)
        asked = explainer._ask(X.iloc[[i]], "yes", ())
        trail, bound = unpack(answer.proof)[0], answer[0].certificate.bound
        with pytest.raises(Refused):  # a margin that nobody asks for proves nothing
            replay(asked.statement, asked.goal, 1.01 * bound, trail, NEVER, 0.5)
    assert margins


# -- malformed trails ----------------------------------------------------------------------------------------------------
def test_malformed_trails_end_in_a_sentence() -> None:
    case = next(c for c in map(known, range(8)) if c is not None and len(c.trail) > 1)
    for value in (np.nan, inf, -inf):
        with pytest.raises(Refused, match="something else"):
            case.replayed(struct.pack("<BId", 2, 0, value) + b"\x00\x00")
    with pytest.raises(Refused, match="something else"):
        case.replayed(struct.pack("<BIHB", 4, 0, 3, 0) + b"\x00\x00")
    with pytest.raises(Refused, match="something else"):
        case.replayed(struct.pack("<BI", 6, 1) + b"\x00\x00")
    with pytest.raises(Refused, match="decided"):
        case.replayed(struct.pack("<BId", 2, 99, 0.5))
    with pytest.raises(Refused, match="deep"):
        case.replayed(struct.pack("<BId", 2, 0, 0.5) * 100_001)
    with pytest.raises(Refused, match="missing"):
        case.replayed(case.trail[:-1])
    asked = case.asked()
    with pytest.raises(NotReplayable, match="time"):
        replay(asked.statement, asked.goal, case.bound, case.trail, Deadline.after(0.0))


def test_a_part_that_is_not_closed_is_halved_so_often_and_no_more() -> None:
    """One leaf in the place of all parts: small questions are closed by halves alone, and nothing false ever is."""
    closed = 0
    for case in filter(None, map(known, range(10))):
        best = optimum(case)
        closed += _accepts(case, b"\x00")
        with pytest.raises(Refused):
            case.replayed(b"\x00", best * (1.0 + 1e-5))
    never = Tuning(checking=Checking(most_halved=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IfOnlyWarning)
        strict = sum(_accepts(case, b"\x00", never) for case in filter(None, map(known, range(10))))
    assert strict <= closed


def _accepts(case: Case, trail: bytes, tuning: Tuning = DEFAULT) -> bool:
    asked = case.asked()
    statement = replace(asked.statement, query=replace(asked.statement.query, tuning=tuning))
    try:
        replay(statement, asked.goal, case.bound, trail, NEVER)
    except Refused:
        return False
    return True
