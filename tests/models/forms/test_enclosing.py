"""Planes above curves, shares, votes and medians: at points of their boxes they lie above, and tight where they should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ifonly import Schema
from ifonly.models.form import Form
from ifonly.models.forms.bends import EXP, LOG_SIGMOID, SIGMOID, SOFTPLUS, SQUARE, Bend, Broken
from ifonly.models.forms.compose import combine, mean, stack
from ifonly.models.forms.curves import Curve, Softmax
from ifonly.models.forms.enclosing import Enclosure
from ifonly.models.forms.envelopes import envelope, rises, secants
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.median import Median
from ifonly.models.forms.planes import Rows
from ifonly.models.forms.votes import Votes
from ifonly.models.links import shares
from ifonly.models.read import Read
from ifonly.program.box import Box
from portions import one_in

STEPS = Broken(np.array([-2.0, -1.0, -0.5, 0.0, 0.7, 2.5]), np.array([0.0, 0.0, 0.3, 0.3, 0.9, 1.0]))
BENDS: dict[str, Bend] = {
    "sigmoid": SIGMOID,
    "log sigmoid": LOG_SIGMOID,
    "softplus": SOFTPLUS,
    "exp": EXP,
    "steps": STEPS,
}
NAMES = list("abcdef")
TABLE = Schema.infer(pd.DataFrame({name: [-3.5, 3.25] for name in NAMES}))


def atoms(n: int, seed: int = 0) -> Linear:
    """Return linear scores of the six numbers."""
    rng = np.random.default_rng(seed)
    return Linear(TABLE, rng.normal(size=(n, 6)), rng.normal(size=n))


def composites(seed: int) -> dict[str, Form]:
    """Return a form of each kind over linear scores."""
    linear = atoms(3, seed)
    bent = Curve(linear, (SIGMOID, STEPS, SOFTPLUS))
    classifier = Read(atoms(3, seed + 1), (0, 1, 2), "argmax")
    second = Read(atoms(1, seed + 2), (0, 1), "sign", "sigmoid", 0.25)
    return {
        "curves": bent,
        "combined": combine(stack([bent, atoms(2, seed)]), np.random.default_rng(seed).normal(size=(2, 5)), np.ones(2)),
        "softmax": Softmax(linear),
        "shares": shares(linear),
        "mean": mean([Softmax(linear), shares(atoms(3, seed + 3))], np.array([1.0, 2.5])),
        "votes": combine(stack([Votes(classifier), Votes(second)]), np.random.default_rng(seed).normal(size=(2, 5))),
        "median": Median(Curve(linear, (SIGMOID, SIGMOID, STEPS)), np.array([0.5, 0.2, 0.3])),
    }


# -- one curve ---------------------------------------------------------------------------------------------------------
def intervals(rng: np.random.Generator, n: int = 200) -> tuple[Any, Any, Any]:
    ends = np.sort(
        rng.uniform(-4.0, 4.0, (n, 2)) * rng.choice([1.0, 0.3, 1e-3, 0.0], (n, 1)) + rng.normal(size=(n, 1)), axis=1
    )
    low, high = ends.T
    return low, high, low + rng.uniform(size=n) * (high - low)


@pytest.mark.parametrize("name", BENDS)
def test_lines_lie_above_and_below(name: str) -> None:
    bend, rng = BENDS[name], np.random.default_rng(1)
    low, high, at = intervals(rng)
    points = low + np.linspace(0.0, 1.0, 301)[:, None] * (high - low)
    value = bend(points)
    above, over, below, under = envelope(bend, low, high, at)
    room = 1e-12 * (1.0 + np.abs(value).max(axis=0))
    assert (above * points + over >= value - room).all()
    assert (below * points + under <= value + room).all()
    top, bottom, _ = secants(bend, low, high, bend(low), bend(high))
    assert (bend(high) - top * (high - points) >= value - room).all()
    assert (bend(low) + bottom * (points - low) <= value + room).all()


@pytest.mark.parametrize("name", [name for name in BENDS if name != "steps"])
def test_lines_are_tight_in_small_intervals(name: str) -> None:
    bend, rng = BENDS[name], np.random.default_rng(2)
    at = rng.normal(size=50)
    for width in (0.1, 0.01):
        above, over, below, under = envelope(bend, at - width, at + width, at)
        assert np.abs((above - below) * at + over - under).max() < 2.0 * width**2 * np.exp(np.abs(at)).max()


def test_only_what_rises_is_enclosed() -> None:
    assert all(map(rises, BENDS.values()))
    assert not rises(SQUARE)
    assert not rises(Broken(np.array([0.0, 1.0]), np.array([1.0, 0.0])))
    box = Box.of(TABLE, np.zeros(6))
    assert Enclosure.of(Curve(atoms(1), (SQUARE,)), box) is None


# -- composites --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", one_in(4, range(12)))
@pytest.mark.parametrize("kind", list(composites(0)))
def test_planes_lie_above_composites(kind: str, seed: int) -> None:
    form, rng = composites(seed)[kind], np.random.default_rng(100 + seed)
    box = Box.of(TABLE, np.zeros(6))
    enclosure = Enclosure.of(form, box)
    assert enclosure is not None
    for width in (3.0, 1.0, 0.2, 0.01):
        U = rng.uniform(-1.0, 1.0, (1, 6)) + width * rng.uniform(-1.0, 1.0, (400, 6))
        scores = np.zeros((len(U), enclosure.n_places))
        for atom in enclosure.atoms:
            scores[:, atom.place] = atom.form(U)
        ends = enclosure.bounds(scores.min(axis=0)[None], scores.max(axis=0)[None])
        value = form(U)
        assert (value >= ends[0][:, enclosure.out] - 1e-12).all()
        assert (value <= ends[1][:, enclosure.out] + 1e-12).all()
        G = rng.normal(size=(1, 5, form.n_outputs)) * rng.choice([0.0, 1.0], (1, 5, form.n_outputs))
        inner = np.concatenate([np.arange(a.place.start, a.place.stop) for a in enclosure.atoms])
        for at in (None, enclosure.values(U[0])[None]):
            rows = enclosure.rows(Rows(G, np.zeros((1, 5)), G), *ends, at)
            plane = scores[:, inner] @ rows.slopes[0][:, inner].T + rows.constant[0]
            assert (plane >= value @ G[0].T - 1e-10).all()
            assert not np.delete(rows.slopes, inner, axis=2).any()


@pytest.mark.parametrize("kind", ["curves", "softmax", "shares", "mean"])
def test_planes_are_tight_in_small_boxes(kind: str) -> None:
    form, rng = composites(1)[kind], np.random.default_rng(3)
    enclosure = Enclosure.of(form, Box.of(TABLE, np.zeros(6)))
    assert enclosure is not None
    u = np.array([0.3, -0.4, 0.2, 0.5, -0.1, 0.15])
    errors = []
    for width in (0.1, 0.01):
        s = enclosure.values(u)[None]
        low, high = enclosure.bounds(s - width, s + width)
        G = rng.normal(size=(1, 1, form.n_outputs))
        rows = enclosure.rows(Rows(G, np.zeros((1, 1)), G), low, high, s)
        inner = np.concatenate([np.arange(a.place.start, a.place.stop) for a in enclosure.atoms])
        plane = float(s[0, inner] @ rows.slopes[0, 0, inner] + rows.constant[0, 0])
        errors.append(plane - float(form(u[None])[0] @ G[0, 0]))
    assert errors[1] + 1e-12 >= 0.0
    assert errors[1] < (0.1 if kind == "curves" else 0.03) * max(errors[0], 0.05)
