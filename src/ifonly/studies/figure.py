"""The effect of the data manifold, drawn: the nearest counterfactual, and the nearest one that looks like the data."""

# ruff: noqa: PLC0415 - scikit-learn and matplotlib are loaded when something is drawn

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.criteria.proximity import Proximity
from ifonly.data.schema import Schema
from ifonly.datasets import german_credit
from ifonly.explain import Explainer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Effect", "draw_effect", "manifold_effect"]

_APPLICANT = 915
_FEATURES = ["duration", "credit_amount"]
_LABELS = {"duration": "duration (months)", "credit_amount": "credit amount (DM)"}

# The colours of `ifonly.result.plots`: Okabe and Ito's vermilion and blue.
_NOW, _THEN, _INK, _FAINT = "#D55E00", "#0072B2", "#30363D", "#8B949E"


@dataclass(frozen=True)
class Effect:
    """One applicant seen by two features, and two answers.

    Attributes
    ----------
    model
        A logistic regression of the two features.
    good, bad
        The applicants of either kind.
    factual
        The applicant.
    nearest, within
        The counterfactual without and with the hull of the good applicants.
    """

    model: Any
    good: pd.DataFrame
    bad: pd.DataFrame
    factual: pd.DataFrame
    nearest: pd.DataFrame
    within: pd.DataFrame


def manifold_effect() -> Effect:
    """Return the data of the figure: an applicant at the edge of German Credit, seen by duration and amount."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    from ifonly.criteria.manifold.criterion import Manifold

    credit = german_credit()
    X, y = credit.frame[_FEATURES], credit.target
    model = make_pipeline(MinMaxScaler(), LogisticRegression()).fit(X, y)
    good, factual = X[y == "good"], X.loc[[_APPLICANT]]
    schema = Schema.infer(X, numeric=_FEATURES)
    explainer = Explainer(model, X, schema=schema, criteria=[Proximity("l2")], solver="highs")
    nearest = explainer.explain(factual, want="good").frame()
    within = explainer.explain(factual, want="good", criteria=[Manifold(epsilon=0.0, rows=good)]).frame()
    return Effect(model, good, X[y == "bad"], factual, nearest, within)


def draw_effect(effect: Effect | None = None, path: str | Path | None = None) -> Figure:
    """Draw both answers side by side (and, given a path, write them to a PNG or SVG file)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    effect = manifold_effect() if effect is None else effect
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    _panel(left, effect, effect.nearest, "The nearest counterfactual", hull=False)
    _panel(right, effect, effect.within, "The nearest within the hull of good applicants", hull=True)
    left.set_ylabel(_LABELS["credit_amount"])
    left.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    kinds = [("good applicants", _THEN, "o"), ("bad applicants", _NOW, "x")]
    marks = [Line2D([], [], color=c, marker=m, linestyle="", markersize=4, label=name) for name, c, m in kinds]
    left.legend(handles=marks, loc="lower right", fontsize=8, frameon=False, labelcolor=_INK, handletextpad=0.1)
    if path is not None:
        figure.savefig(path, dpi=160)
    return figure


def _panel(ax: Axes, effect: Effect, answer: pd.DataFrame, title: str, *, hull: bool) -> None:
    ax.set_title(title, fontsize=11, loc="left", color=_INK)
    ax.set_xlabel(_LABELS["duration"])
    for rows, colour, marker in ((effect.bad, _NOW, "x"), (effect.good, _THEN, "o")):
        x, y = _points(rows).T
        ax.scatter(x, y, s=9, c=colour, marker=marker, alpha=0.28, linewidths=0.7, zorder=1)
    if hull:
        corners = _hull(_points(effect.good))
        ax.fill(*corners.T, facecolor=_THEN, alpha=0.08, zorder=0)
        ax.plot(*np.vstack([corners, corners[:1]]).T, color=_THEN, linewidth=1.0, zorder=2)
    _boundary(ax, effect)
    (start,), (end,) = _points(effect.factual), _points(answer)
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": _INK, "shrinkA": 5, "shrinkB": 5}, zorder=4)
    ax.scatter(start[0], start[1], s=70, facecolor="white", edgecolor=_NOW, linewidths=2.0, zorder=5)
    ax.scatter(end[0], end[1], s=70, facecolor=_THEN, edgecolor="white", linewidths=1.0, zorder=5)
    _name(ax, start, "applicant", (7, 3), _NOW)
    _name(ax, end, f"{end[0]:.0f} months, {end[1]:,.0f} DM", (-8, 9), _THEN, right=True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=_FAINT, labelcolor=_INK, labelsize=9)


def _points(rows: pd.DataFrame) -> FloatArray:
    return rows[_FEATURES].to_numpy(dtype=np.float64)


def _hull(points: FloatArray) -> FloatArray:
    from scipy.spatial import ConvexHull

    return points[ConvexHull(points).vertices]


def _boundary(ax: Axes, effect: Effect) -> None:
    """Draw where the model changes its mind, and shade the side it refuses."""
    both = np.vstack([_points(effect.good), _points(effect.bad)])
    low, high = both.min(axis=0), both.max(axis=0)
    room = 0.06 * (high - low)
    xs, ys = (np.linspace(a, b, 200) for a, b in zip(low - room, high + room, strict=True))
    grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
    score = effect.model.decision_function(pd.DataFrame(grid, columns=_FEATURES)).reshape(len(ys), len(xs))
    ax.contourf(xs, ys, score, levels=[-np.inf, 0.0], colors=[_NOW], alpha=0.07, zorder=0)
    ax.contour(xs, ys, score, levels=[0.0], colors=[_INK], linewidths=1.0, linestyles="--", zorder=2)
    ax.text(xs[-4], ys[110], "the model\nrefuses", fontsize=9, color=_NOW, ha="right", style="italic")
    ax.set_xlim(xs[0], xs[-1])
    ax.set_ylim(ys[0], ys[-1])


def _name(
    ax: Axes, at: FloatArray, text: str, offset: tuple[float, float], colour: str, *, right: bool = False
) -> None:
    ax.annotate(
        text,
        (float(at[0]), float(at[1])),
        xytext=offset,
        textcoords="offset points",
        ha="right" if right else "left",
        fontsize=9,
        color=colour,
        zorder=6,
    )
