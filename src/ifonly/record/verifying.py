"""Verification of a record from scratch: fingerprints, predictions, demands, costs, ranges and conflicts.

Nothing of the search takes part, but for an impossibility, which is asked again. A bound is compared with the cost it is
said to bound; where there is a proof, it is replayed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ifonly.criteria.house import combined
from ifonly.criteria.validity import Target
from ifonly.data.schema import Numeric, Schema
from ifonly.errors import IfOnlyError, IfOnlyWarning, Infeasible, NoCounterfactual, SchemaError, UnsupportedModel
from ifonly.question.abilities import verified
from ifonly.record.checks import Check
from ifonly.record.claims import changes, claims, has_decimals, nth, number_of, same_value, schema_checks, words
from ifonly.record.criteria import criteria_from_data, criteria_to_data
from ifonly.record.fingerprints import of_json, of_schema
from ifonly.record.reading import read_record
from ifonly.record.replaying import proof_checks
from ifonly.record.versions import differing, fault_of, unasked
from ifonly.record.writing import describe, salted
from ifonly.result.origin import Origin
from ifonly.result.serial import feature_from_dict, frame_from_dict, value_of
from ifonly.runtime.deadline import Deadline
from ifonly.tolerances import DUST, FEASIBILITY

if TYPE_CHECKING:
    from ifonly.explain import Explainer
    from ifonly.search.answering import Question

__all__ = ["Check", "Verdict", "verify"]

_SCORES = FEASIBILITY  # scores are sums in an order that may differ between versions and machines
_AGREE = DUST  # relative: a cost that is computed anew may differ by rounding alone


@dataclass(frozen=True)
class Verdict:
    """All checks of a record, in order; it stands if none of them fails."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing that was checked fails."""
        return all(check.ok is not False for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values."""
        return {"ok": self.ok, "checks": [{"name": c.name, "ok": c.ok, "sentence": c.sentence} for c in self.checks]}

    def __str__(self) -> str:
        marks = {True: "ok  ", False: "FAIL", None: "note"}
        lines = [f"{marks[c.ok]}  {c.sentence}" for c in self.checks]
        failed = sum(c.ok is False for c in self.checks)
        return "\n".join(
            [*lines, "The record stands." if self.ok else f"The record does not stand: {failed} checks fail."]
        )


def verify(
    record: Any,
    model: Any,
    X: Any,
    y: Any = None,
    *,
    factual: Any = None,
    salt: bytes | None = None,
    criteria: Sequence[Any] | None = None,
    time_limit: float = 60.0,
    proof: bytes | str | Path | None = None,
) -> Verdict:
    """Check a record against a model and its training data.

    Parameters
    ----------
    record
        A record: plain values, JSON text, or the `Path` of a file.
    model, X, y
        The fitted model and the data it was trained on, as they were given to the `Explainer`.
    factual
        The row, for a record that leaves it out.
    salt
        The key of a salted record.
    criteria
        The criteria, house and call together, for a record whose policy holds models or functions.
    time_limit
        Seconds for asking an impossible question again, and for replaying a proof.
    proof
        The proof, as bytes or as the path of its file; of a record that is given as a `Path`, the file beside it.

    Returns
    -------
    Verdict
        A sentence per check; ``ok`` says whether the record stands.

    Raises
    ------
    SchemaError
        When this is no record at all.
    """
    data = read_record(record)
    beside = record.with_suffix(".proof") if isinstance(record, Path) else None
    if proof is None and "proof" in data and beside is not None and beside.exists():
        proof = beside
    checks: list[Check] = []
    try:
        with np.errstate(all="ignore"):  # a hostile record may hold any number
            verification = _Verification(data, factual, salt, criteria, time_limit, proof)
            checks.extend(verification.checks(model, X, y))
    except IfOnlyError:
        raise
    except Exception as error:  # noqa: BLE001 - hostile records fail in any way, and so do models of other versions
        fault = fault_of(model, X, y)
        if fault is None or not data["origin"]:
            raise SchemaError(f"The record is damaged: {type(error).__name__}: {str(error)[:200]}.") from None
        checks.append(Check("model", False, unasked(fault, data["origin"]["versions"])))
    return Verdict(tuple(checks))


class _Verification:
    """Checks of one record."""

    def __init__(
        self,
        data: Mapping[str, Any],
        factual: Any,
        salt: bytes | None,
        criteria: Sequence[Any] | None,
        time_limit: float,
        proof: bytes | str | Path | None,
    ) -> None:
        self.data, self.given, self.salt, self.criteria, self.time_limit = data, factual, salt, criteria, time_limit
        self.origin: Mapping[str, Any] | None = data["origin"]
        self.proof = proof

    def checks(self, model: Any, X: Any, y: Any) -> Iterator[Check]:
        """Yield all checks, as far as they can be made."""
        if self.origin is None:
            yield Check(
                "origin", False, "The record does not say under which policy it was made, so nothing can be checked."
            )
            return
        yield from claims(self.data, self.origin)
        try:
            explainer = self._explainer(model, X, y)
        except UnsupportedModel as error:
            yield Check("model", False, unasked(error, self.origin["versions"]))
            return
        except IfOnlyError as error:
            yield Check("policy", False, f"The question cannot be put together again: {error}")
            return
        yield from self._prints(explainer)
        yield from schema_checks(self.data, self.origin, X)
        row = self._factual()
        if row is None:
            yield Check("factual", None, "The record leaves the factual out; pass it to check the answers.")
            return
        if self.salt is not None and "hmac_sha256" in self.data["factual"]:
            same = salted(row, self.salt) == self.data["factual"]["hmac_sha256"]
            yield Check("factual", same, "The factual is " + ("" if same else "not ") + "the one that was salted.")
        yield from self._answers(explainer, row)

    def _explainer(self, model: Any, X: Any, y: Any) -> Explainer:
        from ifonly.explain import Explainer  # noqa: PLC0415 - records are written by its answers

        assert self.origin is not None
        schema = Schema(tuple(feature_from_dict(f) for f in self.origin["schema"]))
        policy = self.origin["policy"]
        criteria = self.criteria
        if criteria is None:
            criteria = combined(criteria_from_data(policy["house"]), criteria_from_data(policy["call"]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IfOnlyWarning)
            options = self.origin["options"]
            return Explainer(
                model,
                X,
                y,
                schema=schema,
                criteria=criteria,
                random_state=options["seed"],
                surrogate=options.get("surrogate"),
            )

    def _policy(self) -> tuple[Any, ...] | None:
        """Return the criteria of the record, house and call; None where it holds some only by their fingerprints."""
        assert self.origin is not None
        policy = self.origin["policy"]
        if self.criteria is not None:
            return None
        return (*criteria_from_data(policy["house"]), *criteria_from_data(policy["call"]))

    def _prints(self, explainer: Explainer) -> Iterator[Check]:
        """Compare fingerprints and versions; what differs is named."""
        assert self.origin is not None
        now, then = describe(Origin(explainer)), self.origin
        policy = then["policy"]
        if self.criteria is None:
            same = of_json([policy["house"], policy["call"]]) == then["sha256"]["policy"]
            yield Check("policy", same, "The policy is " + ("" if same else "not ") + "the one of the fingerprint.")
        else:
            told = criteria_to_data(tuple(self.criteria))
            same = told in ([*policy["house"], *policy["call"]], policy["house"])
            yield Check("policy", same, "The criteria given are " + ("" if same else "not ") + "those of the record.")
        for name, said in (("model", "model"), ("schema", "schema"), ("training", "training data")):
            same = now["sha256"][name] == then["sha256"][name]
            if name == "schema":  # once of other bytes for texts in other memory
                own = then["schema"]
                same = of_schema(now["schema"]) == of_schema(own) and then["sha256"][name] in (
                    of_schema(own),
                    of_json(own),
                )
            says = "is the one of the record" if same else "is another one than that of the record"
            yield Check(name, same, f"The {said} {says} (SHA-256 {then['sha256'][name][:12]}...).")
        other = differing(then["versions"], now["versions"])
        if other:
            yield Check("versions", None, "Other versions are installed: " + "; ".join(other) + ".")

    def _factual(self) -> pd.DataFrame | None:
        if "hidden" not in self.data["factual"]:
            return frame_from_dict(self.data["factual"])
        if self.given is None:
            return None
        schema = Schema(tuple(feature_from_dict(f) for f in self.data["schema"]))
        return schema.row(self.given)

    # -- answers --------------------------------------------------------------------------------------------------------
    def _answers(self, explainer: Explainer, row: pd.DataFrame) -> Iterator[Check]:
        assert self.origin is not None
        want = _want(self.origin["want"])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IfOnlyWarning)
                question = explainer._ask(
                    row, want, (), decimals=has_decimals(self.data["schema"], self.origin["schema"])
                )
        except IfOnlyError as error:
            yield Check("question", False, f"The question cannot be asked any more: {error}")
            return
        yield from words(self.data, self.origin, question, self._policy())
        if self.data["kind"] == "impossible":
            if "prediction" in self.data:  # not in the first records of this format
                yield from self._of_factual(explainer, question)
            yield from self._impossible(explainer, question, row, want)
            return
        yield from self._of_factual(explainer, question)
        for i, answer in enumerate(self.data["counterfactuals"]):
            yield from self._answer(question, explainer, answer, nth(i), row)
        if "proof" in self.data or self.proof is not None:
            limit = Deadline.after(self.time_limit)
            yield from proof_checks(self.data, self.proof, question.statement, question.goal, limit)

    def _of_factual(self, explainer: Explainer, question: Question) -> Iterator[Check]:
        """Compare what the model says of the factual with what was written."""
        said = explainer.model.predict(question.query.factual[None, :])[0]
        then = value_of(self.data["prediction"])
        same = same_value(said, then, _rounding(question))
        yield Check("factual", same, f"The model says {said!s} of the factual" + ("." if same else f", not {then!s}."))
        yield from _score(question, question.query.factual[None, :], self.data["score"], "The factual")

    def _impossible(self, explainer: Explainer, question: Question, row: pd.DataFrame, want: Any) -> Iterator[Check]:
        """Replay the proof that there is no answer, and ask again for the clash."""
        if "proof" in self.data or self.proof is not None:
            limit = Deadline.after(self.time_limit)
            yield from proof_checks(self.data, self.proof, question.statement, question.goal, limit)
        yield self._asked_again(explainer, row, want)

    def _asked_again(self, explainer: Explainer, row: pd.DataFrame, want: Any) -> Check:
        told = set(self.data["conflict"])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IfOnlyWarning)
                explainer.explain(row, want=want, time_limit=self.time_limit)
        except Infeasible as error:
            same = set(error.conflict) == told
            other = "" if same else f" This time the clash named is: {'; '.join(error.conflict)}."
            return Check("conflict", True, f"Asked again, it is impossible again.{other}")
        except NoCounterfactual as error:
            return Check("conflict", None, f"Asked again, no verdict: {error}")
        except IfOnlyError as error:
            return Check("conflict", False, f"The question cannot be asked again: {error}")
        return Check("conflict", False, "Asked again, there is an answer: it is not impossible.")

    def _answer(
        self, question: Question, explainer: Explainer, answer: Mapping[str, Any], name: str, row: pd.DataFrame
    ) -> Iterator[Check]:
        schema = explainer.schema
        frame = (
            frame_from_dict(answer["row"]) if answer["row"] is not None else _changed(schema, row, answer["changes"])
        )
        u = question.query.schema.encode(frame, missing=True)
        confirmed = bool(question.goal.confirmed(u)[0])
        said, then = explainer.model.predict(u)[0], value_of(answer["prediction"])
        same = same_value(said, then, _rounding(question))
        yield Check(
            "prediction",
            confirmed and same,
            f"{name}: the model says {said!s}, {'as wanted' if confirmed else 'not as wanted'}"
            + ("." if same else f", and not {then!s} as written."),
        )
        yield from _score(question, u, answer["score"], name)
        broken = [
            d.text
            for d in question.statement.demands
            if d is not question.goal and not bool(verified(d, question.query, u)[0])
        ]
        yield Check(
            "demands",
            not broken,
            f"{name}: " + (f"breaks {'; '.join(broken)}." if broken else "all demands are met, measured anew."),
        )
        cost, told = float(question.statement.objective(u)[0]), number_of(answer["certificate"]["objective"])
        same = abs(cost - told) <= _AGREE * max(abs(cost), abs(told))
        yield Check(
            "cost", same, f"{name}: its cost, measured anew, is {cost!r}" + ("." if same else f", not {told!r}.")
        )
        yield from changes(question, answer, u, name)
        if answer["ranges"]:
            yield self._ranges(question, answer["ranges"], u[0], name)

    def _ranges(self, question: Question, ranges: Mapping[str, Any], u: Any, name: str) -> Check:
        """Put corners and random points of the ranges, one feature at a time and all together, to the model."""
        schema = question.query.schema
        ends = {schema.index(n): (number_of(low), number_of(high)) for n, (low, high) in ranges.items()}
        ends = {
            j: pair for j, pair in ends.items() if isinstance(schema.features[j], Numeric) and np.isfinite(pair).all()
        }
        rows = [_at(u, schema, {j: end}) for j, pair in ends.items() for end in pair]
        rng = np.random.default_rng(0)
        for j, (low, high) in ends.items():
            feature = schema.features[j]
            assert isinstance(feature, Numeric)
            values = rng.uniform(low, high, question.query.tuning.checking.samples)
            rows += [_at(u, schema, {j: min(max(feature.snap(float(v)), low), high)}) for v in values]
        if not rows:
            return Check("ranges", None, f"{name}: there is no range to check.")
        U = question.query.schema.encode(question.query.schema.decode(np.array(rows)), missing=True)
        bad = int((~question.goal.confirmed(U)).sum())
        return Check(
            "ranges",
            bad == 0,
            f"{name}: of {len(rows):,} ends and points of its ranges, {'none flips' if not bad else f'{bad:,} flip'}.",
        )


def _rounding(question: Question) -> float:
    """Return how far a predicted value may be off by rounding alone; a label never is."""
    read, statement = question.query.model.read, question.statement
    return 0.0 if read.classes else question.goal.rounding(statement.form, statement.box())


def _score(question: Question, u: Any, told: Any, name: str) -> Iterator[Check]:
    """Compare a score with what is computed now; it depends on every value of the row, those that did not change too."""
    if told is not None:
        now, then = float(question.goal.score_of(u)[0]), number_of(told)
        same = bool(np.isclose(now, then, rtol=_SCORES, atol=_SCORES))
        yield Check(
            "score", same, f"{name}: its score is {now:.9g}" + ("." if same else f", not {then:.9g} as written.")
        )


def _want(data: Mapping[str, Any]) -> Any:
    if data.get("any_of") is not None:
        return Target(any_of=tuple(value_of(label) for label in data["any_of"]))
    parts = {name: value_of(data[name]) for name in ("label", "probability", "at_least", "at_most")}
    return parts["label"] if all(parts[n] is None for n in ("probability", "at_least", "at_most")) else Target(**parts)


def _changed(schema: Schema, row: pd.DataFrame, changes: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the factual with the changes of an answer."""
    out = row.astype(object)
    for change in changes:
        feature, value = schema[change["feature"]], value_of(change["after"])
        missing = np.nan if isinstance(feature, Numeric) else None
        out[feature.name] = pd.Series([missing if value is None else value], index=out.index, dtype=object)
    return out


def _at(u: Any, schema: Schema, values: Mapping[int, float]) -> Any:
    out = u.copy()
    for j, value in values.items():
        out[schema.starts[j]] = value
    return out
