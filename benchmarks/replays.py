"""Cost of a replay against the number of parts: ``python -m benchmarks.replays``.

One forest, some rows, several gaps: a wide gap leaves few parts, a narrow one many. Each proof is replayed alone, in
processor time; what it takes before the first part (the tables of cells and leaves) is measured by a proof of one part.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ifonly import Explainer, NoCounterfactual
from ifonly.record.checker import replay
from ifonly.record.proof import unpack
from ifonly.runtime.deadline import Deadline

GAPS = (0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1)


def main(argv: list[str] | None = None) -> int:
    """Ask, replay, print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replays", description=__doc__)
    parser.add_argument("--rows", type=int, default=2)
    options = parser.parse_args(argv)
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(30, max_depth=6, random_state=0).fit(X, y)
    explainer, seen = Explainer(model, X), []
    for r in np.flatnonzero(model.predict(X) == 0)[: options.rows]:
        for gap in GAPS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    answer = explainer.explain(X.iloc[[int(r)]], want=1, proof=True, gap=gap)
                except NoCounterfactual:
                    continue
                asked = explainer._ask(X.iloc[[int(r)]], 1, ())
            trail = unpack(answer.proof or b"")[0]
            if not trail:
                continue
            began = time.process_time()
            found = replay(asked.statement, asked.goal, answer[0].certificate.bound, trail, Deadline.never())
            took = time.process_time() - began
            seen.append((found.parts, took))
            print(f"{found.parts:>9,} parts  {took:8.3f} s  {1e6 * took / found.parts:8.1f} us a part", flush=True)
    parts, seconds = np.log(np.array([s for s in seen if s[0] >= 100])).T
    print(
        f"exponent {np.polyfit(parts, seconds, 1)[0]:.2f} over {np.exp(parts.min()):,.0f} to {np.exp(parts.max()):,.0f} parts"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
