"""Plots of changes as lanes: one per changed feature, from where to where, against the training distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ifonly.data.schema import Categorical, Integer, Numeric
from ifonly.result.many import Explanations
from ifonly.result.text import facts, format_change, format_value, outcome
from ifonly.result.values import Change, Counterfactual, Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Lane", "lanes", "plot_changes", "plot_importance"]

_BINS = 32
_LEVELS = 12  # more bars than this are too thin to tell apart
_TAIL = 0.005  # share of the rows left out at each end, so that one outlier does not flatten all others

# Okabe and Ito's blue and vermilion: told apart with every kind of colour vision, and hollow against filled in print.
_NOW, _THEN, _FAINT = "#D55E00", "#0072B2", "#7A828C"


@dataclass(frozen=True, slots=True)
class Lane:
    """One changed feature, ready to be drawn; every position and height lies between 0 and 1.

    Attributes
    ----------
    label, before, after
        What to write: the feature, its value now and its value in the counterfactual.
    start, end
        Where the two values are; `start` is None when the value is missing now.
    bars
        (left, right, height) of each bar of the training distribution; empty without training data.
    ends
        (position, text) of the lowest and highest number of a numeric lane.
    stops
        Where the levels of a categorical lane are.
    band
        Where the outcome holds, when robustness was asked for.
    caption
        Where the two values stand among the training rows, in words.
    """

    label: str
    before: str
    after: str
    start: float | None
    end: float
    bars: tuple[tuple[float, float, float], ...] = ()
    ends: tuple[tuple[float, str], ...] = ()
    stops: tuple[float, ...] = ()
    band: tuple[float, float] | None = None
    caption: str = ""


def lanes(explanation: Explanation, which: int = 0) -> list[Lane]:
    """Return one lane per change of a counterfactual."""
    answer = explanation[which]
    return [_lane(explanation, answer, change) for change in answer.changes]


def _lane(explanation: Explanation, answer: Counterfactual, change: Change) -> Lane:
    feature = explanation.schema[change.feature]
    reference = explanation.reference
    column = None if reference is None or change.feature not in reference else reference[change.feature].dropna()
    if column is not None and column.empty:
        column = None
    texts = format_change(change.before, change.after, feature)
    label = explanation.schema.label(change.feature)
    if isinstance(feature, Numeric):
        return _numeric(label, texts, feature, change, column, answer.ranges.get(change.feature))
    return _levels(label, texts, feature, change, column)


def _numeric(
    label: str,
    texts: tuple[str, str],
    feature: Numeric,
    change: Change,
    column: pd.Series[Any] | None,
    band: tuple[float, float] | None,
) -> Lane:
    values = np.empty(0) if column is None else column.to_numpy(dtype=np.float64)
    points = [float(v) for v in (change.before, change.after) if not pd.isna(v)]
    span = np.quantile(values, [_TAIL, 1 - _TAIL]) if values.size else (feature.lower, feature.upper)
    low, high = min(*span, *points), max(*span, *points)
    if isinstance(feature, Integer):
        low, high = np.floor(low), np.ceil(high)
    # Whole numbers get a bar each, so the lane starts and ends half a bar outside them.
    unit = isinstance(feature, Integer) and high - low < _BINS
    edges = np.arange(low, high + 2) - 0.5 if unit else np.linspace(low, high if high > low else low + 1, _BINS + 1)
    left, width = edges[0], edges[-1] - edges[0]
    counts = np.histogram(values, edges)[0]
    heights = counts / max(1, counts.max())
    bars = [
        (float((a - left) / width), float((b - left) / width), float(h))
        for a, b, h in zip(edges[:-1], edges[1:], heights, strict=True)
        if h > 0
    ]
    where = [float((p - left) / width) for p in points]
    inside = None if band is None else tuple(float(np.clip((b - left) / width, 0, 1)) for b in band)
    return Lane(
        label,
        *texts,
        start=where[0] if len(where) == 2 else None,
        end=where[-1],
        bars=tuple(bars),
        ends=tuple((float((v - left) / width), format_value(v)) for v in (low, high)),
        band=None if inside is None else (inside[0], inside[1]),
        caption=_ranks(values, points),
    )


def _ranks(values: np.ndarray[Any, np.dtype[np.float64]], points: list[float]) -> str:
    """Return the percentiles of the points; ties count half, so a constant column is at 50."""
    if not values.size:
        return ""
    ranks = [100 * (np.mean(values < p) + np.mean(values == p) / 2) for p in points]
    return "percentile " + " → ".join(f"{rank:.0f}" for rank in ranks)


def _levels(
    label: str, texts: tuple[str, str], feature: Categorical, change: Change, column: pd.Series[Any] | None
) -> Lane:
    shares = dict.fromkeys(feature.levels, 0.0)
    if column is not None:
        for level, share in column.astype(object).value_counts(normalize=True).items():
            shares[level] = float(share)
    chosen = [level for level in (change.before, change.after) if level in shares]
    shown = _most_common(shares, chosen)
    top = max(shares[level] for level in shown)
    slot = 1 / len(shown)
    place = {level: (i + 0.5) * slot for i, level in enumerate(shown)}
    bars = [
        (place[level] - 0.36 * slot, place[level] + 0.36 * slot, shares[level] / top)
        for level in shown
        if shares[level]
    ]
    caption = " → ".join(f"{shares[level]:.0%}" for level in chosen) + " of the rows" if column is not None else ""
    if len(shown) < len(shares):
        caption += f"{' · ' * bool(caption)}{len(shown)} of {len(shares)} levels drawn"
    return Lane(
        label,
        *texts,
        start=place.get(change.before),
        end=place[change.after],
        bars=tuple(bars),
        stops=tuple(place.values()),
        caption=caption,
    )


def _most_common(shares: dict[Any, float], chosen: list[Any]) -> list[Any]:
    """Return the levels to draw, in the schema's order: the chosen ones and the most frequent others."""
    ranked = sorted(shares, key=lambda level: (level not in chosen, -shares[level]))
    kept = set(ranked[:_LEVELS])
    return [level for level in shares if level in kept]


