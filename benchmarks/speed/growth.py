"""Growth curves: how the time grows with trees, depth, features, training rows and network width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.speed.problems import Kind, Problem, Table, forest, german, network, prepare
from benchmarks.speed.run import Settings, explain_rows
from ifonly.data.schema import Schema

__all__ = ["CURVES", "Curve", "grow"]


@dataclass(frozen=True)
class Curve:
    """One quantity that grows."""

    name: str
    sizes: tuple[int, ...]
    problem: Callable[[int], Problem]

    def quick(self) -> Curve:
        """Return the curve with its first two sizes only."""
        return Curve(self.name, self.sizes[:2], self.problem)


def synthetic(rows: int, features: int) -> Table:
    """Return numeric data of a given size: half of the features inform, two clusters per class."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        rows,
        features,
        n_informative=features // 2,
        n_redundant=0,
        n_clusters_per_class=2,
        flip_y=0.05,
        random_state=0,
    )
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(features)])
    return Table(frame, pd.Series(np.where(y, "yes", "no")), Schema.infer(frame), "yes")


def _german(name: str, kind: Kind, make: Callable[[int], Callable[[], object]], size: int) -> Problem:
    return Problem(f"{name}-{size}", german, make(size), kind)


def _synthetic(name: str, size: int) -> Problem:
    rows, features = (size, 10) if name == "rows" else (5000, size)
    return Problem(f"{name}-{size}", partial(synthetic, rows, features), forest(100, 5), "forest")


CURVES: dict[str, Curve] = {
    c.name: c
    for c in (
        Curve("trees", (10, 30, 100, 200, 300), partial(_german, "trees", "forest", lambda n: forest(n, 5))),
        Curve("depth", (3, 4, 5, 6, 8, 10), partial(_german, "depth", "forest", lambda d: forest(100, d))),
        Curve("features", (10, 20, 30, 40, 60), partial(_synthetic, "features")),
        Curve("rows", (1000, 3000, 10_000, 30_000, 100_000), partial(_synthetic, "rows")),
        Curve("width", (10, 25, 50, 100, 200), partial(_german, "width", "network", network)),
    )
}


def grow(curves: Sequence[Curve], methods: Sequence[str], settings: Settings, path: Path) -> pd.DataFrame:
    """Run the curves, keep every record in a CSV file, and return them."""
    lines: list[dict[str, object]] = []
    for curve in curves:
        for size in curve.sizes:
            case = prepare(curve.problem(size), settings.factuals)
            for method in methods:
                rows = [int(row) for row in case.factuals]
                if not rows:
                    print(f"  {curve.name} {size}: the model puts no row in the unwanted class", flush=True)
                    continue
                found = list(explain_rows(case, method, rows, settings))
                lines += [{"curve": curve.name, "size": size, **asdict(record)} for record in found]
                median = np.median([record.seconds for record in found])
                shown = found[0].status if np.isnan(median) else f"{median:.3f} s"
                print(f"  {curve.name} {size}: {method} {shown}", flush=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(lines).to_csv(path, index=False)
    return pd.DataFrame(lines)
