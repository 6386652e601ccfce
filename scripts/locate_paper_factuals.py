"""Find the paper's factuals among the rows of the test split and keep their positions.

The paper's repository lists its 30 factuals of each data set as values. Run once, with a folder that holds
``factuals_<set>.csv``:

    python scripts/locate_paper_factuals.py FOLDER

Each is a row of the test split; where the last digits differ, the nearest row with the same categories and outcome is
taken. A row is taken once, so two equal factuals are two rows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.paper.sets import FACTUALS, SETS

from ifonly import datasets


def positions(listed: pd.DataFrame, test: datasets.Dataset) -> tuple[list[int], float]:
    """Return the row of each listed factual, and the largest distance (in units of a feature's range) to one."""
    categories = list(test.frame.select_dtypes("category"))
    numbers = [name for name in test.frame if name not in categories]
    values = test.frame[numbers].to_numpy(dtype=float)
    span = np.maximum(values.max(axis=0) - values.min(axis=0), 1e-12)
    taken: list[int] = []
    farthest = 0.0
    for _, row in listed.iterrows():
        distance = (np.abs(values - row[numbers].to_numpy(dtype=float)) / span).sum(axis=1)
        for name in categories:
            distance[(test.frame[name].astype(str) != str(row[name])).to_numpy()] = np.inf
        distance[test.target.to_numpy() != row[test.target.name]] = np.inf
        distance[taken] = np.inf
        nearest = int(distance.argmin())
        taken.append(nearest)
        farthest = max(farthest, float(distance[nearest]))
    return taken, farthest


def main() -> None:
    """Write the positions, and say how far the rows are from what was listed."""
    folder = Path(sys.argv[1])
    found = {}
    for name in SETS:
        listed = pd.read_csv(folder / f"factuals_{name}.csv", keep_default_na=False)
        found[name], farthest = positions(listed, getattr(datasets, name)("test"))
        print(f"{name}: {len(found[name])} rows, the farthest {farthest:.2g} of a range away")
    text = ",\n".join(f'  "{name}": {json.dumps(rows)}' for name, rows in found.items())
    FACTUALS.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
