"""The judge: is an answer what it says, is nothing cheaper, is nothing possible where it says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.battery.ask import Question
from benchmarks.battery.demands import Own, numbers_in
from benchmarks.battery.edges import drawn_closer
from benchmarks.battery.truth import Floats, Mask, Want, changed

__all__ = ["Fault", "Judge"]

_NEAR = 2e-6  # of a cost: within it, two costs are the same
_MOST_PROGRAMS = 260
_STARTS = 6  # rows of the grid that are drawn closer
_MARGINS = 20.0  # a row between those of the grid counts when it clears this many margins


@dataclass(frozen=True)
class Fault:
    """Something that was said and is not so."""

    kind: str
    text: str


@dataclass(frozen=True)
class Judge:
    """Everything that enumeration knows of one question."""

    q: Question

    @cached_property
    def cost(self) -> Floats:
        """The cost of every row of the grid."""
        return self.q.cost(self.q.grid, self.q.factual)

    @cached_property
    def tiny(self) -> float:
        """A cost that is nothing here."""
        costs = self.cost[np.isfinite(self.cost)]
        return 1e-13 * float(costs.max(initial=0.0))

    @cached_property
    def wanted(self) -> tuple[Mask, Mask]:
        """Rows with the outcome: perhaps, and beyond doubt."""
        return self.q.world.oracle.masks(self.q.grid, self.q.want)

    @cached_property
    def confirmed(self) -> Mask:
        """Rows with the outcome, each asked alone: none of them is impossible, however near it is to its threshold."""
        maybe = self.wanted[0].copy()
        for r in np.flatnonzero(maybe & ~self.wanted[1]):
            maybe[r] = bool(self.q.world.oracle.met(self.q.grid.iloc[[int(r)]], self.q.want)[0])
        return maybe

    @cached_property
    def _masks(self) -> dict[int, tuple[Mask, Mask]]:
        return {id(d): d.masks(self.q.grid) for d in self.q.demands}

    @cached_property
    def ignored(self) -> list[int]:
        """The features that make no difference to the model anywhere on the grid, beyond the rounding of its sums."""
        q, model = self.q, self.q.world.model
        shape = [len(c.values) for c in q.data.columns]
        methods = [m for m in ("predict", "decision_function", "predict_proba") if hasattr(model, m)]
        said = [np.asarray(getattr(model, m)(q.grid)).reshape(*shape, -1) for m in methods]
        return [j for j in range(len(shape)) if all(_alike(s, np.take(s, [0], axis=j)) for s in said)]

    def masks_of(self, own: Own) -> tuple[Mask, Mask]:
        """Return the rows of the grid that meet a demand."""
        known = self._masks.get(id(own))
        return own.masks(self.q.grid) if known is None else known

    def possible(self, demands: Sequence[Own], *, sure: bool, wanted: bool | Mask = True) -> int | None:
        """Return a row of the grid that meets these demands, if there is one; with, without, or with another outcome."""
        which = 1 if sure else 0
        mask = self.q.exists.copy()
        if not isinstance(wanted, bool):
            mask &= wanted
        elif wanted:
            mask &= self.wanted[which]
        slow = [d for d in demands if d in self.q.slow or d.kind.startswith("hull")]
        for own in demands:
            if own not in slow:
                mask &= self.masks_of(own)[which]
        return self._first(np.flatnonzero(mask), slow, which)

    def _first(self, rows: Any, slow: Sequence[Own], which: int) -> int | None:
        for r in rows[: _MOST_PROGRAMS if slow else len(rows)]:
            row = self.q.grid.iloc[[int(r)]]
            if all(own.masks(row)[which][0] for own in slow):
                return int(r)
        return None

    def cheaper(self, than: float, extra: Sequence[Own] = (), slow: Sequence[Own] | None = None) -> int | None:
        """Return a row that surely meets all demands and costs clearly less."""
        mask = self.q.exists & self.wanted[1] & (self.cost < than * (1.0 - _NEAR) - self.tiny)
        for own in (*self.q.demands, *extra):
            if mask.any():
                mask &= self.masks_of(own)[1]
        rows = np.flatnonzero(mask)
        return self._first(rows[np.argsort(self.cost[rows], kind="stable")], self.q.slow if slow is None else slow, 1)

    def surely(self, F: pd.DataFrame, margin: float, extra: Sequence[Own] = ()) -> Mask:
        """Say which rows beyond the grid are answers beyond doubt: by many margins, where the model tells by how much."""
        q, oracle = self.q, self.q.world.oracle
        sure = oracle.masks(F, q.want)[1]
        lead = None if oracle.steps or not margin else oracle.lead(F, q.want)
        if lead is not None:
            sure = sure & (lead >= _MARGINS * margin)
        for own in (*q.demands, *extra):
            sure = sure & own.masks(F)[1]
        return sure

    # -- one answer ---------------------------------------------------------------------------------------------------
    def answer(self, counterfactual: Any, extra: Sequence[Own] = (), slow: Sequence[Own] | None = None) -> list[Fault]:
        """Judge one answer: the row, what is said of it, and its proof."""
        q, row, said = self.q, counterfactual.row, counterfactual.certificate
        out = self._row(row)
        if out:
            return out
        if not bool(q.world.oracle.met(row, q.want)[0]):
            out.append(Fault("outcome", f"the model does not give the outcome for {_show(row)}"))
        for own in (*q.demands, *extra, *(q.slow if slow is None else slow)):
            if not bool(own.held(row)[0]):
                out.append(Fault(f"broken {own.kind}", f"{_show(row)} breaks the demand"))
        mine = float(q.cost(row, q.factual)[0])
        if abs(mine - said.objective) > 1e-7 * abs(mine) + self.tiny:
            out.append(Fault("cost", f"costs {mine!r}, is said to cost {said.objective!r}"))
        out += self._changes(counterfactual) + self._ranges(counterfactual)
        if said.bound > said.objective + 1e-9 * abs(said.objective) + self.tiny:
            out.append(Fault("bound", f"bound {said.bound!r} above the objective {said.objective!r}"))
        if said.status == "within_gap" and said.bound < (1.0 - q.gap * (1.0 + 1e-9)) * said.objective - self.tiny:
            out.append(Fault("gap", f"{said.objective!r} with the bound {said.bound!r} is not within {q.gap}"))
        return out if q.ball else out + self._proof(said, extra, slow)

    def _closer(self, claim: float, margin: float, extra: Sequence[Own]) -> list[Fault]:
        """Look for something cheaper between the rows of the grid, where a column is continuous."""
        q = self.q
        nested = q.diversity is not None and q.diversity.nested  # how little still is a change has no least value
        if q.slow or nested or any(d.kind.startswith(("robust", "causality")) for d in q.demands):
            return []
        mask = q.exists & self.wanted[1]
        for own in (*q.demands, *extra):
            mask &= self.masks_of(own)[1]
        rows = np.flatnonzero(mask)
        rows = rows[np.argsort(self.cost[rows], kind="stable")[:_STARTS]]
        if not len(rows):
            return []

        def is_sure(F: pd.DataFrame) -> Mask:
            return self.surely(F, margin, extra)

        near = drawn_closer(q.data, q.grid.iloc[rows], q.factual, is_sure)
        near = near[is_sure(near)]
        costs = q.cost(near, q.factual)
        if not len(costs) or not costs.min() < claim * (1.0 - _NEAR) - self.tiny:
            return []
        best = int(np.argmin(costs))
        return [Fault("not optimal", f"claims {claim:.9g}, but {_show(near.iloc[[best]])} costs {costs[best]:.9g}")]

    def _proof(self, said: Any, extra: Sequence[Own], slow: Sequence[Own] | None) -> list[Fault]:
        claim = said.objective if said.proven else said.bound
        found = self.cheaper(claim, extra, slow)
        if found is None:
            return self._closer(claim, said.margin, extra) if self.q.partial else []
        what = "proven" if said.proven else "bounded by"
        text = f"{what} {claim:.9g}, but {_show(self.q.grid.iloc[[found]])} costs {self.cost[found]:.9g}"
        return [Fault("not optimal" if said.proven else "false bound", text)]

    def _row(self, row: pd.DataFrame) -> list[Fault]:
        """Judge the row as a row: columns, dtypes, grids, bounds, levels, and what did not change."""
        q, out = self.q, []
        if list(row.columns) != list(q.world.data.X.columns) or len(row) != 1:
            return [Fault("row", f"columns {list(row.columns)}")]
        for c in q.data.columns:
            value, now = row[c.name].iloc[0], q.factual[c.name].iloc[0]
            if row[c.name].dtype != q.world.data.X[c.name].dtype:
                out.append(Fault("dtype", f"{c.name} is {row[c.name].dtype}, not {q.world.data.X[c.name].dtype}"))
            if pd.isna(value) or pd.isna(now):
                if pd.isna(value) != (pd.isna(now) and c.name not in q.filled):
                    out.append(Fault("missing", f"{c.name} goes from {now!r} to {value!r}"))
            elif c.numeric:
                low, high = min(c.low, float(now)), max(c.high, float(now))
                if not c.on_grid(float(value)) and float(value) != float(now):
                    out.append(Fault("grid", f"{c.name} = {value!r} is not on the grid of {c.step}"))
                if not low <= float(value) <= high:
                    out.append(Fault("bounds", f"{c.name} = {value!r} is outside of ({low}, {high})"))
            elif value not in c.values:
                out.append(Fault("level", f"{c.name} = {value!r} is no level"))
        return out

    def _changes(self, counterfactual: Any) -> list[Fault]:
        moved = changed(counterfactual.row, self.q.factual)[0]
        mine = {c.name for c, m in zip(self.q.data.columns, moved, strict=True) if m}
        said = {change.feature for change in counterfactual.changes}
        return [] if mine == said else [Fault("changes", f"says {sorted(said)} changed, but {sorted(mine)} did")]

    def _ranges(self, counterfactual: Any) -> list[Fault]:
        """Judge how far each changed number may go by itself, the others as they are."""
        out = []
        for name, (low, high) in counterfactual.ranges.items():
            c, row = self.q.data[name], counterfactual.row
            some = np.linspace(low, high, 7) if c.kind == "real" else [v for v in c.values if low <= v <= high]
            if not low <= float(row[name].iloc[0]) <= high or not len(some):
                out.append(Fault("range", f"{name} = {row[name].iloc[0]!r} is outside of its range ({low}, {high})"))
                continue
            table = pd.concat([row] * len(some), ignore_index=True)
            table[name] = np.asarray(some).astype(row[name].dtype)
            if not self.q.world.oracle.met(table, self.q.want).all():
                out.append(Fault("range", f"the outcome does not hold for {name} between {low} and {high}"))
        return out

    # -- several answers ----------------------------------------------------------------------------------------------
    def explanation(self, explanation: Any) -> list[Fault]:
        """Judge all answers: each the cheapest that differs from those before as documented."""
        q, how = self.q, self.q.diversity
        if q.clusters:
            return self._per_cluster(explanation)
        out = self.answer(explanation[0])
        kind = None if how is None else how.how
        earlier = [explanation[0]]
        for one in list(explanation)[1:]:
            differs = [] if kind == "incumbents" else [_differs(self, e.row) for e in earlier]
            out += self.answer(one, differs) if kind != "incumbents" else self._met(one, earlier)
            earlier.append(one)
        if len(explanation) < q.n and kind != "incumbents" and any("(proven)" in note for note in explanation.notes):
            differs = [_differs(self, e.row) for e in earlier]
            found = self.possible([*q.demands, *q.slow, *differs], sure=True)
            if found is not None and not q.ball:
                text = f"only {len(explanation)} of {q.n} (proven), but there is {_show(q.grid.iloc[[found]])}"
                out.append(Fault("no more", text))
        if len(explanation) > q.n:
            out.append(Fault("too many", f"{len(explanation)} answers, {q.n} asked for"))
        return out

    def _met(self, one: Any, earlier: Sequence[Any]) -> list[Fault]:
        """Judge a point met on the way: valid, other than those before, and no proof that is not one."""
        out = self.answer(one)
        if any(not changed(one.row, e.row).any() for e in earlier):
            out.append(Fault("same answer", f"{_show(one.row)} is given twice"))
        return out

    def _per_cluster(self, explanation: Any) -> list[Fault]:
        """Judge the best answer of each cluster."""
        out, left = [], list(self.q.clusters)
        for one in explanation:
            home = [c for c in left if bool(c.held(one.row)[0])]
            if not home:
                out.append(Fault("cluster", f"{_show(one.row)} is in no cluster that is left"))
                continue
            tried = [self.answer(one, slow=[c]) for c in home]
            best = int(np.argmin([len(t) for t in tried]))
            out += tried[best]
            left.remove(home[best])
        costs = [c.certificate.objective for c in explanation]
        if costs != sorted(costs):
            out.append(Fault("order", f"costs {costs}"))
        if any("(proven)" in note for note in explanation.notes):
            found = [self.possible([*self.q.demands, c], sure=True) for c in left]
            out += [Fault("no more", "another cluster holds an answer") for f in found if f is not None]
        return out

    # -- impossible ----------------------------------------------------------------------------------------------------
    def infeasible(self, error: Any) -> list[Fault]:
        """Judge a verdict of impossibility: true, minimal, and with ways out that are ways out."""
        q = self.q
        if q.ball:
            return []
        everything = [*q.demands, *q.slow]
        found = self.possible(everything, sure=True)
        if found is None and not error.margin:
            found = self.possible(everything, sure=True, wanted=self.confirmed)
        if found is not None:
            text = f"called impossible, but {_show(q.grid.iloc[[found]])} costs {self.cost[found]:.9g}"
            return [Fault("not impossible", text)]
        if q.filled:  # without its range the value stays missing, which this grid does not show
            return []
        named: list[Own | None] = []
        for text in error.conflict:
            speaks = [d for d in everything if d.is_named(text)]
            if not speaks and not text.startswith("want "):
                return [Fault("conflict words", f"{text!r} is none of the demands")]
            named.append(speaks[0] if speaks else None)
        return self._conflict(named, error) + ([] if q.partial else self._ways_out(error, everything))

    def _conflict(self, named: Sequence[Own | None], error: Any) -> list[Fault]:
        owns = [d for d in named if d is not None]
        want = any(d is None for d in named)
        out = []
        if self.possible(owns, sure=True, wanted=want) is not None:
            out.append(Fault("conflict", f"these can be met together: {error.conflict}"))
        if self.q.partial or "not shown to be minimal" in str(error):
            return out
        for i, text in enumerate(error.conflict):
            rest = [d for j, d in enumerate(named) if j != i and d is not None]
            wanted = any(d is None for j, d in enumerate(named) if j != i)
            if self.possible(rest, sure=False, wanted=wanted) is None:
                out.append(Fault("conflict not minimal", f"without {text!r} it is still impossible: {error.conflict}"))
        return out

    def _ways_out(self, error: Any, everything: Sequence[Own]) -> list[Fault]:
        out = []
        for way in error.relaxations:
            want = self._other_outcome(way.change)
            wanted = True if want is None else self.q.world.oracle.met(self.q.grid, want)
            if want is None:
                left = self._loosened(way, everything)
            else:
                left = [d if d.wanting is None else d.wanting(want) for d in everything]
            if left is None:
                out.append(Fault("way out not understood", f"{way.change!r} (of {way.demand!r})"))
            elif self.possible(left, sure=False, wanted=wanted) is None:
                out.append(Fault("no way out", f"{way.change!r} (of {way.demand!r}) does not help"))
        return out

    def _other_outcome(self, change: str) -> Want | None:
        """Return the outcome after a loosening of it in words: another probability or interval."""
        if not change.startswith(("probability ", "outcome ")):
            return None
        ends = numbers_in(change.split(" -> ")[1])
        if len(ends) == 1:
            return replace(self.q.want, probability=ends[0])
        return replace(self.q.want, low=ends[0], high=ends[1])

    def _loosened(self, way: Any, everything: Sequence[Own]) -> list[Own] | None:
        if way.change.startswith("drop: "):
            gone = [part.removeprefix("drop: ") for part in way.change.split("; drop: ")]
            return [d for d in everything if not any(d.is_named(g) for g in gone)]
        speaks = [d for d in everything if d.is_named(way.demand)]
        changed_ = speaks[0].loosen(way.change) if speaks else None
        return None if changed_ is None else [changed_ if d is speaks[0] else d for d in everything]


def _alike(said: Any, other: Any) -> bool:
    """Whether a model says the same, up to the rounding of sums."""
    if said.dtype.kind != "f":
        return bool((said == other).all())
    return bool((np.abs(said - other) <= 1e-13 * np.abs(said).max()).all())


def _differs(judge: Judge, row: pd.DataFrame) -> Own:
    """Return the demand to be another answer than this one; a proof need only know features that the model looks at."""
    q, how = judge.q, judge.q.diversity
    assert how is not None
    counted = [j for j, c in enumerate(q.data.columns) if c.name not in q.cost.free]
    old = changed(row, q.factual)[0]

    def masks(F: pd.DataFrame) -> tuple[Mask, Mask]:
        new = changed(F, q.factual)
        still = ~new[:, judge.ignored].any(axis=1)
        if how.how == "iterate":
            away = q.cost.apart(F, row)
            return away >= how.distance * (1 - 1e-7), still & (away >= how.distance * (1 + 1e-9))
        if how.nested:
            # Documented: a continuous number counts from a ten-thousandth of its range on, since there is no least move.
            sure = new.copy()
            for j, c in enumerate(q.data.columns):
                if c.kind == "real" and not old[j]:
                    x, now = q.world.data.X[c.name].to_numpy(dtype=float), float(q.factual[c.name].iloc[0])
                    far = 1e-4 * float(np.nanmax(x) - np.nanmin(x)) * (1 + 1e-9)
                    sure[:, j] &= np.abs(F[c.name].to_numpy(dtype=float) - now) >= far
            other = (new[:, counted] != old[counted]).any(axis=1)
            return other, (sure[:, counted] != old[counted]).any(axis=1) & still
        other = ~new[:, [j for j in counted if old[j]]].all(axis=1)
        return other, other & still

    return Own(f"diversity {how.how}", lambda _: False, masks, lambda _: None)


def _show(row: pd.DataFrame) -> str:
    return str({k: v[0] if not hasattr(v[0], "item") else v[0].item() for k, v in row.to_dict("list").items()})
