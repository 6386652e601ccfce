"""Questions with their proofs: those of the battery about linear models, trees, boosters and networks, and real ones."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

import ifonly
from benchmarks.battery.ask import BLOCK, LATER, draw_question, draw_world, is_meant
from benchmarks.battery.run import explainer_for
from ifonly import Explainer, IfOnlyError, Infeasible
from ifonly.datasets import adult, german_credit, heloc
from ifonly.record.proof import unpack

__all__ = ["FAMILIES", "Proven", "in_world", "of_real_data"]

FAMILIES = (
    "logistic",
    "linear classifier",
    "linear regression",
    "tree",
    "forest",
    "gradient boosting",
    "hist boosting",
    "xgboost",
    "lightgbm",
    "network",
    "torch",
    "calibrated network",
    "voting network",
)
_TABLES = {"german credit": german_credit, "heloc": heloc, "adult": adult}
SETS = (*_TABLES, *(f"{name}, network" for name in _TABLES))
_DRAWS = 16  # questions drawn in one world, of which less than half are of the plain kind
_SECONDS = 30.0  # for one question, and for one replay


@dataclass(frozen=True)
class Proven:
    """A record with its proof, and what it is about.

    Attributes
    ----------
    plain, kept
        Processor time of the question without and with its proof.
    explainer, factual, want, criteria, question
        The question as it was asked, for forgers who know it.
    """

    family: str
    record: dict[str, Any]
    proof: bytes
    model: Any
    X: pd.DataFrame
    y: Any
    plain: float
    kept: float
    explainer: Explainer
    factual: pd.DataFrame
    want: Any
    criteria: Any
    question: Any

    @property
    def impossible(self) -> bool:
        """Whether it proves that there is no answer."""
        return bool(self.record["kind"] == "impossible")

    def verdict(self, record: Any = None, proof: bytes | None = None, model: Any = None) -> Any:
        """Verify it, or a forgery of it."""
        told = self.record if record is None else record
        seen = self.proof if proof is None else proof
        return ifonly.verify(
            told, self.model if model is None else model, self.X, self.y, proof=seen, time_limit=_SECONDS
        )


def in_world(seed: int, block: int, families: Sequence[str] = FAMILIES) -> Iterator[Proven]:
    """Yield proofs of questions that the battery draws in one of its worlds, all asked without naming a solver."""
    if not is_meant(seed, BLOCK * block, families):
        return
    try:
        world = draw_world(seed, block)
    except Exception:  # noqa: BLE001 - a model that cannot be fitted on so small a table is no question
        return
    impossible = False
    for k in range(_DRAWS):
        try:
            q = draw_question(seed, LATER + _DRAWS * block + k, world)
            if q.kind != "plain":
                continue
            q = replace(q, solver="auto")
            about = q.world.model, q.world.data.X, q.world.y if q.with_y else None
            family = q.tags["family"].split(",")[0]
            proven = _asked(family, explainer_for(q), q.factual, q.target, q.criteria[q.house :], *about)
        except Exception:  # noqa: BLE001 - already there, beyond a license, refused by a criterion: no proof to replay
            continue
        if proven is not None and not (impossible and proven.impossible):  # one of them in a world: blame takes long
            impossible |= proven.impossible
            yield proven


def of_real_data(name: str, n: int) -> Iterator[Proven]:
    """Yield proofs of rows of a real data set that a forest of 100 trees, or a network, refuses."""
    try:
        data = _TABLES[name.removesuffix(", network")]()
    except (IfOnlyError, OSError) as missing:
        print(f"{name} is not there: {missing}", file=sys.stderr)
        return
    X, y = data.frame, data.target
    model, words = _network() if name.endswith("network") else _forest()
    model = model.fit(X, y)
    if len(X) > 5_000:  # whoever verifies scores the training rows; the model has learned from all of them
        X = X.iloc[np.random.default_rng(0).permutation(len(X))[:5_000]]
    explainer, made = Explainer(model, X, schema=data.schema), 0
    for r in np.flatnonzero(model.predict(X) != data.wanted):
        if made == n:
            return
        proven = _asked(f"{data.name}, {words}", explainer, X.iloc[[int(r)]], data.wanted, (), model, X, None)
        made += proven is not None
        if proven is not None:
            yield proven


def _forest() -> tuple[Any, str]:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    words = make_column_selector(dtype_exclude="number")
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough")
    return make_pipeline(encode, RandomForestClassifier(100, max_depth=6, n_jobs=1, random_state=0)), "100 trees"


def _network() -> tuple[Any, str]:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    words = make_column_selector(dtype_exclude="number")
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), remainder=StandardScaler())
    network = MLPClassifier((24, 12), alpha=0.01, max_iter=60, random_state=0)
    return make_pipeline(encode, network), "network of 24 and 12 units"


def _asked(
    family: str, explainer: Explainer, factual: pd.DataFrame, want: Any, criteria: Any, model: Any, X: Any, y: Any
) -> Proven | None:
    """Return the proof of a question, also of one that is impossible; None where a solver closed it."""
    asked: dict[str, Any] = {"want": want, "criteria": list(criteria), "time_limit": _SECONDS}
    known = explainer, factual, want, criteria, explainer._ask(factual, want, criteria)
    try:
        first = explainer.explain(factual, proof=True, **asked)  # what is kept between questions is paid for here
        if first.proof is None or not unpack(first.proof)[0]:
            return None
    except Infeasible as error:
        if error.proof is None or not error.trail:
            return None
        return Proven(family, error.record(), error.proof, model, X, y, 0.0, 0.0, *known)
    began = time.process_time()
    explainer.explain(factual, **asked)
    plain = time.process_time() - began
    answer = explainer.explain(factual, proof=True, **asked)
    kept = time.process_time() - began - plain
    if answer.proof is None or not unpack(answer.proof)[0]:
        return None
    return Proven(family, answer.record(), answer.proof, model, X, y, plain, kept, *known)
