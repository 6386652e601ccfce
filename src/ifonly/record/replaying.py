"""The checks of a proof: its fingerprint, and the replay of each answer's trail against the record's own bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ifonly.errors import SchemaError
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.record.checker import NotReplayable, Refused, replay
from ifonly.record.checks import Check
from ifonly.record.proof import describe_proof, read_proof, unpack
from ifonly.runtime.deadline import Deadline
from ifonly.tolerances import DUST

__all__ = ["proof_checks"]


def proof_checks(
    record: Mapping[str, Any],
    proof: bytes | str | Path | None,
    statement: Statement,
    goal: Goal,
    deadline: Deadline,
) -> Iterator[Check]:
    """Yield what is found when the proof of a record is replayed, a sentence for each answer."""
    if proof is None:
        yield Check("proof", None, "There is a proof of this record; pass it to replay it.")
        return
    try:
        data = read_proof(proof)
        trails = unpack(data)
    except SchemaError as error:
        yield Check("proof", False, str(error))
        return
    told = record.get("proof")
    if told is not None and sha256(data).hexdigest() != told["sha256"]:
        yield Check("proof", False, "The proof is another one than that of the record (SHA-256).")
        return
    counts = None if told is None else told.get("parts")
    if counts is not None and list(counts) != describe_proof(data)["parts"]:
        yield Check("proof", False, "The proof has another number of parts than the record says.")
        return
    answers = record["counterfactuals"]
    if len(trails) != len(answers):
        yield Check("proof", False, f"The proof is of {len(trails)} answers, the record of {len(answers)}.")
        return
    for i, (answer, trail) in enumerate(zip(answers, trails, strict=True)):
        yield _replayed(f"Answer {i + 1}", answer["certificate"], statement, goal, trail if i == 0 else b"", deadline)


def _replayed(
    name: str, told: Mapping[str, Any], statement: Statement, goal: Goal, trail: bytes, deadline: Deadline
) -> Check:
    try:
        bound, margin = float(told["bound"]), float(told["margin"])
        found = replay(statement, goal, bound, trail, deadline)
    except NotReplayable as error:
        return Check("proof", None, f"{name}: the proof cannot be replayed: {error}.")
    except Refused as error:
        return Check("proof", False, f"{name}: the proof does not hold: {error}.")
    except SchemaError as error:
        return Check("proof", False, f"{name}: {error}")
    if not abs(found.margin - margin) <= DUST * max(1.0, abs(margin)):
        words = f"the margin is {found.margin!r}, and not {margin!r} as written"
        return Check("proof", False, f"{name}: {words}.")
    return Check(
        "proof",
        True,
        f"{name}: the proof was replayed: {found.parts:,} parts cover the question, and in none of them is there an "
        f"answer that costs less than {found.bound:.9g}.",
    )
