"""Proofs replayed, and forged ones refused: ``python -m benchmarks.proofs --questions 1000 --real 100 --output page.md``.

Questions of the battery about linear models, trees, forests and boosters are asked with ``proof=True``; each proof goes,
with its record, to `ifonly.verify`, as a stranger would. Then each is forged in one way, in turn, by someone who writes fresh
checksums wherever they help, and must be refused. Real questions come from German Credit, and from HELOC and Adult where
``IFONLY_DATA`` names them.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ifonly
from benchmarks.battery.ask import BLOCK, draw_question, draw_world, is_meant
from benchmarks.battery.run import explainer_for
from ifonly import Explainer, IfOnlyError
from ifonly.datasets import adult, german_credit, heloc
from ifonly.question.trail import Leaf, Ledger, Split, events
from ifonly.record.proof import describe_proof, pack, unpack

FAMILIES = (
    "logistic",
    "linear classifier",
    "linear regression",
    "tree",
    "forest",
    "gradient boosting",
    "hist boosting",
    "xgboost",
    "lightgbm",
)
_SECONDS = 30.0  # for one question, and for one replay


@dataclass(frozen=True)
class Proven:
    """A record with its proof, and what it is about."""

    family: str
    record: dict[str, Any]
    proof: bytes
    model: Any
    X: pd.DataFrame
    y: Any
    plain: float
    kept: float

    def verdict(self, record: Any = None, proof: bytes | None = None, model: Any = None) -> Any:
        """Verify it, or a forgery of it."""
        told = self.record if record is None else record
        seen = self.proof if proof is None else proof
        return ifonly.verify(
            told, self.model if model is None else model, self.X, self.y, proof=seen, time_limit=_SECONDS
        )


def of_the_battery(seed: int) -> Iterator[Proven]:
    """Yield proofs of questions that the battery draws."""
    block = -1
    while True:
        block += 1
        mine = [i for i in range(BLOCK * block, BLOCK * (block + 1)) if is_meant(seed, i, ("plain", *FAMILIES))]
        if not mine:
            continue
        try:
            world = draw_world(seed, block)
        except Exception:  # noqa: BLE001 - a model that cannot be fitted on so small a table is no question
            continue
        for i in mine:
            try:
                q = draw_question(seed, i, world)
                if q.kind != "plain":
                    continue
                extra = q.criteria[q.house :]
                about = q.world.model, q.world.data.X, q.world.y if q.with_y else None
                proven = _asked(q.tags["family"].split(",")[0], explainer_for(q), q.factual, q.target, extra, *about)
            except Exception:  # noqa: BLE001 - impossible, already there, beyond a license: no proof to replay
                continue
            if proven is not None:
                yield proven


def of_real_data(n: int) -> Iterator[Proven]:
    """Yield proofs of real questions: forests of 100 trees, in turn over the data sets that are there."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    sets = []
    for load in (german_credit, heloc, adult):
        try:
            sets.append(load())
        except (IfOnlyError, OSError) as missing:
            print(f"{load.__name__} is not there: {missing}", file=sys.stderr)
    for k, data in enumerate(sets):
        X, y = data.frame, data.target
        words = make_column_selector(dtype_exclude="number")
        encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough")
        forest = RandomForestClassifier(100, max_depth=6, n_jobs=1, random_state=0)
        model = make_pipeline(encode, forest).fit(X, y)
        explainer, made = Explainer(model, X, schema=data.schema), 0
        share = n // len(sets) + (k < n % len(sets))
        for r in np.flatnonzero(model.predict(X) != data.wanted):
            if made == share:
                break
            proven = _asked(f"{data.name}, 100 trees", explainer, X.iloc[[int(r)]], data.wanted, (), model, X, None)
            made += proven is not None
            if proven is not None:
                yield proven


def _asked(
    family: str, explainer: Explainer, factual: pd.DataFrame, want: Any, criteria: Any, model: Any, X: Any, y: Any
) -> Proven | None:
    """Return the proof of a question; None where a solver closed it."""
    asked = {"want": want, "criteria": list(criteria), "time_limit": _SECONDS}
    explainer.explain(factual, **asked)  # what is kept from one question to the next is paid for here
    began = time.process_time()
    explainer.explain(factual, **asked)
    plain = time.process_time() - began
    answer = explainer.explain(factual, proof=True, **asked)
    kept = time.process_time() - began - plain
    if answer.proof is None or not unpack(answer.proof)[0]:
        return None
    return Proven(family, answer.record(), answer.proof, model, X, y, plain, kept)


