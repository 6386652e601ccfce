"""The second opinion: outcomes by the user's own model, costs, balls and hulls written out in raw units.

Nothing here uses a form, a criterion or a cost of the library. Each answer is a pair of masks where rounding can matter:
`maybe` holds what an answer may use, `sure` what a proof must not have overlooked.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import linprog, nnls

from benchmarks.battery.worlds import Data

__all__ = ["Cost", "Hull", "Mask", "Oracle", "Want", "changed", "in_ball"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_SINGLE = 1e-5  # the same for a model that computes in single precision
_TIE = 1e-9  # of the largest lead: a score this near to its threshold may fall either way


@dataclass(frozen=True)
class Want:
    """A wanted outcome: a class, a probability of it, or an interval."""

    kind: str
    label: Any = None
    probability: float = 0.0
    low: float = -np.inf
    high: float = np.inf


@dataclass(frozen=True)
class Oracle:
    """The user's own model, asked on whole tables."""

    model: Any
    steps: bool
    single: bool = False

    def met(self, F: pd.DataFrame, want: Want) -> Mask:
        """Say which rows have the outcome, by predict or predict_proba alone."""
        if want.kind == "probability":
            return np.asarray(self.probability(F, want.label) >= want.probability)
        said = np.asarray(self.model.predict(F)).reshape(-1)
        if want.kind == "any":
            return np.array([any(v == label for label in want.label) for v in said], dtype=np.bool_)
        if want.kind == "class":
            return np.array([v == want.label for v in said], dtype=np.bool_)
        return np.asarray((said >= want.low) & (said <= want.high))

    def met_alone(self, F: pd.DataFrame, want: Want) -> Mask:
        """Say which rows have the outcome if the model is asked about one at a time: sums of a matrix round otherwise."""
        return np.array([self.met(F.iloc[[i]], want)[0] for i in range(len(F))], dtype=np.bool_)

    def probability(self, F: pd.DataFrame, label: Any) -> Floats:
        """Return the probability of a class."""
        return np.asarray(self.model.predict_proba(F))[:, self.at(label)].astype(np.float64)

    def at(self, label: Any) -> int:
        """Return the position of a class."""
        return [c == label for c in self.model.classes_].index(True)

    def lead(self, F: pd.DataFrame, want: Want, met: Mask | None = None) -> Floats | None:
        """Return by how much the outcome is reached, in scores, else in probabilities; None: not told.

        `met` says which rows have the outcome, where that is known.
        """
        if want.kind == "interval":
            said = np.asarray(self.model.predict(F), dtype=np.float64).reshape(-1)
            return np.asarray(np.minimum(said - want.low, want.high - said))
        if want.kind == "probability":
            return np.asarray(self.probability(F, want.label) - want.probability)
        wanted = [self.at(label) for label in (want.label if want.kind == "any" else [want.label])]
        met = self.met(F, want) if met is None else met
        leads = (self._lead(method, F, wanted) for method in ("decision_function", "predict_proba"))
        return next((lead for lead in leads if lead is not None and _agrees(lead, met)), None)

    def _lead(self, method: str, F: pd.DataFrame, wanted: Sequence[int]) -> Floats | None:
        """Return the lead of the best wanted class over the best other one, by one of the model's methods."""
        if not hasattr(self.model, method):
            return None
        scores = np.asarray(getattr(self.model, method)(F), dtype=np.float64)
        if scores.ndim == 1 or scores.shape[1] == 1:
            return np.asarray(scores.reshape(-1) * (1.0 if wanted[0] == 1 else -1.0))
        return np.asarray(scores[:, wanted].max(axis=1) - np.delete(scores, wanted, axis=1).max(axis=1))

    def masks(self, F: pd.DataFrame, want: Want, margin: float = 0.0) -> tuple[Mask, Mask]:
        """Return which rows have the outcome, and which have it beyond doubt.

        At a tie, a row among others and the same row alone may get scores that differ in the last digit: it may have the
        outcome if it has it in one of the two ways.
        """
        met = self.met(F, want)
        lead = self.lead(F, want, met)
        if lead is None:
            return met, met
        slack = (_SINGLE if self.single else _TIE) * max(1.0, float(np.abs(lead[np.isfinite(lead)]).max(initial=0.0)))
        maybe = met.copy()
        for r in np.flatnonzero(~met & (np.abs(lead) <= slack)):
            maybe[r] = bool(self.met(F.iloc[[int(r)]], want)[0])
        if self.steps and not margin:
            return maybe, met
        met = maybe
        if margin:
            slack = max(slack, 1e-7 * margin)
            return met & (lead >= margin - slack), met & (lead >= margin + 1e-5 * max(margin, 1e-3))
        return met, met & (lead > slack)


