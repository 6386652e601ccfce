"""The peers that were rebuilt from their papers, each on a case solved by hand."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.peers import actionable_recourse, face, growing_spheres
from benchmarks.peers.encoding import Encoding, Field

PLANE = Encoding((Field("a", "number", (0,), 0.0, 10.0), Field("b", "number", (1,), 0.0, 10.0)))
MIXED = Encoding(
    (
        Field("years", "integer", (0,), 0.0, 4.0),
        Field("job", "category", (1, 2, 3), levels=("none", "some", "own")),
        Field("age", "integer", (4,), 20.0, 60.0),
    )
)


# -- growing spheres -------------------------------------------------------------------------------------------------
def test_layers_are_filled_uniformly() -> None:
    points = growing_spheres.in_layer(np.random.default_rng(0), 20_000, 2, 1.0, 2.0)
    radius = np.linalg.norm(points, axis=1)
    assert radius.min() >= 1.0
    assert radius.max() <= 2.0
    # Half of the area of the ring lies beyond sqrt((1 + 4) / 2).
    assert np.mean(radius > np.sqrt(2.5)) == pytest.approx(0.5, abs=0.02)
    assert np.abs(points.mean(axis=0)).max() < 0.03


def test_growing_spheres_reaches_the_nearest_side() -> None:
    """Wanted is a >= 4, from (1, 5): the nearest enemy is straight ahead at a = 4, and b goes back to the factual's."""
    factual = np.array([1.0, 5.0])
    found = growing_spheres.grow(factual, PLANE, lambda rows: rows[:, 0] >= 4.0, eta=1.0)
    assert found is not None
    assert found[1] == 5.0
    assert 4.0 <= found[0] < 4.1


def test_growing_spheres_shrinks_its_first_ball() -> None:
    """With the border 0.01 of a range away, the ball of half a range is full of enemies; halving finds the near ones."""
    found = growing_spheres.grow(np.array([1.0, 5.0]), PLANE, lambda rows: rows[:, 0] >= 1.1)
    assert found is not None
    assert 1.1 <= found[0] < 1.15


def test_growing_spheres_leaves_its_ranges_unless_told_not_to() -> None:
    """Wanted is a > 11 or b > 9.5, from (9, 1), in ranges of 0 to 10: what is nearer does not exist."""
    factual = np.array([9.0, 1.0])
    beyond = growing_spheres.grow(factual, PLANE, lambda rows: (rows[:, 0] > 11.0) | (rows[:, 1] > 9.5))
    within = growing_spheres.grow(factual, PLANE, lambda rows: (rows[:, 0] > 11.0) | (rows[:, 1] > 9.5), within=True)
    assert beyond is not None
    assert within is not None
    assert beyond[0] > 11.0
    assert within[0] == 9.0
    assert 9.5 < within[1] <= 10.0


def test_growing_spheres_keeps_what_is_frozen_and_whole_categories() -> None:
    factual = np.array([1.0, 0.0, 30.0])
    found = growing_spheres.grow(factual, MIXED, lambda rows: rows[:, 1] == 2, frozen=("age", "years"))
    assert found is not None
    assert found.tolist() == [1.0, 2.0, 30.0]
    assert growing_spheres.grow(factual, MIXED, lambda rows: rows[:, 2] > 30, frozen=("age",), seconds=0.05) is None


# -- FACE ------------------------------------------------------------------------------------------------------------
def test_face_goes_where_the_data_are() -> None:
    """A lonely target 1.2 away to the left, one 3 away at the end of a dense chain to the right: the chain wins.

    Each step of the chain has about the greatest density, so it costs little more than its length; the middle of the
    lonely edge has almost none, so its logarithm is large.
    """
    chain = np.column_stack([np.linspace(0.1, 3.0, 30), np.zeros(30)])
    lonely = np.array([[-1.2, 0.0]])
    points = np.vstack([chain, lonely])
    targets = np.zeros(31, dtype=bool)
    targets[[29, 30]] = True
    path = face.Graph(points, targets, neighbours=4, bandwidth=0.1).shortest(np.zeros(2))
    assert path is not None
    assert path[-1] == 29
    assert len(path) > 3
    # Without the price of low density (a kernel wider than everything), the shorter way wins, by the row next to it.
    assert face.Graph(points, targets, neighbours=4, bandwidth=100.0).shortest(np.zeros(2)) == (0, 30)


