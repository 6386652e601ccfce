"""Cost of a replay against the number of parts: ``python -m benchmarks.replays``.

One forest, some rows, several gaps: a wide gap leaves few parts, a narrow one many. Each proof is replayed alone, in
processor time, and the clock is read after each quarter of its parts.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from math import inf

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ifonly import Explainer, NoCounterfactual
from ifonly.record.checker import replay
from ifonly.record.proof import unpack
from ifonly.runtime.deadline import Deadline

GAPS = (0.7, 0.5, 0.2)


class _Clock(Deadline):
    """A deadline that never passes, and reads the clock whenever it is asked: once for each part."""

    def __init__(self) -> None:
        super().__init__(inf)
        object.__setattr__(self, "read", [])
        self.read: list[float]

    @property
    def passed(self) -> bool:
        """Whether it has passed; it has not."""
        self.read.append(time.process_time())
        return False


def main(argv: list[str] | None = None) -> int:
    """Ask, replay, print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replays", description=__doc__)
    parser.add_argument("--rows", type=int, default=2)
    options = parser.parse_args(argv)
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(30, max_depth=6, random_state=0).fit(X, y)
    explainer = Explainer(model, X)
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
            clock = _Clock()
            began = time.process_time()
            found = replay(asked.statement, asked.goal, answer[0].certificate.bound, trail, clock)
            at = [clock.read[k * len(clock.read) // 4 - 1] - began for k in (1, 2, 3, 4)]
            a_part = 1e6 * (at[-1] - at[0]) / max(1, 0.75 * found.parts)
            quarters = ", ".join(f"{seconds:.2f}" for seconds in at)
            print(f"{found.parts:>9,} parts  after each quarter {quarters} s  {a_part:6.1f} us a part", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
