"""The size of a program before it is built: one that would take too much memory, or the time that is left, is not.

A forest's program has a row per tree and threshold that holds all leaves of the tree on one side of it. So its entries
grow with the square of the leaves of a tree: ``sum_t L_t^2``, of which 0.19 to 0.42 were counted on forests of 10 to 200
trees of depth 5 to unlimited; trees of depth 3 had some seven entries per leaf beyond that. A table of cells (a pair of an
additive model) has far fewer thresholds than leaves: where the square is too much, leaves times thresholds are counted. A
network's has a row per unit that is not decided, with the weights of the unit: no more than it has weights. An entry takes
some 130 bytes while it is put together and solved, and half a microsecond to two and a half (three with few of them) until
the solver looks at the clock for the first time. Before that the units of a network are bounded, layer by layer, which took
6 to 9 milliseconds a layer and 3 to 6 microseconds a weight (one to three layers of 20 to 100 units over 60 columns), and
once more for each curve around the network. Rows of a k-nearest-neighbour model are compared with each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ifonly.models.abilities import BoundsInside, Ensemble, Layered, NearestRows, parts_of
from ifonly.models.form import Form
from ifonly.program.box import Box
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Embeds
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import ProgramSize

__all__ = ["affordable", "expected_entries"]


def expected_entries(statement: Statement, box: Box, *, closely: bool = False) -> float:
    """Return about how many entries the trees and networks in the program of a box have; all else in it is small.

    A demand to stay robust embeds its model once more for every shift that was found so far. Looked at closely, the
    thresholds of every tree are counted, which takes a while once.
    """
    tuning, forms = statement.query.tuning.size, _embedded(statement)
    known = {id(form): _entries(form, box, tuning, closely) for form in forms}
    return sum(known[id(form)] for form in forms)


def _embedded(statement: Statement) -> list[Form]:
    """Return the forms in the program of a statement, one for each time that it is embedded."""
    around = [demand.embedded(statement.query) for demand in statement.demands if isinstance(demand, Embeds)]
    return [statement.form, *(form for copies in around for form in copies)]


def _entries(form: Form, box: Box, tuning: ProgramSize, closely: bool) -> float:
    """Return about how many entries a form has: by how many leaves of each undecided tree are open, and all weights."""
    total = 0.0
    for part in _single(form):
        if isinstance(part, Layered):
            total += sum(block.weights.size for block in part.blocks)
        elif isinstance(part, Ensemble) and part.schema.names == box.schema.names:
            leaves = part.leaves
            count = np.add.reduceat(leaves.alive(box).astype(np.int64), leaves.first)
            rows = np.minimum(count, leaves.n_cuts + 1) if closely else count
            count, rows = count[count > 1], rows[count > 1]
            total += tuning.share * float((count * rows).sum()) + tuning.per_leaf * float(count.sum())
    return total


def _bounding(statement: Statement) -> float:
    """Return about how many seconds pass until units of networks are bounded, and rows of neighbours compared."""
    return sum(_bounding_of(form, statement.query.tuning.size, times=1) for form in _embedded(statement))


def _bounding_of(form: Form, tuning: ProgramSize, times: int) -> float:
    """Return the same for one form, which is bounded so many times."""
    if isinstance(form, Layered):
        weights = sum(block.weights.size for block in form.blocks)
        return times * (tuning.per_layer * len(form.blocks) + tuning.per_weight * weights)
    if isinstance(form, NearestRows):
        return times * tuning.per_score * form.k * form.inner.weights.size / 1000.0
    again = times + isinstance(form, BoundsInside)
    return sum(_bounding_of(part, tuning, again) for part in parts_of(form))


def _single(form: Form) -> Iterator[Form]:
    """Yield the forms that a form is made of, down to those that are made of none; a forest or a network is one."""
    parts = () if isinstance(form, Ensemble | Layered) else parts_of(form)
    if not parts:
        yield form
    for part in parts:
        yield from _single(part)


def affordable(statement: Statement, box: Box, deadline: Deadline) -> bool:
    """Whether the program of a box may be built: it fits into memory, and the solver can start before the deadline."""
    if _fits(statement, expected_entries(statement, box), deadline):
        return True
    enough = deadline.left() > statement.query.tuning.size.closely
    return enough and _fits(statement, expected_entries(statement, box, closely=True), deadline)


def _fits(statement: Statement, entries: float, deadline: Deadline) -> bool:
    tuning, left = statement.query.tuning.size, deadline.left()
    seconds = min(tuning.per_entry_of_few * entries, tuning.start + tuning.per_entry * entries)
    return entries <= tuning.most_entries and left > 0.0 and seconds + _bounding(statement) <= left