def test_face_weighs_edges_as_the_paper_says() -> None:
    """Two rows one apart, kernel width 1: the density in the middle is 2 exp(-1/8) of the greatest 1 + exp(-1/2)."""
    points = np.array([[0.0], [1.0]])
    graph = face.Graph(points, np.ones(2, dtype=bool), bandwidth=1.0)
    share = min(2 * np.exp(-1 / 8) / (1 + np.exp(-1 / 2)), 1.0)
    assert graph.density(np.array([[0.5]])) == pytest.approx(share)
    assert graph.weights == pytest.approx([1 - np.log(share)] * 2)
    middle = (np.exp(-(1.5**2) / 2) + np.exp(-(0.5**2) / 2)) / (1 + np.exp(-1 / 2))
    assert graph._weigh(np.array([[0.0]]), np.array([[3.0]])) == pytest.approx((1 - np.log(middle)) * 3.0)


def test_face_says_when_there_is_no_way() -> None:
    points = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.1, 5.0]])
    targets = np.array([False, False, True, True])
    assert face.Graph(points, targets, neighbours=1).shortest(np.array([0.05, 0.0])) is None
    assert face.Graph(points, np.zeros(4, dtype=bool)).shortest(np.zeros(2)) is None
    assert face.Graph(points, targets).shortest(np.zeros(2)) is not None


# -- actionable recourse ---------------------------------------------------------------------------------------------
def test_actionable_recourse_picks_the_cheaper_shift() -> None:
    """Years 0..4 are held by 5 people; score = years + job - 3 must be positive, from years 1, job none.

    Percentiles halfway through ties: years k has share (2k + 1) / 10, job none 0.3, some 0.7, own 0.9 (3, 1 and 1 of 5).
    Alone, years -> 4 costs |log(0.1 / 0.7)| = 1.946; job -> own (score 3) costs |log(0.1 / 0.7)| too, but ties are
    avoided by job -> some (score 1.5): with years -> 2 the score is 0.5, at |log(0.3 / 0.7)| + |log(0.5 / 0.7)| = 1.184.
    """
    population = np.array([[0, 0, 20], [1, 0, 30], [2, 0, 40], [3, 1, 50], [4, 2, 60]], dtype=float)
    model = actionable_recourse.Linear((1.0, 0.0, 0.0), (np.zeros(0), np.array([0.0, 1.5, 3.0]), np.zeros(0)), -3.0)
    factual = np.array([1.0, 0.0, 30.0])
    found = actionable_recourse.recourse(factual, MIXED, model, population)
    assert found is not None
    assert found.tolist() == [2.0, 1.0, 30.0]
    menu = actionable_recourse.choices(0, MIXED, population, 1.0, 100, frozen=False)
    assert menu.values.tolist() == [0, 1, 2, 3, 4]
    assert menu.costs == pytest.approx(np.abs(np.log(np.array([0.9, 0.7, 0.5, 0.3, 0.1]) / 0.7)))


def test_actionable_recourse_freezes_and_gives_up() -> None:
    population = np.array([[0, 0, 20], [1, 0, 30], [2, 0, 40], [3, 1, 50], [4, 2, 60]], dtype=float)
    model = actionable_recourse.Linear((1.0, 0.0, 0.0), (np.zeros(0), np.array([0.0, 1.5, 3.0]), np.zeros(0)), -3.0)
    factual = np.array([1.0, 0.0, 30.0])
    found = actionable_recourse.recourse(factual, MIXED, model, population, frozen=("job",))
    assert found is not None
    assert found.tolist() == [4.0, 0.0, 30.0]
    assert actionable_recourse.recourse(factual, MIXED, model, population, frozen=("job", "years")) is None
