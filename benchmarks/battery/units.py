"""The same question in two units of one column: one model must give one answer, and the answers of two are exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.battery.ask import Question
from benchmarks.battery.judge import Fault, Judge
from benchmarks.battery.truth import changed
from benchmarks.battery.worlds import Data, in_unit
from ifonly import Explanation, Infeasible

__all__ = ["are_alike", "compared"]

_NEAR = 1e-5  # of a cost: within it, two proven costs of one world are the same
_NEAR_PARTLY = 1e-3  # the same where a column is continuous
_SAME_SCORES = 1e-6  # of the scores: within it, two models are one
_BEYOND = (0.0, *np.geomspace(1e-7, 0.1, 25))  # shares of its way by which an answer is taken further


def are_alike(q: Question, twin: Question) -> bool:
    """Whether two questions are the same but for a unit: what was drawn, and what the models say on the grid."""
    drawn = ("norm", "scale", "target", "criteria", "diversity", "solver")
    if any(q.tags[head] != twin.tags[head] for head in drawn) or q.n != twin.n or q.want.label != twin.want.label:
        return False  # a fit that heeds units says other things, and the draws after that were others
    if not np.allclose(_ends(q), _ends(twin), rtol=_SAME_SCORES, atol=0.0):
        return False  # so was an end: of values that rounding puts in another order
    if q.partial and not _predict_alike(q, twin):
        return False  # likewise
    bent = q.partial and any(word in " ".join(q.world.words) for word in ("arcsinh", "PowerTransformer"))
    if bent or {d.kind for d in q.demands} != {d.kind for d in twin.demands}:
        return False
    here, there = (Judge(x) for x in (q, twin))
    same_rows = np.array_equal(changed(q.grid, q.factual), changed(twin.grid, twin.factual))
    wanted = all(np.array_equal(a, b) for a, b in zip(here.wanted, there.wanted, strict=True))
    return same_rows and wanted and np.array_equal(q.exists, twin.exists)


def _ends(q: Question) -> tuple[float, float, float]:
    return q.want.probability, q.want.low, q.want.high


def _predict_alike(q: Question, twin: Question) -> bool:
    one, two = _said_between(q, twin, "predict")
    if q.world.n_classes > 0:
        return bool(np.array_equal(one, two))
    return bool(np.allclose(one, two, rtol=1e-6, atol=1e-6 * float(np.ptp(one))))


def compared(q: Question, answer: Any, twin: Question, other: Any) -> list[Fault]:
    """Compare what was proven in two units, by costs if the two models are one, else by exchanging the answers."""
    one, two = (_gist(a) for a in (answer, other))
    if one is None or two is None:
        return []
    if one[0] != two[0] and not q.partial:
        return []  # each was judged by enumeration: what is possible lies at its threshold, and models round in every unit
    if not np.array_equal(Judge(q).confirmed, Judge(twin).confirmed):
        return []  # likewise for single rows: asked alone, one may be refused in one unit and granted in the other
    if _agree(one, two, _NEAR_PARTLY if q.partial else _NEAR):
        return []
    units = [c.name for c, d in zip(q.data.columns, twin.data.columns, strict=True) if c.unit != d.unit]
    powers = [twin.data[n].unit - q.data[n].unit for n in units]
    text = f"{one} but {two} with {units} times 10**{powers}"
    if not q.partial or _are_one_model(q, twin):
        return [Fault("units", text)]
    # Fits that heed units are two models: each proof is held against the other's answer, brought into its own unit.
    pairs = ((q, answer, twin, other), (twin, other, q, answer))
    rows = [row for pair in pairs if (row := _refuting(*pair)) is not None]
    return [Fault("units", f"{text}; there is {row}") for row in rows[:1]]


def _gist(answer: Any) -> tuple[str, list[float]] | None:
    if isinstance(answer, Explanation):
        proven = [c.certificate for c in answer if c.certificate.proven]
        return "answers", [c.objective for c in proven]
    return ("impossible", []) if isinstance(answer, Infeasible) else None


def _agree(one: tuple[str, list[float]], two: tuple[str, list[float]], near: float) -> bool:
    if one[0] != two[0]:
        return False
    first = min(len(one[1]), len(two[1]), 1)
    return bool(np.allclose(one[1][:first], two[1][:first], rtol=near, atol=1e-9))


# -- two models ---------------------------------------------------------------------------------------------------------
def _said_between(q: Question, twin: Question, method: str) -> list[Any]:
    """Return what both models say between the rows of their grids: in the middle of training rows."""
    reals = [c.name for c in q.data.columns if c.kind == "real"]
    order = np.random.default_rng(0).permutation(len(q.data.X))
    said = []
    for one in (q, twin):
        X = one.data.X.copy()
        for name in reals:
            X[name] = 0.5 * (X[name].to_numpy() + X[name].to_numpy()[order])
        said.append(np.asarray(getattr(one.world.model, method)(X)))
    return said


def _are_one_model(q: Question, twin: Question) -> bool:
    """Whether two models have the same scores: a penalty on coefficients heeds units, and makes two of them."""
    methods = [m for m in ("decision_function", "predict_proba") if hasattr(q.world.model, m)]
    for method in methods or ["predict"]:
        one, two = _said_between(q, twin, method)
        if one.dtype.kind != "f":
            return bool(np.array_equal(one, two))
        if not np.allclose(one, two, rtol=_SAME_SCORES, atol=_SAME_SCORES * float(np.ptp(one))):
            return False
    return True


def _refuting(q: Question, answer: Any, twin: Question, other: Any) -> str | None:
    """Return a row that refutes the proof of an answer to `q`: that of the other world, or a little beyond it."""
    if q.ball or not isinstance(other, Explanation):
        return None
    judge = Judge(q)
    said = None if isinstance(answer, Infeasible) else answer[0].certificate
    claim, margin = (np.inf, answer.margin) if said is None else (said.objective, said.margin)
    rows = pd.concat(list(_further(q, _brought(other[0].row, twin.data, q.data))), ignore_index=True)
    costs = q.cost(rows, q.factual)
    good = judge.surely(rows, margin) & (costs < claim * (1.0 - _NEAR_PARTLY))
    if said is not None and not said.proven:
        return None
    for r in np.flatnonzero(good):
        if all(own.masks(rows.iloc[[int(r)]])[1][0] for own in q.slow):
            return f"{rows.iloc[int(r)].to_dict()} at {costs[r]:.9g}"
    return None


def _brought(row: pd.DataFrame, source: Data, target: Data) -> pd.DataFrame:
    """Return a row of one world in the units of another."""
    out = row.reset_index(drop=True).copy()
    for c, d in zip(source.columns, target.columns, strict=True):
        if c.unit != d.unit and not pd.isna(out[c.name].iloc[0]):
            out[c.name] = np.array([in_unit(float(out[c.name].iloc[0]), c, d.unit - c.unit)], dtype=d.dtype)
    return out


def _further(q: Question, row: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield a row, and the same with its continuous values a little further from the factual."""
    for share in _BEYOND:
        out = row.copy()
        for c in q.data.columns:
            now, there = q.factual[c.name].iloc[0], out[c.name].iloc[0]
            if c.kind == "real" and not pd.isna(now) and not pd.isna(there):
                value = float(there) + share * (float(there) - float(now))
                value = min(max(value, min(c.low, float(now))), max(c.high, float(now)))
                out[c.name] = np.array([value], dtype=c.dtype)
        yield out
