"""Views for the templates: features as controls, and an answer in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isfinite
from typing import Any

from markupsafe import Markup

from ifonly import Actionability, Certificate, Counterfactual, Explanation, Proximity, Sparsity, Target
from ifonly.studio import figures
from ifonly.studio.insight import Insight
from ifonly.studio.language import Words
from ifonly.studio.library import Integer, Numeric, format_change, format_range
from ifonly.studio.pool import Job
from ifonly.studio.state import Limits, State, as_text
from ifonly.studio.subject import Forecast, Subject
from ifonly.tolerances import ROUNDING

__all__ = ["Control", "Verdict", "WayView", "controls", "verdict", "ways"]


@dataclass(frozen=True)
class Control:
    """One feature as a control of the page."""

    j: int
    name: str
    label: str
    numeric: bool
    ordered: bool
    text: str
    level: int | None
    lower: str
    upper: str
    step: str
    levels: tuple[str, ...]
    low: str
    high: str
    figure: Markup
    limits: Limits
    house: tuple[tuple[str, str], ...]
    locked: bool
    edited: bool
    original: str


@dataclass(frozen=True)
class Verdict:
    """Prediction of the model for the row now."""

    outcome: str
    scores: tuple[tuple[str, float], ...]
    value: float | None
    good: bool | None


@dataclass(frozen=True)
class ChangeView:
    """One change: from where to where, what it buys, and how far it may go."""

    label: str
    before: str
    after: str
    figure: Markup
    buys: str
    span: str
    bar: Markup | None
    gain: bool
    reach: str


@dataclass(frozen=True)
class WayView:
    """One answer."""

    number: int
    changes: tuple[ChangeView, ...]
    now: str
    then: str
    score: str
    limit: str
    distance: str
    proof: str
    proven: bool
    gap: str
    bound: str
    cost: str
    solver: str
    counted: str
    measures: tuple[tuple[str, str], ...]


def controls(state: State, subject: Subject, house: dict[int, list[tuple[str, str]]]) -> list[Control]:
    """Return every feature of the row as a control."""
    values, base = state.values(subject), subject.values(state.row)
    found = []
    for j, feature in enumerate(subject.schema.features):
        own, value = state.limit(j), values[j]
        level = None
        if isinstance(feature, Numeric):
            lower, upper = as_text(feature.lower), as_text(feature.upper)
            step = "any" if feature.step is None else as_text(feature.step)
            levels: tuple[str, ...] = ()
        else:
            lower = upper = step = ""
            levels = tuple(map(str, feature.levels))
            level = next((i for i, known in enumerate(feature.levels) if known == value), None)
        found.append(
            Control(
                j,
                feature.name,
                subject.schema.label(feature.name),
                isinstance(feature, Numeric),
                isinstance(feature, Numeric) or feature.kind == "ordinal",
                as_text(value),
                level,
                lower,
                upper,
                step,
                levels,
                lower if own.low is None else as_text(own.low),
                upper if own.high is None else as_text(own.high),
                figures.histogram(subject.distributions[j], () if level is None else (level,)),
                own,
                tuple(house.get(j, ())),
                _frozen(subject, feature.name),
                j in state.edits,
                as_text(base[j]),
            )
        )
    return found


def _frozen(subject: Subject, name: str) -> bool:
    return any(isinstance(c, Actionability) and name in c.fixed((name,)) for c in subject.explainer.criteria)


def verdict(subject: Subject, forecast: Forecast, words: Words) -> Verdict:
    """Return the model's word in the words of the page."""
    outcome = words.number(forecast.outcome)
    if not subject.classes:
        return Verdict(words.number(float(forecast.outcome)), (), float(forecast.outcome), None)
    scores = tuple(zip(map(str, subject.classes), forecast.scores, strict=False)) if forecast.scores else ()
    good = None if subject.wanted is None else forecast.outcome == subject.wanted
    return Verdict(outcome, scores if subject.has_probabilities else (), None, good)


def ways(job: Job, explanation: Explanation, subject: Subject, words: Words) -> list[WayView]:
    """Return the answers of a job as the page shows them."""
    insights = job.insights or [Insight() for _ in explanation]
    before = words.number(explanation.prediction)
    return [
        _way(i, way, insight, before, job, subject, words)
        for i, (way, insight) in enumerate(zip(explanation, insights, strict=True), 1)
    ]


