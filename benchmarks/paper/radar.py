"""The radar figures of the paper: each measure rescaled to 0 (worst of those shown) to 1 (best)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.paper.tables import HEADS, measures

__all__ = ["draw", "rescaled", "save"]

_COLOURS = {
    "ifonly": "#00796b",
    "ifonly-fewest": "#26a69a",
    "ifonly-nearest": "#80cbc4",
    "ifonly_tr": "#1565c0",
    "ifonly-diverse": "#6a1b9a",
    "dice-genetic": "#e65100",
    "dice-random": "#ffb74d",
    "growing-spheres": "#8d6e63",
    "face": "#616161",
    "actionable-recourse": "#c2185b",
    "nice": "#9e9d24",
    "treecf": "#5d4037",
    "oceanpy": "#37474f",
}


def rescaled(block: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """Return the measures on [0, 1]: shares as they are, raw ones by their least and greatest value in the block."""
    out = block[["method"]].copy()
    for name in names:
        values = block[name].astype(float)
        if name.startswith("cont_"):
            low, high = values.min(), values.max()
            values = (values - low) / (high - low) if high > low else values * 0.0 + 1.0
        out[name] = values
    return out


def draw(cells: pd.DataFrame, data: str, model: str, n: int) -> Any:
    """Return the figure of one data set and model, None when there is nothing to compare."""
    from matplotlib.figure import Figure

    block = cells[(cells["data"] == data) & (cells["model"] == model) & (cells["n"] == n) & (cells["found"] > 0)]
    names = tuple(m for m in measures(n) if block[m].notna().any())
    if len(block) < 2 or len(names) < 3:
        return None
    table = rescaled(block, names)
    angles = np.linspace(0.0, 2.0 * np.pi, len(names), endpoint=False)
    figure = Figure(figsize=(6.4, 5.0), layout="constrained")
    axes: Any = figure.add_subplot(projection="polar")
    for line in table.to_dict("records"):
        method = str(line["method"])
        values = np.nan_to_num([float(line[m]) for m in names])
        own = method.startswith("ifonly")
        axes.plot(
            np.append(angles, angles[0]),
            np.append(values, values[0]),
            color=_COLOURS.get(method, "#000000"),
            linewidth=2.2 if own else 1.2,
            linestyle="-" if own else "--",
            label=method,
        )
    axes.set_xticks(angles, [HEADS[m].replace(" ", "\n") for m in names])
    axes.tick_params(axis="x", pad=14)
    axes.set_ylim(0.0, 1.02)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "1"])
    axes.set_title(f"{data}, {model}: {n} answer{'s' * (n > 1)}", pad=18)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=110, bbox_inches="tight")
    return paths
