"""Replay of a linear program: from the duals that were kept, a bound on the cost of the whole question, in fractions.

For ``min c'v`` subject to ``L <= A v <= U`` and ``l <= v <= u``, and any ``y`` whatever, weak duality says

    sum_i (y_i L_i if y_i > 0 else y_i U_i)  +  sum_j min over [l_j, u_j] of (c - A'y)_j v_j   <=   c'v

for every feasible ``v``, whole numbers or not. With no cost at all, a sum above 0 says that there is no feasible ``v``. The
program is built anew from the question, by the same embedding as a solver is given; that embedding is what this rests on.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

from ifonly.program.duality import exact_bound
from ifonly.question.problem import build
from ifonly.question.statement import Statement
from ifonly.question.trail import Duals
from ifonly.question.wrapping import Wraps
from ifonly.record.parts import NotReplayable, Refused

__all__ = ["check_duals"]


def check_duals(statement: Statement, bound: float, duals: Duals) -> None:
    """Refuse duals that do not prove that no answer costs less than `bound` (infinite: that there is none)."""
    if any(isinstance(demand, Wraps) for demand in statement.demands):
        raise NotReplayable("one program does not say all that is demanded")
    if statement.box().empty() is not None:
        raise Refused("nothing is left to write a linear program about")
    program = build(statement).arrays()
    if program.n_rows != duals.n_rows:
        raise Refused(f"its linear program has {duals.n_rows:,} rows, that of the question {program.n_rows:,}")
    if program.matrix.nnz > statement.query.tuning.checking.most_entries:
        raise NotReplayable(f"its linear program has {program.matrix.nnz:,} entries")
    pairs = zip(duals.row.tolist(), duals.dual.tolist(), strict=True)
    found = exact_bound(program, pairs, charged=isfinite(bound))
    if found is None or (found < Fraction(bound) if isfinite(bound) else found <= 0):
        proves = "nothing" if found is None else f"{float(found):.9g}"
        raise Refused(f"its linear program proves {proves}, and no more")
