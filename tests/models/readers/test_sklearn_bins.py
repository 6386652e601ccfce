"""Reader of KBinsDiscretizer: whatever comes before it, the form has the bins of the fitted discretiser."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ifonly import Explainer, UnsupportedModel
from ifonly.testing import check_reader
from portions import one_in
from reading import mixed_frame, outcome

FRAME = mixed_frame(160)
X = FRAME[["debt", "age"]]
YES = (outcome(FRAME) > 0).astype(int)
CODINGS = ["ordinal", "onehot", "onehot-dense"]


def bins(encode: str = "ordinal", n: int = 4) -> KBinsDiscretizer:
    return KBinsDiscretizer(n, encode=encode, strategy="uniform")


@pytest.mark.parametrize("encode", one_in(3, CODINGS))
@pytest.mark.parametrize("last", [LogisticRegression(), DecisionTreeClassifier(max_depth=3, random_state=0)], ids=repr)
def test_bins_of_scaled_numbers(encode: str, last: Any) -> None:
    check_reader(make_pipeline(StandardScaler(), bins(encode), last).fit(X, YES), X, points=900, rows=1)


@pytest.mark.parametrize("encode", CODINGS)
def test_bins_of_a_category_are_a_table_of_its_levels(encode: str) -> None:
    """The codes of an ordinal encoder are numbers to the discretiser; three levels fall into two bins."""
    words = FRAME[["job", "home"]]
    model = make_pipeline(OrdinalEncoder(), bins(encode, 2), LogisticRegression()).fit(words, YES)
    check_reader(model, words, points=100)


@pytest.mark.parametrize("encode", one_in(3, CODINGS))
def test_bins_of_a_column_that_only_tells_of_gaps(encode: str) -> None:
    """A missing indicator depends on no value: its bin is a constant, but for rows with the gap."""
    holes = X.assign(debt=X["debt"].mask(np.arange(len(X)) % 4 == 0))
    model = make_pipeline(SimpleImputer(add_indicator=True), bins(encode, 3), LogisticRegression()).fit(holes, YES)
    check_reader(model, holes, points=600, rows=1)
    assert Explainer(model, holes).model.read.accepts_missing == {0, 1}


def in_order(*steps: tuple[str, Any]) -> Pipeline:
    """Return a pipeline of steps that were fitted one by one."""
    return Pipeline(list(steps))


@pytest.mark.parametrize("encode", one_in(2, CODINGS))
def test_bins_behind_a_decreasing_map(encode: str) -> None:
    one = X[["debt"]]
    turned = PCA(1).fit(one)
    turned.components_ = -np.abs(turned.components_)
    Z = turned.transform(one)
    sliced = bins(encode).fit(Z)
    model = in_order(("turn", turned), ("bins", sliced), ("last", LogisticRegression().fit(sliced.transform(Z), YES)))
    check_reader(model, one, points=600)


@pytest.mark.parametrize("encode", one_in(2, CODINGS))
def test_edges_that_no_value_reaches(encode: str) -> None:
    """Values are cut off at 0 and 1 before they are binned, so the outer edges never tell two of them apart."""
    clipped = MinMaxScaler(clip=True).fit(X)
    wide = np.column_stack([np.linspace(-5, 5, 160), np.linspace(0, 2, 160)])
    sliced = bins(encode, 5).fit(wide)
    last = LogisticRegression().fit(sliced.transform(wide), YES)
    model = in_order(("clip", clipped), ("bins", sliced), ("last", last))
    check_reader(model, X, points=600)


def test_bins_of_mixed_columns_are_refused_by_name() -> None:
    model = make_pipeline(StandardScaler(), PCA(2), bins(), LogisticRegression()).fit(X, YES)
    with pytest.raises(UnsupportedModel, match=r"bins column 'pca0', which mixes 'debt', 'age' \(mixed by PCA\)\. Bin"):
        Explainer(model, X)


def test_bins_beside_other_columns_go_on_through_a_scaler() -> None:
    """The bin number is scaled afterwards, and stands beside a plain number and a category."""
    beside = make_column_transformer(
        (make_pipeline(bins(), StandardScaler()), ["debt"]), ("passthrough", ["age"]), (OneHotEncoder(), ["job"])
    )
    frame = FRAME[["debt", "age", "job"]]
    model = make_pipeline(beside, LogisticRegression(max_iter=2000)).fit(frame, YES)
    check_reader(model, frame, points=900)
    age = Explainer(model, frame).model.read.form
    assert age.raw() == {1}
    assert set(age.cuts()) == {0}
    assert len(age.cuts()[0]) == 3


def test_values_on_an_edge_and_beside_it() -> None:
    """``bin(x)`` counts the edges that are at most ``x``; whole numbers, so that edges are exact."""
    line = pd.DataFrame({"x": np.arange(0.0, 9.0)})
    sliced = bins("onehot-dense").fit(line)
    assert sliced.bin_edges_[0].tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    last = LogisticRegression().fit(sliced.transform(line), line["x"] % 4 < 2)
    form = Explainer(in_order(("bins", sliced), ("last", last)), line).model.read.form
    near = np.sort([f(e) for e in (2.0, 4.0, 6.0) for f in (lambda e: np.nextafter(e, 0), float, lambda e: e + 1e-9)])
    expected = last.decision_function(sliced.transform(pd.DataFrame({"x": near})))
    np.testing.assert_allclose(form(near[:, None])[:, 0], expected, rtol=1e-12, atol=1e-12)
