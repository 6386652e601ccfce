"""Budgets for networks in small steps, against half and whole: ``python -m benchmarks.networks --help``.

Each question is asked twice in one run: with budgets that grow by a small factor, and with the two budgets of before (half of
what the incumbent costs, then all). Processor seconds, proofs and bounds, side by side.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ifonly import Explainer, NotProvenOptimal, datasets
from ifonly.search import boxes

SETTINGS = {"half and whole": np.inf, "small steps": boxes._STEP}


def main(arguments: list[str] | None = None) -> int:
    """Print a line per question, and the ratios; return 1 if two proven answers differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="german_credit")
    parser.add_argument("--layers", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--limit", type=float, default=30.0)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    warnings.simplefilter("ignore", NotProvenOptimal)
    data = getattr(datasets, options.data)()
    X, y = data.frame, data.target
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include=["category", "object"])),
        remainder=StandardScaler(),
    )
    network = MLPClassifier(tuple(options.layers), random_state=0, alpha=0.01)
    model = make_pipeline(columns, network).fit(X, y)
    explainer = Explainer(model, X, schema=data.schema)
    wrong = 0
    seconds: dict[str, list[float]] = {name: [] for name in SETTINGS}
    for i in np.flatnonzero(model.predict(X) != data.wanted)[: options.rows]:
        line, proven = [], []
        for name, step in SETTINGS.items():
            boxes._STEP = step
            began = time.process_time()
            proof = explainer.explain(X.iloc[i], want=data.wanted, time_limit=options.limit)[0].certificate
            seconds[name].append(time.process_time() - began)
            word = "proven" if proof.proven else f"bound {proof.bound:.4f}"
            line.append(f"{name} {seconds[name][-1]:.2f} s, {proof.objective:.4f} {word}")
            proven += [proof.objective] if proof.proven else []
        wrong += len(proven) == len(SETTINGS) and abs(proven[0] - proven[1]) > 3e-6 * max(proven)
        print(f"row {i}: {'; '.join(line)}", flush=True)
    before, now = (float(np.sum(seconds[name])) for name in SETTINGS)
    print(
        f"{options.data} {options.layers}: all together {before:.1f} s before, {now:.1f} s now, ratio {before / now:.2f}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
