"""The summary of a batch: statuses, costs, levers, and the rows without recourse with the reason."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ifonly.batch.records import Record

__all__ = ["Summary"]

_QUANTILES = {"least": 0.0, "quarter": 0.25, "median": 0.5, "three quarters": 0.75, "most": 1.0}
_MOST_REASONS = 20
_MOST_KINDS = 5000


@dataclass
class Summary:
    """Counts that grow record by record; costs are those of each row's best answer."""

    rows: int
    statuses: Counter[str] = field(default_factory=Counter)
    clock: int = 0
    proven: int = 0
    changed: Counter[int] = field(default_factory=Counter)
    levers: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    costs: array[float] = field(default_factory=lambda: array("d"), repr=False)

    def add(self, records: Iterable[Record]) -> None:
        """Count records; of a row with several answers, only the best one."""
        for record in records:
            if record["answer"] in (None, 0):
                self._add(record)

    def _add(self, record: Record) -> None:
        self.statuses[record["status"]] += 1
        self.clock += bool(record["clock"])
        if record["answer"] is not None:
            self.proven += bool(record["proven"])
            self.changed[record["changed"]] += 1
            self.levers.update(change["feature"] for change in record["changes"])
            if record["objective"] is not None:
                self.costs.append(record["objective"])
        elif record["status"] == "infeasible":
            _count(self.conflicts, " + ".join(record["conflict"] or ["no demand alone"]))
        elif record["status"] != "already":
            _count(self.messages, (record["message"] or "").splitlines()[0] if record["message"] else record["status"])

    @property
    def answered(self) -> int:
        """Number of rows with an answer."""
        return self.changed.total()

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        costs = np.frombuffer(self.costs, dtype=np.float64)
        return {
            "rows": self.rows,
            "rows_collected": self.statuses.total(),
            "answered": self.answered,
            "proven_optimal": self.proven,
            "ran_into_the_clock": self.clock,
            "statuses": dict(sorted(self.statuses.items())),
            "cost": {n: float(np.quantile(costs, q)) for n, q in _QUANTILES.items()} if costs.size else {},
            "features_changed": {str(k): v for k, v in sorted(self.changed.items())},
            "levers": dict(sorted(self.levers.items(), key=lambda pair: (-pair[1], pair[0]))),
            "without_recourse": {
                "proven_impossible": _top(self.conflicts),
                "other_reasons": _top(self.messages),
            },
        }

    def __str__(self) -> str:
        data = self.to_dict()
        lines = [
            f"{data['rows_collected']:,} of {self.rows:,} rows: {self.answered:,} answered, {self.proven:,} proven optimal"
        ]
        lines += [f"  {status:<14}{count:>12,}" for status, count in data["statuses"].items()]
        if self.clock:
            lines.append(f"{self.clock:,} rows ran into the clock")
        if data["cost"]:
            lines.append("cost of the best answer: " + ", ".join(f"{n} {v:.4g}" for n, v in data["cost"].items()))
        if self.levers:
            shown = list(data["levers"].items())[:8]
            lines.append("levers: " + ", ".join(f"{feature} {count:,}" for feature, count in shown))
        for title, reasons in (("proven impossible", self.conflicts), ("no answer", self.messages)):
            lines += [f"{title}, {count:,} rows: {reason}" for reason, count in list(_top(reasons).items())[:5]]
        return "\n".join(lines)


def _count(counter: Counter[str], reason: str) -> None:
    """Count a reason; beyond some thousand different ones, which no summary shows, they are counted together."""
    counter[reason if reason in counter or len(counter) < _MOST_KINDS else "others"] += 1


def _top(counter: Counter[str]) -> dict[str, int]:
    ranked = sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))
    rest = sum(count for _, count in ranked[_MOST_REASONS:])
    return dict(ranked[:_MOST_REASONS]) | ({"others": rest} if rest else {})