def _way(
    number: int, way: Counterfactual, insight: Insight, before: str, job: Job, subject: Subject, words: Words
) -> WayView:
    names = [c.feature for c in way.changes]
    limit = _threshold(job, subject)
    bars: list[Markup | None] = [None for _ in names]
    spans = ["" for _ in names]
    if insight.buys and insight.before is not None and insight.after is not None:
        shares = [insight.buys[name] for name in names]
        bars = list(figures.waterfall(insight.before, shares, insight.after, limit))
        levels = [insight.before, *(insight.before + part for part in accumulate(shares))]
        spans = [f"{words.score(a)} → {words.score(b)}" for a, b in pairwise(levels)]
    changes = tuple(
        _change(change, way, insight, bar, span, subject, words)
        for change, bar, span in zip(way.changes, bars, spans, strict=True)
    )
    certificate = way.certificate
    shown = limit is not None and any(bar is not None for bar in bars)
    return WayView(
        number,
        changes,
        before,
        words.number(way.prediction),
        _score(insight, subject, words),
        words("answer.limit", p=words.score(limit), label=insight.label) if shown else "",
        words.score(way.distance),
        _proof(certificate, number, words),
        certificate.proven,
        words.percent(certificate.gap) if isfinite(certificate.gap) else "–",
        words.score(certificate.bound, 4) if isfinite(certificate.bound) else "–",
        words.score(certificate.objective, 4),
        certificate.solver,
        _counted(job, subject, words),
        tuple((name.replace("_", " "), words.number(float(value))) for name, value in way.measures.items()),
    )


def _score(insight: Insight, subject: Subject, words: Words) -> str:
    """Return the score of the wanted outcome, before and after; a regression's score is its prediction."""
    if not subject.classes or insight.before is None or insight.after is None:
        return ""
    name = words("answer.probability" if subject.has_probabilities else "answer.score", label=insight.label)
    return f"{name}: {words.score(insight.before)} → {words.score(insight.after)}"


def _threshold(job: Job, subject: Subject) -> float | None:
    """Return the probability from which on the outcome is as wanted, where there is one."""
    asked = job.asked.want
    if isinstance(asked, Target) and asked.probability is not None:
        return asked.probability
    return 0.5 if subject.has_probabilities and len(subject.classes) == 2 else None


def _counted(job: Job, subject: Subject, words: Words) -> str:
    """Return how the distance and the price of changes were counted, in words."""
    criteria = [*subject.explainer.criteria, *job.asked.criteria]
    near = next((c for c in reversed(criteria) if isinstance(c, Proximity)), None)
    parts = []
    if near is not None:
        scale = near.scale if isinstance(near.scale, str) else "own"
        parts = [words(f"counted.{near.norm}"), *([] if near.norm == "mahalanobis" else [words(f"counted.{scale}")])]
        for kind, named in (("tables", near.tables), ("weights", near.weights)):
            if named:
                parts.append(words(f"counted.{kind}", features=", ".join(subject.schema.label(n) for n in named)))
    prices = [c.price for c in criteria if isinstance(c, Sparsity) and c.price is not None]
    if prices:
        parts.append(words("counted.price", price=words.number(prices[-1])))
    return "; ".join(parts)


def _proof(certificate: Certificate, number: int, words: Words) -> str:
    if certificate.observed:
        return words("proof.observed")
    if certificate.proven:
        return words("proof.proven" if number == 1 else "proof.proven_other")
    if not isfinite(certificate.bound) or certificate.bound <= 0:
        return words("proof.open")
    saved = max(certificate.objective - certificate.bound, 0.0) / max(abs(certificate.objective), ROUNDING)
    return words("proof.gap", gap=words.percent(saved))


def _change(
    change: Any, way: Counterfactual, insight: Insight, bar: Markup | None, span: str, subject: Subject, words: Words
) -> ChangeView:
    feature = subject.schema[change.feature]
    j = subject.schema.index(change.feature)
    before, after = format_change(change.before, change.after, feature)
    distribution = subject.distributions[j]
    if isinstance(feature, Numeric):
        before, after = _spelled(before, words), _spelled(after, words)
        start = float(change.before) if change.before == change.before and change.before is not None else None
        figure = figures.moved(distribution, start, float(change.after))
    else:
        places = {level: i for i, level in enumerate(feature.levels)}
        figure = figures.switched(distribution, places.get(change.before), places.get(change.after))
    share = insight.buys.get(change.feature)
    return ChangeView(
        subject.schema.label(change.feature),
        before,
        after,
        figure,
        "" if share is None else f"{'+' if share >= 0 else '−'}{words.score(abs(share))}",
        span,
        bar,
        share is None or share >= 0,
        _reach(change.feature, way, insight, subject, words),
    )


def _reach(name: str, way: Counterfactual, insight: Insight, subject: Subject, words: Words) -> str:
    feature = subject.schema[name]
    if not isinstance(feature, Numeric):
        return ""
    if name in way.ranges:
        low, high = format_range(*way.ranges[name], feature)
        low, high = (_spelled(end, words) for end in (low, high))
        return words("reach.proven", low=low, high=high)
    found = insight.reach.get(name)
    if found is None:
        return ""
    low, high = words.number(_whole(found.low, feature), feature), words.number(_whole(found.high, feature), feature)
    if low == high:
        return words("reach.only", low=low)
    return words("reach.every" if found.exact else "reach.sampled", low=low, high=high)


def _spelled(number: str, words: Words) -> str:
    return number.replace(".", words("decimal"))


def _whole(value: float, feature: Numeric) -> float:
    return int(value) if isinstance(feature, Integer) else value
