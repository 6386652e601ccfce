"""Answers a distance apart are no dearer than that distance asks for, in single precision too."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from ifonly import Diversity, Explainer, Proximity, Target


@pytest.mark.filterwarnings("ignore::ifonly.errors.NotProvenOptimal")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 64.0])
def test_the_second_answer_keeps_just_the_distance(dtype: str, offset: float) -> None:
    X = pd.DataFrame({"a": np.linspace(0.0, 1.0, 65) + offset}).astype(dtype)
    model = LinearRegression().fit(X.astype(float), X.a)
    answer = Explainer(model, X).explain(
        {"a": offset},
        want=Target(at_least=offset + 0.25),
        n=2,
        criteria=[Proximity("l1"), Diversity("iterate", distance=0.5)],
    )
    first, second = (float(one.row.a[0]) for one in answer)
    grain = float(np.finfo(dtype).eps) * (1.0 + offset)
    assert second - first >= 0.5 * (1.0 - 1e-7)
    assert second - first <= 0.5 + 2.0 * grain + 1e-7
    assert answer[1].certificate.gap <= 4.0 * grain / 0.75 + 1e-6  # a float of the column is no finer than that
