"""The plan of a batch: fingerprints of all that an answer depends on, and the bounds of its shards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ifonly.batch.writing import write_atomically
from ifonly.errors import PlanError
from ifonly.record.fingerprints import of_json
from ifonly.runtime.memo import cached_property

__all__ = ["FORMAT", "PLAN_FILE", "Plan", "Shard", "read_plan", "write_plan"]

FORMAT = "ifonly-batch/1"
PLAN_FILE = "plan.json"

_WORDS = {
    "background file": "the file of the training data",
    "engines": "the engines",
    "ifonly": "the version of ifonly",
    "input": "the rows",
    "model": "the model",
    "model file": "the file of the model",
    "policy": "the policy",
    "policy file": "the file of the policy",
    "schema": "the schema",
    "settings": "the settings",
    "training": "the training data",
    "tuning": "the tuned numbers",
    "wish": "the wish",
}

Output = Literal["csv", "parquet"]
LabelKind = Literal["text", "int", "float", "bool"]


@dataclass(frozen=True)
class Shard:
    """A run of consecutive rows of the input: rows ``first`` to ``first + rows - 1``, counted from 0."""

    number: int
    first: int
    rows: int
    offset: int = 0
    end: int = 0

    @property
    def name(self) -> str:
        """The shard's number as file names have it."""
        return f"{self.number:06d}"


@dataclass(frozen=True)
class Plan:
    """A batch before, while and after it runs.

    Attributes
    ----------
    prints
        Name -> SHA-256 of everything that an answer depends on; see the keys of the words above.
    rows, shard_rows
        How many rows there are, and how many of them make a shard (the last one may have fewer).
    output
        The format of the shards.
    labels
        The type of the columns of predictions.
    settings
        The options of a run that change answers: how many answers, time limit, solver, seed, whether it is reproducible.
    offsets
        For a CSV input, where each shard begins in the file, and where the last one ends.
    files
        Name -> path of the files a run from the command line opens, relative to the plan's folder.
    asked
        The wish and the options in words, for the reader and for the command line.
    """

    prints: Mapping[str, str]
    rows: int
    shard_rows: int
    output: Output
    labels: LabelKind
    settings: Mapping[str, Any]
    offsets: Sequence[int] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return (self.rows + self.shard_rows - 1) // self.shard_rows

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all fingerprints, the shard bounds and the format of the output; paths are not part of it."""
        bounds = [self.rows, self.shard_rows]
        return of_json([FORMAT, dict(self.prints), dict(self.settings), bounds, self.output, self.labels])

    def shard(self, number: int) -> Shard:
        """Return one shard."""
        if not 0 <= number < len(self):
            raise PlanError(f"There is no shard {number}: the plan has {len(self)}, counted from 0.")
        first = number * self.shard_rows
        rows = min(self.shard_rows, self.rows - first)
        place = (self.offsets[number], self.offsets[number + 1]) if self.offsets else (0, 0)
        return Shard(number, first, rows, *place)

    def shards(self) -> list[Shard]:
        """Return all shards, in order."""
        return [self.shard(k) for k in range(len(self))]

    def differences(self, other: Plan) -> list[str]:
        """Return in words what differs between two plans."""
        names = sorted(set(self.prints) | set(other.prints))
        found = [_WORDS.get(n, n) for n in names if self.prints.get(n) != other.prints.get(n)]
        for word, mine, theirs in (
            ("the number of rows", self.rows, other.rows),
            ("the rows per shard", self.shard_rows, other.shard_rows),
            ("the format of the output", self.output, other.output),
            ("the classes of the model", self.labels, other.labels),
        ):
            if mine != theirs:
                found.append(f"{word} ({mine} -> {theirs})")
        for name in sorted(set(self.settings) | set(other.settings)):
            before, after = self.settings.get(name), other.settings.get(name)
            if before != after:
                found.append(f"{name} ({before} -> {after})")
        return found

    def refuse_changes(self, now: Plan, folder: Path) -> None:
        """Say what changed since this plan was made, if anything did."""
        changed = self.differences(now)
        if changed:
            raise PlanError(
                f"This is not the batch that was planned in {folder}: {_listed(changed)} changed since. Answers of two "
                "plans are never mixed. Put back what changed, or plan into another folder."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "sha256": dict(self.prints),
            "rows": self.rows,
            "shard_rows": self.shard_rows,
            "shards": len(self),
            "bounds": [*range(0, self.rows, self.shard_rows), self.rows] if self.rows else [0],
            "output": self.output,
            "labels": self.labels,
            "settings": dict(self.settings),
            "asked": dict(self.asked),
            "files": dict(self.files),
            "offsets": list(self.offsets),
        }


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def write_plan(plan: Plan, folder: Path) -> None:
    """Write a plan into its folder, whole or not at all."""
    text = json.dumps(plan.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(folder / PLAN_FILE, lambda file: file.write(text.encode("utf-8")))


def read_plan(folder: Path) -> Plan:
    """Return the plan in a folder."""
    path = folder / PLAN_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PlanError(f"There is no plan in {folder}: {PLAN_FILE} is missing. Make one: ifonly batch plan.") from None
    except (ValueError, OSError) as error:
        raise PlanError(f"{path} cannot be read: {error}. Plan anew into another folder.") from None
    found = data.get("format") if isinstance(data, dict) else None
    if found != FORMAT:
        raise PlanError(f"{path} is no plan that this version can read: its format is {found!r}, expected {FORMAT!r}.")
    try:
        plan = Plan(
            prints=data["sha256"],
            rows=data["rows"],
            shard_rows=data["shard_rows"],
            output=data["output"],
            labels=data["labels"],
            settings=data["settings"],
            offsets=tuple(data["offsets"]),
            files=data["files"],
            asked=data["asked"],
        )
        stored = data["fingerprint"]
    except KeyError as error:
        raise PlanError(f"{path} lacks {error.args[0]!r}: it was cut or edited. Plan anew.") from None
    if plan.fingerprint != stored:
        raise PlanError(
            f"{path} was edited: its fingerprint is not that of its content. Plan anew into another folder."
        )
    return plan
