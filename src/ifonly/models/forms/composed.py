"""Linear bounds of composites of networks over many boxes at once: planes above the composite, carried back through layers.

The scores of all atoms, networks and linear forms, are rows of one network, whose blocks hold the units of all of them. In a
box, their bounds within the budget bound all that curves, shares and votes are given; from there a plane above the goal is
a weighted sum of the atoms' scores (`ifonly.models.forms.enclosing`), and like any row of a network it is carried back
through the layers (`ifonly.models.forms.backward`):

    row(f(s)) <= weights @ s + constant <= slope @ x + constant'.

Only points at which no row of the goal is negative matter, so planes need not lie above any others: scores are narrowed to
where they can be at such points, by the inverses of the curves. What a score must be at least, or at most, is a row of its
own. Of increasing curves of a single score nothing else is left: it is compared with a threshold, as a bare network's is.

Rounding is added where it arises: to the atoms' scores what their own sums may be off by, to each step as `enclosing` says,
and to sums of rows as `backward` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.abilities import Layered, LinearScores, Stepwise, parts_of
from ifonly.models.form import Form
from ifonly.models.forms.backward import Boxes, EnclosedRows, Layers, Planes
from ifonly.models.forms.enclosing import Atom, Enclosure, Narrowed, Rows
from ifonly.models.forms.propagate import Block, Bounds
from ifonly.runtime.tuning import DEFAULT
from ifonly.tolerances import CHAINED_ROUNDING, DUST, TINY

__all__ = ["Composed", "Inputs", "is_of_networks"]


def is_of_networks(enclosure: Enclosure) -> bool:
    """Whether a composite is of networks and linear forms alone, with a network among them."""
    kinds = [(_is_network(atom.form), isinstance(atom.form, LinearScores)) for atom in enclosure.atoms]
    return all(map(any, kinds)) and any(network for network, _ in kinds)


def _is_network(form: Form) -> bool:
    return isinstance(form, Layered) or (isinstance(form, Stepwise) and all(map(_is_network, parts_of(form))))


@dataclass(frozen=True, eq=False)
class Inputs:
    """The canonical vector, and the cells of numbers behind it that enter by steps alone.

    Attributes
    ----------
    free
        The places of what may change.
    origin
        The values from which it is counted, of the others their own.
    size
        The largest absolute value of each entry.
    start
        The canonical vector with the values of what may not change; what is missing in it is missing everywhere.
    owner, value
        Per cell: its number, and one of its values.
    """

    free: IntArray
    origin: FloatArray
    size: FloatArray
    start: FloatArray
    owner: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    value: FloatArray = field(default_factory=lambda: np.empty(0))

    def over_cells(self, form: Form) -> Layered | LinearScores | Form | None:
        """Return an atom over the canonical vector and the cells; one without steps is as it was."""
        return form.over_cells(self.start, self.owner, self.value) if isinstance(form, Stepwise) else form


@dataclass(frozen=True, eq=False)
class Composed:
    """Rows ``rows @ f(s) + constant`` of a composite ``f``, where ``s`` are the scores of its atoms over the free inputs.

    Attributes
    ----------
    enclosure
        The composite, as steps over its atoms.
    layers
        The scores of all atoms, as rows of one network.
    rows, constant
        The goal, in the scores of the composite.
    room
        Per score of an atom: how far it may be off.
    most_thresholds
        How many scores have a row of their own, at most.
    """

    enclosure: Enclosure
    layers: Layers
    rows: FloatArray
    constant: FloatArray
    room: FloatArray
    most_thresholds: int = DEFAULT.networks.most_thresholds

    @classmethod
    def of(
        cls,
        enclosure: Enclosure,
        rows: tuple[FloatArray, FloatArray],
        inputs: Inputs,
        most_thresholds: int = DEFAULT.networks.most_thresholds,
    ) -> Composed:
        """Return the rows as functions of the `free` inputs, as `Layers.of` does those of a bare network."""
        blocks, scores = _as_one(enclosure.atoms, inputs)
        room = np.concatenate([atom.room for atom in enclosure.atoms])
        return cls(
            enclosure, Layers.of(blocks, scores, inputs.free, inputs.origin, inputs.size), *rows, room, most_thresholds
        )

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.layers.n_units

    @property
    def straight(self) -> Layers | None:
        """Nothing: the rows bend."""
        return None

    @property
    def off_by(self) -> FloatArray:
        """Per row, and then for each score that has one of its own: how far it may be off."""
        most = float((self.layers.room[-1] + self.room).max())
        steep = CHAINED_ROUNDING * (np.abs(self.rows).sum(axis=1) + np.abs(self.constant))
        return np.concatenate([steep, np.full(min(len(self.room), self.most_thresholds), most)])

    @property
    def work(self) -> int:
        """Multiplications for the bounds of one box."""
        scores, rows = len(self.room), len(self.rows)
        carried: int = sum(len(block.constant) * block.weights.shape[1] for block in self.layers.blocks)
        return int(self.layers.work + (2 * scores + rows) * (carried + self.enclosure.n_places))

    # -- bounds --------------------------------------------------------------------------------------------------
    def planes(self, boxes: Boxes) -> Planes:
        """Return upper bounds, at points where no row is negative, of the rows and of what each score must clear.

        In boxes without such a point they are minus infinity.
        """
        enclosed = self.layers.enclosed(boxes)
        low, high, under, over = self._ends(enclosed)
        found, left = self.narrowed(low, high)
        goal, inner = found.rows, self.enclosure.inner
        weights = goal.slopes[:, :, inner]
        # off by what the sums of the atoms are off by: the constant pays for it
        planes = enclosed.above(weights, goal.constant + np.abs(weights) @ self.room)
        wide = (high - low)[:, None]
        lean, extent = goal.lean[:, :, inner], boxes.extent(over.slopes)
        loose = (np.abs(lean - weights) * wide) @ (extent / np.maximum(extent.sum(axis=2, keepdims=True), TINY))
        owed = _owed(np.abs(lean).max(axis=1), extent + over.looseness + under.looseness, wide)
        under, over = (replace(p, looseness=p.looseness + owed) for p in (under, over))
        own = self._thresholds((under, over), (low, high), left)
        total = np.concatenate([planes.constant, own.constant], axis=1)
        total[found.closed] = -np.inf
        slopes = np.concatenate([planes.slopes, own.slopes], axis=1)
        return Planes(slopes, total, np.concatenate([planes.looseness + loose, own.looseness], axis=1))

    def _thresholds(self, planes: tuple[Planes, Planes], ends: Bounds, left: Bounds) -> Planes:
        """Return what the scores that are narrowed most must be at least, or at most, as rows over the inputs."""
        (under, over), gained = planes, (left[0] - ends[0], ends[1] - left[1])
        upwards = gained[0] >= gained[1]
        share = np.maximum(*gained) / np.maximum(ends[1] - ends[0], TINY)
        which = np.argsort(-share, axis=1)[:, : self.most_thresholds]
        constant = np.where(upwards, over.constant - left[0], under.constant + left[1])
        slopes = np.where(upwards[:, :, None], over.slopes, under.slopes)
        looseness = np.where(upwards[:, :, None], over.looseness, under.looseness)
        rows = np.arange(len(which))[:, None], which
        return Planes(slopes[rows], constant[rows], looseness[rows])

    def _ends(self, enclosed: EnclosedRows) -> tuple[FloatArray, FloatArray, Planes, Planes]:
        """Return bounds of the atoms' scores, with what they may be off by, and the planes above their negatives and them."""
        eye, boxes = np.eye(len(self.room))[None], enclosed.boxes
        under, over = (enclosed.above(sign * eye, self.room[None]) for sign in (-1.0, 1.0))
        low, high = -boxes.largest(under.slopes) - under.constant, boxes.largest(over.slopes) + over.constant
        return low, high, under, over

    def narrowed(self, low: FloatArray, high: FloatArray) -> tuple[Narrowed, Bounds]:
        """Return planes above the rows for scores of atoms in boxes where no row is negative, and where these are."""
        inner = self.enclosure.inner
        places = np.zeros((2, len(low), self.enclosure.n_places))
        places[:, :, inner] = low, high
        shape = (len(low), *self.rows.shape)
        rows = np.broadcast_to(self.rows, shape)
        found = self.enclosure.narrowed(Rows(rows, self.constant, rows), *self.enclosure.bounds(*places))
        return found, (found.low[:, inner], found.high[:, inner])

    def threshold(self, boxes: Boxes, parts: int) -> Layers | None:
        """Return what the only score of an atom is compared with in a box, as rows of a network; None if that is not all.

        It is a threshold if no row is negative anywhere between the ends that the score is narrowed to, as rows of
        increasing functions are; some `parts` of what lies between are looked at. A point is confirmed by the goal itself,
        so a row that is negative there all the same only makes the search longer.
        """
        if len(self.room) > 1:
            return None
        low, high, *_ = self._ends(self.layers.enclosed(boxes))
        found, (least, most) = self.narrowed(low, high)
        sign = np.concatenate([np.ones(int((least > low).sum())), -np.ones(int((most < high).sum()))])
        value = self._values(np.linspace(least[0], most[0], parts + 1))
        if found.closed[0] or not sign.size or (value < -DUST * np.abs(self.constant).max(initial=1.0)).any():
            return None
        ends = np.concatenate([least[least > low], most[most < high]])
        room = (*self.layers.room[:-1], np.repeat(self.layers.room[-1] + self.room, len(sign)))
        rows = sign[:, None] * self.layers.rows
        return replace(self.layers, rows=rows, constant=sign * (self.layers.constant - ends), room=room)

    def _values(self, scores: FloatArray) -> FloatArray:
        """Return the rows at scores of atoms, but for rounding."""
        places = np.zeros((len(scores), self.enclosure.n_places))
        places[:, self.enclosure.inner] = scores
        low, high = self.enclosure.bounds(places, places)
        return np.asarray(0.5 * (low + high)[:, self.enclosure.out] @ self.rows.T + self.constant)

    # -- points --------------------------------------------------------------------------------------------------
    def tangents(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes and constants of linear functions that touch the rows at points, but for rounding."""
        pieces, shifts = self.layers.tangents(x)
        inner, scores = self.enclosure.inner, (pieces @ x[:, :, None])[:, :, 0] + shifts
        room = np.sqrt(DUST) * (1.0 + np.abs(scores))
        places = np.zeros((2, len(x), self.enclosure.n_places))
        places[:, :, inner] = scores - room, scores + room
        rows = np.broadcast_to(self.rows, (len(x), *self.rows.shape))
        bound = self.enclosure.rows(Rows(rows, self.constant, rows), *self.enclosure.bounds(*places))
        lean = bound.lean[:, :, inner]
        return lean @ pieces, self._values(scores) + (lean @ (shifts - scores)[:, :, None])[:, :, 0]


def _owed(worth: FloatArray, loose: FloatArray, wide: FloatArray) -> FloatArray:
    """Return what the threshold of each score owes to how far the others reach, per feature: no more than its width."""
    owed = worth[:, :, None] * loose
    owed = owed.sum(axis=1, keepdims=True) - owed
    total = owed.sum(axis=2, keepdims=True)
    most = np.minimum(total / np.maximum(worth, TINY)[:, :, None], wide.transpose(0, 2, 1))
    return np.asarray(most * owed / np.maximum(total, TINY))


# -- one network -----------------------------------------------------------------------------------------------------
def _as_one(atoms: Sequence[Atom], inputs: Inputs) -> tuple[list[Block], tuple[FloatArray, FloatArray]]:
    """Return the blocks of one network that has the units of all atoms, and weights and constants of all their scores.

    The first blocks of all atoms are its first one, and so on. Of each atom it is kept where its units are.
    """
    width, cells = len(inputs.origin), len(inputs.owner)
    forms = [inputs.over_cells(atom.form) for atom in atoms]
    layered = [form.blocks if isinstance(form, Layered) else () for form in forms]
    # an atom without steps knows no cells
    places = [
        np.arange(width - cells * (atom.form is form), dtype=np.int64) for atom, form in zip(atoms, forms, strict=True)
    ]
    blocks: list[Block] = []
    for depth in range(max(map(len, layered), default=0)):
        own = [(i, part[depth]) for i, part in enumerate(layered) if depth < len(part)]
        wide = np.concatenate([_placed(block.weights, places[i], width) for i, block in own])
        constant, slope = (np.concatenate(part) for part in zip(*((b.constant, b.slope) for _, b in own), strict=True))
        blocks.append(Block(wide, constant, slope))
        for i, block in own:
            n = len(block.constant)
            places[i] = np.concatenate([places[i], np.arange(width, width + n, dtype=np.int64)])
            width += n
    weights, constants = [], []
    for form, at in zip(forms, places, strict=True):
        assert isinstance(form, Layered | LinearScores)
        weights.append(_placed(form.weights, at, width))
        constants.append(form.constant if isinstance(form, Layered) else form.intercept)
    return blocks, (np.concatenate(weights), np.concatenate(constants))


def _placed(weights: FloatArray, places: IntArray, width: int) -> FloatArray:
    """Return weights at their places among as many as there are."""
    out = np.zeros((len(weights), width))
    out[:, places[: weights.shape[1]]] = weights
    return out
