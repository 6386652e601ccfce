"""Distance of a robust answer from a tie: a few roundings of the model's arithmetic, not hundreds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ifonly import Explainer, Proximity, Robustness


@pytest.mark.parametrize("rounding", [2.0**-52, 2.0**-23])
def test_the_first_value_whose_ball_holds_is_taken(rounding: float) -> None:
    X = pd.DataFrame({"x": np.arange(0, 6001)})
    model = LogisticRegression().fit(X, X.x > 3000)
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([-3000.0])
    explainer = Explainer(model, X)
    object.__setattr__(explainer.model, "read", replace(explainer.model.read, rounding=rounding))
    criteria = [Proximity("l1"), Robustness(radius=1.0 / 6000)]
    answer = explainer.explain({"x": 0}, want=True, criteria=criteria)
    # at 3001 the ball holds 3000, a tie; in single precision the scores of this size are off by 0.07 at most
    assert answer.frame().x[0] == 3002
    assert answer[0].certificate.proven