def _agrees(lead: Floats, met: Mask) -> bool:
    """Whether leads say what the model predicts: the mean decision of a bag does not, whose votes are probabilities."""
    slack = _SINGLE * max(1.0, float(np.abs(lead[np.isfinite(lead)]).max(initial=0.0)))
    return bool((((lead > 0.0) == met) | (np.abs(lead) <= slack)).all())


def changed(F: pd.DataFrame, factual: pd.DataFrame) -> Mask:
    """Say, per row and column, what differs from the factual; missing beside missing does not."""
    out = np.zeros(F.shape, dtype=np.bool_)
    for j, c in enumerate(F.columns):
        now = factual[c].iloc[0]
        if pd.isna(now):
            out[:, j] = ~F[c].isna().to_numpy()
        else:
            column = F[c].to_numpy(dtype=object)
            out[:, j] = [v != now for v in column]
    return out


@dataclass(frozen=True)
class Cost:
    """Distance and price of rows, in raw units.

    Attributes
    ----------
    free
        Features that follow from others: neither counted nor charged.
    """

    data: Data
    norm: str
    scale: Any
    weights: dict[str, float]
    price: float
    free: frozenset[str] = frozenset()
    tables: dict[str, dict[Any, float]] = field(default_factory=dict)

    def scale_of(self, name: str) -> float:
        """Return what a change of a number is divided by."""
        x = self.data.X[name].to_numpy(dtype=np.float64)
        x = x[~np.isnan(x)]
        spread = float(x.max() - x.min())
        if isinstance(self.scale, dict):
            return float(self.scale.get(name, spread))
        if self.scale == "mad":
            mad = float(np.median(np.abs(x - np.median(x))))
            return mad if mad > 0 else float(x.std())
        return {"range": spread, "std": float(x.std()), "none": 1.0}[self.scale]

    def parts(self, F: pd.DataFrame, factual: pd.DataFrame) -> Floats:
        """Return what each feature contributes: weighted moves, steps and switches."""
        out = np.zeros(F.shape)
        for j, c in enumerate(self.data.columns):
            w = 0.0 if c.name in self.free else self.weights.get(c.name, 1.0)
            now = factual[c.name].iloc[0]
            if c.name in self.tables or (c.numeric and self.scale == "percentile"):
                out[:, j] = w * self._own(c, F, factual)
            elif c.numeric:
                if not pd.isna(now):
                    out[:, j] = w * np.abs(F[c.name].to_numpy(dtype=np.float64) - float(now)) / self.scale_of(c.name)
            elif c.kind == "order" and not pd.isna(now):
                at = [np.nan if pd.isna(v) else c.values.index(v) for v in F[c.name].to_numpy(dtype=object)]
                out[:, j] = w * np.abs(np.array(at, dtype=float) - c.values.index(now)) / (len(c.values) - 1)
            else:
                out[:, j] = w * changed(F[[c.name]], factual[[c.name]])[:, 0]
        return out

    def _own(self, c: Any, F: pd.DataFrame, factual: pd.DataFrame) -> Floats:
        """Return what a feature costs by its table, or by the rows that its change passes."""
        now = factual[c.name].iloc[0]
        if not c.numeric:
            place = [d.name for d in self.data.columns].index(c.name)
            usual = Cost(self.data, "l1", "range", {}, 0.0).parts(F, factual)[:, place]
            table, column = self.tables[c.name], F[c.name].to_numpy(dtype=object)
            named = [(table[v] if v in table else usual[i]) for i, v in enumerate(column)]
            return np.where(changed(F[[c.name]], factual[[c.name]])[:, 0], named, 0.0)
        if pd.isna(now):
            return np.zeros(len(F))
        x, d = F[c.name].to_numpy(dtype=np.float64), F[c.name].to_numpy(dtype=np.float64) - float(now)
        if c.name not in self.tables:
            return np.abs(self._passed(c.name, x) - self._passed(c.name, np.array([float(now)])))
        known = {**self.tables[c.name], 0.0: 0.0}
        if not any(k < 0 for k in known):
            known |= {-k: v for k, v in known.items()}
        at = sorted(known)
        value = [known[k] for k in at]
        first, last = abs(value[1] - value[0]) / (at[1] - at[0]), (value[-1] - value[-2]) / (at[-1] - at[-2])
        return np.interp(d, at, value) + first * np.maximum(at[0] - d, 0.0) + last * np.maximum(d - at[-1], 0.0)

    def _passed(self, name: str, x: Floats) -> Floats:
        """Return the share of rows below a value and half of those at it, linear between the twentieths of the rows."""
        rows = np.sort(self.data.X[name].dropna().to_numpy(dtype=np.float64))
        at = sorted({*rows.tolist()})
        if len(at) > 21:
            at = sorted({float(rows[round(k)]) for k in np.linspace(0, len(rows) - 1, 21).tolist()})
        share = [(float((rows < v).mean()) + float((rows <= v).mean())) / 2 for v in at]
        width = at[-1] - at[0]
        beyond = np.maximum(x - at[-1], 0.0) / width - np.maximum(at[0] - x, 0.0) / width
        return np.asarray(np.interp(x, at, share) + beyond)

    def distance(self, F: pd.DataFrame, factual: pd.DataFrame) -> Floats:
        """Return the distance of each row."""
        parts = self.parts(F, factual)
        if self.norm == "l1":
            return np.asarray(parts.sum(axis=1))
        if self.norm == "l2":
            return np.asarray((parts**2).sum(axis=1))
        if self.norm == "linf":
            return np.asarray(parts.max(axis=1))
        names = self.data.numbers
        V = self.data.X[names].to_numpy(dtype=np.float64)
        S = np.atleast_2d(np.cov(V[~np.isnan(V).any(axis=1)], rowvar=False))
        unit = np.sqrt(np.diag(S))  # inverted in units of the deviations, so that no unit is lost to rounding
        inverse = np.linalg.inv(S / np.outer(unit, unit) + 1e-6 * np.eye(len(names)))
        moves = F[names].to_numpy(dtype=np.float64) - factual[names].to_numpy(dtype=np.float64)
        moves = moves / unit * np.array([0.0 if n in self.free else self.weights.get(n, 1.0) for n in names])
        levels = [j for j, c in enumerate(self.data.columns) if not c.numeric]
        return np.asarray(np.einsum("ij,jk,ik->i", moves, inverse, moves) + parts[:, levels].sum(axis=1))

    def count(self, F: pd.DataFrame, factual: pd.DataFrame) -> npt.NDArray[np.int64]:
        """Return how many features change that count."""
        counted = [j for j, c in enumerate(self.data.columns) if c.name not in self.free]
        return np.asarray(changed(F, factual)[:, counted].sum(axis=1))

    def __call__(self, F: pd.DataFrame, factual: pd.DataFrame) -> Floats:
        """Return the objective of each row: the distance and the price of the changes."""
        total = self.distance(F, factual)
        return total + self.price * self.count(F, factual) if self.price else total

    def apart(self, F: pd.DataFrame, point: pd.DataFrame) -> Floats:
        """Return the l1 distance of rows to an earlier answer, in the scales and weights of the question."""
        scale = "range" if self.scale == "percentile" else self.scale  # as documented
        return np.asarray(Cost(self.data, "l1", scale, self.weights, 0.0, self.free).parts(F, point).sum(axis=1))


