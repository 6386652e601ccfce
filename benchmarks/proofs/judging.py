"""Judge of proofs: each is replayed, forged in one way, and replayed again."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.proofs.asking import FAMILIES, SETS, Proven, in_world, of_real_data
from benchmarks.proofs.forging import KINDS, forged

__all__ = ["Result", "of_task", "seen"]

Result = dict[str, Any]


def seen(p: Proven, kind: str, rng: np.random.Generator) -> Result:
    """Replay a proof, forge it in one way, and replay that."""
    began = time.process_time()
    verdict = p.verdict()
    checking = time.process_time() - began
    proofs = [c for c in verdict.checks if c.name == "proof"]
    held = verdict.ok and bool(proofs) and all(c.ok for c in proofs)
    result: Result = {
        "family": p.family,
        "impossible": p.impossible,
        "held": held,
        "why": "" if held else "; ".join(c.sentence for c in verdict.checks if c.ok is not True),
        "parts": sum(p.record["proof"]["parts"]),
        "bytes": len(p.proof),
        "plain": p.plain,
        "kept": p.kept,
        "checking": checking,
    }
    if held:
        kind, verdict = forged(p, kind, rng)
        result |= {"forgery": kind, "refused": not verdict.ok}
    return result


def of_task(task: tuple[str, int, int], families: Sequence[str] = FAMILIES) -> list[Result]:
    """Return what became of the questions of one world (its block), or of one real data set (how many)."""
    name, seed, number = task
    rng = np.random.default_rng([seed, number, len(name)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = of_real_data(name, number) if name in SETS else in_world(seed, number, families)
        first = int(rng.integers(len(KINDS)))
        results = []
        for k, proven in enumerate(source):
            where = {"task": [name, seed, number, k]}
            try:
                results.append(where | seen(proven, KINDS[(first + k) % len(KINDS)], rng))
            except Exception as error:  # noqa: BLE001 - a verification that fails is a result
                results.append(where | {"family": proven.family, "held": False, "why": repr(error)})
        return results
