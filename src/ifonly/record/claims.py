"""Claims of a record about itself: its words, its list of changes, its certificates and its schema must agree with its data.

Whoever reads a record reads the words; whoever checks it checks the data. So the two are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Schema
from ifonly.errors import IfOnlyError
from ifonly.question.found import EXACTLY
from ifonly.record.checks import Check
from ifonly.record.criteria import in_words
from ifonly.record.fingerprints import without_storage
from ifonly.result.serial import feature_to_dict, value_of
from ifonly.result.values import Certificate
from ifonly.tolerances import DUST, OPTIMALITY, ROUNDING
from ifonly.version import __version__

if TYPE_CHECKING:
    from ifonly.search.answering import Question

__all__ = ["changes", "claims", "has_decimals", "nth", "number_of", "same_value", "schema_checks", "words"]

_ORDER = ("optimal", "within_gap", "feasible", "no_bound")


def nth(i: int) -> str:
    """Return the name of an answer."""
    return f"Answer {i + 1}"


def number_of(value: Any) -> float:
    """Return a number of a record; None stands for none."""
    return float("nan") if value is None else float(value)


def same_value(said: Any, then: Any, rounding: float = ROUNDING) -> bool:
    """Whether two values are the same, numbers up to rounding: that of the model where its columns are far from zero."""
    if isinstance(then, float) and not isinstance(said, str):
        return bool(np.isclose(float(said), then, rtol=DUST, atol=max(ROUNDING, rounding)))
    return bool(said == then) or str(said) == str(then)


# -- certificates ----------------------------------------------------------------------------------------------------
def claims(data: Mapping[str, Any], origin: Mapping[str, Any]) -> Iterator[Check]:
    """Check that what a record says of its proofs is in agreement with itself."""
    answers = data.get("counterfactuals", ())
    for i, answer in enumerate(answers):
        yield from _certificate(data, origin, i, answer["certificate"])
    if answers and _ORDER.index(data["status"]) < _ORDER.index(answers[0]["certificate"]["status"]):
        said = answers[0]["certificate"]["status"]
        yield Check("bound", False, f"The record calls itself {data['status']!r}, its first answer {said!r}.")


def _certificate(
    data: Mapping[str, Any], origin: Mapping[str, Any], i: int, proof: Mapping[str, Any]
) -> Iterator[Check]:
    cost, bound = number_of(proof["objective"]), number_of(proof["bound"])
    if proof["bound"] is None:
        bound = -np.inf
    if not bound <= cost + DUST * abs(cost):
        yield Check("bound", False, f"{nth(i)} costs {cost!r}, less than its bound {bound!r}: one of them is wrong.")
        return
    if proof["proven"] and cost - bound > OPTIMALITY * abs(cost) * (1.0 + DUST):
        yield Check("bound", False, f"{nth(i)} is called proven at {cost!r}, but its bound is {bound!r}.")
        return
    if proof.get("observed"):
        if proof["proven"] or np.isfinite(bound):
            yield Check("bound", False, f"{nth(i)} claims a bound, but its model was only observed.")
        else:
            yield Check("bound", True, f"{nth(i)} costs {cost:.6g}; not proven: the model was only observed.")
        return
    anew = Certificate.of(cost, bound, asked_gap=number_of(proof["asked_gap"]))
    gap = np.inf if proof["gap"] is None else number_of(proof["gap"])
    if anew.status != proof["status"] or not (gap == anew.gap or abs(gap - anew.gap) <= DUST):
        said = f"{proof['status']!r} with a gap of {gap:.6g}"
        yield Check("bound", False, f"{nth(i)} is said to be {said}, but its cost and bound make it {anew.status!r}.")
        return
    word = "proven optimal" if proof["proven"] else proof["status"].replace("_", " ")
    yield Check("bound", True, f"{nth(i)} costs {cost:.6g}, is said to be {word}, with the bound {bound:.6g}.")
    yield from _solver(data, origin, i, proof)


def _solver(data: Mapping[str, Any], origin: Mapping[str, Any], i: int, proof: Mapping[str, Any]) -> Iterator[Check]:
    """Say that an answer was closed by a mixed-integer solver, with what settings, and that none of it is replayed."""
    told = origin.get("options", {}).get("settings")
    if told is None or not str(told["solver"]).startswith(str(proof["solver"]).split(",")[0]):
        return
    kept = data.get("proof", {}).get("parts", [])
    if i < len(kept) and kept[i] > 0:
        return
    first, second = told["first"], told["second"]
    yield Check(
        "solver",
        None,
        f"{nth(i)} was closed by {told['solver']} with {_listed(first)}, at its own tolerances, and confirmed with "
        f"{_listed(second)}{f', {EXACTLY}' if EXACTLY in str(proof['solver']) else ''}; a solver's run cannot be replayed.",
    )


def _listed(settings: Mapping[str, Any]) -> str:
    """Return settings in words."""
    return ", ".join(f"{str(key).replace('_', ' ')} {value}" for key, value in settings.items())


# -- words and schema ------------------------------------------------------------------------------------------------
def schema_checks(data: Mapping[str, Any], origin: Mapping[str, Any], X: Any) -> Iterator[Check]:
    """Compare the two schemas of a record with each other, and with the one that the data by itself suggest."""
    same = len(data["schema"]) == len(origin["schema"])
    if not same or not all(_is_widened(*pair) for pair in zip(data["schema"], origin["schema"], strict=True)):
        yield Check("schema", False, "The record has one schema for its rows and another one for its question.")
    try:
        plain = {f.name: feature_to_dict(f) for f in Schema.infer(X).features}
    except (IfOnlyError, TypeError, ValueError):  # data that need a schema of their own
        return
    own = [str(f["name"]) for f in origin["schema"] if f["name"] in plain and not _is_read(f, plain[f["name"]])]
    if own:
        listed = ", ".join(own[:5]) + (f" and {len(own) - 5} more" if len(own) > 5 else "")
        yield Check("schema", None, f"What these may be is declared, not read off the data: {listed}.")


def _is_read(feature: Mapping[str, Any], plain: Mapping[str, Any]) -> bool:
    """Whether a feature is as the data suggest; older records do not name the decimals of the data."""
    seen = {k: v for k, v in plain.items() if k != "decimals" or k in feature}
    return bool(without_storage(feature) == without_storage(seen))


def has_decimals(row: Sequence[Mapping[str, Any]], question: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the answers of a record have the decimals of the data: its row is on grids that its schema does not declare."""
    pairs = zip(row, question, strict=False)
    return any(own.get("precision") is not None and asked.get("precision") is None for own, asked in pairs)


