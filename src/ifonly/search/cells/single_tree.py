"""The single-tree engine: its leaves are boxes, so the cheapest point of each is known, and the cheapest leaf is optimal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from ifonly.arrays import IntArray
from ifonly.data.schema import Schema
from ifonly.events import Built
from ifonly.models.abilities import Ensemble, HasNodes
from ifonly.models.forms.nodes import Nodes
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.question.trail import Ledger
from ifonly.search.cells.leaf_choices import Choices, all_choices
from ifonly.search.engine import NO_SOLVER, separable
from ifonly.search.progress import Progress
from ifonly.search.reduce import Reducer

__all__ = ["SingleTree"]


@dataclass(frozen=True)
class SingleTree:
    """Engine for one tree under costs and demands on single features."""

    name: str = "single tree"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the form is one tree, the factual is in the box, and nothing couples features."""
        form = statement.form
        if not isinstance(form, Ensemble) or form.n_trees != 1 or not statement.starts_in(box):
            return False
        return separable(statement) is not None

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Look at every leaf with the wanted outcome: the cheapest value of each feature that it allows."""
        form, query, question = cast("Ensemble", statement.form), statement.query, separable(statement)
        assert question is not None
        wanted = _wanted(statement, question.goal)
        progress.tell(Built(len(wanted), len(form.features())))
        parts = _choices(statement, box, wanted)
        priced = [part.priced(statement) for part in parts]
        cost, changes = np.zeros(len(wanted)), np.zeros(len(wanted), dtype=np.int64)
        for part, own in zip(parts, priced, strict=True):
            least, changed = part.cheapest(own)
            cost, changes = cost + least, changes + changed
        cost[changes > question.most] = np.inf
        if progress.ledger is not None and isinstance(form, HasNodes):
            _note(progress.ledger, form.nodes, query.schema)
        if not np.isfinite(cost).any() or cost.min() > progress.limits.cutoff:
            return Found.nothing()
        leaf = int(cost.argmin())
        u = query.factual.copy()
        for part, own in zip(parts, priced, strict=True):
            part.take(leaf, own, u, query.schema)
        progress.keep(u, float(statement.objective(u[None, :])[0]))
        progress.tell_best(float(cost[leaf]))
        return Found(Ended.CLOSED, u, float(cost[leaf]), (u,), NO_SOLVER)


def _wanted(statement: Statement, goal: Goal) -> IntArray:
    """Return the leaves with the wanted outcome, and with the lead that is asked for where a tie would be lost."""
    form = cast("Ensemble", statement.form)
    meets = goal.holds_scores(form.added(form.leaves.node[:, None]))
    if statement.margin > 0.0 or statement.tie > 0.0:
        brackets = Reducer(statement).brackets
        if brackets is not None:
            meets &= (brackets.values + brackets.constant >= 0.0).all(axis=1)
    return np.flatnonzero(meets)


def _choices(statement: Statement, box: Box, leaves: IntArray) -> tuple[Choices, ...]:
    """Return what features can do in a box; remembered, since most questions about a model have the same box."""
    form, most = cast("Ensemble", statement.form), statement.query.tuning.leaves.entries
    memo, key = statement.query.training.memo, (id(form), box.key, leaves.tobytes())

    def compute() -> tuple[Choices, ...]:
        return all_choices(form, box, leaves, most)

    small = len(leaves) * sum(map(len, form.cuts().values())) <= most
    return memo.get("choices of leaves", key, compute, keep=form) if small else compute()


def _note(ledger: Ledger, nodes: Nodes, schema: Schema) -> None:
    """Note the tree itself as the division of the box, its nodes in pre-order."""
    stack = [int(nodes.roots[0])]
    while stack:
        at = stack.pop()
        j = int(nodes.feature[at])
        if j < 0:
            ledger.leaf()
            continue
        mask = int(nodes.mask[at])
        if mask < 0:
            ledger.cut(j, float(nodes.cut[at]))
        else:
            ledger.levels(j, nodes.masks[mask][: schema.features[j].width])
        stack += [int(nodes.right[at]), int(nodes.left[at])]
