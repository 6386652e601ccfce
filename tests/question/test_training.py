"""Statistics of the training data: ranges, deviations, covariance, with gaps in it and without numbers in it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ifonly.data.schema import Schema
from ifonly.models.forms.linear import Linear
from ifonly.models.read import Model, Read
from ifonly.question.training import Training


def training(X: pd.DataFrame) -> Training:
    schema = Schema.infer(X)
    form = Linear(schema, np.ones((1, schema.width)), np.zeros(1))
    return Training(schema, schema.encode(X, missing=True), Model(Read(form), None, schema.decode))


def test_statistics_are_per_feature_and_skip_what_is_missing() -> None:
    x = np.array([0.0, 1.0, np.nan, 7.0])
    t = training(pd.DataFrame({"c": list("abab"), "x": x, "y": [1.0, 1.0, 1.0, 5.0]}))
    assert t.numeric == (1, 2)
    assert t.range.tolist() == [0.0, 7.0, 4.0]
    assert t.std[1] == pytest.approx(np.nanstd(x))
    assert t.mad[1] == 1.0
    assert t.mad[2] == pytest.approx(np.std([1, 1, 1, 5]))  # the median deviation is 0, the standard one is not


def test_precision_is_the_inverse_covariance_of_complete_rows() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3)), columns=list("xyz"))
    X.loc[3, "x"] = np.nan
    S = np.cov(X.dropna().to_numpy(), rowvar=False)
    assert np.allclose(training(X).precision @ S, np.eye(3), atol=1e-4)


def test_a_constant_column_does_not_break_the_covariance() -> None:
    t = training(pd.DataFrame({"x": np.arange(5.0), "c": np.ones(5)}))
    assert np.isfinite(t.precision).all()


def test_without_numbers() -> None:
    t = training(pd.DataFrame({"c": list("abc")}))
    assert t.numeric == ()
    assert [t.range.tolist(), t.std.tolist(), t.mad.tolist()] == [[0.0], [0.0], [0.0]]


def test_the_size_of_scores() -> None:
    assert training(pd.DataFrame({"x": [0.0, 2.0]})).score_scale == 1.0
    assert training(pd.DataFrame({"x": [3.0, 3.0]})).score_scale == 1.0  # no spread: count margins in units
    assert training(pd.DataFrame({"x": [3.0]})).score_scale == 1.0
    assert training(pd.DataFrame({"x": [0.0, 40.0]})).score_scale == 20.0