# -- balls -------------------------------------------------------------------------------------------------------------
def reach(data: Data, radius: float, features: Sequence[str] | None, slack: float) -> dict[str, int]:
    """Return by how many steps each number of a grid may be off."""
    out = {}
    for c in data.columns:
        if c.step is not None and (features is None or c.name in features):
            x = data.X[c.name].to_numpy(dtype=np.float64)
            out[c.name] = int(np.floor(radius * float(np.nanmax(x) - np.nanmin(x)) / c.step + slack))
    return out


def in_ball(
    data: Data, good: Mask, exists: Mask, radius: float, norm: str, features: Sequence[str] | None, slack: float
) -> Mask:
    """Say which rows of the whole grid have only good rows in their ball; a loop over all shifts on the grid."""
    shape = tuple(len(c.values) for c in data.columns)
    good, exists = good.reshape(shape), exists.reshape(shape)
    out = good.copy()
    steps = reach(data, radius, features, slack)
    names = [c.name for c in data.columns if steps.get(c.name)]
    at = {c.name: i for i, c in enumerate(data.columns)}
    spread = {}
    for n in names:
        x = data.X[n].to_numpy(dtype=np.float64)
        spread[n] = float(np.nanmax(x) - np.nanmin(x)) / float(data[n].step or 1.0)
    moves = [range(-min(steps[n], shape[at[n]] - 1), min(steps[n], shape[at[n]] - 1) + 1) for n in names]
    for shift in itertools.product(*moves):
        if norm == "l2":
            length = sum((d / spread[n]) ** 2 for d, n in zip(shift, names, strict=True))
            if length > radius**2 * (1.0 + np.sign(slack) * 1e-9):
                continue
        here, there = [slice(None)] * len(shape), [slice(None)] * len(shape)
        for d, n in zip(shift, names, strict=True):
            size = shape[at[n]]
            here[at[n]], there[at[n]] = slice(max(0, -d), size - max(0, d)), slice(max(0, d), size + min(0, d))
        out[tuple(here)] &= good[tuple(there)] | ~exists[tuple(there)]
    return np.asarray(out.reshape(-1))


