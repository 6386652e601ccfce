"""An explanation as plain text, and the one way in which values are printed everywhere."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from math import isfinite, isinf, isnan
from numbers import Integral, Real
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from ifonly.data.features import stored_as
from ifonly.data.schema import Feature, Numeric
from ifonly.result.many import Explanations
from ifonly.result.values import Counterfactual, Explanation

__all__ = [
    "facts",
    "format_change",
    "format_range",
    "format_value",
    "outcome",
    "remarks",
    "render",
    "render_batch",
]

_SIGNIFICANT = 6
_LABELS, _VALUES = 29, 15  # least widths of the first two columns, so that ordinary answers look alike
_MOST_FEATURES, _REASON = 5, 90
_ROUNDED = "long numbers are rounded, away from what they are now; .frame() has every digit"


def format_value(value: Any, feature: Feature | None = None) -> str:
    """Return a value as a person would write it: whole numbers plainly, others with at most 6 significant digits.

    Parameters
    ----------
    value
        A number, a level, or a missing value.
    feature
        The feature it belongs to. Levels, and numbers with a fixed `precision`, keep all their digits.

    Examples
    --------
    >>> format_value(24.0), format_value(0.1 + 0.2), format_value(1234567.891), format_value(None)
    ('24', '0.3', '1234568', 'missing')
    """
    number = _decimal(value, feature)
    if number is None:
        return _word(value)
    return _digits(number if _keeps_all(feature) else _cut(number, _places(number), ROUND_HALF_EVEN))


def format_change(before: Any, after: Any, feature: Feature | None = None) -> tuple[str, str]:
    """Return both values of a change as text, such that the texts differ and `after` can be typed in.

    A number with too many digits is rounded *away* from `before`, as far as the feature's bounds allow: what was
    crossed on the way there stays crossed by the printed number.

    Examples
    --------
    >>> format_change(24, 7.123456789)
    ('24', '7.12345')
    >>> format_change(0.5, 0.5000000123)
    ('0.5', '0.500000013')
    """
    start, end = _decimal(before, feature), _decimal(after, feature)
    if start is None or end is None or start == end or _keeps_all(feature):
        return format_value(before, feature), _exact(after, feature)
    finest = 1 - abs(end - start).adjusted()
    cut = _cut(end, max(_places(end), finest), ROUND_CEILING if end > start else ROUND_FLOOR)
    inside = not isinstance(feature, Numeric) or feature.lower <= float(cut) <= feature.upper
    return _digits(_cut(start, max(_places(start), finest), ROUND_HALF_EVEN)), _digits(cut if inside else end)


def format_range(lower: float, upper: float, feature: Feature | None = None) -> tuple[str, str]:
    """Return both ends of a range as text; long numbers are rounded inwards, so the printed range holds too."""
    low, high = _decimal(lower, feature), _decimal(upper, feature)
    if low is None or high is None or low == high or _keeps_all(feature):
        return _exact(lower, feature), _exact(upper, feature)
    finest = 1 - abs(high - low).adjusted()
    low = _cut(low, max(_places(low), finest), ROUND_CEILING)
    high = _cut(high, max(_places(high), finest), ROUND_FLOOR)
    return _digits(low), _digits(high)


def _decimal(value: Any, feature: Feature | None) -> Decimal | None:
    """Return the shortest decimal that reads back as the same number, or None when it is no finite number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or not isfinite(value):
        return None
    if isinstance(value, Integral):
        return Decimal(int(value))
    dtype = stored_as(getattr(value, "dtype", getattr(feature, "dtype", None)))
    if dtype is not None and dtype.kind == "f" and float(dtype.type(value)) == float(value):
        return Decimal(str(dtype.type(value)))
    return Decimal(repr(float(value)))


def _word(value: Any) -> str:
    if value is None or value is pd.NA or (isinstance(value, Real) and isnan(value)):
        return "missing"
    text = str(value)
    return text if text.strip() and text.isprintable() else repr(text)


def _keeps_all(feature: Feature | None) -> bool:
    return feature is not None and (not isinstance(feature, Numeric) or feature.precision is not None)


def _exact(value: Any, feature: Feature | None) -> str:
    number = _decimal(value, feature)
    return _word(value) if number is None else _digits(number)


def _places(number: Decimal) -> int:
    """Return how many decimals show six significant digits; the whole part is never rounded."""
    return max(0, _SIGNIFICANT - 1 - number.adjusted())


def _cut(number: Decimal, places: int, rounding: str) -> Decimal:
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and -exponent <= places:
        return number
    return number.quantize(Decimal(1).scaleb(-places), rounding)


def _digits(number: Decimal) -> str:
    if not number:
        return "0"
    short = number.normalize()
    return f"{short:f}" if -6 <= short.adjusted() <= 15 else f"{short:e}".replace("e+", "e")


def outcome(explanation: Explanation, answer: Counterfactual) -> tuple[str, str]:
    """Return what the model says now and what it would say, each with its score in brackets.

    Regression models are recognised by ``score_name == "value"``: their prediction is the number itself.
    """
    if explanation.score_name == "value":
        return _numbers(explanation.prediction, answer.prediction)
    labels = format_value(explanation.prediction), format_value(answer.prediction)
    scores = _scores(explanation.score, answer.score)
    name = "" if explanation.score_name == "probability" else f"{explanation.score_name} "
    now, then = (f"{label} ({name}{score})" if score else label for label, score in zip(labels, scores, strict=True))
    return now, then


