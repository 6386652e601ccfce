"""Points of a scorecard as a regressor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ifonly.adapters.estimator import Trained

__all__ = ["ScorecardPoints"]


# -- scorecards ------------------------------------------------------------------------------------------------------
@dataclass(eq=False)
class ScorecardPoints(Trained):
    """The points of a fitted optbinning Scorecard as a regression model, to ask for a score: ``Target(at_least=600)``.

    Parameters
    ----------
    scorecard
        The fitted scorecard, with a scaling method.
    """

    scorecard: Any
    _estimator_type: Literal["regressor"] = field(default="regressor", init=False, repr=False)
    _allows_missing = True
    takes_frames = True

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the points of each row."""
        return np.asarray(self.scorecard.score(X), dtype=np.float64)

    def points(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the points of each row, variable by variable; with the intercept they sum to `predict`."""
        card = self.scorecard
        bins = card._transform(X=X, metric="indices", metric_special="empirical", metric_missing="empirical")
        table = card._df_scorecard
        columns = [table[table.Variable == name].Points.to_numpy()[bins[name]] for name in bins.columns]
        return np.column_stack([np.asarray(c, dtype=np.float64) for c in columns])
