"""Forgers of proofs: each changes one thing, and writes fresh checksums and counts wherever they help."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from benchmarks.proofs.asking import Proven
from benchmarks.proofs.trails import written
from ifonly import Explainer, IfOnlyError, SchemaError
from ifonly.question.abilities import verified
from ifonly.question.found import Ended, Found
from ifonly.question.trail import Duals, Event, Leaf, Split, events
from ifonly.record.checker import NotReplayable, Refused, replay
from ifonly.record.proof import describe_proof, pack, unpack
from ifonly.runtime.deadline import Deadline
from ifonly.search.answering import Several

__all__ = ["KINDS", "forged"]

Forged = tuple[dict[str, Any], bytes] | None


def _sealed(p: Proven, trail: bytes, **certificate: float) -> Forged:
    """Return a record and a proof whose fingerprints and counts fit each other."""
    record, data = copy.deepcopy(p.record), pack([trail, *unpack(p.proof)[1:]])
    record["proof"]["sha256"] = sha256(data).hexdigest()
    if trail:  # a proof without parts would be none
        record["proof"]["parts"] = describe_proof(data, [""] * len(unpack(data)))["parts"]
    if certificate:
        record["counterfactuals"][0]["certificate"].update(certificate)
    return record, data


def part_removed(p: Proven, rng: np.random.Generator) -> Forged:
    """Leave out one closed part."""
    parts = list(events(unpack(p.proof)[0]))
    i = int(rng.choice([i for i, e in enumerate(parts) if isinstance(e, Leaf | Duals)]))
    return _sealed(p, written([*parts[:i], *parts[i + 1 :]]))


def bound_raised(p: Proven, rng: np.random.Generator) -> Forged:
    """Claim a bound above the answer's own cost."""
    if p.impossible:
        return None
    cost = float(p.record["counterfactuals"][0]["certificate"]["objective"])
    return _sealed(p, unpack(p.proof)[0], bound=cost * float(1.0 + rng.uniform(1e-4, 0.5)) + 1e-12)


def leaf_changed(p: Proven, rng: np.random.Generator) -> Forged:
    """Write something else in the place of a closed part: half of it, a part of another kind, a cut at no number."""
    parts = list(events(unpack(p.proof)[0]))
    i = int(rng.choice([i for i, e in enumerate(parts) if isinstance(e, Leaf | Duals)]))
    cuts: list[list[Event]] = [
        [Split(0, value=float("nan")), Leaf(), Leaf()],
        [Split(2**31, value=0.0), Leaf(), Leaf()],
        [Split(0, levels=np.ones(60_000, dtype=np.bool_)), Leaf(), Leaf()],
        [Duals(1, np.zeros(1, dtype=np.int64), np.zeros(1))],  # not 1: of a program of one row that may be a true proof
        [Leaf(), Leaf()],
    ]
    return _sealed(p, written([*parts[:i], *cuts[int(rng.integers(len(cuts)))], *parts[i + 1 :]]))


def answer_dearer(p: Proven, rng: np.random.Generator) -> Forged:
    """Put another row in the place of the answer, an answer indeed, with its own cost as cost and bound."""
    if p.impossible:
        return None
    question, statement = p.question, p.question.statement
    own = float(p.record["counterfactuals"][0]["certificate"]["objective"])
    rows = question.query.training.U
    rows = rows[rng.permutation(len(rows))[:400]]
    cost = statement.objective(rows)
    good = np.isfinite(cost) & (cost > own * (1.0 + 1e-4)) & question.goal.confirmed(rows)
    for u in rows[good]:
        if all(bool(verified(d, question.query, u[None, :])[0]) for d in statement.demands if d is not question.goal):
            bound = float(statement.objective(u[None, :])[0])
            found = Found(Ended.CLOSED, u, bound, (), p.record["solver"])
            margin = float(p.record["counterfactuals"][0]["certificate"]["margin"])
            answer = question._counterfactual(u, replace(statement, margin=margin), found)
            told = question.explanation(Several((answer,), (u,)), 0.0).to_dict()
            record = copy.deepcopy(p.record)
            record["counterfactuals"] = told["counterfactuals"]
            record["counterfactuals"][0]["certificate"]["margin"] = margin
            return record, p.proof
    return _sealed(p, unpack(p.proof)[0], objective=1.1 * own + 1e-9, bound=1.1 * own + 1e-9)


