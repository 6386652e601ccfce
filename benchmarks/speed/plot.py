"""The plots: seconds per problem and method, and growth curves, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.speed.growth import CURVES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_growth", "draw_speed", "save"]

# Okabe and Ito's colours, which most colour-blind people can tell apart; ours is the black one. Two ways of one peer
# have its colour, and are told apart by their marks.
_STYLES = {
    "ifonly": ("#000000", "o"),
    "treecf": ("#d55e00", "s"),
    "treecf-classic": ("#d55e00", "d"),
    "nice": ("#009e73", "^"),
    "dice-random": ("#56b4e9", "v"),
    "dice-genetic": ("#0072b2", "D"),
    "oceanpy": ("#cc79a7", "P"),
    "oceanpy-maxsat": ("#cc79a7", "h"),
    "veritas": ("#0072b2", "<"),
    "veritas-close": ("#0072b2", ">"),
    "leafbigm": ("#e69f00", "X"),
}
_PANELS = 5
_COLUMNS = 7  # of a legend
_LINE, _BETWEEN = 0.085, 0.12  # inches of a method, and between two problems


def _style(method: str) -> dict[str, Any]:
    colour, marker = _STYLES.get(method, ("#777777", "x"))
    return {"color": colour, "marker": marker}


def draw_speed(table: pd.DataFrame, goals: Mapping[str, float | None] = MappingProxyType({})) -> Figure:
    """Return one row per problem: the median as a marker (filled when all is proven), a line to the maximum.

    A goal of a problem's median is a bar across its row.
    """
    from matplotlib.figure import Figure

    methods = [m for m in _STYLES if m in set(table["method"])]
    shown = table[table["rows"] > 0]
    there = {p: [m for m in methods if m in set(part["method"])] for p, part in shown.groupby("problem", sort=False)}
    height = np.array([_BETWEEN + _LINE * len(own) for own in there.values()])
    edges = np.concatenate([[0.0], np.cumsum(height)])
    top = dict(zip(there, edges, strict=False))
    figure = Figure(figsize=(9, 1.2 + edges[-1]), layout="constrained")
    axes = figure.subplots()
    for method in methods:
        lines, style = shown[shown["method"] == method], _style(method)
        y = np.array([top[p] + 0.5 * _BETWEEN + _LINE * (there[p].index(method) + 0.5) for p in lines["problem"]])
        axes.hlines(y, lines["median"], lines["max"], color=style["color"], linewidth=1, alpha=0.6)
        axes.plot(lines["p90"], y, "|", color=style["color"], markersize=6)
        proven = lines["proven"].to_numpy() == 1.0
        axes.plot([], [], linestyle="", markersize=5, label=method, **style)
        axes.plot(lines["median"][proven], y[proven], linestyle="", markersize=5, **style)
        axes.plot(lines["median"][~proven], y[~proven], linestyle="", markersize=5, fillstyle="none", **style)
    wished = [(k, goals[name]) for k, name in enumerate(there) if goals.get(name) is not None]
    for k, seconds in wished:
        label = "goal of the median" if k == wished[0][0] else None
        axes.plot([seconds] * 2, edges[k : k + 2], color="#e69f00", linewidth=2.5, alpha=0.6, label=label, zorder=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_yticks(0.5 * (edges[1:] + edges[:-1]), list(there))
    axes.set_ylim(edges[-1], 0.0)
    axes.set_xlabel("seconds per answer: median, p90 (tick) and maximum; hollow where not all are proven optimal")
    axes.grid(axis="x", alpha=0.3)
    for edge in edges[1:-1]:
        axes.axhline(edge, color="0.9", linewidth=0.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    columns = min(_COLUMNS, len(methods) + bool(wished))
    figure.legend(loc="outside upper center", ncols=columns, frameon=False, fontsize="small")
    return figure


def draw_growth(records: pd.DataFrame) -> Figure:
    """Return one panel per quantity that grows: the median, and a band from the least to the most."""
    from matplotlib.figure import Figure

    curves = [name for name in CURVES if name in set(records["curve"])]
    columns = min(_PANELS, len(curves))
    rows = -(-len(curves) // columns)
    figure = Figure(figsize=(2.9 * columns, 3.0 * rows + 0.3), layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes, curve in zip(panels.flat, curves, strict=False):
        _draw_curve(axes, records[(records["curve"] == curve) & (records["factual"] >= 0)])
        axes.set_title(CURVES[curve].about, fontsize="small")
    for axes in panels.flat[len(curves) :]:
        axes.set_visible(False)
    for line in panels:
        line[0].set_ylabel("seconds per answer")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize="small")
    return figure


def _draw_curve(axes: Any, part: pd.DataFrame) -> None:
    for method, lines in part.groupby("method", sort=False):
        by = lines.groupby("size")["seconds"]
        median, style = by.median(), _style(str(method))
        axes.plot(median.index, median, label=method, markersize=4, **style)
        axes.fill_between(median.index, by.min(), by.max(), color=style["color"], alpha=0.12, linewidth=0)
        unproven = lines.groupby("size")["proven"].mean() < 1.0
        ring = {"linestyle": "", "markersize": 9, "fillstyle": "none", "marker": "o", "color": style["color"]}
        axes.plot(median.index[unproven], median[unproven], **ring)
    axes.set_xscale("log")
    axes.set_yscale("log")
    sizes = sorted(part["size"].unique())
    axes.set_xticks(sizes, [_short(s) for s in sizes], fontsize="small")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _short(size: float) -> str:
    """Return a size as it fits below a panel."""
    return f"{size / 1000:g}k" if size >= 1000 else f"{size:g}"


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=160)
    return paths
