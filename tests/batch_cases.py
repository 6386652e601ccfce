"""Shared by the tests of batches: rows of every kind, and a batch of them in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import questions
from ifonly import Actionability, Explainer
from ifonly.batch import Batch

POLICY = [Actionability(max_step={"debts": 4, "income": 1.0, "age": 9}, frozen=["home", "job"])]


def rows(n: int = 60, seed: int = 3) -> pd.DataFrame:
    """Rows with an answer, without recourse, with the outcome already, with a gap, with an unseen level, and repeated."""
    X = questions.people(n, seed=seed).astype({"job": object})
    if n > 8:
        X.loc[5, "job"] = "astronaut"
        X.loc[7, "income"] = np.nan
    X.iloc[min(20, n - 1)] = X.iloc[3]
    return X


def explain(explainer: Explainer, to: Path, table: Any = None, **options: Any) -> Batch:
    given = {"want": "good", "criteria": POLICY, "shard_rows": 25, "reproducible": True} | options
    return explainer.explain_all(rows() if table is None else table, to=to, **given)


def content(folder: Path) -> dict[str, bytes]:
    """The bytes of every shard."""
    return {p.name: p.read_bytes() for p in sorted((folder / "shards").iterdir())}
