"""Compiled search over signs of units: against enumeration of grids and of balls on them, mid-way and at its end."""

from __future__ import annotations

import itertools
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from ifonly.models.forms import signs
from ifonly.models.forms.backward import Layers
from ifonly.models.forms.propagate import Block
from ifonly.models.forms.signs import Ball, Room, Signs, kernel_in_use, knows
from ifonly.runtime.kernels import Said
from ifonly.runtime.tuning import DEFAULT, SignSearch

compiled = pytest.mark.skipif(signs._built is None, reason="the kernel is not built")
N, LEVELS = 3, 3  # numbers, and levels of one category


class World:
    """A random network over a small grid, its costs, and the least cost of a point that keeps its rows all over a ball."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        width, sizes = N + LEVELS + 1, ((4,), (4, 3), (2, 2, 2))[seed % 3]  # one more number, which only the ball moves
        blocks, before = [], width
        for size in sizes:
            slope = rng.choice([0.0, 0.0, 0.1, 1.0], size)
            blocks.append(Block(rng.normal(size=(size, before)), rng.normal(size=size), slope))
            before += size
        rows = rng.normal(size=(1 + seed % 2, before)), rng.normal(size=1 + seed % 2) - 1.0 - 0.5 * (seed % 4)
        size = np.array([4.0] * N + [1.0] * LEVELS + [1.0])
        self.layers = Layers.of(blocks, rows, np.arange(width), np.zeros(width), size)
        self.home = rng.integers(0, 4, N).astype(float)
        self.rate, self.square = rng.uniform(0.1, 1.0, N), rng.uniform(0.0, 0.2, N) * (seed % 2)
        self.price = rng.uniform(0.0, 0.5, N) * (seed % 5 == 0)
        self.level_cost = rng.uniform(0.1, 1.0, LEVELS)
        self.level_cost[0] = 0.0
        self.most = (N + 1, 2)[seed % 4 == 3]
        self.round = seed % 3 == 1
        self.reach = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]) * ((seed // 2) % 3 > 0)
        self.passes = 1e-7

    def room(self) -> Room:
        zero, one = np.zeros(N), np.ones(N)
        numbers = (self.home, zero, self.rate, self.square, self.price, one, 1e-9 * one, zero, 4.0 * one)
        levels = (self.level_cost, np.arange(LEVELS) == 0, np.ones(LEVELS, dtype=bool), np.array([0]))
        return Room(*numbers, *levels, 0.25, self.most, np.empty(0))

    def ball(self) -> Ball:
        free = np.full(LEVELS, np.inf)
        low, high = np.array([0.0] * N + [*-free] + [0.0]), np.array([4.0] * N + [*free] + [1.0])
        return Ball(self.layers, self.reach, low, high, (self.reach > 0.0) * 1.0, self.round, self.passes)

    def rows(self, x: np.ndarray) -> np.ndarray:
        for block in self.layers.blocks:
            x = np.concatenate([x, block.activate(x @ block.weights.T + block.constant)], axis=1)
        return (x @ self.layers.rows.T + self.layers.constant).min(axis=1)

    def cost(self, numbers: np.ndarray, level: int) -> float:
        d = np.abs(numbers - self.home)
        own = self.rate * d + self.square * d**2 + self.price * (d > 0.0)
        return float(0.25 + own.sum() + self.level_cost[level])

    def worst(self, numbers: np.ndarray, level: int) -> tuple[float, np.ndarray]:
        """The least row in the ball around a point, by all shifts of it on the grid that stay between the ends; its shift."""
        x = np.concatenate([numbers, np.eye(LEVELS)[level], [0.0]])
        ways = [(-1.0, 0.0, 1.0) if r else (0.0,) for r in self.reach]
        shifts = np.array([d for d in itertools.product(*ways) if not self.round or sum(map(abs, d)) <= 1.0])
        there = x + shifts
        inside = ((there[:, :N] >= 0.0) & (there[:, :N] <= 4.0)).all(axis=1) & (there[:, -1] >= 0.0)
        rows = self.rows(there[inside])
        return float(rows.min()), shifts[inside][rows.argmin()]

    def best(self, slack: float) -> float:
        """The least cost by enumeration."""
        out = np.inf
        for *numbers, level in itertools.product(*[range(5)] * N, range(LEVELS)):
            x = np.array(numbers, dtype=float)
            changed = int((x != self.home).sum()) + (level != 0)
            if changed <= self.most and self.cost(x, level) < out and self.worst(x, level)[0] >= slack:
                out = self.cost(x, level)
        return out


def searched(
    world: World, work: int, *, refuses: bool = False, steps: int = 10**6, tuning: SignSearch = DEFAULT.signs
) -> tuple[float, float, Said]:
    """The cheapest point that was offered and is kept by enumeration, the least bound of what is open, how it ended."""
    search, best, true = Signs(world.room(), [world.ball()], 1 << 26, tuning), np.inf, world.best(-world.passes)
    for _ in range(steps):
        said = search.run(best * (1.0 - 1e-9), work)
        assert search.bound <= true * (1.0 + 1e-9) or said is Said.CLOSED
        if said is not Said.OFFER:
            if said is not Said.PAUSED:
                break
            continue
        numbers, (level,) = search.offered()
        assert (numbers == np.rint(numbers)).all()
        least, shift = world.worst(numbers, int(level))
        if least < -world.passes:
            search.learned(0, shift)
        elif not refuses:
            best = min(best, world.cost(numbers, int(level)))
    return best, search.bound, said


@compiled
@pytest.mark.parametrize("seed", range(24))
def test_the_cheapest_point_is_that_of_the_enumeration(seed: int) -> None:
    world = World(seed)
    best, left, said = searched(world, 200_000)
    assert said is Said.CLOSED
    assert left >= best * (1.0 - 1e-9)
    assert world.best(-world.passes) * (1.0 - 1e-8) <= best <= world.best(1e-7) * (1.0 + 1e-8)


HALF = SignSearch(**{k: v // 2 if isinstance(v, int) else v / 2 for k, v in asdict(DEFAULT.signs).items()})
FEW = SignSearch(**{k: min(v, 1) for k, v in asdict(DEFAULT.signs).items()})
ODD = SignSearch(
    away=0.9, early=5.0, cut_from=3.0, broken_from=3.0, lifted=0.0, most_pivots=30, rays=0, cuts=0, thirds=0
)


@compiled
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tuning", [HALF, SignSearch(away=1e-30)], ids=["half", "at the ends"])
def test_other_numbers_take_another_way_to_the_same_point(seed: int, tuning: SignSearch) -> None:
    world = World(seed)
    best, left, said = searched(world, 200_000, tuning=tuning)
    assert said is Said.CLOSED
    assert left >= best * (1.0 - 1e-9)
    assert world.best(-world.passes) * (1.0 - 1e-8) <= best <= world.best(1e-7) * (1.0 + 1e-8)


@compiled
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tuning", [FEW, ODD], ids=["few", "odd"])
def test_by_numbers_that_are_no_good_less_is_found_and_bounds_hold(seed: int, tuning: SignSearch) -> None:
    world = World(seed)
    best, left, _ = searched(world, 200_000, tuning=tuning)
    assert world.best(-world.passes) * (1.0 - 1e-8) <= best
    assert min(best, left) <= world.best(1e-7) * (1.0 + 1e-8)


@compiled
@pytest.mark.parametrize("seed", range(8))
def test_refused_points_stay_open_and_bounds_on_the_way_hold(seed: int) -> None:
    world = World(seed)
    true = world.best(1e-7)
    _, left, said = searched(world, 2_000, refuses=True)
    assert said is Said.CLOSED
    assert left <= true * (1.0 + 1e-9)


@compiled
def test_memory_that_is_too_little_ends_the_search_and_bounds_hold() -> None:
    ended = []
    for seed in range(12):
        world = World(seed)
        search = Signs(world.room(), [world.ball()], 6000, DEFAULT.signs)
        while (said := search.run(np.inf, 10_000)) in (Said.OFFER, Said.PAUSED):
            pass
        ended.append(said)
        assert search.bound <= world.best(1e-7) * (1.0 + 1e-9)
    assert Said.FULL in ended


@compiled
def test_tables_of_other_sizes_are_refused() -> None:
    world = World(0)
    with pytest.raises(ValueError, match="size"):
        Signs(world.room()._replace(rate=np.ones(2)), [world.ball()], 1 << 20, DEFAULT.signs)
    with pytest.raises(ValueError, match="no network"):
        Signs(world.room(), [], 1 << 20, DEFAULT.signs)
    search = Signs(world.room(), [world.ball()], 1 << 20, DEFAULT.signs)
    with pytest.raises(ValueError, match="another size"):
        search.learned(0, np.zeros(2))


def test_only_units_that_bend_upwards_are_known_and_numpy_can_be_asked_for(monkeypatch: Any) -> None:
    (block, *_) = World(0).layers.blocks
    bent = Block(block.weights, block.constant, np.full(len(block.constant), 1.5))
    built = signs._built is not None
    assert (knows([[block]]), knows([[block], [bent]]), knows([[]])) == (built, False, False)
    monkeypatch.setenv("IFONLY_KERNEL", "numpy")
    assert (knows([[block]]), kernel_in_use()) == (False, "NumPy")
