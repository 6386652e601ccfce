"""A case study and its two tables, printed as the paper prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ifonly.result.text import format_value
from ifonly.result.values import Explanation

__all__ = ["Part", "Study"]

_DASH = "--"
_LONG = 12  # a level longer than this is shown as a letter, explained below the table
_MEASURES = {
    "categorical_proximity": "categorical proximity",
    "continuous_proximity": "continuous proximity",
    "sparsity": "sparsity",
    "categorical_diversity": "categorical diversity",
    "continuous_diversity": "continuous diversity",
    "sparsity_diversity": "sparsity-based diversity",
}


@dataclass(frozen=True)
class Part:
    """One step: its letter, the criteria in words, and what was found."""

    letter: str
    criteria: str
    explanation: Explanation


@dataclass(frozen=True)
class Study:
    """One person and the counterfactuals of each step.

    Attributes
    ----------
    title
        What it is about.
    parts
        The steps, in order.
    labels
        Feature -> what the table calls it, in the order of its columns.
    """

    title: str
    parts: tuple[Part, ...]
    labels: Mapping[str, str]

    def __getitem__(self, letter: str) -> Explanation:
        return next(part.explanation for part in self.parts if part.letter == letter)

    def __str__(self) -> str:
        valid = all(part.explanation.metrics()["validity"] == 1.0 for part in self.parts)
        return "\n".join(
            [
                self.title,
                "",
                self.table(),
                "",
                "Evaluation (validity is 1.00 in all cases)" if valid else "Evaluation",
                self.evaluation().map(lambda v: _DASH if np.isnan(v) else f"{v:.2f}").to_string(),
            ]
        )

    def evaluation(self) -> pd.DataFrame:
        """Return the paper's measures, one line per part."""
        measured = [part.explanation.metrics() for part in self.parts]
        index = pd.Index([f"Part {part.letter}" for part in self.parts])
        return pd.DataFrame([{_MEASURES[k]: m[k] for k in _MEASURES} for m in measured], index=index)

    def changed(self) -> list[str]:
        """Return the features that some counterfactual changes, in the order of the table."""
        changed = {c.feature for part in self.parts for answer in part.explanation for c in answer.changes}
        return [name for name in self.labels if name in changed]

    def table(self) -> str:
        """Return the counterfactuals of each part; a dash means no change."""
        shown = self.changed()
        codes = self._codes(shown)
        factual = self.parts[0].explanation.factual
        lines: list[list[str] | str] = [["", *(self.labels[name] for name in shown)]]
        lines.append(["factual", *(self._cell(factual[name].iloc[0], codes.get(name)) for name in shown)])
        for part in self.parts:
            lines.append(f"Part {part.letter}: {part.criteria}")
            for k, answer in enumerate(part.explanation):
                after = {c.feature: self._cell(c.after, codes.get(c.feature)) for c in answer.changes}
                lines.append([f"({chr(97 + k)})", *(after.get(name, _DASH) for name in shown)])
        return "\n".join([*_aligned(lines), *self._notes(shown, codes)])

    def _cell(self, value: Any, codes: Mapping[Any, str] | None) -> str:
        if codes is not None:
            return codes[value]
        return format_value(round(value, 2)) if isinstance(value, float) else format_value(value)

    def _codes(self, shown: Sequence[str]) -> dict[str, dict[Any, str]]:
        """Return letters for the levels of features whose names are long, A for what it is now."""
        out = {}
        for name in shown:
            seen = [self.parts[0].explanation.factual[name].iloc[0]]
            for part in self.parts:
                seen += [c.after for answer in part.explanation for c in answer.changes if c.feature == name]
            levels = list(dict.fromkeys(seen))
            if any(isinstance(v, str) and len(v) > _LONG for v in levels):
                out[name] = {level: chr(65 + k) for k, level in enumerate(levels)}
        return out

    def _notes(self, shown: Sequence[str], codes: Mapping[str, Mapping[Any, str]]) -> list[str]:
        notes = [f"{_DASH} is no change."]
        named = [f"{self.labels[n]} {n}" for n in shown if self.labels[n] != n]
        if named:
            notes.append(f"{'; '.join(named)}.")
        for name, table in codes.items():
            notes.append(f"{self.labels[name]}: {', '.join(f'{code} {level}' for level, code in table.items())}.")
        never = [label for name, label in self.labels.items() if name not in shown]
        if never:
            notes.append(f"Never changed: {', '.join(never)}.")
        return notes


def _aligned(lines: Sequence[list[str] | str]) -> list[str]:
    """Return rows in columns of equal width, with titles in between."""
    rows = [line for line in lines if not isinstance(line, str)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    out = []
    for line in lines:
        if isinstance(line, str):
            out += [rule, line]
        else:
            first = f"{line[0]:<{widths[0]}}"
            cells = (f"{cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
            out.append("  ".join([first, *cells]))
    return [*out, rule]