# -- forging ---------------------------------------------------------------------------------------------------------------
Forged = tuple[dict[str, Any], bytes] | None


def _sealed(p: Proven, trail: bytes, **certificate: float) -> Forged:
    """Return a record and a proof whose fingerprints fit each other."""
    record, data = copy.deepcopy(p.record), pack([trail, *unpack(p.proof)[1:]])
    if record.get("proof") is not None:
        record["proof"]["sha256"] = sha256(data).hexdigest()
        if trail:  # a proof without parts would be none
            record["proof"]["parts"] = describe_proof(data)["parts"]
    record["counterfactuals"][0]["certificate"].update(certificate)
    return record, data


def part_removed(p: Proven, rng: np.random.Generator) -> Forged:
    """Leave out one closed part."""
    trail = unpack(p.proof)[0]
    parts = list(events(trail))
    leaves = [i for i, e in enumerate(parts) if isinstance(e, Leaf)]
    i = int(rng.choice(leaves))
    return _sealed(p, _written([*parts[:i], *parts[i + 1 :]]))


def bound_raised(p: Proven, rng: np.random.Generator) -> Forged:
    """Claim a bound above the answer's own cost."""
    cost = float(p.record["counterfactuals"][0]["certificate"]["objective"])
    return _sealed(p, unpack(p.proof)[0], bound=cost * float(1.0 + rng.uniform(1e-4, 0.5)) + 1e-12)


def answer_dearer(p: Proven, rng: np.random.Generator) -> Forged:
    """Claim that the answer, and the bound with it, costs more."""
    cost = float(p.record["counterfactuals"][0]["certificate"]["objective"])
    dearer = cost * float(1.0 + rng.uniform(1e-3, 0.5)) + 1e-9
    return _sealed(p, unpack(p.proof)[0], objective=dearer, bound=dearer)


def truncated(p: Proven, rng: np.random.Generator) -> Forged:
    """Cut the file off."""
    return p.record, p.proof[: int(rng.integers(len(p.proof)))]


