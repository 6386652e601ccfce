"""The plots: seconds per problem and method, and growth curves, as PNG and SVG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.speed.methods import METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_growth", "draw_speed", "save"]

# Okabe and Ito's colours, which most colour-blind people can tell apart; ours is the black one.
_COLOURS = ("#000000", "#d55e00", "#009e73", "#56b4e9", "#0072b2", "#cc79a7", "#e69f00")
_MARKERS = ("o", "s", "^", "v", "D", "P", "X")


def _style(method: str) -> dict[str, Any]:
    k = METHODS.index(method) if method in METHODS else len(METHODS) - 1
    return {"color": _COLOURS[k], "marker": _MARKERS[k]}


def draw_speed(table: pd.DataFrame) -> Figure:
    """Return one row per problem: the median as a marker (filled when all is proven), a line to the maximum."""
    from matplotlib.figure import Figure

    problems = list(dict.fromkeys(table["problem"]))
    methods = [m for m in METHODS if m in set(table["method"])]
    figure = Figure(figsize=(9, 1.2 + 0.55 * len(problems)), layout="constrained")
    axes = figure.subplots()
    for k, method in enumerate(methods):
        lines = table[(table["method"] == method) & (table["rows"] > 0)]
        if lines.empty:
            continue
        offset = 0.7 * ((k + 0.5) / len(methods) - 0.5)
        y = np.array([problems.index(p) for p in lines["problem"]]) + offset
        style = _style(method)
        axes.hlines(y, lines["median"], lines["max"], color=style["color"], linewidth=1, alpha=0.6)
        axes.plot(lines["p90"], y, "|", color=style["color"], markersize=6)
        proven = lines["proven"].to_numpy() == 1.0
        axes.plot([], [], linestyle="", markersize=5, label=method, **style)
        axes.plot(lines["median"][proven], y[proven], linestyle="", markersize=5, **style)
        axes.plot(lines["median"][~proven], y[~proven], linestyle="", markersize=5, fillstyle="none", **style)
    axes.set_xscale("log")
    axes.set_yticks(range(len(problems)), problems)
    axes.set_ylim(len(problems) - 0.5, -0.5)
    axes.set_xlabel("seconds per answer: median, p90 (tick) and maximum; hollow where not all are proven optimal")
    axes.grid(axis="x", alpha=0.3)
    for edge in range(1, len(problems)):
        axes.axhline(edge - 0.5, color="0.9", linewidth=0.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(methods), frameon=False, fontsize="small")
    return figure


def draw_growth(records: pd.DataFrame) -> Figure:
    """Return one panel per quantity that grows: the median, and a band from the least to the most."""
    from matplotlib.figure import Figure

    curves = list(dict.fromkeys(records["curve"]))
    figure = Figure(figsize=(3.2 * len(curves), 3.2), layout="constrained")
    panels = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
    for axes, curve in zip(panels, curves, strict=True):
        part = records[records["curve"] == curve]
        for method, lines in part[part["factual"] >= 0].groupby("method", sort=False):
            by = lines.groupby("size")["seconds"]
            median, style = by.median(), _style(str(method))
            axes.plot(median.index, median, label=method, markersize=4, **style)
            axes.fill_between(median.index, by.min(), by.max(), color=style["color"], alpha=0.12, linewidth=0)
            unproven = lines.groupby("size")["proven"].mean() < 1.0
            axes.plot(
                median.index[unproven],
                median[unproven],
                linestyle="",
                markersize=9,
                fillstyle="none",
                marker="o",
                color=style["color"],
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(curve)
        sizes = sorted(part["size"].unique())
        axes.set_xticks(sizes, [f"{s:g}" for s in sizes], fontsize="small")
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("seconds per answer")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize="small")
    return figure


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=160)
    return paths