def _is_widened(row: Mapping[str, Any], question: Mapping[str, Any]) -> bool:
    """Whether the feature of a row is that of the question, but for decimals of the data and a range that the row widened."""
    free = ("lower", "upper", "precision")
    own, other = ({k: v for k, v in f.items() if k not in free} for f in (row, question))
    if without_storage(own) != without_storage(other):
        return False
    if "lower" not in question:
        return True
    on_grid = row["precision"] != question["precision"]
    if on_grid and not (question["precision"] is None and row["precision"] == question.get("decimals")):
        return False
    low, high = (number_of(row[end]) for end in ("lower", "upper"))
    room = 10.0 ** -row["precision"] if on_grid else 0.0  # bounds move inwards to the grid
    return low <= number_of(question["lower"]) + room and high >= number_of(question["upper"]) - room


def words(
    data: Mapping[str, Any], origin: Mapping[str, Any], question: Question, criteria: Sequence[Any] | None
) -> Iterator[Check]:
    """Compare what a record says in words with the question that its data make; another version may say it otherwise.

    `criteria` are those of its policy, house and call one after the other; None where it does not hold them whole.
    """
    wish = question.goal.text.removeprefix("want ")
    told: dict[str, tuple[Any, Any]] = {
        "wish": (data.get("wanted", wish), wish),
        "demands": (sorted(origin["demands"]), sorted(d.text for d in question.statement.demands)),
    }
    if criteria is not None:
        told["costs"] = (sorted(origin["costs"]), sorted(in_words(criteria)))
    other = [name for name, (then, now) in told.items() if then != now]
    if other:
        same_version = origin["versions"].get("ifonly") == __version__
        yield Check(
            "words",
            False if same_version else None,
            f"Its words are not those of its data: the {', the '.join(other)}"
            + ("." if same_version else ", or another version says it otherwise."),
        )


def changes(question: Question, answer: Mapping[str, Any], u: FloatArray, name: str) -> Iterator[Check]:
    """Compare the listed changes and the measures of an answer with its row."""
    schema, query = question.query.schema, question.query
    moved = {f.name for f, c in zip(schema.features, query.changed(u)[0], strict=True) if c}
    listed = {c["feature"] for c in answer["changes"]}
    if moved != listed:
        yield Check("changes", False, f"{name}: it changes {sorted(moved)}, but {sorted(listed)} are listed.")
    for change in answer["changes"]:
        j = schema.index(change["feature"])
        pairs = [("after", schema.level_values(j, u[0]))]
        if "before" in change:
            pairs.append(("before", query.value(j)))
        for side, now in pairs:
            if not _same_cell(now, value_of(change[side])):
                words_ = f"{change['feature']!r} is {now!s} {side} the change, and not {change[side]!s} as listed"
                yield Check("changes", False, f"{name}: {words_}.")
    measured: dict[str, float] = {}
    for criterion in question.statement.criteria:
        measured |= {key: float(v[0]) for key, v in criterion.measure(query, u).items()}
    told = {**answer["measures"], "distance": answer["distance"]}
    for key, then in told.items():
        now = measured.get(key)
        if now is not None and not (np.isclose(now, number_of(then), rtol=DUST, atol=ROUNDING) or np.isnan(now)):
            yield Check("measures", False, f"{name}: its {key} is {now!r}, and not {then!r} as written.")


def _same_cell(now: Any, then: Any) -> bool:
    empty = [v is None or (isinstance(v, float) and np.isnan(v)) for v in (now, then)]
    if any(empty):
        return all(empty)
    if isinstance(now, bool | np.bool_ | str) or isinstance(then, bool | str):
        return bool(now == then) or str(now) == str(then)
    try:
        return bool(np.isclose(float(now), float(then), rtol=DUST, atol=0.0))
    except (TypeError, ValueError):
        return bool(now == then) or str(now) == str(then)
