"""Abilities of forms: every family has those that it should, since a mistyped member would be passed over without a word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from ifonly.data.schema import Integer, Numeric, Schema
from ifonly.models import abilities
from ifonly.models.abilities import adds_exactly, distance_from_ties, schema_of, spacing_of
from ifonly.models.form import Form
from ifonly.models.forms.additive import Axis, Table, additive
from ifonly.models.forms.bends import SIGMOID
from ifonly.models.forms.compose import Combination, Mean, Stack, combine, magnitude, mean, score_bounds
from ifonly.models.forms.curves import Curve, Softmax
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.median import Median
from ifonly.models.forms.nearest import Nearest
from ifonly.models.forms.steps import Lift, Stepped
from ifonly.models.forms.trees import Addition, Trees
from ifonly.models.forms.votes import Votes
from ifonly.models.read import Read
from ifonly.program.box import Box

SCHEMA = Schema((Numeric("a", -2.0, 2.0), Integer("b", 0.0, 3.0)))
LINEAR = Linear(SCHEMA, np.array([[1.0, 0.5], [-1.0, 0.25]]), np.array([0.0, 0.125]))
BOX = Box.of(SCHEMA, np.array([0.5, 1.0]))
POINTS = np.array([[a, b] for a in (-2.0, -0.25, 0.5, 2.0) for b in (0.0, 1.0, 3.0)])


def trees(values: Sequence[float] = (0.25, 0.75), dtype: npt.DTypeLike | None = None) -> Trees:
    """One tree that goes by ``a <= 0``, with its own addition in floats of a dtype."""
    column = np.array([*values, 0.0])[:, None]
    form = additive(SCHEMA, [Table((Axis(0, np.array([0.0])),), column)], np.zeros(1))
    own = None if dtype is None else Addition(form.nodes.value, form.base, dtype=dtype)
    return Trees(SCHEMA, form.nodes, form.base, own)


def votes(form: Form = LINEAR) -> Votes:
    """The votes between two scores."""
    return Votes(Read(form, ("no", "yes"), "argmax"))


FORMS: dict[str, Form] = {
    "linear": LINEAR,
    "trees": trees(),
    "stack": Stack((LINEAR, trees())),
    "combination": Combination(Stack((LINEAR, trees())), np.ones((1, 3)), np.zeros(1)),
    "mean": Mean(Stack((LINEAR, votes())), np.array([1.0, 2.0])),
    "curve": Curve(LINEAR, (SIGMOID, SIGMOID)),
    "softmax": Softmax(LINEAR),
    "median": Median(LINEAR, np.array([1.0, 2.0])),
    "nearest": Nearest(LINEAR, np.eye(2), 1),
    "stepped": Stepped(LINEAR, Lift.none(SCHEMA)),
    "votes": votes(),
}
HAVE = {
    "AddsExactly": "trees nearest stepped",
    "AddsInFloats": "trees",
    "BoundsScores": "stack combination mean curve softmax median nearest stepped votes",
    "Composite": "stack combination mean curve softmax median nearest stepped votes",
    "HardVote": "votes",
    "HasPlateaus": "trees",
    "HasSchema": "linear trees nearest",
    "KeepsFromTies": "median nearest votes",
    "Relaxed": "curve softmax",
    "Resolves": "trees",
    "Spaced": "trees nearest stepped",
    "SumsTerms": "linear trees stack combination mean nearest stepped votes",
    "WeightedSum": "combination mean",
}


@pytest.mark.parametrize("ability", HAVE)
def test_families_have_the_abilities_that_they_should(ability: str) -> None:
    assert {name for name, form in FORMS.items() if isinstance(form, getattr(abilities, ability))} == {
        *HAVE[ability].split()
    }


@pytest.mark.parametrize("name", FORMS)
def test_bounds_and_magnitudes_hold(name: str) -> None:
    form = FORMS[name]
    low, high = score_bounds(form, BOX)
    scores = form(POINTS)
    assert (scores >= low - 1e-12).all()
    assert (scores <= high + 1e-12).all()
    for centred in (False, True):
        size = magnitude(form, BOX, centred=centred)
        assert size.shape == (form.n_outputs,)
        assert (size > 0.0).all()
    assert (np.abs(scores) <= magnitude(form, BOX) + 1e-12).all()


def test_precision_is_that_of_the_coarsest_addition() -> None:
    single, double = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)
    assert [trees(dtype=kind).precision for kind in (None, np.float64, np.float32)] == [double, double, single]
    both = mean([trees(dtype=np.float32), trees()])
    assert isinstance(both, Trees)
    assert both.precision == single
    less = combine(both, np.array([[2.0]]))
    assert isinstance(less, Trees)
    assert less.precision == single


def test_units_and_schemas_are_found_inside() -> None:
    assert adds_exactly(trees())
    assert spacing_of(trees()) == 0.25
    assert spacing_of(Stepped(trees(), Lift.none(SCHEMA))) == 0.25
    assert not adds_exactly(LINEAR)
    assert spacing_of(LINEAR) == 0.0
    assert schema_of(FORMS["softmax"]) is SCHEMA
    assert schema_of(FORMS["mean"]) is SCHEMA


def test_distance_from_ties_is_that_of_the_farthest_part() -> None:
    assert distance_from_ties(FORMS["mean"]) == 0.0
    near = votes()
    farther = Votes(near.read, level=near.next_level(True))
    assert farther.away > 0.0
    assert distance_from_ties(Stack((LINEAR, near, farther))) == farther.away


def test_summands_and_their_directions_are_those_of_the_sum() -> None:
    form = FORMS["combination"]
    assert isinstance(form, Combination)
    parts, directions = form.summands(), form.directions(np.array([2.0]))
    gained = sum(part(POINTS) @ along for part, along in zip(parts, directions, strict=True))
    np.testing.assert_allclose(gained, 2.0 * form(POINTS)[:, 0])
    same = form.of_summands(parts)
    np.testing.assert_array_equal(same(POINTS), form(POINTS))
    assert Combination(LINEAR, np.ones((1, 2)), np.zeros(1)).summands() == ()


@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("rule", ["argmax", "sign"])
def test_a_handicapped_class_wins_only_by_the_room(rule: str, k: int) -> None:
    inner = LINEAR if rule == "argmax" else Linear(SCHEMA, np.array([[1.0, 0.5]]), np.array([-0.5]))
    form = Votes(Read(inner, ("no", "yes"), rule))  # type: ignore[arg-type]
    (lead,) = form.gaps()(POINTS).T
    own = lead if k == 0 else -lead
    clear = np.abs(np.abs(own) - 0.75) > 1e-9
    np.testing.assert_array_equal(form.handicapped(k, 0.75)(POINTS)[clear, k], (own >= 0.75)[clear])