def split_moved(p: Proven, rng: np.random.Generator) -> Forged:
    """Move a split, half of them to the cheaper answer that a dearer one is to be hidden behind.

    A moved split alone forges nothing: whatever the splits are, parts that are closed prove what they claim.
    """
    made = answer_dearer(p, rng)
    parts = list(events(unpack(p.proof)[0]))
    moved = [i for i, e in enumerate(parts) if isinstance(e, Split)]
    if made is None or not moved:
        return None
    i = int(rng.choice(moved))
    split = parts[i]
    assert isinstance(split, Split)
    if split.value is not None:
        width = max(abs(split.value), 1.0) * float(rng.choice([1e-12, 1e-3, 0.1]))
        parts[i] = replace(split, value=split.value + width * float(rng.normal()))
    elif split.levels is not None:
        parts[i] = replace(split, levels=np.roll(split.levels, 1))
    else:
        parts[i] = replace(split, second_first=not split.second_first)
    record, data = copy.deepcopy(made[0]), pack([written(parts), *unpack(p.proof)[1:]])
    record["proof"]["sha256"] = sha256(data).hexdigest()
    return record, data


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
    said = p.question.goal.score_of(p.question.query.training.U)
    same = np.isclose(said, record["score"], rtol=1e-5, atol=1e-5)  # of such a row the same may be true
    for r in rng.permutation(np.flatnonzero(~same)):
        other = {name: [_plain(p.X[name].iloc[int(r)])] for name in columns}
        if other != columns and not any(v[0] != v[0] for v in other.values()):
            record["factual"]["columns"] = other
            return record, p.proof
    return None


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


_FORGERS: dict[str, Callable[[Proven, np.random.Generator], Forged]] = {
    "a part removed": part_removed,
    "a bound raised": bound_raised,
    "a leaf changed": leaf_changed,
    "the answer made dearer": answer_dearer,
    "a split moved": split_moved,
    "another row": another_row,
    "a truncated file": truncated,
    "a flipped bit": flipped,
}
KINDS = (*_FORGERS, "another model", "a weight changed")


def another_model(p: Proven, rng: np.random.Generator) -> Any:
    """Return a model of the same kind that learned something else: from shuffled rows.

    Raises
    ------
    ValueError
        When it says the same of every row all the same, as constant models do: then it is no other model.
    """
    from sklearn.base import clone

    said = np.asarray(p.model.predict(p.X))
    other = clone(p.model).fit(p.X, said[rng.permutation(len(said))])
    asked = "predict_proba" if hasattr(p.model, "predict_proba") else "predict"
    then, now = (np.asarray(getattr(model, asked)(p.X)) for model in (p.model, other))
    if then.shape == now.shape and then.dtype.kind == "f" and np.allclose(then, now, rtol=1e-6, atol=1e-9):
        raise ValueError("it says the same")
    return other


@dataclass(frozen=True)
class _Replay:
    """A replay that accepts a trail, or does not."""

    ok: bool


def weight_changed(p: Proven, rng: np.random.Generator) -> _Replay | None:
    """Replay a trail with one weight of the network changed by some per cent, where a cheaper answer has become possible.

    Where none has, the trail may be a true proof of the other network, too.
    """
    for _ in range(8):
        other = other_weight(p.model, rng)
        if other is None:
            return None
        explainer = Explainer(other, p.X, p.y, schema=p.explainer.schema, criteria=p.explainer.criteria)
        try:
            cheaper = explainer.explain(p.factual, want=p.want, criteria=list(p.criteria), time_limit=30.0)
            question = explainer._ask(p.factual, p.want, p.criteria)
        except IfOnlyError:  # the row has the outcome already, or there is no answer
            continue
        bound = np.inf if p.impossible else float(p.record["counterfactuals"][0]["certificate"]["bound"])
        if cheaper[0].certificate.objective >= bound * (1.0 - 1e-6):
            continue
        try:
            replay(question.statement, question.goal, bound, unpack(p.proof)[0], Deadline.after(30.0))
        except (Refused, NotReplayable, SchemaError):
            return _Replay(ok=False)
        return _Replay(ok=True)
    return None


def other_weight(model: Any, rng: np.random.Generator) -> Any:
    """Return a copy of a model with one weight changed by some per cent; None where it has none that is known."""
    other = copy.deepcopy(model)
    last = other.steps[-1][1] if hasattr(other, "steps") else other
    if hasattr(last, "coefs_"):
        weights = [w for layer in (last.coefs_, last.intercepts_) for w in layer]
    elif hasattr(last, "module"):
        weights = [w.detach().numpy() for w in last.module.parameters()]
    else:
        return None
    flat = weights[int(rng.integers(len(weights)))].reshape(-1)
    flat[int(rng.integers(len(flat)))] *= 1.0 + float(rng.choice([-1.0, 1.0])) * float(rng.uniform(0.03, 0.09))
    return other


def forged(p: Proven, kind: str, rng: np.random.Generator) -> tuple[str, Any]:
    """Forge a proof in one way, or remove a part where that cannot be done; return how, and the verdict on it."""
    if kind == "a weight changed":
        seen = weight_changed(p, rng)
        if seen is not None:
            return kind, seen
        kind = "another model"
    if kind == "another model":
        try:
            return kind, p.verdict(model=another_model(p, rng))
        except (TypeError, ValueError):  # what says one thing only teaches no other one, and adapters learn nothing
            kind = "a part removed"
    made = _FORGERS[kind](p, rng)
    if made is None:
        kind, made = "a part removed", part_removed(p, rng)
    assert made is not None
    return kind, p.verdict(*made)
