"""Networks with and without a solver, in one run: ``python -m benchmarks.networks --help``.

Each question is asked twice: of all engines, where branch and bound over the inputs comes before the solver, and of a solver
alone. Processor seconds, proofs and costs side by side; two proven costs that differ are an error.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ifonly import Explainer, NotProvenOptimal, Sparsity, datasets

SETTINGS = {"own": "auto", "solver": "highs only"}


class Asked(NamedTuple):
    """One answer: processor seconds, cost, and whether it is proven."""

    seconds: float
    cost: float
    proven: bool
    bound: float


def network(name: str, layers: list[int]) -> tuple[Any, Any, Any]:
    """Return a data set and a network fitted on it, behind one-hot levels and scaled numbers."""
    data = getattr(datasets, name)()
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include=["category", "object"])),
        remainder=StandardScaler(),
    )
    model = make_pipeline(columns, MLPClassifier(tuple(layers), random_state=0, alpha=0.01))
    return data, model.fit(data.frame, data.target), data.frame


def answers(data: Any, model: Any, rows: int, limit: float, solver: str, price: float | None) -> Iterator[Asked]:
    """Ask about the first rows that have another outcome."""
    explainer = Explainer(model, data.frame, schema=data.schema, solver=solver)
    criteria = [] if price is None else [Sparsity(price=price)]
    for i in np.flatnonzero(model.predict(data.frame) != data.wanted)[:rows]:
        began = time.process_time()
        proof = explainer.explain(data.frame.iloc[[i]], want=data.wanted, criteria=criteria, time_limit=limit)[
            0
        ].certificate
        yield Asked(time.process_time() - began, proof.objective, proof.proven, proof.bound)


def told(name: str, asked: list[Asked]) -> str:
    """Return the line of one setting."""
    seconds = np.array([a.seconds for a in asked])
    proven = sum(a.proven for a in asked)
    return f"{name}: {proven} of {len(asked)} proven, median {np.median(seconds):.3f} s, most {seconds.max():.2f} s"


def main(arguments: list[str] | None = None) -> int:
    """Print a line per setting; return 1 if two proven costs differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="german_credit")
    parser.add_argument("--layers", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--price", type=float, default=None, help="per change; the default policy's when not given")
    parser.add_argument("--only", choices=list(SETTINGS), default=None)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    warnings.simplefilter("ignore", NotProvenOptimal)
    data, model, _ = network(options.data, options.layers)
    said: dict[str, list[Asked]] = {}
    print(f"{options.data}, {'x'.join(map(str, options.layers))}", flush=True)
    for name, solver in SETTINGS.items():
        if options.only in {None, name}:
            said[name] = list(answers(data, model, options.rows, options.limit, solver, options.price))
            print("  " + told(name, said[name]), flush=True)
    if len(said) < len(SETTINGS):
        return 0
    pairs = list(zip(said["own"], said["solver"], strict=True))
    both = [(a, b) for a, b in pairs if a.proven and b.proven]
    ratio = sum(b.seconds for _, b in both) / max(sum(a.seconds for a, _ in both), 1e-9)
    wrong = [(a, b) for a, b in both if abs(a.cost - b.cost) > 3e-6 * max(a.cost, b.cost)]
    wrong += [
        (a, b)
        for a, b in pairs
        if (a.proven and b.cost < a.cost * (1 - 3e-6)) or (b.proven and a.cost < b.cost * (1 - 3e-6))
    ]
    print(
        f"  where both are proven ({len(both)}): the solver takes {ratio:.1f} times as long; {len(wrong)} differ",
        flush=True,
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