def _numbers(before: Any, after: Any) -> tuple[str, str]:
    start, end = _decimal(before, None), _decimal(after, None)
    if start is None or end is None or start == end:
        return format_value(before), format_value(after)
    finest = 1 - abs(end - start).adjusted()
    texts = [_digits(_cut(n, max(_places(n), finest), ROUND_HALF_EVEN)) for n in (start, end)]
    return texts[0], texts[1]


def _scores(before: float | None, after: float | None) -> tuple[str, str]:
    if before is None or after is None:
        return "" if before is None else f"{before:.2f}", "" if after is None else f"{after:.2f}"
    decimals = next((d for d in range(2, 9) if f"{before:.{d}f}" != f"{after:.{d}f}"), 2)
    return f"{before:.{decimals}f}", f"{after:.{decimals}f}"


def facts(explanation: Explanation, answer: Counterfactual) -> list[str]:
    """Return what is known about one answer: how many changes, how far, and what was proven."""
    changed = f"{len(answer.changes)} of {len(explanation.schema)} features"
    return [changed, f"distance {_short(answer.distance)}", str(answer.certificate)]


def _short(number: float) -> str:
    if number == 0 or isnan(number) or isinf(number):
        return format_value(number) if number == 0 else str(number)
    return f"{number:.2f}" if abs(number) >= 0.01 else f"{number:.2g}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.01 else f"{seconds:.3f} s"


def remarks(explanation: Explanation) -> list[str]:
    """Return the explanation's notes, and a word about rounding where a printed number is not exact."""
    exact = all(
        _exact(change.after, feature) == format_change(change.before, change.after, feature)[1]
        for answer in explanation
        for change in answer.changes
        for feature in [explanation.schema[change.feature]]
    )
    return [*explanation.notes] if exact else [*explanation.notes, _ROUNDED]


def render(explanation: Explanation) -> str:
    """Return the explanation as text: what is, what would be, the outcome of both, and what was proven."""
    effort = ["confirmed by the model", f"{_seconds(explanation.seconds)} ({explanation.solver})"]
    widths = _widths(line for answer in explanation for line in _table(explanation, answer))
    blocks = [_block(explanation, answer, widths) for answer in explanation]
    if not blocks:
        lines = [f"No counterfactual was found. · {effort[1]}"]
    elif len(blocks) == 1:
        lines = blocks[0]
        lines[-1] = " · ".join([lines[-1], *effort])
    else:
        lines = [line for number, block in enumerate(blocks, 1) for line in _numbered(number, block)]
        lines.append(" · ".join([f"{len(blocks)} answers", *effort]))
    return "\n".join([*lines, *(f"note: {remark}" for remark in remarks(explanation))])


def _table(explanation: Explanation, answer: Counterfactual) -> list[tuple[str, str, str]]:
    schema = explanation.schema
    return [(schema.label(c.feature), *format_change(c.before, c.after, schema[c.feature])) for c in answer.changes]


def _widths(lines: Iterable[tuple[str, str, str]]) -> tuple[int, int]:
    """Return the widths of the first two columns, shared by all blocks so that they line up."""
    labels, values = _LABELS, _VALUES
    for label, before, _ in lines:
        labels, values = max(labels, _width(label) + 4), max(values, _width(before) + 2)
    return labels, values


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in text)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _block(explanation: Explanation, answer: Counterfactual, widths: tuple[int, int]) -> list[str]:
    table = _table(explanation, answer)
    if table:
        lines = [_pad("If only ...", widths[0]) + _pad("it is now", widths[1]) + "it would be"]
        lines += [_pad(f"  {name}", widths[0]) + _pad(now, widths[1]) + then for name, now, then in table]
    else:
        lines = ["Nothing has to change:"]
    now, then = outcome(explanation, answer)
    lines.append(f"then  {now}  ->  {then}")
    for change in answer.changes:
        if change.feature in answer.ranges:
            low, high = format_range(*answer.ranges[change.feature], explanation.schema[change.feature])
            label = explanation.schema.label(change.feature)
            lines.append(f"  holds for {label} between {low} and {high}")
    lines += [f"  {name.replace('_', ' ')} {format_value(value)}" for name, value in answer.measures.items()]
    lines.append(" · ".join(facts(explanation, answer)))
    return lines


def _numbered(number: int, block: Sequence[str]) -> list[str]:
    first = f"{number}. "
    return [first + block[0], *(" " * len(first) + line for line in block[1:]), ""]


def render_batch(explanations: Explanations) -> str:
    """Return a summary of a batch: how each row ended, how long it took, and what changed most often."""
    found = explanations.found()
    if not len(explanations):
        return "No rows."
    rows = f"{len(explanations)} row{'s' * (len(explanations) != 1)} in {_seconds(explanations.seconds)}"
    lines = [rows + (f" · median {_seconds(median(e.seconds for e in found))} per row" if found else "")]
    counts = Counter(o.status for o in explanations)
    width = len(str(max(counts.values())))
    for status, count in counts.most_common():
        lines.append(f"  {count:>{width}} {status.replace('_', ' ')}{_reason(explanations, status)}")
    changed = Counter(
        label for e in found for label in {e.schema.label(change.feature): None for c in e for change in c.changes}
    )
    if changed:
        most = ", ".join(f"{label} ({count})" for label, count in changed.most_common(_MOST_FEATURES))
        lines.append(f"Most often changed: {most}")
    return "\n".join(lines)


def _reason(explanations: Explanations, status: str) -> str:
    """Return why the first row of a status has no answer, in one line."""
    first = next((o for o in explanations if o.status == status and o.error is not None), None)
    if first is None:
        return ""
    words = first.reason()
    words = words if len(words) <= _REASON else f"{words[: _REASON - 3].rstrip()}..."
    return f"  (row {first.index}: {words})"
