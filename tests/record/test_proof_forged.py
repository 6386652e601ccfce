"""Forged proofs: parts removed, splits moved, bits flipped, files cut, searches broken on purpose. All are refused."""

from __future__ import annotations

import copy
import itertools
import struct
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from benchmarks.proofs.trails import write, written
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import ifonly
from ifonly import (
    Explainer,
    NoCounterfactual,
    SchemaError,
    Sparsity,
)
from ifonly.models.forms.trees import Trees
from ifonly.question.trail import Leaf, Ledger, Split, events
from ifonly.record.checker import NotReplayable, Refused, replay
from ifonly.record.proof import unpack
from ifonly.runtime.deadline import Deadline
from ifonly.search.cells import cost_tables, sums
from ifonly.search.linear import knapsack
from portions import one_in
from proof_cases import MODELS, NEVER, Case, cases, judged, optimum, table


@pytest.mark.parametrize("kind", ["tree", "forest", "boosting"])
def test_no_trail_proves_more_than_is_true(kind: str) -> None:
    for case in itertools.islice(cases(kind, range(12)), 4):
        best = optimum(case)
        assert best >= case.bound - 1e-9
        with pytest.raises(Refused):
            case.replayed(case.trail, best * (1.0 + 1e-6))


# -- forgeries -------------------------------------------------------------------------------------------------------
def subtrees(trail: bytes) -> list[tuple[int, int]]:
    """The byte spans of all events, in order."""
    spans, at = [], 0
    for event in events(trail):
        ledger = Ledger()
        write(ledger, event)
        spans.append((at, at + len(ledger.data)))
        at += len(ledger.data)
    return spans


@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow) if k == "boosting" else k for k in MODELS])
def test_missing_parts_are_refused(kind: str) -> None:
    tried = 0
    for case in cases(kind, range(30)):
        parts = list(events(case.trail))
        for i, part in enumerate(parts):
            if isinstance(part, Leaf) and len(parts) > 1:  # without its only part there is no proof
                tried += 1
                with pytest.raises(Refused):
                    case.replayed(written(parts[:i] + parts[i + 1 :]))
        with pytest.raises(Refused):
            case.replayed(case.trail + case.trail)
        if len(parts) > 1:  # only the first side of a split is shown
            with pytest.raises((Refused, SchemaError)):
                case.replayed(case.trail[:-1])
    assert tried > 10


@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow) if k == "network" else k for k in MODELS])
def test_a_dearer_answer_is_refused(kind: str) -> None:
    for case in cases(kind, range(12)):
        cost = case.answer[0].certificate.objective
        with pytest.raises(Refused):
            case.replayed(case.trail, 1.1 * cost + 1e-3)
        with pytest.raises(Refused):
            case.replayed(case.trail, np.inf)


@pytest.mark.parametrize("kind", [pytest.param("forest", marks=pytest.mark.slow), "boosting"])
def test_moved_splits_prove_nothing_false(kind: str) -> None:
    """Changed splits: a replay that accepts has proven the bound; most moved ones leave a part open."""
    refused, rng = 0, np.random.default_rng(0)
    for case in cases(kind, range(16)):
        best, parts = optimum(case), list(events(case.trail))
        for i, part in enumerate(parts):
            if isinstance(part, Split) and part.value is not None:
                moved = replace(part, value=part.value + float(rng.choice([-1.0, 1.0])))
                try:
                    case.replayed(written([*parts[:i], moved, *parts[i + 1 :]]))
                    assert case.bound <= best + 1e-9
                except Refused:
                    refused += 1
    assert refused >= 3


