"""Proofs by prices of splits: accepted where true, refused where forged, and bounds held against exact fractions."""

from __future__ import annotations

import itertools
import struct
import zlib
from dataclasses import replace
from fractions import Fraction
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.proofs.trails import written
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

import ifonly
from ifonly import Explainer, NoCounterfactual, Proximity, SchemaError, Sparsity
from ifonly.models.forms.trees import Trees
from ifonly.question.split_names import split_names
from ifonly.question.trail import MOST_OF_PRICES, Leaf, Prices, Split, events
from ifonly.question.varints import folded, read_varints, unfolded, varints
from ifonly.record import proof as proof_file
from ifonly.record.checker import Refused, _parts_of, replay
from ifonly.record.proof import in_words, pack, unpack
from ifonly.record.tree_parts import TreeParts
from ifonly.runtime.tuning import PriceSearch, Tuning
from ifonly.search.cells import improving
from proof_cases import NEVER, Case, judged, optimum

FORCED = PriceSearch(plain_parts=1, plain_parts_compiled=1, first_steps=10, steps=3)


@cache
def priced(seed: int) -> Case | None:
    """A question that is closed by prices from the second part on, with its proof; None: there is no answer."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "whole": rng.integers(0, 6, 80),
            "decimal": rng.uniform(0, 1, 80).round(1),
            "real": rng.normal(size=80).round(1),
        }
    )
    y = (X.whole - 3 * X.decimal + X.real + rng.normal(0, 0.5, 80) > 1.0).astype(int)
    model: Any = RandomForestClassifier(8, max_depth=4, random_state=seed)
    if seed % 2:
        model = GradientBoostingClassifier(n_estimators=12, max_depth=2, random_state=seed)
    model.fit(X, y)
    criteria: list[Any] = [Proximity("l1")] + ([Sparsity(at_most=2, price=0.1)] if seed % 3 == 0 else [])
    explainer = Explainer(model, X, criteria=criteria, tuning=Tuning(prices=FORCED))
    row = X[model.predict(X) == 0].iloc[[seed % 5]]
    try:
        answer = explainer.explain(row, want=1, proof=True)
    except NoCounterfactual:
        return None
    return Case(model, X, explainer, answer, row, 1)


def with_prices(seeds: range, least: int = 1) -> list[Case]:
    found = [case for case in map(priced, seeds) if case is not None]
    chosen = [case for case in found if sum(isinstance(e, Prices) and len(e.split) > 0 for e in events(case.trail))]
    assert len(chosen) >= least
    return chosen


def test_proofs_by_prices_are_replayed_and_true() -> None:
    for case in with_prices(range(10), 5):
        best = optimum(case)
        assert case.answer[0].certificate.proven
        assert best >= case.bound - 1e-9
        assert case.replayed(case.trail).parts == sum(isinstance(e, Leaf) for e in events(case.trail))
        record = case.answer.record()
        assert "not_replayable" not in record["proof"]
        verdict = ifonly.verify(record, case.model, case.X, proof=case.answer.proof)
        assert [check.ok for check in verdict.checks if check.name == "proof"] == [True], str(verdict)
        assert "prices of splits change" in in_words(case.trail, list(case.X.columns))
        for bound in (best * (1.0 + 1e-6), np.inf):
            with pytest.raises(Refused):
                case.replayed(case.trail, bound)


def test_without_its_prices_or_parts_a_proof_is_refused() -> None:
    """Eight numbers and 25 trees: prices close most of it. Other prices may do as well, but none proves what is false."""
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.normal(size=(300, 8)).round(2), columns=list("abcdefgh"))
    y = (X.sum(axis=1) + np.sin(3 * X["a"]) > 0).astype(int)
    model = RandomForestClassifier(25, max_depth=5, random_state=0).fit(X, y)
    explainer = Explainer(
        model, X, criteria=[Proximity("l1")], tuning=Tuning(prices=PriceSearch(plain_parts_compiled=1, plain_parts=1))
    )
    row = X.iloc[[int(model.predict_proba(X)[:, 1].argmin())]]
    case = Case(model, X, explainer, explainer.explain(row, want=1, proof=True), row, 1)
    all_of = list(events(case.trail))
    assert case.replayed(case.trail).parts > 5
    with pytest.raises(Refused):
        case.replayed(written([event for event in all_of if not isinstance(event, Prices)]))
    refused = 0
    for i, event in list(enumerate(all_of))[:60]:
        if isinstance(event, Leaf):
            with pytest.raises(Refused):
                case.replayed(written(all_of[:i] + all_of[i + 1 :]))
        if isinstance(event, Prices) and len(event.split):
            less = replace(event, split=event.split[:0], change=event.change[:0], mu=0.0)
            for other in (less, replace(event, change=event.change + 40)):
                forged = written([*all_of[:i], other, *all_of[i + 1 :]])
                try:
                    case.replayed(forged)
                except Refused:
                    refused += 1
                with pytest.raises(Refused):
                    case.replayed(forged, case.answer[0].certificate.objective * 1.001)
    assert refused >= 5


def test_another_leaf_and_flipped_bits_prove_nothing_false() -> None:
    rng, leaves = np.random.default_rng(3), 0
    for case in with_prices(range(8)):
        asked = case.asked()
        form = asked.statement.form
        assert isinstance(form, Trees)
        wanted = np.full(form.n_outputs, -1.0)
        wanted[asked.goal.index if form.n_outputs > 1 else 0] = 1.0
        easier = replace(form, nodes=replace(form.nodes, value=form.nodes.value + wanted))
        try:
            replay(replace(asked.statement, form=easier), asked.goal, case.bound, case.trail, NEVER)
        except Refused:
            leaves += 1
        best = optimum(case)
        for _ in range(25):
            flipped = bytearray(case.trail)
            bit = int(rng.integers(8 * len(flipped)))
            flipped[bit // 8] ^= 1 << bit % 8
            with pytest.raises((Refused, SchemaError)):
                case.replayed(bytes(flipped), best * 1.01)
    assert leaves >= 2


def test_a_search_whose_prices_close_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IFONLY_KERNEL", "numpy")  # only the twin can be made wrong from here
    left = improving.Improving._left
    monkeypatch.setattr(
        improving.Improving,
        "_left",
        lambda self, part, leaves, bound, spare: left(self, part, leaves, bound, 0.1 * spare),
    )
    wrong, refused = judged(filter(None, map(priced.__wrapped__, range(10))))
    assert refused >= wrong
    assert refused >= 1


# -- the bound, against exact fractions --------------------------------------------------------------------------------
def test_what_any_prices_take_away_holds_no_better_answer() -> None:
    """All points of small ensembles, with exact scores and costs: none that is better lies in what prices close."""
    rng, closed = np.random.default_rng(8), 0
    for case in itertools.islice(with_prices(range(10)), 6):
        asked = case.asked()
        noise = asked.goal.rounding(asked.statement.form, asked.statement.box())
        statement, first = asked.goal.with_first_margin(asked.statement, noise), first_prices(case)
        for bound in (case.bound, 1.2 * case.bound):
            parts = _parts_of(statement, asked.goal, bound, NEVER)
            assert isinstance(parts, TreeParts)
            better = [point for point in exact_points(parts) if point[1] >= 0 and point[2] < Fraction(bound)]
            price = np.zeros(2 * len(split_names(parts.form.leaves).tree), dtype=np.int64)
            price[first.split] = first.change
            for most in (0, 1, 3, 10):
                other = price + rng.integers(0, most + 1, len(price))
                some = np.flatnonzero(other)
                mu = first.mu * float(rng.uniform(0.7, 1.3))
                left = parts.priced(parts.whole(), None, Prices(first.exponent, mu, some, other[some]))
                closed += not left.alive.all()
                for options, _, _, leaves in better:
                    assert left.options[list(options)].all()
                    assert left.alive[list(leaves)].all()
    assert closed >= 10


def first_prices(case: Case) -> Prices:
    """The prices of the whole, all changes added up."""
    changes: dict[int, int] = {}
    before = [
        e for e in itertools.takewhile(lambda e: isinstance(e, Prices), events(case.trail)) if isinstance(e, Prices)
    ]
    for event in before:
        for split, change in zip(event.split.tolist(), event.change.tolist(), strict=True):
            changes[split] = changes.get(split, 0) + change
    some = sorted(changes)
    return replace(before[-1], split=np.array(some, dtype=np.int64), change=np.array([changes[i] for i in some]))


def exact_points(parts: TreeParts) -> list[tuple[tuple[int, ...], Fraction, Fraction, tuple[int, ...]]]:
    """Options, score above the goal, cost and leaves of every point within the number of changes, in fractions."""
    all_of = []
    menus = [range(int(f), int(f + s)) for f, s in zip(parts.first, parts.size, strict=True)]
    constant = sum(map(Fraction, parts.constants[0]), Fraction(0))
    for options in itertools.product(*menus):
        if sum(not parts.home[o] for o in options) > parts.most:
            continue
        inside = np.ones(len(parts.node), dtype=np.bool_)
        for k in parts.begin:
            place = parts.place[options[k]]
            inside &= (parts.begin[k] <= place) & (parts.end[k] >= place)
        leaves = tuple(np.flatnonzero(inside).tolist())
        if len(leaves) < len(parts.tree_first):  # beyond what costs less than the bound
            continue
        score = sum((Fraction(float(parts.values[0][leaf])) for leaf in leaves), constant)
        cost = sum((Fraction(float(parts.cost[o])) for o in options), Fraction(0))
        all_of.append((options, score, cost, leaves))
    return all_of


# -- files and hostile prices --------------------------------------------------------------------------------------------
def test_files_with_prices_are_packed_and_others_stay_as_they_were() -> None:
    case = with_prices(range(6))[0]
    assert case.answer.proof is not None
    assert case.answer.proof.startswith(b"ifonly-proof\x02")
    assert unpack(pack([case.trail, b""])) == (case.trail, b"")
    assert pack([b"\x00"]).startswith(b"ifonly-proof\x01")
    for cut in (0, 13, 40, len(case.answer.proof) - 1):
        with pytest.raises(SchemaError):
            unpack(case.answer.proof[:cut])


def sealed(*blocks: bytes) -> bytes:
    body = b"ifonly-proof\x02" + struct.pack("<I", len(blocks))
    body += b"".join(struct.pack("<Q", len(block)) + block for block in blocks)
    return body + sha256(body).digest()


def test_bombs_and_broken_streams_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_file, "MOST_BYTES", 2**20)
    bomb = zlib.compress(bytes(2**22), 9)
    half = zlib.compress(bytes(2**19 + 10), 9)
    for data in (sealed(bomb), sealed(half, half), sealed(bomb[:-4]), sealed(b"no stream"), sealed(half + b"x")):
        with pytest.raises(SchemaError):
            unpack(data)
    assert unpack(sealed(half)) == (bytes(2**19 + 10),)


def test_hostile_prices_end_in_a_sentence() -> None:
    case = with_prices(range(6))[0]
    event = next(e for e in events(case.trail) if isinstance(e, Prices) and len(e.split))
    leaf = bytes([0])
    n = 2 * len(split_names(case.asked().statement.form.leaves).tree)
    one = np.array([1])
    for bad in (
        replace(event, split=np.array([n]), change=one),
        replace(event, change=event.change - 10**6),
        replace(event, exponent=event.exponent + 80),
        replace(event, exponent=event.exponent - 80),
        replace(event, change=event.change + 2**33),
        replace(event, mu=1e300),
    ):
        with pytest.raises(Refused):
            case.replayed(written([bad]) + leaf)
    with pytest.raises(Refused, match="no budget"):
        case.replayed(written([replace(event, mu=1.0)]) + leaf, np.inf)
    with pytest.raises(Refused, match="two units"):
        case.replayed(written([event, replace(event, exponent=event.exponent + 1)]) + leaf)
    for mu in (0x7FF00000, 0x7FF80000, 0xBFF00000):  # infinite, no number, below 0
        with pytest.raises(SchemaError, match="no numbers"):
            case.replayed(struct.pack("<BhII", 10, event.exponent, mu, 0) + leaf)
    for block in (b"\x80", b"\x00", b"\x80\x80\x80\x80\x80\x00\x00"):
        with pytest.raises(SchemaError, match="no numbers"):
            case.replayed(struct.pack("<BhII", 10, event.exponent, 0, len(block)) + block)
    with pytest.raises(SchemaError, match="middle"):
        case.replayed(struct.pack("<BhII", 10, 0, 0, 2**31))
    with pytest.raises(SchemaError, match="more than"):
        case.replayed(struct.pack("<BhII", 10, 0, 0, MOST_OF_PRICES + 1) + bytes(MOST_OF_PRICES + 1))


def test_numbers_as_bytes_come_back() -> None:
    numbers = np.array([0, 1, 127, 128, 300, 2**31, 2**35 - 1])
    assert read_varints(varints(numbers)).tolist() == numbers.tolist()  # type: ignore[union-attr]
    signed = np.array([0, -1, 1, -2, 2**30, -(2**30)])
    assert unfolded(folded(signed)).tolist() == signed.tolist()
    assert isinstance(next(events(written([Split(0, value=1.0)]))), Split)
