"""The way of a question through the code: which modules and functions run between the call and its answer, and how deep.

Run with ``python -m benchmarks.walks``; to measure another commit, put its ``src`` first on ``PYTHONPATH``. Only calls of
functions of ifonly count; comprehensions, generator expressions and class bodies do not. Each question is asked once
before it is traced, so that imports and caches are no part of its walk.
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


def _asked(estimator: Any, criteria: list[Any]) -> Callable[[], Any]:
    model, X = _model(estimator)
    explainer = Explainer(model, X)
    row = X[model.predict(X) == "bad"].iloc[[0]]
    return lambda: explainer.explain(row, want="good", criteria=criteria)


def _linear() -> Callable[[], Any]:
    from sklearn.linear_model import LogisticRegression

    return _asked(LogisticRegression(), [])


def _forest() -> Callable[[], Any]:
    from sklearn.ensemble import RandomForestClassifier

    return _asked(RandomForestClassifier(20, max_depth=4, random_state=0), [])


def _network_with_hull() -> Callable[[], Any]:
    from sklearn.neural_network import MLPClassifier

    return _asked(MLPClassifier((8,), max_iter=400, random_state=0), [Manifold()])


def _infeasible() -> Callable[[], Any]:
    from sklearn.linear_model import LogisticRegression

    from ifonly import Actionability

    ask = _asked(LogisticRegression(), [Actionability(frozen=["income", "debts", "home", "age"]), Sparsity(at_most=1)])

    def refused() -> None:
        try:
            ask()
        except Infeasible:
            return
        raise AssertionError("this question has an answer")

    return refused


WALKS: dict[str, Callable[[], Callable[[], Any]]] = {
    "linear": _linear,
    "forest": _forest,
    "network with hull": _network_with_hull,
    "infeasible": _infeasible,
}


def walk(name: str) -> Walk:
    """Return the walk of one of the questions."""
    found = Walk()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ask = WALKS[name]()
        ask()
        with found.traced():
            ask()
    return found


def main() -> None:
    """Print the walks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walks", description=__doc__)
    parser.add_argument("--names", action="store_true", help="also the modules that each walk passes")
    names = parser.parse_args().names
    print(f"{'question':<20}{'modules':>9}{'hand on':>9}{'functions':>11}{'depth':>7}{'chain':>7}")
    for name in WALKS:
        found = walk(name)
        counts = (len(found.modules), len(found.handing))
        print(f"{name:<20}{counts[0]:>9}{counts[1]:>9}{len(found.functions):>11}{found.depth:>7}{len(found.chain):>7}")
        if names:
            print("    hand on: " + ", ".join(sorted(found.handing)))
            print("    only answer: " + ", ".join(sorted(found.modules - found.handing)))
            print("    longest chain: " + " -> ".join(found.chain))


if __name__ == "__main__":
    main()
