"""Rows per second of `explain_all`, one process, against an earlier checkout, in one run.

    git worktree add /tmp/before 90d849c
    python -m benchmarks.batch.speed --before /tmp/before/src

Every applicant of German Credit is asked for "good" (``all``: a bank's batch, most have it already), or only those that are
refused (``refused``), or every applicant for the other class (``other``, where a forest's search takes much longer than its
predict). The two versions take turns in processes of their own, and processor time is counted, so that others on the
machine disturb little; the answers of both must be the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[2] / "src"

_SCRIPT = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from ifonly import Explainer
from ifonly.datasets import german_credit

credit, name, rows, who = german_credit(), sys.argv[1], int(sys.argv[2]), sys.argv[3]
last = {
    "logistic regression": LogisticRegression(solver="newton-cholesky"),
    "forest, 100 trees of depth 5": RandomForestClassifier(100, max_depth=5, random_state=0),
}[name]
encode = make_column_transformer(
    (OneHotEncoder(), make_column_selector(dtype_include="category")), remainder=StandardScaler()
)
model = make_pipeline(encode, last).fit(credit.frame, credit.target)
explainer = Explainer(model, credit.frame, schema=credit.schema)
asked = credit.frame[model.predict(credit.frame) == "bad"] if who == "refused" else credit.frame
want = None if who == "other" else "good"
explainer.explain_all(asked.iloc[-5:], want=want)
asked = asked.iloc[:rows]
began = time.process_time()
found = explainer.explain_all(asked, want=want)
seconds = time.process_time() - began
costs = [None if o.explanation is None else o.explanation[0].certificate.objective for o in found]
print(json.dumps({"rate": len(asked) / seconds, "status": found.status().tolist(), "costs": costs}))
"""


def ask(source: Path, name: str, rows: int, who: str) -> dict[str, object]:
    environment = {**os.environ, "PYTHONPATH": str(source)}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-c", _SCRIPT, name, str(rows), who]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help="the src folder of the earlier checkout")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--who", choices=["all", "refused", "other"], default="all")
    options = parser.parse_args()
    print(f"{options.who}, at most {options.rows} rows, {options.turns} turns")
    for name in ("logistic regression", "forest, 100 trees of depth 5"):
        sources = (options.before, HERE)
        turns = [tuple(ask(s, name, options.rows, options.who) for s in sources) for _ in range(options.turns)]
        assert all(old["status"] == new["status"] and old["costs"] == new["costs"] for old, new in turns)
        before, after = (statistics.median(float(str(turn[i]["rate"])) for turn in turns) for i in (0, 1))
        print(f"{name}: {before:.1f} -> {after:.1f} rows per processor second, {after / before:.2f} times", flush=True)


if __name__ == "__main__":
    main()
