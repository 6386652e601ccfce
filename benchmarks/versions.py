"""Records written here, verified by another Python: ``python -m benchmarks.versions --python /path/to/other/python``.

A linear model, a tree, a forest and a booster are fitted, saved with skops, asked with ``proof=True``, and an impossible
question is asked as well. The other interpreter, with its own versions of everything, runs ``ifonly verify`` on each
record, and must end with exit code 0.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import skops.io
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from ifonly import Actionability, Explainer, Infeasible
from ifonly.datasets import german_credit

MODELS = {
    "linear": LogisticRegression(max_iter=5000),
    "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
    "forest": RandomForestClassifier(20, max_depth=5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=20, random_state=0),
}


def written(folder: Path) -> list[tuple[Path, Path]]:
    """Write data, models and records; return each record with its model."""
    credit = german_credit()
    X, out = credit.frame, []
    X.to_csv(folder / "data.csv", index=False)
    words = make_column_selector(dtype_exclude="number")
    for name, last in MODELS.items():
        encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough")
        model = make_pipeline(encode, last).fit(X, credit.target)
        skops.io.dump(model, folder / f"{name}.skops")
        explainer = Explainer(model, X)
        for i, row in enumerate(X.index[model.predict(X) == "bad"][:1]):
            answer = explainer.explain(X.loc[[row]], want="good", proof=True)
            out.append((answer.write_record(folder / f"{name}-{i}.json")[0], folder / f"{name}.skops"))
        try:
            frozen = Actionability(frozen=list(X.columns))
            explainer.explain(X.loc[[row]], want="good", criteria=[frozen], proof=True)
        except Infeasible as error:
            out.append((error.write_record(folder / f"{name}-never.json")[0], folder / f"{name}.skops"))
    return out


def main(argv: list[str] | None = None) -> int:
    """Write, verify elsewhere, count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    parser.add_argument("--python", required=True, help="the other interpreter, with ifonly and skops installed")
    options = parser.parse_args(argv)
    wrong = 0
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        for record, model in written(folder):
            command = [options.python, "-m", "ifonly", "verify", str(record), "--model", str(model)]
            done = subprocess.run(
                [*command, "--data", str(folder / "data.csv"), "--trust"], capture_output=True, text=True, check=False
            )
            lines = [
                line for line in done.stdout.splitlines() if "replayed" in line or "FAIL" in line or "versions" in line
            ]
            print(record.name, done.returncode, *lines, done.stderr[-300:], sep="\n  ", flush=True)
            wrong += done.returncode != 0
    print(f"{wrong} records did not stand.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
