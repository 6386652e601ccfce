"""Duals of the whole question as one linear program, kept as the proof of what a solver closed, where they suffice.

A program without integers is closed by its duals alone; one with integers sometimes is, where leaving them out loses
nothing. The bound is computed anew from the duals (`ifonly.solvers.bounds`), so nothing is kept that proves too little.
"""

from __future__ import annotations

import numpy as np

from ifonly.errors import SolverError
from ifonly.models.abilities import distance_from_ties
from ifonly.program.duality import exact_bound
from ifonly.question.problem import build
from ifonly.question.statement import Statement
from ifonly.question.trail import Ledger
from ifonly.question.wrapping import Wraps
from ifonly.runtime.deadline import Deadline
from ifonly.search.boxes.affordable import affordable
from ifonly.solvers.linear import duals_of
from ifonly.tolerances import DUST

__all__ = ["dual_trail"]


def dual_trail(statement: Statement, bound: float, deadline: Deadline) -> bytes:
    """Return the trail of a linear program whose duals prove the bound (infinite: that there is no point), or none."""
    coupled_search = any(isinstance(demand, Wraps) for demand in statement.demands)
    if coupled_search or np.isnan(bound) or bound == -np.inf or distance_from_ties(statement.form) != 0.0:
        return b""
    box = statement.box()
    if box.empty() is not None or deadline.passed or not affordable(statement, box, deadline):
        return b""
    program = build(statement, box).arrays()
    if program.n_columns == 0 or program.n_rows == 0:
        return b""
    try:
        found = duals_of(program, deadline.left(), infeasible=bound == np.inf)
    except SolverError:
        return b""
    if found is None or (found[1] <= 0.0 if bound == np.inf else found[1] < bound * (1.0 - 0.5 * DUST)):
        return b""
    # A reduced cost that only rounding makes 0 proves nothing where its column has no end: it is computed again, exactly.
    pairs = [(int(i), float(found[0][i])) for i in np.flatnonzero(found[0])]
    exact = exact_bound(program, pairs, charged=bool(np.isfinite(bound)))
    if exact is None or (exact <= 0 if bound == np.inf else exact < bound * (1.0 - 0.5 * DUST)):
        return b""
    ledger = Ledger()
    ledger.duals(found[0])
    return bytes(ledger.data)
