"""Question put to every row of a problem: the distance, the demands beside it, and how many answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.peers.encoding import Norm
from ifonly import Proximity, Target
from ifonly.extend import Criterion

__all__ = ["PLAIN", "Ask"]

Demands = Callable[[], Sequence[Criterion]]


@dataclass(frozen=True)
class Ask:
    """A question, the same for every row of a problem.

    Attributes
    ----------
    norm
        The distance, over changes divided by the training range.
    demands
        Criteria beside the distance; made when they are needed, for some of them hold much data.
    probability
        The least probability of the wanted class; by default the class alone.
    answers
        How many different answers.
    batch
        Whether all rows are asked for together, by `explain_all`.
    schema
        Whether the explainer is given the table's schema, or reads it off the data while it is opened.
    """

    norm: Norm = "l1"
    demands: Demands | None = None
    probability: float | None = None
    answers: int = 1
    batch: bool = False
    schema: bool = True

    @property
    def plain(self) -> bool:
        """Whether peers can be asked the same: a distance, a class, and nothing else."""
        return self.demands is None and self.probability is None and self.answers == 1

    def criteria(self) -> list[Criterion]:
        """Return the policy of ours."""
        return [Proximity(self.norm, scale="range"), *(() if self.demands is None else self.demands())]

    def want(self, label: Any) -> Any:
        """Return the wish of ours."""
        return label if self.probability is None else Target(label, probability=self.probability)

    def accepts(self, model: Any, frame: pd.DataFrame, label: Any) -> bool:
        """Whether the model itself gives every one of these rows what was asked for."""
        if self.probability is None:
            return bool((np.ravel(model.predict(frame)) == label).all())
        place = list(model.classes_).index(label)
        return bool((model.predict_proba(frame)[:, place] >= self.probability).all())


PLAIN = Ask()
