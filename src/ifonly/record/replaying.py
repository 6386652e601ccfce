"""The checks of a proof: its fingerprint, and the replay of each answer's trail against the record's own bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

from ifonly.errors import SchemaError
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.record.checker import NotReplayable, Refused, replay
from ifonly.record.checks import Check
from ifonly.record.proof import read_proof, unpack, why_no_parts
from ifonly.runtime.deadline import Deadline
from ifonly.tolerances import DUST

__all__ = ["proof_checks"]

_OTHER_COUNT = "The proof has another number of parts than the record says."


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
    counts = None if told is None else list(told.get("parts", ()))
    if record["kind"] == "impossible":
        certificates: list[Mapping[str, Any] | None] = [None]
    else:
        certificates = [answer["certificate"] for answer in record["counterfactuals"]]
    if len(trails) != len(certificates) or (counts is not None and len(counts) != len(trails)):
        yield Check("proof", False, f"The proof is of {len(trails)} answers, the record of {len(certificates)}.")
        return
    if counts is not None and any((n > 0) != (len(t) > 0) for n, t in zip(counts, trails, strict=True)):
        yield Check("proof", False, _OTHER_COUNT)
        return
    if told is not None and not _same_gaps(told.get("not_replayable"), trails):
        yield Check("proof", False, "The record names other answers as not replayable than those without parts.")
        return
    for i, (certificate, trail) in enumerate(zip(certificates, trails, strict=True)):
        name = "" if certificate is None else f"Answer {i + 1}: "
        n = None if counts is None else counts[i]
        if i > 0 or not trail:
            solver = None if certificate is None else str(certificate["solver"])
            yield Check("proof", None, _sentence(f"{name}the proof cannot be replayed: {why_no_parts(i, solver)}."))
            continue
        yield _replayed(name, certificate, statement, goal, trail, n, deadline)


def _replayed(
    name: str,
    told: Mapping[str, Any] | None,
    statement: Statement,
    goal: Goal,
    trail: bytes,
    count: int | None,
    deadline: Deadline,
) -> Check:
    """Replay one trail, against the certificate of an answer or, without one, against "there is none"."""
    try:
        bound = inf if told is None else float(told["bound"])
        if told is not None and bound == inf:
            return Check("proof", False, f"{name}there is no bound to prove.")
        margin = None if told is None else float(told["margin"])
        found = replay(statement, goal, bound, trail, deadline, margin)
    except NotReplayable as error:
        return Check("proof", None, _sentence(f"{name}the proof cannot be replayed: {error}."))
    except Refused as error:
        return Check("proof", False, _sentence(f"{name}the proof does not hold: {error}."))
    except SchemaError as error:
        return Check("proof", False, f"{name}{error}")
    if count is not None and found.parts != count:
        return Check("proof", False, _OTHER_COUNT)
    if margin is None:
        return Check(
            "proof",
            True,
            f"The proof was replayed: {_parts(found.parts)} the question, and in none of them is there an answer.",
        )
    if not abs(found.margin - margin) <= DUST * max(1.0, abs(margin)):
        return Check("proof", False, f"{name}the margin is {found.margin!r}, and not {margin!r} as written.")
    return Check(
        "proof",
        True,
        f"{name}the proof was replayed: {_parts(found.parts)} the question, and in none of them is there an "
        f"answer that costs less than {found.bound:.9g}.",
    )


def _same_gaps(told: Sequence[Any] | None, trails: Sequence[bytes]) -> bool:
    """Whether a record says of those answers that they cannot be replayed that have no parts; the first ones said nothing."""
    return told is None or [why is None for why in told] == [bool(trail) for trail in trails]


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


def _parts(n: int) -> str:
    return f"{n:,} parts cover" if n != 1 else "1 part covers"