def flipped(p: Proven, rng: np.random.Generator) -> Forged:
    """Flip one bit of the file."""
    data, bit = bytearray(p.proof), int(rng.integers(8 * len(p.proof)))
    data[bit // 8] ^= 1 << bit % 8
    return p.record, bytes(data)


def another_row(p: Proven, rng: np.random.Generator) -> Forged:
    """Put another row of the training data into the record."""
    record = copy.deepcopy(p.record)
    columns = record["factual"]["columns"]
    for r in rng.permutation(len(p.X)):
        other = {name: [_plain(p.X[name].iloc[int(r)])] for name in columns}
        if other != columns and not any(v[0] != v[0] for v in other.values()):
            record["factual"]["columns"] = other
            return record, p.proof
    return None


def part_changed(p: Proven, rng: np.random.Generator) -> Forged:
    """Cut a closed part where the question has nothing to cut: at no number."""
    parts = list(events(unpack(p.proof)[0]))
    i = int(rng.choice([i for i, e in enumerate(parts) if isinstance(e, Leaf)]))
    cut = Split(0, value=float("nan"))
    return _sealed(p, _written([*parts[:i], cut, parts[i], parts[i], *parts[i + 1 :]]))


def _written(parts: list[Leaf | Split]) -> bytes:
    ledger = Ledger()
    for e in parts:
        if isinstance(e, Leaf):
            ledger.leaf(e.price)
        elif e.levels is not None:
            ledger.levels(e.feature, e.levels, e.second_first)
        elif e.value is not None:
            ledger.cut(e.feature, e.value, e.second_first)
        else:
            ledger.stays(e.feature, e.second_first)
    return bytes(ledger.data)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


FORGERIES: dict[str, Callable[[Proven, np.random.Generator], Forged]] = {
    "a part removed": part_removed,
    "a bound raised": bound_raised,
    "a part changed": part_changed,
    "the answer dearer": answer_dearer,
    "another row": another_row,
    "a truncated file": truncated,
    "a flipped bit": flipped,
}


def another_model(p: Proven, rng: np.random.Generator) -> Any:
    """Return a model of the same kind that learned something else: from shuffled rows."""
    from sklearn.base import clone

    said = np.asarray(p.model.predict(p.X))
    return clone(p.model).fit(p.X, said[rng.permutation(len(said))])


# -- counting --------------------------------------------------------------------------------------------------------------
@dataclass
class Tally:
    """Counts of what was replayed and what was refused."""

    replayed: Counter[str]
    broken: list[str]
    refused: Counter[str]
    accepted: list[str]
    parts: int = 0
    size: int = 0
    plain: float = 0.0
    kept: float = 0.0
    checking: float = 0.0

    def see(self, p: Proven, kind: str, rng: np.random.Generator) -> None:
        """Replay a proof, forge it in one way, and replay that."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.process_time()
            verdict = p.verdict()
            self.checking += time.process_time() - began
            proofs = [c for c in verdict.checks if c.name == "proof"]
            held = verdict.ok and bool(proofs) and all(c.ok for c in proofs)
            if held:
                self.replayed[p.family] += 1
                self.parts += sum(p.record["proof"]["parts"])
                self.size += len(p.proof)
                self.plain, self.kept = self.plain + p.plain, self.kept + p.kept
            else:
                why = "; ".join(c.sentence for c in verdict.checks if c.ok is not True)
                self.broken.append(f"{p.family}: {why}")
                return
            self._forged(p, kind, rng)

    def _forged(self, p: Proven, kind: str, rng: np.random.Generator) -> None:
        if kind == "another model":
            verdict = p.verdict(model=another_model(p, rng))
        else:
            forged = FORGERIES[kind](p, rng)
            if forged is None:
                return
            verdict = p.verdict(*forged)
        if verdict.ok:
            self.accepted.append(f"{p.family}: {kind}")
        else:
            self.refused[kind] += 1

    def lines(self) -> list[str]:
        """Return the report in Markdown."""
        rows = [f"| {name} | {n:,} |" for name, n in self.replayed.most_common()]
        forged = [
            f"| {name} | {n:,} | {sum(kind_of(a) == name for a in self.accepted)} |" for name, n in self.refused.items()
        ]
        bytes_each = self.size / max(self.parts, 1)
        return [
            "| proofs replayed and accepted | |",
            "|---|---:|",
            *rows,
            f"| **all** | **{self.replayed.total():,}** |",
            f"| not accepted | {len(self.broken)} |",
            "",
            "| forgery | refused | accepted |",
            "|---|---:|---:|",
            *forged,
            f"| **all** | **{self.refused.total():,}** | **{len(self.accepted)}** |",
            "",
            (
                f"{self.parts:,} parts, {bytes_each:.1f} bytes each, file and checksum included. Keeping the proof took "
                f"{self.kept / max(self.plain, 1e-9):.2f} times the processor time of the same question without; "
                f"checking it {1e3 * self.checking / max(self.replayed.total() + len(self.broken), 1):.0f} ms a record."
            ),
        ]


def kind_of(told: str) -> str:
    """Return the kind of a forgery that was accepted."""
    return told.rsplit(": ", 1)[-1]


def main(argv: list[str] | None = None) -> int:
    """Replay, forge, report; return 1 when a proof was not accepted or a forged one was."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proofs", description=__doc__)
    parser.add_argument("--questions", type=int, default=1000, help="proofs of the battery's questions")
    parser.add_argument("--real", type=int, default=100, help="proofs of real questions")
    parser.add_argument("--seed", type=int, default=20261116)
    parser.add_argument("--output", type=Path, default=None, help="a file for the report in Markdown")
    options = parser.parse_args(argv)
    kinds, rng = (*FORGERIES, "another model"), np.random.default_rng(options.seed)
    tally = Tally(Counter(), [], Counter(), [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = 0
        for source, most in (
            (of_the_battery(options.seed), options.questions),
            (of_real_data(options.real), options.real),
        ):
            for k, proven in enumerate(source):
                if k == most:
                    break
                tally.see(proven, kinds[done % len(kinds)], rng)
                done += 1
    lines = tally.lines()
    print("\n".join([*lines, *tally.broken, *tally.accepted]))
    if options.output is not None:
        head = f"`python -m benchmarks.proofs --questions {options.questions} --real {options.real} --seed {options.seed}`:"
        options.output.write_text("\n".join([head, "", *lines, ""]), encoding="utf-8")
    return 1 if tally.broken or tally.accepted else 0


if __name__ == "__main__":
    sys.exit(main())
