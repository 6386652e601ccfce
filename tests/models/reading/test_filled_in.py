"""Gaps that a Pipeline fills in before a linear model or a network: NaN stays NaN, and means what is put in its place."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from ifonly import Actionability, Explainer, Infeasible, Proximity, SchemaError, Target
from ifonly.errors import FactualViolatesDemand
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.network import Network
from ifonly.models.forms.steps import Stepped
from ifonly.models.forms.trees import Trees
from ifonly.program.box import Box
from ifonly.testing import check_reader
from ifonly.testing.points import random_rows
from reading import mixed_frame, outcome

NUMBERS, WORDS = ["income", "debt", "age"], ["job", "home"]


def holes() -> pd.DataFrame:
    frame = mixed_frame(160).assign(income=lambda f: f["income"] / 1000.0, age=lambda f: f["age"].astype(float))
    rng = np.random.default_rng(0)
    return frame.mask(pd.DataFrame(rng.random(frame.shape) < 0.15, frame.index, frame.columns), np.nan)


HOLES = holes()
CLASS = outcome(mixed_frame(160))
YES = (CLASS > 0).astype(int)


def prepare(*, indicator: bool = False, word: str | None = None):
    """Numbers by their mean, with a flag; words by the most frequent one, or by a level of their own."""
    words = (
        SimpleImputer(strategy="most_frequent") if word is None else SimpleImputer(strategy="constant", fill_value=word)
    )
    return make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=indicator), StandardScaler()), NUMBERS),
        (make_pipeline(words, OneHotEncoder(handle_unknown="ignore")), WORDS),
        sparse_threshold=0.0,
    )


def network():
    return MLPClassifier((5,), max_iter=400, tol=1e-2, random_state=0)


def bins():
    return KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf")


MODELS = {
    "mean": (lambda: make_pipeline(prepare(), LogisticRegression()), Linear),
    "indicator": (lambda: make_pipeline(prepare(indicator=True), LogisticRegression()), Linear),
    "a level of its own": (lambda: make_pipeline(prepare(word="not said"), LogisticRegression()), Linear),
    "mixed afterwards": (lambda: make_pipeline(prepare(indicator=True), PCA(4), LogisticRegression()), Linear),
    "one against the rest": (lambda: make_pipeline(prepare(), OneVsRestClassifier(LogisticRegression())), Linear),
    "network": (lambda: make_pipeline(prepare(indicator=True, word="not said"), network()), Network),
    "bins": (
        lambda: make_pipeline(
            make_column_transformer((make_pipeline(SimpleImputer(), bins()), NUMBERS)), LogisticRegression()
        ),
        Trees,
    ),
    "bins and network": (
        lambda: make_pipeline(make_column_transformer((make_pipeline(SimpleImputer(), bins()), NUMBERS)), network()),
        Stepped,
    ),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if "bins" in n else n for n in MODELS])
def test_the_form_takes_what_the_pipeline_takes(name):
    make, simple = MODELS[name]
    estimator = make().fit(HOLES, CLASS if name == "one against the rest" else YES)
    check_reader(estimator, HOLES, points=1000, rows=2)
    explainer = Explainer(estimator, HOLES)
    assert explainer.model.read.accepts_missing == frozenset(range(5))
    complete = HOLES.dropna().iloc[[0]]
    assert isinstance(explainer.problem(complete, want=explainer.model.read.classes[0]).statement.form, simple)


@pytest.mark.parametrize(
    "name", ["indicator", "a level of its own", "network", pytest.param("bins and network", marks=pytest.mark.slow)]
)
def test_what_is_missing_stays_missing(name):
    estimator = MODELS[name][0]().fit(HOLES, YES)
    explainer = Explainer(estimator, HOLES)
    asked = HOLES[HOLES.isna().sum(axis=1) == 2].iloc[:4]
    assert len(asked) == 4
    assert any(stays_missing(explainer, asked.iloc[[k]]) for k in range(len(asked)))


def stays_missing(explainer, factual) -> bool:
    """Return whether there is an answer, with the same gaps; when there is none, no random row is one either."""
    estimator = explainer.model.estimator
    try:
        answer = explainer.explain(factual)
    except Infeasible:
        around = Box.of(explainer.schema, explainer.schema.encode(factual, missing=True)[0])
        rows = explainer.schema.decode(random_rows(around, 3000, np.random.default_rng(0)))
        assert set(estimator.predict(rows)) == set(estimator.predict(factual))
        return False
    assert estimator.predict(answer.frame())[0] != estimator.predict(factual)[0]
    assert (answer.frame().isna().to_numpy() == factual.isna().to_numpy()).all()
    assert answer.status == "optimal"
    return True


def test_the_optimum_with_a_gap_by_hand():
    """``x + z`` at least 0 with ``z`` missing, filled in by its mean 3: ``x`` must rise from -5 to -3."""
    frame = pd.DataFrame({"x": np.linspace(-6.0, 6.0, 40), "z": np.tile([2.0, 4.0], 20)})
    model = make_pipeline(SimpleImputer(), Ridge(alpha=0.0)).fit(frame, frame["x"] + frame["z"])
    explainer = Explainer(model, frame, criteria=[Proximity("l1", scale="range")])
    answer = explainer.explain({"x": -5.0, "z": np.nan}, want=Target(at_least=0.0))
    assert answer[0].row["x"].iloc[0] == pytest.approx(-3.0, abs=1e-5)
    assert np.isnan(answer[0].row["z"].iloc[0])


def test_a_range_gives_a_filled_number_a_value():
    estimator = MODELS["indicator"][0]().fit(HOLES, YES)
    factual = HOLES[HOLES["income"].isna()].iloc[[0]]
    with pytest.warns(FactualViolatesDemand, match="range of income"):
        answer = Explainer(estimator, HOLES).explain(factual, criteria=[Actionability(ranges={"income": (1.0, 9.0)})])
    assert answer.frame()["income"].between(1.0, 9.0).all()
    assert estimator.predict(answer.frame())[0] != estimator.predict(factual)[0]


def test_a_column_that_nothing_fills_in_is_refused_by_name():
    half = make_column_transformer((SimpleImputer(), ["income"]), ("passthrough", ["debt", "age"]))
    whole = HOLES[NUMBERS].fillna({"debt": 0.3, "age": 40.0})
    estimator = make_pipeline(half, LogisticRegression()).fit(whole, YES)
    explainer = Explainer(estimator, whole)
    assert explainer.model.read.accepts_missing == {0}
    answer = explainer.explain(whole[whole["income"].isna()].iloc[[0]])
    assert answer.frame()["income"].isna().all()
    message = (
        r"Missing value in column 'debt' \(row 0\): .* a meaning in other columns \('income'\), but not in this one"
    )
    with pytest.raises(SchemaError, match=message):
        explainer.explain({"income": 2.0, "debt": np.nan, "age": 30.0})
    with pytest.raises(SchemaError, match="column 'debt'"):
        Explainer(estimator, HOLES[NUMBERS])


def test_without_an_imputer_one_is_advised():
    whole = HOLES[NUMBERS].fillna(1.0)
    explainer = Explainer(make_pipeline(StandardScaler(), LogisticRegression()).fit(whole, YES), whole)
    with pytest.raises(SchemaError, match=r"'debt' .* no meaning. Fill it in, or put an imputer"):
        explainer.explain({"income": 2.0, "debt": np.nan, "age": 30.0})


@pytest.mark.frameworks
def test_a_torch_module_behind_an_imputer():
    torch = pytest.importorskip("torch")
    from ifonly.adapters.torch import TorchClassifier

    torch.manual_seed(0)
    prepared = prepare(indicator=True).fit(HOLES)
    width = prepared.transform(HOLES).shape[1]
    module = torch.nn.Sequential(torch.nn.Linear(width, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2)).eval()
    with torch.no_grad():  # so that it says either in half of the cases
        scores = module(torch.tensor(prepared.transform(HOLES), dtype=torch.float32))
        module[2].bias -= scores.median(dim=0).values
    estimator = TorchClassifier(module, ["no", "yes"], transform=prepared)
    check_reader(estimator, HOLES, points=1000, tolerance=1e-5)
    explainer = Explainer(estimator, HOLES)
    assert any(stays_missing(explainer, HOLES[HOLES["debt"].isna()].iloc[[k]]) for k in range(3))


@pytest.mark.frameworks
@pytest.mark.parametrize(
    "last",
    [
        LogisticRegression(),
        MLPClassifier((4,), max_iter=300, tol=1e-2, random_state=0),
        RandomForestClassifier(5, max_depth=3, random_state=0),
    ],
    ids=["linear", "network", "forest"],
)
def test_an_onnx_graph_behind_an_imputer(last):
    skl2onnx = pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    from ifonly.adapters.onnx import OnnxClassifier

    prepared = prepare().fit(HOLES)
    Z = prepared.transform(HOLES).astype(np.float32)
    fitted = last.fit(Z, YES)
    graph = skl2onnx.to_onnx(fitted, Z[:1], options={id(fitted): {"zipmap": False}}).SerializeToString()
    estimator = OnnxClassifier(graph, transform=prepared)
    check_reader(estimator, HOLES, points=1000, tolerance=1e-5)
    assert Explainer(estimator, HOLES).model.read.accepts_missing == frozenset(range(5))