# -- hulls -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Hull:
    """Convex hulls of groups of rows, in scaled units: numbers by their training range, a category as 0/1 columns."""

    data: Data
    groups: tuple[pd.DataFrame, ...]
    names: tuple[str, ...]
    norm: str

    def points(self, F: pd.DataFrame) -> Floats:
        """Return rows in scaled units."""
        columns = []
        for c in self.data.columns:
            if c.name not in self.names:
                continue
            if c.numeric:
                x = self.data.X[c.name].to_numpy(dtype=np.float64)
                spread = float(np.nanmax(x) - np.nanmin(x))
                columns.append(F[c.name].to_numpy(dtype=np.float64) / (spread if spread > 0 else 1.0))
            else:
                column = F[c.name].to_numpy(dtype=object)
                columns += [np.array([v == level for v in column], dtype=float) for level in c.values]
        return np.column_stack(columns)

    def distance(self, row: pd.DataFrame) -> float:
        """Return how far a row is from the nearest hull, by a linear program (l2: by non-negative least squares)."""
        x = self.points(row)[0]
        # seen from the row, so that no digits are lost to a column that is far from zero
        return min(self._from(self.points(rows) - x, np.zeros_like(x)) for rows in self.groups if len(rows))

    def between_ends(self, F: pd.DataFrame) -> Mask:
        """Say which rows lie, in each number, between the ends of a group: no tolerance moves a neighbouring float there.

        A level is a corner of its column, so that only rows of the group with the same levels have a share in such a row.
        """
        out = np.zeros(len(F), dtype=np.bool_)
        columns = [c for c in self.data.columns if c.name in self.names]
        numbers, levels = [c.name for c in columns if c.numeric], [c.name for c in columns if not c.numeric]
        values, corner = F[numbers].to_numpy(dtype=np.float64), F[levels].astype(object).to_numpy()
        for rows in self.groups:
            known, at = rows[numbers].to_numpy(dtype=np.float64), rows[levels].astype(object).to_numpy()
            for held in {tuple(row) for row in at}:
                ends = known[[tuple(row) == held for row in at]]
                inside = ((values >= ends.min(axis=0)) & (values <= ends.max(axis=0))).all(axis=1)
                out |= inside & np.array([tuple(row) == held for row in corner], dtype=np.bool_)
        return out

    def _from(self, P: Floats, x: Floats) -> float:
        n, d = P.shape
        if self.norm == "l2":
            return _euclidean(P, x)
        # sum_i lambda_i p_i - x = plus - minus; l1: the sum of both, linf: one column above each of them
        away = 2 * d if self.norm == "l1" else 2 * d + 1
        cost = (
            np.concatenate([np.zeros(n), np.ones(2 * d)]) if self.norm == "l1" else np.append(np.zeros(n + 2 * d), 1.0)
        )
        A = np.zeros((d + 1, n + away))
        A[:d, :n], A[:d, n : n + d], A[:d, n + d : n + 2 * d], A[d, :n] = P.T, -np.eye(d), np.eye(d), 1.0
        upper = None
        if self.norm == "linf":
            upper = np.zeros((d, n + away))
            upper[:, n : n + d], upper[:, n + d : n + 2 * d], upper[:, -1] = np.eye(d), np.eye(d), -1.0
        found = linprog(cost, A_ub=upper, b_ub=None if upper is None else np.zeros(d), A_eq=A, b_eq=np.append(x, 1.0))
        return float(found.fun) if found.status == 0 else float("nan")


def _euclidean(P: Floats, x: Floats) -> float:
    """Return the distance of a point to a hull: weights that sum to one are asked for by a heavy row."""
    heavy = 1e4
    weights, _ = nnls(np.vstack([P.T, np.full(len(P), heavy)]), np.append(x, heavy), maxiter=50 * len(P))
    weights = weights / weights.sum()
    off = x - weights @ P
    length = float(np.linalg.norm(off))
    if length < 1e-9:
        return length
    least = float(((x - P) @ off).min()) / length  # every row lies at least so far behind the separating plane
    return length if length - max(least, 0.0) < 1e-6 else float("nan")
