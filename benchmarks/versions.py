"""Records written here, verified by another Python: ``python -m benchmarks.versions --python /path/to/other/python``.

A linear model, a tree, a forest, a booster and a network are fitted, saved with skops, asked with ``proof=True``, and an
impossible question is asked as well. The other interpreter, with its own versions of everything, runs ``ifonly verify`` on
each record, and must end with exit code 0. A model file that the other versions cannot use must be refused with a sentence
that names them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import skops.io
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ifonly import Actionability, Explainer, Infeasible
from ifonly.datasets import german_credit

MODELS = {
    "linear": LogisticRegression(max_iter=5000),
    "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
    "forest": RandomForestClassifier(20, max_depth=5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=20, random_state=0),
    "network": MLPClassifier((16, 8), alpha=0.01, random_state=0),
}


def written(folder: Path) -> list[tuple[Path, Path]]:
    """Write data, models and records; return each record with its model."""
    credit = german_credit()
    X, out = credit.frame, []
    X.to_csv(folder / "data.csv", index=False)
    words = make_column_selector(dtype_exclude="number")
    for name, last in MODELS.items():
        numbers = StandardScaler() if name == "network" else "passthrough"
        encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), remainder=numbers)
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
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        for record, model in written(folder):
            said = verified(options.python, record, model, folder / "data.csv")
            counts[said] += 1
            print(f"{record.name}: {said}", flush=True)
    print(", ".join(f"{n} {said}" for said, n in counts.items()))
    return 1 if counts["WRONG"] else 0


def verified(python: str, record: Path, model: Path, data: Path) -> str:
    """Return what the other Python says of a record, in a word; print what fails."""
    command = [python, "-m", "ifonly", "verify", str(record), "--model", str(model), "--data", str(data), "--trust"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    try:
        checks = json.loads(done.stdout)["checks"]
    except ValueError:
        print(done.stdout, done.stderr, sep="\n")
        return "WRONG"
    for check in checks:
        if check["ok"] is False or check["name"] in ("proof", "versions"):
            print("  ", check["name"], check["ok"], check["sentence"])
    if done.returncode == 0 and any(c["name"] == "proof" and c["ok"] for c in checks):
        return "verified, proof replayed"
    failed = [c for c in checks if c["ok"] is False]
    named = [
        c for c in failed if c["sentence"].startswith("The model cannot be asked here") and " then, " in c["sentence"]
    ]
    return "not usable there, versions named" if done.returncode == 6 and failed == named else "WRONG"


if __name__ == "__main__":
    sys.exit(main())