def plot_changes(explanation: Explanation, ax: Axes | None = None, which: int = 0) -> Axes:
    """Draw what changes in one counterfactual: hollow is now, filled is what would be.

    Parameters
    ----------
    explanation
        What to draw. Its training data, when it has it, gives the grey distributions.
    ax
        Where to draw; by default a new figure that is as tall as needed.
    which
        Which counterfactual, best first.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    drawn = lanes(explanation, which)
    if ax is None:
        ax = _new_axes(len(drawn))
    for i, lane in enumerate(drawn):
        _draw(ax, lane, float(len(drawn) - 1 - i))
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.42, max(1, len(drawn)) - 0.2), xticks=[])
    ax.set_yticks([len(drawn) - 1.0 - i for i in range(len(drawn))], [lane.label for lane in drawn])
    ax.tick_params(axis="y", length=0, labelsize=10.5, pad=8)
    ax.spines[:].set_visible(False)
    answer = explanation[which]
    now, then = outcome(explanation, answer)
    ax.set_title(f"If only …   {now}  →  {then}", loc="left", fontsize=12.5, pad=22, weight="bold")
    ax.text(
        0,
        1,
        " · ".join(facts(explanation, answer)),
        transform=ax.transAxes,
        va="bottom",
        fontsize=9,
        color=_FAINT,
    )
    if drawn:
        _legend(ax)
    else:
        ax.text(0.5, 0.5, "Nothing has to change.", ha="center", color=_FAINT, transform=ax.transAxes)
    return ax


def plot_importance(explanations: Explanations, ax: Axes | None = None, most: int = 20) -> Axes:
    """Draw in how many rows the best answer changes each feature, the most frequent on top."""
    table = explanations.importance()
    table = table[table.times > 0].head(most)
    if ax is None:
        ax = _new_axes(max(1, (len(table) + 1) // 3))
    places = range(len(table) - 1, -1, -1)
    ax.barh(list(places), table.times.to_numpy(), color=_THEN, height=0.62)
    ax.set_yticks(list(places), [str(name) for name in table.feature])
    for y, times in zip(places, map(int, table.times), strict=True):
        ax.text(times, y, f" {times}", va="center", fontsize=9, color=_FAINT)
    ax.tick_params(axis="y", length=0, pad=6)
    ax.spines[["top", "right", "left"]].set_visible(False)
    answered = len(explanations.found())
    ax.set_title(f"If only …   changed in so many of {answered} rows", loc="left", fontsize=12.5, weight="bold")
    ax.locator_params(axis="x", integer=True)
    return ax


def _new_axes(count: int) -> Axes:
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - matplotlib is optional
    except ImportError as error:
        raise ImportError('Plots need matplotlib: pip install "ifonly[plots]".') from error
    height = 1.25 + 0.92 * max(1, count)
    return plt.subplots(figsize=(7.6, height), layout="constrained")[1]


def _draw(ax: Axes, lane: Lane, y: float) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - matplotlib is optional
    from matplotlib.patheffects import withStroke  # noqa: PLC0415 - matplotlib is optional

    for left, right, height in lane.bars:
        ax.add_patch(Rectangle((left, y), right - left, 0.56 * height, color=_FAINT, alpha=0.28, lw=0, zorder=1))
    ax.plot([0, 1], [y, y], color=_FAINT, lw=0.8, zorder=2, solid_capstyle="butt")
    if lane.band is not None:
        ax.plot(lane.band, [y, y], color=_THEN, lw=9, alpha=0.22, zorder=3, solid_capstyle="round")
    if lane.stops:
        ax.plot(lane.stops, [y] * len(lane.stops), "|", ms=6, color=_FAINT, mew=0.8, zorder=2)
    halo = [withStroke(linewidth=3, foreground=ax.get_facecolor())]
    if lane.start is not None:
        _travel(ax, lane.start, lane.end, y)
        _write(ax, lane.start, y - 0.13, lane.before, color=_NOW, va="top", fontsize=9.5, path_effects=halo)
    ax.plot(lane.end, y, "o", ms=9.5, color=_THEN, zorder=6)
    _write(ax, lane.end, y + 0.12, lane.after, color=_THEN, weight="bold", fontsize=10, path_effects=halo)
    for x, text in lane.ends:
        if lane.start is None or abs(lane.start - x) > 0.2:
            _write(ax, x, y - 0.13, text, color=_FAINT, va="top", fontsize=8)


def _travel(ax: Axes, start: float, end: float, y: float) -> None:
    ring: dict[str, Any] = {"mec": _NOW, "mew": 1.8, "zorder": 5}
    if abs(end - start) < 0.025:  # too short a step for an arrow: the ring goes around the disc
        ax.plot(start, y, "o", ms=14, mfc="none", **ring)
        return
    arrow = {"arrowstyle": "-|>,head_width=0.22,head_length=0.5", "color": _THEN, "lw": 1.6}
    ax.annotate("", (end, y), (start, y), arrowprops={**arrow, "shrinkA": 5, "shrinkB": 5}, zorder=4)
    ax.plot(start, y, "o", ms=8.5, mfc=ax.get_facecolor(), **ring)


def _write(ax: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write centred at a point, shifted where the text would leave the lane."""
    short = text if len(text) <= 34 else f"{text[:33]}…"
    half = min(0.5, 0.0075 * len(short))
    ax.text(min(max(x, half - 0.01), 1.01 - half), y, short, ha="center", zorder=7, **style)


def _legend(ax: Axes) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415 - matplotlib is optional

    ring = Line2D([], [], marker="o", ls="", ms=7, mfc="none", mec=_NOW, mew=1.8, label="it is now")
    disc = Line2D([], [], marker="o", ls="", ms=8, color=_THEN, label="it would be")
    style: dict[str, Any] = {"ncols": 2, "frameon": False, "fontsize": 9, "handletextpad": 0.2}
    ax.legend(handles=[ring, disc], loc="upper right", bbox_to_anchor=(1.0, 0.0), borderaxespad=0.0, **style)