def test_another_model_another_row_another_leaf() -> None:
    other_row = other_leaf = 0
    for case in cases("forest", range(24)):
        asked = case.asked()
        form = asked.statement.form
        assert isinstance(form, Trees)
        wanted = np.full(form.n_outputs, -1.0)
        wanted[asked.goal.index if form.n_outputs > 1 else 0] = 1.0 if form.n_outputs > 1 or asked.goal.index else -1.0
        nodes = replace(form.nodes, value=form.nodes.value + wanted)  # every leaf is nearer to the goal
        easier = replace(asked.statement, form=replace(form, nodes=nodes))
        try:
            replay(easier, asked.goal, case.bound, case.trail, NEVER)
        except Refused:
            other_leaf += 1
        u = asked.query.factual.copy()
        u[asked.query.schema.starts[2]] += 0.7
        moved = replace(asked.statement, query=replace(asked.query, factual=u))
        try:
            replay(moved, asked.goal, 1.5 * case.bound, case.trail, NEVER)
        except Refused:
            other_row += 1
    assert other_leaf >= 15
    assert other_row >= 8


def test_truncated_files_and_flipped_bits_are_refused() -> None:
    rng = np.random.default_rng(1)
    for kind in MODELS:
        case = next(cases(kind, range(6)))
        proof, record = case.answer.proof, case.answer.record()
        assert proof is not None
        for cut in {0, 1, len(proof) // 2, len(proof) - 1, *rng.integers(0, len(proof), 20).tolist()}:
            with pytest.raises(SchemaError):
                unpack(proof[:cut])
        for _ in range(40):
            bit = int(rng.integers(8 * len(proof)))
            flipped = bytearray(proof)
            flipped[bit // 8] ^= 1 << bit % 8
            with pytest.raises(SchemaError):
                unpack(bytes(flipped))
        verdict = ifonly.verify(record, case.model, case.X, proof=proof[:-40])
        assert [c.ok for c in verdict.checks if c.name == "proof"] == [False]


@pytest.mark.parametrize("kind", one_in(4, MODELS))
def test_flipped_bits_under_a_new_checksum_prove_nothing_false(kind: str) -> None:
    """A new checksum leaves every part to be closed still: no flip proves a dearer answer."""
    rng = np.random.default_rng(2)
    for case in itertools.islice(cases(kind, range(12)), 5):
        for _ in range(30):
            flipped = bytearray(case.trail)
            bit = int(rng.integers(8 * len(flipped)))
            flipped[bit // 8] ^= 1 << bit % 8
            with pytest.raises((Refused, SchemaError)):
                case.replayed(bytes(flipped), case.answer[0].certificate.objective * 1.05)


def test_a_proof_belongs_to_its_record() -> None:
    one, two = itertools.islice((case for case in cases("forest", range(24)) if len(case.trail) > 1), 2)
    assert one.answer.proof is not None
    verdict = ifonly.verify(one.answer.record(), one.model, one.X, proof=two.answer.proof)
    assert "proof" in {c.name for c in verdict.checks if c.ok is False}
    record = copy.deepcopy(one.answer.record())
    certificate = record["counterfactuals"][0]["certificate"]
    certificate["margin"] = certificate["margin"] + 1.0
    verdict = ifonly.verify(record, one.model, one.X, proof=one.answer.proof)
    assert "proof" in {c.name for c in verdict.checks if c.ok is False}


# -- searches that are wrong on purpose --------------------------------------------------------------------------------
def _of_forests(seeds: range) -> Iterator[Case]:
    """Yield questions about small forests, as the search at hand closes them."""
    for seed in seeds:
        X, y = table(seed)
        X = X[["whole", "decimal", "real"]]
        model = RandomForestClassifier(8, max_depth=4, random_state=seed - seeds.start).fit(X, y)
        explainer = Explainer(model, X)
        row = X.iloc[[0]]
        try:
            answer = explainer.explain(row, proof=True)
        except (NoCounterfactual, AssertionError):
            continue
        yield Case(model, X, explainer, answer, row, None)


@pytest.mark.parametrize("rule", one_in(2, ["goal", "cost"]))
def test_a_search_that_prunes_too_much_is_refused(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IFONLY_KERNEL", "numpy")  # only the twin can be made wrong from here
    best, least = sums.Sums.best, cost_tables.CellCosts.least
    if (
        rule == "goal"
    ):  # a part counts as out of reach though its best leaves are good enough, the more so the later it comes
        looks = itertools.count(1)

        def greedy(self: sums.Sums, leaves: Any) -> Any:
            more = 0.1 * next(looks) * (np.abs(self.need).max() + 0.5)
            return best(replace(self, need=self.need + more), leaves)

        monkeypatch.setattr(sums.Sums, "best", greedy)
    else:  # costs count three times
        monkeypatch.setattr(
            cost_tables.CellCosts, "least", lambda self, part: tuple(3.0 * c for c in least(self, part))
        )
    wrong, refused = judged(_of_forests(range(100, 140)))
    assert refused >= wrong >= 1


def test_a_knapsack_that_prunes_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    top = knapsack.Search.top

    def dearer(self: Any, node: Any) -> Any:
        found = top(self, node)
        return None if found is None else found._replace(value=1.3 * found.value)

    monkeypatch.setattr(knapsack.Search, "top", dearer)
    monkeypatch.setattr(knapsack.Search, "_offer", kept_as_it_is)
    refused = 0
    for seed in range(20):
        X, y = table(seed + 200)
        X = X[["whole", "decimal", "real"]]
        model = LogisticRegression(C=1.0).fit(X, y)
        explainer = Explainer(model, X, criteria=[Sparsity(price=0.3)])
        row = X.iloc[[0]]
        try:
            answer = explainer.explain(row, proof=True)
        except NoCounterfactual:
            continue
        case = Case(model, X, explainer, answer, row, None)
        if case.trail:
            try:
                case.replayed(case.trail)
            except Refused:
                refused += 1
    assert refused >= 1


def kept_as_it_is(self: Any, picked: Any) -> None:
    """Take no incumbent back to what is just enough."""
    self.known._keep({j: point.move for j, point in picked.points.items() if point.move is not None})


# -- hostile files ---------------------------------------------------------------------------------------------------
def test_hostile_proofs_end_in_a_sentence() -> None:
    def sealed(body: bytes) -> bytes:
        return body + sha256(body).digest()

    magic = b"ifonly-proof\x01"
    huge = sealed(magic + struct.pack("<IQ", 1, 2**62) + b"\x00")
    many = sealed(magic + struct.pack("<I", 2**32 - 1))
    for data in (b"", magic, huge, many, sealed(magic), b"\x00" * 10_000, sealed(magic + struct.pack("<I", 0) + b"x")):
        with pytest.raises(SchemaError):
            unpack(data)
    case = next(cases("forest", range(12)))
    deep = struct.pack("<BId", 2, 0, 0.5) * 200_000
    with pytest.raises(Refused, match="deep"):
        case.replayed(deep)
    with pytest.raises(Refused, match="decided"):
        case.replayed(struct.pack("<BId", 2, 2**31, 0.5))
    with pytest.raises(SchemaError, match="middle"):
        case.replayed(struct.pack("<BIH", 4, 3, 60_000))
    for nan in (struct.pack("<BId", 2, 0, np.nan), struct.pack("<BIH", 4, 0, 0)):
        with pytest.raises(Refused, match="something else"):
            case.replayed(nan)
    with pytest.raises(SchemaError, match="kind 255"):
        case.replayed(b"\xff" * 1000)
    line = next(cases("linear", range(12)))
    for price in (np.nan, -1.0, np.inf):
        with pytest.raises(Refused, match="multiplier"):
            line.replayed(struct.pack("<Bd", 1, price))


def test_time_is_kept() -> None:
    case = next(cases("forest", range(12)))
    asked = case.asked()
    with pytest.raises(NotReplayable, match="time"):
        replay(asked.statement, asked.goal, case.bound, case.trail, Deadline.after(0.0))
