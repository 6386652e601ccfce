"""Growth curves: how the time grows with a model, its data, a hull and a ball."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.speed.asking import Ask
from benchmarks.speed.problems import Kind, Problem, Table, forest, german, heloc, network, prepare
from benchmarks.speed.run import Settings, explain_rows
from ifonly import Manifold, Robustness
from ifonly.data.schema import Schema
from ifonly.extend import Criterion

__all__ = ["CURVES", "Curve", "grow", "synthetic"]


@dataclass(frozen=True)
class Curve:
    """One quantity that grows; `about` names it, and what the others are."""

    name: str
    sizes: tuple[float, ...]
    problem: Callable[[Any], Problem]
    about: str = ""

    def quick(self) -> Curve:
        """Return the curve with its first two sizes only."""
        return Curve(self.name, self.sizes[:2], self.problem, self.about)


@cache
def synthetic(rows: int, features: int, classes: int = 2) -> Table:
    """Return numeric data of a given size: half of the features inform, two clusters per class."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        rows,
        features,
        n_informative=features // 2,
        n_redundant=0,
        n_classes=classes,
        n_clusters_per_class=2,
        flip_y=0.05,
        random_state=0,
    )
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(features)])
    names = np.array(["no", "yes", *(f"other {k}" for k in range(2, classes))])
    return Table(frame, pd.Series(names[y]), Schema.infer(frame, precision=None), "yes")


def _german(name: str, kind: Kind, make: Callable[[int], Callable[[], object]], size: int) -> Problem:
    return Problem(f"{name}-{size}", german, make(size), kind)


def _synthetic(name: str, size: int) -> Problem:
    rows, features = (size, 10) if name == "rows" else (5000, size)
    return Problem(f"{name}-{size}", partial(synthetic, rows, features), forest(100, 5), "forest")


def _classes(size: int) -> Problem:
    return Problem(f"classes-{size}", partial(synthetic, 5000, 12, size), forest(30, 5), "forest")


def _layers(size: int) -> Problem:
    return Problem(f"layers-{size}", german, network(*[32] * size), "network")


def _hull(size: int) -> Problem:
    """A hull of the first rows of the wanted class; the model and the rows that are asked stay the same."""

    def demands() -> list[Criterion]:
        known = heloc()
        good = known.frame[(known.target == known.wanted).to_numpy() & known.frame.notna().all(axis=1).to_numpy()]
        return [Manifold(rows=good.iloc[:size])]

    return Problem(f"hull-{size}", heloc, forest(100, 5), "forest", Ask(demands=demands))


def _ball(size: float) -> Problem:
    return Problem(f"radius-{size:g}", german, forest(100, 5), "forest", Ask(demands=lambda: [Robustness(radius=size)]))


_TREES, _MADE_UP = "German Credit, forest", "made-up, forest 100 x 5"
CURVES: dict[str, Curve] = {
    c.name: c
    for c in (
        Curve(
            "trees",
            (10, 30, 100, 200, 300),
            partial(_german, "trees", "forest", lambda n: forest(n, 5)),
            f"trees of depth 5\n{_TREES}",
        ),
        Curve(
            "depth",
            (3, 4, 5, 6, 8, 10),
            partial(_german, "depth", "forest", lambda d: forest(100, d)),
            f"depth of 100 trees\n{_TREES}",
        ),
        Curve("features", (10, 20, 30, 40, 60), partial(_synthetic, "features"), f"features\n{_MADE_UP}"),
        Curve("rows", (1000, 3000, 10_000, 30_000, 100_000), partial(_synthetic, "rows"), f"training rows\n{_MADE_UP}"),
        Curve("classes", (2, 3, 4, 6, 8, 10), _classes, "classes, 12 features\nmade-up, forest 30 x 5"),
        Curve(
            "width",
            (10, 25, 50, 100, 200, 500),
            partial(_german, "width", "network", network),
            "units of one layer\nGerman Credit, network",
        ),
        Curve("layers", (1, 2, 3, 4), _layers, "layers of 32 units\nGerman Credit, network"),
        Curve("hull", (100, 300, 1000, 3000), _hull, "rows of a hull\nHELOC, forest 100 x 5"),
        Curve("radius", (0.001, 0.003, 0.01, 0.03, 0.1), _ball, "radius of a ball\nGerman Credit, forest 100 x 5"),
    )
}


def grow(curves: Sequence[Curve], methods: Sequence[str], settings: Settings, path: Path) -> pd.DataFrame:
    """Run the curves, keep every record in a CSV file beside those of other curves, and return all of them."""
    known = pd.read_csv(path).to_dict("records") if path.exists() else []
    lines = [line for line in known if line["curve"] not in {curve.name for curve in curves}]
    for curve in curves:
        for size in curve.sizes:
            case = prepare(curve.problem(size), settings.factuals)
            for method in methods:
                rows = [int(row) for row in case.factuals]
                if not rows:
                    print(f"  {curve.name} {size:g}: the model puts no row in the unwanted class", flush=True)
                    continue
                found = list(explain_rows(case, method, rows, settings))
                lines += [{"curve": curve.name, "size": size, **asdict(record)} for record in found]
                median = np.median([record.cpu for record in found])
                shown = found[0].status if np.isnan(median) else f"{median:.3f} s of processor"
                print(f"  {curve.name} {size:g}: {method} {shown}", flush=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(lines).to_csv(path, index=False)
    order = {name: place for place, name in enumerate(CURVES)}
    grown = pd.DataFrame(lines)
    return grown.iloc[grown["curve"].map(lambda name: order.get(name, len(order))).argsort(kind="stable")]
