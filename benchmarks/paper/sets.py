"""The four data sets of the paper, in the split of the CARLA library, and the paper's 30 factuals of each.

A factual is kept as the position of its row in the test split (`factuals.json`, written by
`scripts/locate_paper_factuals.py`), so that anyone who has the data has the factuals.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.peers.encoding import Encoding, FloatArray
from benchmarks.speed.problems import encode
from ifonly import datasets
from ifonly.data.schema import Numeric
from ifonly.datasets import Dataset

__all__ = ["FACTUALS", "SETS", "Data", "codes_of", "factual_positions", "load"]

SETS = ("adult", "compas", "heloc", "give_me_some_credit")
FACTUALS = Path(__file__).resolve().parent / "factuals.json"


@dataclass(frozen=True, eq=False)
class Data:
    """One data set: what models learn from, and whom they are asked about.

    Attributes
    ----------
    train, test
        The two parts of the split; ranges, kinds and levels are those of the train part.
    positions
        Rows of the test part: the paper's factuals, in its order.
    encoding
        What peers see of the features.
    """

    name: str
    train: Dataset
    test: Dataset
    positions: tuple[int, ...]
    encoding: Encoding

    @property
    def factuals(self) -> pd.DataFrame:
        """The paper's factuals, by the position of their rows."""
        rows = self.test.frame.iloc[list(self.positions)]
        return rows.set_axis(pd.Index(self.positions), axis=0)

    @property
    def frozen(self) -> tuple[str, ...]:
        """The features that no method may change."""
        return self.train.immutable

    @property
    def categories(self) -> tuple[str, ...]:
        """The categorical features."""
        return tuple(f.name for f in self.train.schema.features if not isinstance(f, Numeric))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numeric features."""
        return tuple(f.name for f in self.train.schema.features if isinstance(f, Numeric))

    def codes(self, frame: pd.DataFrame) -> FloatArray:
        """Return rows with one column per feature: the number, or the position of the level."""
        return codes_of(frame, self.encoding)

    def matrix(self, frame: pd.DataFrame) -> FloatArray:
        """Return rows as peers see them: numbers, and one 0/1 column per level."""
        return self.encoding.matrix(self.codes(frame))

    def frame(self, codes: npt.ArrayLike) -> pd.DataFrame:
        """Return coded rows in raw columns, in the data's own dtypes wherever the values allow it."""
        values = np.atleast_2d(np.asarray(codes, dtype=np.float64))
        columns: dict[str, pd.Series[float]] = {}
        for j, field in enumerate(self.encoding.fields):
            dtype = self.train.frame[field.name].dtype
            if field.kind == "category":
                names = np.array(field.levels, dtype=object)[values[:, j].astype(int)]
                columns[field.name] = pd.Series(names, dtype=dtype)
            else:
                whole = pd.api.types.is_integer_dtype(dtype) and (values[:, j] == np.round(values[:, j])).all()
                columns[field.name] = pd.Series(values[:, j], dtype=dtype if whole else np.float64)
        return pd.DataFrame(columns)


def codes_of(frame: pd.DataFrame, encoding: Encoding) -> FloatArray:
    """Return the rows of a frame in code form; a level that is unknown becomes NaN."""
    out = np.full((len(frame), len(encoding.fields)), np.nan)
    for j, field in enumerate(encoding.fields):
        if field.kind == "category":
            position = {level: float(k) for k, level in enumerate(field.levels)}
            out[:, j] = [position.get(str(value), np.nan) for value in frame[field.name]]
        else:
            out[:, j] = frame[field.name].to_numpy(dtype=np.float64)
    return out


def factual_positions() -> dict[str, tuple[int, ...]]:
    """Return the positions of the paper's factuals in each test split."""
    return {name: tuple(rows) for name, rows in json.loads(FACTUALS.read_text(encoding="utf-8")).items()}


@cache
def load(name: str) -> Data:
    """Return a data set with its factuals."""
    train, test = (getattr(datasets, name)(part) for part in ("train", "test"))
    return Data(name, train, test, factual_positions()[name], encode(train.schema))
