"""The way of a question through the code: which modules and functions run between the call and its answer, and how deep.

Run with ``python -m benchmarks.walks``; to measure another commit, put its ``src`` first on ``PYTHONPATH``. Only calls of
functions of ifonly count; comprehensions, generator expressions and class bodies do not. Each question is asked about another
row before it is traced, so that imports, and what is made ready once for all rows, are no part of its walk; with ``--first``
only imports are not: it is the first question of its Explainer.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import ifonly
from ifonly import Explainer, Infeasible, Manifold, Sparsity

__all__ = ["WALKS", "Walk", "main", "walk"]

_SOURCE = Path(ifonly.__file__).resolve().parent


@dataclass
class Walk:
    """Calls that ran while a question was answered.

    Attributes
    ----------
    modules
        Modules of ifonly in which a function was called.
    functions
        Those functions, as (module, name).
    handing
        Modules of which a function called one of another module: they hand the question, or a part of it, on. The
        others only answer, and who follows where a question goes need not open them.
    depth
        The greatest number of functions that were under way at once.
    chain
        The modules of the longest chain: those that were under way at once, where these were most.
    """

    modules: set[str] = field(default_factory=set)
    functions: set[tuple[str, str]] = field(default_factory=set)
    handing: set[str] = field(default_factory=set)
    depth: int = 0
    chain: tuple[str, ...] = ()

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Note every call of the block."""
        stack: list[str] = []

        def hook(frame: FrameType, event: str, argument: Any) -> None:
            del argument
            if event not in ("call", "return"):
                return
            name = frame.f_code.co_qualname
            if name.endswith(("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")):
                return
            path = Path(frame.f_code.co_filename)
            if not path.is_relative_to(_SOURCE):
                return
            if event == "return":
                stack.pop()
                return
            module = path.relative_to(_SOURCE).with_suffix("").as_posix().replace("/", ".")
            if stack and stack[-1] != module:
                self.handing.add(stack[-1])
            stack.append(module)
            self.modules.add(module)
            self.functions.add((module, name))
            self.depth = max(self.depth, len(stack))
            distinct = tuple(dict.fromkeys(stack))
            self.chain = max(self.chain, distinct, key=len)

        sys.setprofile(hook)
        try:
            yield
        finally:
            sys.setprofile(None)


def _people(rows: int = 300) -> tuple[pd.DataFrame, pd.Series[str]]:
    """Return a small table: three numbers and a category, and an outcome that two of the numbers decide."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 75, rows),
            "income": rng.normal(3.0, 1.0, rows).round(2),
            "debts": rng.gamma(2.0, 0.8, rows).round(2),
            "home": rng.choice(["own", "rent", "none"], rows),
        }
    )
    good = X["income"] - 0.8 * X["debts"] + 0.01 * X["age"] + 0.3 * (X["home"] == "own") > 2.2
    return X, pd.Series(np.where(good, "good", "bad"))


def _model(estimator: Any) -> tuple[Any, pd.DataFrame]:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y = _people()
    columns = make_column_transformer((OneHotEncoder(), ["home"]), (StandardScaler(), ["age", "income", "debts"]))
    return make_pipeline(columns, estimator).fit(X, y), X


Ask = Callable[[int], Any]  # about the refused row of this number


def _asked(estimator: Any, criteria: list[Any]) -> Ask:
    model, X = _model(estimator)
    explainer = Explainer(model, X)
    refused = X[model.predict(X) == "bad"]
    return lambda at: explainer.explain(refused.iloc[[at]], want="good", criteria=criteria)


def _linear() -> Ask:
    from sklearn.linear_model import LogisticRegression

    return _asked(LogisticRegression(), [])


def _forest() -> Ask:
    from sklearn.ensemble import RandomForestClassifier

    return _asked(RandomForestClassifier(20, max_depth=4, random_state=0), [])


def _network() -> Ask:
    from sklearn.neural_network import MLPClassifier

    return _asked(MLPClassifier((8,), max_iter=400, random_state=0), [])


def _network_with_hull() -> Ask:
    from sklearn.neural_network import MLPClassifier

    return _asked(MLPClassifier((8,), max_iter=400, random_state=0), [Manifold()])


def _infeasible() -> Ask:
    from sklearn.linear_model import LogisticRegression

    from ifonly import Actionability

    ask = _asked(LogisticRegression(), [Actionability(frozen=["income", "debts", "home", "age"]), Sparsity(at_most=1)])

    def refused(at: int) -> None:
        try:
            ask(at)
        except Infeasible:
            return
        raise AssertionError("this question has an answer")

    return refused


WALKS: dict[str, Callable[[], Ask]] = {
    "linear": _linear,
    "forest": _forest,
    "network": _network,
    "network with hull": _network_with_hull,
    "infeasible": _infeasible,
}


def walk(name: str, *, first: bool = False) -> Walk:
    """Return the walk of one of the questions; with `first`, of one that its Explainer is asked first."""
    found = Walk()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ask = WALKS[name]()
        ask(1)
        ask = WALKS[name]() if first else ask
        with found.traced():
            ask(0)
    return found


def main() -> None:
    """Print the walks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walks", description=__doc__)
    parser.add_argument("--names", action="store_true", help="also the modules that each walk passes")
    parser.add_argument("--first", action="store_true", help="of the first question of an Explainer")
    asked = parser.parse_args()
    print(f"{'question':<20}{'modules':>9}{'hand on':>9}{'functions':>11}{'depth':>7}{'chain':>7}")
    for name in WALKS:
        found = walk(name, first=asked.first)
        counts = (len(found.modules), len(found.handing))
        print(f"{name:<20}{counts[0]:>9}{counts[1]:>9}{len(found.functions):>11}{found.depth:>7}{len(found.chain):>7}")
        if asked.names:
            print("    hand on: " + ", ".join(sorted(found.handing)))
            print("    only answer: " + ", ".join(sorted(found.modules - found.handing)))
            print("    longest chain: " + " -> ".join(found.chain))


if __name__ == "__main__":
    main()
