"""The file of a proof: the trail of each answer's search, with a checksum.

Bytes: ``ifonly-proof`` and the version, 1 or 2, the number of answers (uint32), per answer the length of its trail (uint64)
and the trail (see `ifonly.question.trail`; empty where a solver closed the question), at the end the SHA-256 of all before
it. In version 2, which is written where a trail has prices of splits, each trail is packed by zlib. Nothing in it is
executed, and nothing is read beyond what is there; all trails together may have as many bytes unpacked as the file may have.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from ifonly.errors import SchemaError
from ifonly.question.found import NO_SOLVER
from ifonly.question.trail import Alternative, Duals, Leaf, Prices, Split, events, has_prices

__all__ = ["MOST_BYTES", "describe_proof", "in_words", "pack", "read_proof", "unpack", "why_no_parts"]

MOST_BYTES = 64 * 2**20  # a limit that no file of a stranger may pass
_MAGIC, _PACKED = b"ifonly-proof\x01", b"ifonly-proof\x02"
_COUNT, _LENGTH = struct.Struct("<I"), struct.Struct("<Q")
_DIGEST = 32  # bytes of a SHA-256


def pack(trails: Sequence[bytes]) -> bytes:
    """Return the trails of all answers as the bytes of a file."""
    magic = _MAGIC
    if any(map(has_prices, trails)):
        magic, trails = _PACKED, [zlib.compress(trail, 9) for trail in trails]
    body = magic + _COUNT.pack(len(trails)) + b"".join(_LENGTH.pack(len(t)) + t for t in trails)
    return body + sha256(body).digest()


def unpack(data: bytes) -> tuple[bytes, ...]:
    """Return the trails in the bytes of a file.

    Raises
    ------
    SchemaError
        When they are no proof, too large, cut off or changed.
    """
    if len(data) > MOST_BYTES:
        raise SchemaError(f"The proof has more than the {MOST_BYTES:,} bytes that one may have.")
    if not data.startswith((_MAGIC, _PACKED)):
        raise SchemaError("This is no proof of ifonly, or one of another version.")
    body, end = data[:-_DIGEST], len(data) - _DIGEST
    if sha256(body).digest() != data[-_DIGEST:]:
        raise SchemaError("The proof is cut off or was changed: its checksum is another one.")
    trails, at = [], len(_MAGIC) + _COUNT.size
    if at > end:
        raise SchemaError("The proof is cut off.")
    for _ in range(_COUNT.unpack_from(data, len(_MAGIC))[0]):
        if at + _LENGTH.size > end:
            raise SchemaError("The proof is cut off.")
        size, at = _LENGTH.unpack_from(data, at)[0], at + _LENGTH.size
        if size > end - at:
            raise SchemaError("The proof is cut off: a trail is longer than the file.")
        trails.append(data[at : at + size])
        at += size
    if at != end:
        raise SchemaError("The proof goes on after its last answer.")
    return tuple(trails) if data.startswith(_MAGIC) else _unpacked(trails)


def _unpacked(trails: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return packed trails as they were; no more memory is taken than a proof may have."""
    left, out = MOST_BYTES, []
    for trail in trails:
        packer = zlib.decompressobj()
        try:
            out.append(packer.decompress(trail, left + 1))
        except zlib.error:
            raise SchemaError("The proof is not packed as it should be.") from None
        left -= len(out[-1])
        if left < 0:
            raise SchemaError(
                f"The proof has more than the {MOST_BYTES:,} bytes that one may have, once it is unpacked."
            )
        if not packer.eof or packer.unused_data:
            raise SchemaError("The proof is not packed as it should be.")
    return tuple(out)


def read_proof(proof: bytes | str | Path) -> bytes:
    """Return the bytes of a proof, from a file where it is not bytes already."""
    if isinstance(proof, bytes):
        return proof
    try:
        with Path(proof).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SchemaError(f"The proof cannot be read: {error}.") from None


def describe_proof(proof: bytes, solvers: Sequence[str | None]) -> dict[str, Any]:
    """Return what a record says of its proof: the SHA-256, the number of parts of each answer, and why some have none.

    `solvers` are who closed each answer, as its certificate says.
    """
    trails = unpack(proof)
    parts = [sum(isinstance(event, Leaf | Duals) for event in events(trail)) for trail in trails]
    said: dict[str, Any] = {"sha256": sha256(proof).hexdigest(), "parts": parts}
    if not all(trails):
        said["not_replayable"] = [
            None if trail else why_no_parts(i, s) for i, (trail, s) in enumerate(zip(trails, solvers, strict=True))
        ]
    return said


def why_no_parts(i: int, solver: str | None) -> str:
    """Return why an answer, the `i`-th, has no parts that could be replayed, given who closed it; None: nobody says."""
    if i > 0:
        return "only the first answer of a question is replayed"
    if solver is None:
        return "a solver closed it, or its parts were not kept"
    if solver.startswith(NO_SOLVER):
        return (
            "it was closed without a solver, but its parts were not kept: by rules that a replay does not know (Mahalanobis "
            "distances; implications; nearest neighbours; balls; calibrated, voting and stacked models), by more prices of "
            "the splits of trees than are kept, by a version that kept none of these or of networks, or for a wider margin "
            "than a replay looks at"
        )
    return f"{solver} closed it, and a solver's run leaves no parts to look at, or a limit ended it"


def in_words(trail: bytes, names: Sequence[str]) -> str:
    """Return a trail as indented lines, a split or a part on each.

    Examples
    --------
    >>> from ifonly.question.trail import Ledger
    >>> ledger = Ledger()
    >>> ledger.cut(0, 30.0), ledger.leaf(), ledger.stays(1), ledger.leaf(), ledger.leaf(0.5)
    (None, None, None, None, None)
    >>> print(in_words(bytes(ledger.data), ["age", "job"]))
    age <= 30.0
      part 1
    age > 30.0
      job stays
        part 2
      job changes
        part 3, multiplier 0.5
    """
    lines: list[str] = []
    pending: list[tuple[int, str]] = []
    n = depth = 0
    for event in events(trail):
        if isinstance(event, Alternative):
            lines.append(f"class {event.name} leads")
            depth = 0
            continue
        if isinstance(event, Duals):
            lines.append(f"a linear program of {event.n_rows} rows, {len(event.row)} of them with a dual")
            continue
        if isinstance(event, Prices):
            lines.append(
                "  " * depth + f"{len(event.split)} prices of splits change, that of the budget is {event.mu!r}"
            )
            continue
        if isinstance(event, Split):
            first, second = _sides(event, names[event.feature])
            if event.second_first:
                first, second = second, first
            lines.append("  " * depth + first)
            pending.append((depth, second))
            depth += 1
            continue
        n += 1
        lines.append("  " * depth + f"part {n}" + ("" if event.price is None else f", multiplier {event.price!r}"))
        if pending:
            depth, words = pending.pop()
            lines.append("  " * depth + words)
            depth += 1
    return "\n".join(lines)


def _sides(split: Split, name: str) -> tuple[str, str]:
    if split.value is not None:
        return f"{name} <= {split.value!r}", f"{name} > {split.value!r}"
    if split.levels is None:
        return f"{name} stays", f"{name} changes"
    levels = [i for i, held in enumerate(split.levels) if held]
    return f"{name} is one of levels {levels}", f"{name} is another level"
