"""Abilities of forms: what a family offers to searches beyond the `Form` protocol.

A search never asks which class a form is of. It asks for one of these protocols, and a family has an ability by having
the members; nothing is registered. In Python 3.11 such a check takes some ten microseconds, so a search asks once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Schema
from ifonly.models.form import Form
from ifonly.models.forms.leaves import Leaves
from ifonly.models.forms.nodes import Addition, Nodes
from ifonly.models.forms.propagate import Block, Bounds, Budget
from ifonly.program.box import Box

__all__ = [
    "AddsExactly",
    "AddsInFloats",
    "Bounded",
    "BoundsInside",
    "BoundsScores",
    "Composite",
    "Ensemble",
    "HardVote",
    "HasNodes",
    "HasPlateaus",
    "HasSchema",
    "KeepsFromTies",
    "Layered",
    "LinearScores",
    "NearestRows",
    "Relaxed",
    "Resolves",
    "Spaced",
    "Stepwise",
    "SumsLeaves",
    "SumsTerms",
    "WeightedSum",
    "adds_exactly",
    "distance_from_ties",
    "has_nearest",
    "has_units",
    "parts_of",
    "schema_of",
    "spacing_of",
]


@runtime_checkable
class LinearScores(Protocol):
    """Scores that are affine in the canonical vector: ``weights @ u + intercept``."""

    @property
    def weights(self) -> FloatArray:
        """One row of weights per score."""
        ...

    @property
    def intercept(self) -> FloatArray:
        """One constant per score."""
        ...


@runtime_checkable
class NearestRows(Protocol):
    """Means over the ``k`` rows with the largest of affine scores: k nearest neighbours."""

    @property
    def inner(self) -> LinearScores:
        """The scores, one per row."""
        ...

    @property
    def values(self) -> FloatArray:
        """Per row: what it adds to each output."""
        ...

    @property
    def k(self) -> int:
        """Number of neighbours."""
        ...

    @property
    def noise(self) -> float:
        """Rounding error of a difference of two scores in the model's own arithmetic, at most."""
        ...

    def tied(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say at which rows the k-th and the next score are within rounding of each other."""
        ...


@runtime_checkable
class Ensemble(Protocol):
    """Scores that are sums over trees, each of which is a partition of all points into boxes, its leaves."""

    @property
    def schema(self) -> Schema:
        """The features."""
        ...

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        ...

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        ...

    @property
    def base(self) -> FloatArray:
        """The scores before any tree."""
        ...

    @property
    def leaves(self) -> Leaves:
        """Every leaf of every tree as a box."""
        ...

    def leaf_of(self, U: FloatArray) -> IntArray:
        """Return the leaf node of each row in each tree."""
        ...

    def leaf_values(self, node: IntArray) -> FloatArray:
        """Return what leaf nodes add to the scores."""
        ...

    def added(self, leaf: IntArray) -> FloatArray:
        """Return the scores of rows that fall into these leaves, added up as the framework does."""
        ...

    def cuts(self) -> Mapping[int, FloatArray]:
        """Return numeric feature -> raw thresholds."""
        ...

    def features(self) -> frozenset[int]:
        """Return the features that some tree looks at."""
        ...

    def within(self, box: Box) -> Form:
        """Return the same scores for points of a box, with the leaves that it leaves open."""
        ...


@runtime_checkable
class HasNodes(Protocol):
    """Trees that are kept as a table of nodes."""

    @property
    def nodes(self) -> Nodes:
        """The nodes of all trees."""
        ...


@runtime_checkable
class SumsLeaves(Protocol):
    """Trees that know how their framework adds up leaves, and which of them without rounding."""

    @property
    def sums(self) -> Addition:
        """The sum as the framework computes it."""
        ...

    def adds_exactly_at(self, node: IntArray) -> npt.NDArray[np.bool_]:
        """Say of which leaf nodes sums are exact, in whatever order, as long as all leaves are among them."""
        ...


@runtime_checkable
class Layered(Protocol):
    """Scores of a network: ``weights @ h + constant``, where ``h`` is the canonical vector followed by its units."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The units, in an order in which each block needs only earlier ones."""
        ...

    @property
    def weights(self) -> FloatArray:
        """One row of weights per score."""
        ...

    @property
    def constant(self) -> FloatArray:
        """One constant per score."""
        ...

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        ...


@runtime_checkable
class Stepwise(Protocol):
    """Scores in which numbers enter by steps ``[x <= cut]``: constant between the cuts."""

    def over_cells(self, start: FloatArray, owner: IntArray, value: FloatArray) -> Layered | None:
        """Return the scores over the canonical vector and, behind it, one 0/1 per cell of some numbers; None if no network.

        `owner` has the number of each cell, `value` one of its values; `start` the values of all other numbers.
        """
        ...


@runtime_checkable
class Bounded(Protocol):
    """A form whose program has bounds inside, which are tighter where all changes together keep to a budget."""

    def for_budget(self, box: Box, budget: Budget) -> Form:
        """Return the form with bounds that hold at all points of the box within the budget; itself where none is tighter.

        The program it is embedded in must keep to that budget: beyond it, the scores would be wrong.
        """
        ...


@runtime_checkable
class BoundsInside(Protocol):
    """A composite whose program needs bounds of the scores inside it: a curve, a vote, a median."""

    @property
    def budget(self) -> Budget | None:
        """The most that all changes may cost where the bounds hold; None: they hold all over the box."""
        ...


@runtime_checkable
class Composite(Protocol):
    """A form made of other forms."""

    def inside(self) -> tuple[Form, ...]:
        """Return the forms it is made of."""
        ...


@runtime_checkable
class WeightedSum(Protocol):
    """A form whose scores are weighted sums of the scores of its summands."""

    def summands(self) -> tuple[Form, ...]:
        """Return the forms that are summed; none where the form is a weighted sum of something else."""
        ...

    def directions(self, good: FloatArray) -> tuple[FloatArray, ...]:
        """Return, per summand, the gradient of ``good @ scores`` in its scores, up to a positive factor."""
        ...

    def of_summands(self, parts: tuple[Form, ...]) -> Form:
        """Return the same sum of other forms."""
        ...


@runtime_checkable
class HardVote(Form, Protocol):
    """Votes of a classifier: 1 for the class that it decides on, 0 for the others."""

    def pairs(self) -> list[tuple[int, int]]:
        """Return all pairs of classes ``k < m``."""
        ...

    def gaps(self) -> Form:
        """Return the form of the classifier's leads ``s_k - s_m``, in the order of `pairs`."""
        ...

    def handicapped(self, k: int, room: float) -> Form:
        """Return the votes of the classifier with ``s_k - room`` in place of the score of class ``k``."""
        ...


@runtime_checkable
class BoundsScores(Protocol):
    """A form that knows bounds of its scores."""

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return sound bounds of the scores over a box, and within a budget."""
        ...


@runtime_checkable
class SumsTerms(Protocol):
    """A form that knows how large the terms are that its scores are summed from: rounding is a share of it."""

    def magnitude(self, box: Box, *, centred: bool = False) -> FloatArray:
        """Return the largest sum of absolute terms of each score in a box; centred, numbers count from its middle."""
        ...


@runtime_checkable
class HasPlateaus(Protocol):
    """A form that is constant around points, and knows where."""

    def plateau(self, box: Box, u: FloatArray) -> Box:
        """Return a part of a box around `u` on which no score changes."""
        ...


@runtime_checkable
class AddsExactly(Protocol):
    """A form that may add its scores up without rounding."""

    @property
    def adds_exactly(self) -> bool:
        """Whether no sum is rounded, so that a tie on paper is a tie to the framework."""
        ...


@runtime_checkable
class Spaced(Protocol):
    """A form whose scores may be whole multiples of a unit."""

    @property
    def spacing(self) -> float:
        """The unit; 0 if there is none."""
        ...


@runtime_checkable
class Resolves(Protocol):
    """A form whose scores take finitely many values, none of them near 0 but 0 itself."""

    @property
    def resolution(self) -> float:
        """The least absolute score other than 0 that there can be; 0 if it is not known."""
        ...


@runtime_checkable
class AddsInFloats(Protocol):
    """A form whose framework adds its scores up in floats of its own."""

    @property
    def precision(self) -> float:
        """The unit of rounding of these floats."""
        ...


@runtime_checkable
class KeepsFromTies(Protocol):
    """A form whose program keeps away from ties."""

    @property
    def away(self) -> float:
        """The share of a score's range within which the program leaves out points near ties."""
        ...


@runtime_checkable
class Relaxed(Protocol):
    """A form whose program is a relaxation, made exact at points that the model refused."""

    @property
    def refused(self) -> tuple[FloatArray, ...]:
        """These points, the latest first."""
        ...


@runtime_checkable
class HasSchema(Protocol):
    """A form that knows the features of its canonical vector."""

    @property
    def schema(self) -> Schema:
        """The features."""
        ...


def has_units(form: Form) -> bool:
    """Whether a form is, or is made of, one whose own units a budget decides, as a network's."""
    parts = parts_of(form)
    return any(map(has_units, parts)) if parts else isinstance(form, Bounded)


def distance_from_ties(form: Form) -> float:
    """Return the share of a score's range within which a form's program leaves out points near ties; usually 0.

    After the model refused such a point it is more, and the program is no relaxation any longer: its optimum is a point
    like any other, but its bound, and "infeasible", say nothing of what it leaves out.
    """
    own = form.away if isinstance(form, KeepsFromTies) else 0.0
    return max(own, *map(distance_from_ties, parts_of(form)), 0.0)


def adds_exactly(form: Form) -> bool:
    """Whether a form adds its scores up without rounding, so that a tie on paper is a tie to the model."""
    return isinstance(form, AddsExactly) and form.adds_exactly


def spacing_of(form: Form) -> float:
    """Return the unit of which all scores of a form are whole multiples; 0 if there is none, or sums are rounded."""
    return form.spacing if adds_exactly(form) and isinstance(form, Spaced) else 0.0


def has_nearest(form: Form) -> bool:
    """Whether a form is, or is made of, means over nearest rows: at equal distances only the model knows which rows count."""
    return isinstance(form, NearestRows) or any(map(has_nearest, parts_of(form)))


def schema_of(form: Form) -> Schema | None:
    """Return the features of a form, or of the first part of it that knows them."""
    if isinstance(form, HasSchema):
        return form.schema
    return next((s for s in map(schema_of, parts_of(form)) if s is not None), None)


def parts_of(form: Form) -> tuple[Form, ...]:
    """Return the forms that a form is made of; none for one that is no composite."""
    return form.inside() if isinstance(form, Composite) else ()
