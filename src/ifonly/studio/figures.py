"""Small pictures as SVG: distributions, a gap that closes, and what each change buys. Numbers only, no text from data."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ifonly.studio.subject import Distribution

__all__ = ["closing", "histogram", "moved", "waterfall"]

_WIDTH, _HEIGHT = 240.0, 44.0


def _svg(body: str, width: float, height: float, kind: str) -> Markup:
    frame = f'viewBox="0 0 {width:g} {height:g}" preserveAspectRatio="none" aria-hidden="true" focusable="false"'
    # Every part is a number that was formatted here.
    return Markup(f'<svg class="{kind}" {frame}>{body}</svg>')  # noqa: S704


def _bars(distribution: Distribution, marked: Sequence[int] = ()) -> str:
    most = max((*distribution.counts, 1))
    wide = _WIDTH / max(len(distribution.counts), 1)
    parts = []
    for i, count in enumerate(distribution.counts):
        tall = max((_HEIGHT - 2) * count / most, 1.0 if count else 0.0)
        kind = ' class="is"' if i in marked else ""
        parts.append(
            f'<rect{kind} data-bar="{i}" x="{i * wide + 0.5:.2f}" y="{_HEIGHT - tall:.2f}" width="{wide - 1:.2f}" '
            f'height="{tall:.2f}"/>'
        )
    return "".join(parts)


def histogram(distribution: Distribution, marked: Sequence[int] = ()) -> Markup:
    """Return the distribution of a feature, some of its bars marked."""
    return _svg(_bars(distribution, marked), _WIDTH, _HEIGHT, "histogram")


def moved(distribution: Distribution, before: float | None, after: float | None) -> Markup:
    """Return the distribution of a number with an arrow from where it is to where it would be."""
    body = _bars(distribution)
    edges = distribution.edges
    low, span = edges[0], (edges[-1] - edges[0]) or 1.0

    def at(value: float) -> float:
        return min(max(_WIDTH * (value - low) / span, 1.0), _WIDTH - 1.0)

    if before is not None:
        body += f'<line class="now" x1="{at(before):.2f}" x2="{at(before):.2f}" y1="0" y2="{_HEIGHT:g}"/>'
    if after is not None:
        body += f'<line class="then" x1="{at(after):.2f}" x2="{at(after):.2f}" y1="0" y2="{_HEIGHT:g}"/>'
    if before is not None and after is not None:
        body += f'<line class="way" x1="{at(before):.2f}" x2="{at(after):.2f}" y1="6" y2="6"/>'
    return _svg(body, _WIDTH, _HEIGHT, "histogram")


def switched(distribution: Distribution, before: int | None, after: int | None) -> Markup:
    """Return the counts of the levels, with the one that is and the one that would be."""
    body = _bars(distribution)
    wide = _WIDTH / max(len(distribution.counts), 1)
    for kind, level in (("now", before), ("then", after)):
        if level is not None:
            x = (level + 0.5) * wide
            body += f'<line class="{kind}" x1="{x:.2f}" x2="{x:.2f}" y1="0" y2="{_HEIGHT:g}"/>'
    return _svg(body, _WIDTH, _HEIGHT, "histogram")


def closing(points: Sequence[tuple[float, float, float]], seconds: float) -> Markup:
    """Return best and bound over time: two staircases with the gap between them."""
    wide, high = 320.0, 90.0
    if not points:
        return _svg("", wide, high, "closing")
    span = max(seconds, points[-1][0], 1e-3)
    most = max(best for _, best, _ in points) * 1.05 or 1.0
    upper, lower, last_bound = [], [], 0.0
    for at, best, bound in points:
        x = wide * at / span
        last_bound = max(last_bound, bound)
        upper.append((x, high - high * best / most))
        lower.append((x, high - high * last_bound / most))
    top = _stairs(upper, wide)
    area = " ".join((*top, *reversed(_stairs(lower, wide))))
    bottom = _stairs([(0.0, high), *lower], wide)
    body = f'<polygon class="gap" points="{area}"/>'
    body += f'<polyline class="best" points="{" ".join(top)}"/><polyline class="bound" points="{" ".join(bottom)}"/>'
    return _svg(body, wide, high, "closing")


def _stairs(points: Sequence[tuple[float, float]], end: float) -> list[str]:
    out: list[str] = []
    last: float | None = None
    for x, y in points:
        if last is not None:
            out.append(f"{x:.1f},{last:.1f}")
        out.append(f"{x:.1f},{y:.1f}")
        last = y
    if last is not None:
        out.append(f"{end:.1f},{last:.1f}")
    return out


def waterfall(before: float, shares: Sequence[float], after: float, threshold: float | None) -> list[Markup]:
    """Return one line per share of a difference: where it begins and where it ends on the scale of the score."""
    wide, high = 240.0, 18.0
    levels = [before]
    for share in shares:
        levels.append(levels[-1] + share)
    low = min(*levels, after, *([threshold] if threshold is not None else []))
    top = max(*levels, after, *([threshold] if threshold is not None else []))
    pad = 0.08 * ((top - low) or 1.0)
    low, span = low - pad, (top - low) + 2 * pad

    def at(value: float) -> float:
        return wide * (value - low) / span

    rows = []
    for i, share in enumerate(shares):
        start, end = sorted((at(levels[i]), at(levels[i + 1])))
        kind = "gain" if share >= 0 else "loss"
        body = f'<rect class="{kind}" x="{start:.2f}" y="3" width="{max(end - start, 1.5):.2f}" height="{high - 6:g}"/>'
        if threshold is not None:
            body += f'<line class="limit" x1="{at(threshold):.2f}" x2="{at(threshold):.2f}" y1="0" y2="{high:g}"/>'
        rows.append(_svg(body, wide, high, "waterfall"))
    return rows
