"""The single-tree engine: its leaves are boxes, so the cheapest point of each is known, and the cheapest leaf is optimal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ifonly.data.schema import Schema
from ifonly.events import Built
from ifonly.models.abilities import Ensemble, HasNodes
from ifonly.models.forms.nodes import Nodes
from ifonly.models.forms.scan import inside
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.question.trail import Ledger
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
        if not isinstance(form, Ensemble) or form.n_trees != 1:
            return False
        if box.missing.any() or not box.contains(statement.query.factual[None, :])[0]:
            return False
        return separable(statement) is not None

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Look at every leaf with the wanted outcome: the cheapest value of each feature that it allows."""
        form, query, question = statement.form, statement.query, separable(statement)
        assert isinstance(form, Ensemble)
        assert question is not None
        reducer = Reducer(statement)
        meets = question.goal.holds_scores(form.added(form.leaves.node[:, None]))
        if reducer.brackets is not None and (statement.margin > 0.0 or statement.tie > 0.0):
            meets &= (reducer.brackets.values + reducer.brackets.constant >= 0.0).all(axis=1)
        wanted = np.flatnonzero(meets)
        progress.tell(Built(len(wanted), len(form.features())))
        cost, changes = np.zeros(len(wanted)), np.zeros(len(wanted), dtype=np.int64)
        values = {}
        for j, options in reducer.options(box).items():
            allowed = inside(form, j, options.parts, wanted)
            first = allowed.argmax(axis=0)
            home = (options.parts == query.factual[query.schema.slice(j)]).all(axis=1)
            cost += np.where(allowed.any(axis=0), options.costs[first], np.inf)
            changes += ~home[first]
            values[j] = options.parts[first]
        cost[changes > question.most] = np.inf
        if progress.ledger is not None and isinstance(form, HasNodes):
            _note(progress.ledger, form.nodes, query.schema)
        if not np.isfinite(cost).any() or cost.min() > progress.limits.cutoff:
            return Found.nothing()
        best = int(cost.argmin())
        u = query.factual.copy()
        for j, parts in values.items():
            u[query.schema.slice(j)] = parts[best]
        progress.keep(u, float(statement.objective(u[None, :])[0]))
        progress.tell_best(float(cost[best]))
        return Found(Ended.CLOSED, u, float(cost[best]), (u,), NO_SOLVER)


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
