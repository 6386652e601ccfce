"""Every reader there is, found by discovery: an example of its class is fitted and put through `check_reader`.

A reader without an example fails. Some can only refuse, and say what to use instead.
"""

import functools
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import RegressorMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import all_estimators

from ifonly.data.schema import Schema
from ifonly.errors import UnsupportedModel
from ifonly.models.opening import open_model
from ifonly.models.reading.source import Source
from ifonly.models.registry import known_readers, read_estimator
from ifonly.testing import check_reader
from reading import mixed_frame, outcome

POINTS = 1500
FLOAT32 = 1e-5

FRAME = mixed_frame(160)
X = FRAME[["income", "debt", "age"]].assign(income=FRAME["income"] / 1000.0)
TWO, THREE = (outcome(FRAME) > 0).astype(int), np.array(["low", "mid", "top"])[outcome(FRAME)]
VALUE = 3.0 + X["income"] / 2 - 2 * X["debt"] + np.sin(X["age"] / 9)

tree, trees = DecisionTreeClassifier(max_depth=3, random_state=0), {"n_estimators": 5, "max_depth": 3}
logistic, seed = LogisticRegression(), {"random_state": 0}

# What differs from the defaults, several examples for some; the target is the one the class can take.
SKLEARN: dict[str, list[dict[str, Any]]] = {
    "AdaBoostClassifier": [{"estimator": tree, "n_estimators": 5, **seed}],
    "AdaBoostRegressor": [{"n_estimators": 5, **seed}, {"estimator": Ridge(), "n_estimators": 4, **seed}],
    "BaggingClassifier": [
        {"estimator": tree, "n_estimators": 4, "max_features": 2, **seed},
        {"estimator": logistic, "n_estimators": 3},
    ],
    "BaggingRegressor": [{"estimator": DecisionTreeRegressor(max_depth=3), "n_estimators": 4, **seed}],
    "CalibratedClassifierCV": [
        {"estimator": logistic, "ensemble": False},
        {"estimator": tree, "ensemble": False, "method": "isotonic"},
        {"estimator": logistic, "cv": 2},
    ],
    "DecisionTreeClassifier": [{"max_depth": 5, **seed}],
    "DecisionTreeRegressor": [{"max_depth": 4, **seed}],
    "ExtraTreeClassifier": [{"max_depth": 5, **seed}],
    "ExtraTreeRegressor": [{"max_depth": 4, **seed}],
    "ExtraTreesClassifier": [{**trees, **seed}],
    "ExtraTreesRegressor": [{**trees, **seed}],
    "FixedThresholdClassifier": [{"estimator": logistic, "threshold": 0.3}, {"estimator": tree, "pos_label": 0}],
    "FrozenEstimator": [{"estimator": "fitted"}],
    "GradientBoostingClassifier": [{**trees, **seed}, {**trees, **seed, "loss": "exponential"}],
    "GradientBoostingRegressor": [{**trees, **seed}],
    "GridSearchCV": [{"estimator": logistic, "param_grid": {"C": [0.1, 1.0]}, "cv": 2}],
    "HalvingGridSearchCV": [{"estimator": logistic, "param_grid": {"C": [0.1, 1.0]}, "cv": 2}],
    "HalvingRandomSearchCV": [{"estimator": logistic, "param_distributions": {"C": [0.1, 1.0]}, "cv": 2, **seed}],
    "RandomizedSearchCV": [
        {"estimator": logistic, "param_distributions": {"C": [0.1, 1.0]}, "cv": 2, "n_iter": 2, **seed}
    ],
    "HistGradientBoostingClassifier": [{"max_iter": 5, "max_depth": 3}],
    "HistGradientBoostingRegressor": [{"max_iter": 5, "max_depth": 3}, {"max_iter": 5, "loss": "poisson"}],
    "IsolationForest": [{"n_estimators": 5, "max_samples": 40, **seed}],
    "LinearDiscriminantAnalysis": [{}, {"solver": "lsqr"}],
    "LogisticRegression": [{}, {"C": 0.1, "fit_intercept": False}],
    "LogisticRegressionCV": [{"Cs": 2, "cv": 2, "max_iter": 1000}],
    "MLPClassifier": [{"hidden_layer_sizes": (6, 4), "max_iter": 60, **seed}],
    "MLPRegressor": [{"hidden_layer_sizes": (6,), "max_iter": 60, **seed}],
    "OneVsRestClassifier": [{"estimator": logistic}, {"estimator": tree}],
    "Pipeline": [
        {"steps": [("scale", StandardScaler()), ("last", logistic)]},
        {"steps": [("scale", StandardScaler()), ("last", tree)]},
    ],
    "QuantileRegressor": [{"alpha": 0.01}],
    "RandomForestClassifier": [{**trees, **seed}],
    "RandomForestRegressor": [{**trees, **seed}],
    "SGDClassifier": [{**seed}, {**seed, "loss": "log_loss"}, {**seed, "loss": "modified_huber"}],
    "StackingClassifier": [
        {"estimators": [("a", logistic), ("b", tree)], "final_estimator": logistic, "cv": 2},
        {"estimators": [("a", tree)], "final_estimator": logistic, "cv": 2, "passthrough": True},
    ],
    "StackingRegressor": [{"estimators": [("a", Ridge()), ("b", DecisionTreeRegressor(max_depth=2))], "cv": 2}],
    "SVC": [{"kernel": "linear"}],
    "SVR": [{"kernel": "linear"}],
    "TransformedTargetRegressor": [{"regressor": LinearRegression(), "func": np.log, "inverse_func": np.exp}],
    "TweedieRegressor": [{"power": 0.0}, {"power": 1.5, "alpha": 0.01}],
    "TunedThresholdClassifierCV": [{"estimator": logistic, "cv": 2}],
    "VotingClassifier": [
        {"estimators": [("a", logistic), ("b", tree)], "voting": "soft"},
        {"estimators": [("a", logistic), ("b", tree), ("c", RandomForestClassifier(**trees, **seed))]},
    ],
    "VotingRegressor": [{"estimators": [("a", Ridge()), ("b", RandomForestRegressor(**trees, **seed))]}],
}
# These have two classes only, in what they are or in how they are read; or are slow with three (a mean of softmaxes).
BINARY = frozenset(
    {
        *("SVC-0", "FixedThresholdClassifier-0", "FixedThresholdClassifier-1", "TunedThresholdClassifierCV-0"),
        *("GradientBoostingClassifier-1", "BaggingClassifier-1", "CalibratedClassifierCV-2"),
    }
)


# What its reader can only refuse, with what to use instead: bare models have no predict for frames or no labels.
REFUSED: dict[tuple[str, str], tuple[Any, str]] = {
    ("xgboost", "Booster"): (lambda: native("xgboost", "two"), "BoosterClassifier"),
    ("lightgbm", "Booster"): (lambda: native("lightgbm", "two"), "BoosterClassifier"),
    ("catboost", "CatBoost"): (lambda: pytest.importorskip("catboost").CatBoost(), "BoosterClassifier"),
    ("torch", "Module"): (lambda: module(2), "TorchClassifier"),
    ("onnx", "ModelProto"): (
        lambda: pytest.importorskip("onnx").load_model_from_string(graph(Ridge(), VALUE)),
        "OnnxClassifier",
    ),
    ("onnxruntime", "InferenceSession"): (
        lambda: pytest.importorskip("onnxruntime").InferenceSession(graph(Ridge(), VALUE)),
        "OnnxClassifier",
    ),
}


@functools.cache
def sklearn_classes() -> dict[str, type]:
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the halving searches importable
    from sklearn.frozen import FrozenEstimator

    return dict(all_estimators()) | {"FrozenEstimator": FrozenEstimator}


def check_pickle(estimator: Any) -> None:
    """A read model is the same after a pickle: scores, decisions, probabilities, and the way back from them."""
    _, model, _, U = open_model(estimator, X, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes that are deprecated say so when they are unpickled
        other = pickle.loads(pickle.dumps(model))
    read, back = model.read, other.read
    scores = read.form(U)
    assert np.array_equal(back.form(U), scores, equal_nan=True)
    assert np.array_equal(back.decide(scores), read.decide(scores))
    if read.link.has_probabilities:
        assert np.array_equal(back.probabilities(scores), read.probabilities(scores))
        if read.link.inverse is not None:
            assert [back.link.inverse(v) for v in (0.2, 0.3, 0.9)] == [read.link.inverse(v) for v in (0.2, 0.3, 0.9)]
    assert np.array_equal(other.predict(U), model.predict(U))


def sklearn_examples() -> list[Any]:
    names = sorted(name for framework, name in known_readers() if framework == "sklearn")
    return [
        pytest.param(
            name,
            parameters,
            f"{name}-{k}" in BINARY,
            id=f"{name}-{k}",
            marks=[pytest.mark.slow] * (k > 0 or i % 2 == 0),
        )
        for i, name in enumerate(names)
        if ("sklearn", name) not in REFUSED
        for k, parameters in enumerate(SKLEARN.get(name, [{}]))
    ]


@pytest.mark.parametrize(("name", "parameters", "binary"), sklearn_examples())
def test_a_scikit_learn_reader_predicts_what_the_estimator_predicts(name, parameters, binary):
    kind = sklearn_classes()[name]
    if parameters.get("estimator") == "fitted":
        parameters = {"estimator": LogisticRegression().fit(X, TWO)}
    y = VALUE if issubclass(kind, RegressorMixin) else TWO if binary else THREE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = kind(**parameters).fit(X, y)
    check_reader(estimator, X, points=POINTS, rows=2)
    check_pickle(estimator)


def test_a_reader_on_a_grid_of_decimals_splits_between_its_points():
    frame = X.round({"income": 1, "debt": 2})
    estimator = RandomForestClassifier(**trees, **seed).fit(frame, TWO)
    check_reader(estimator, frame, schema=Schema.infer(frame, precision={"income": 1, "debt": 2}), points=POINTS)
    # Thresholds between two points of the grid, and on one: 1.9 is below 19 * 0.1.
    on_grid = DecisionTreeClassifier(max_depth=1).fit(pd.DataFrame({"x": [1.8, 2.0]}), [0, 1])
    assert np.float32(on_grid.tree_.threshold[0]) == np.float32(1.9)
    line = pd.DataFrame({"x": np.round(np.arange(0, 40) / 10, 1)})
    check_reader(on_grid, line, schema=Schema.infer(line, precision={"x": 1}), points=200)


# -- frameworks --------------------------------------------------------------------------------------------------------
def booster(kind: str, task: str) -> Any:
    """Return a fitted model of a gradient boosting framework: (class, task)."""
    options = {
        "xgboost": {"n_estimators": 6, "max_depth": 3, "n_jobs": 1},
        "lightgbm": {"n_estimators": 6, "max_depth": 3, "verbose": -1, "n_jobs": 1, "min_child_samples": 5},
        "catboost": {"iterations": 6, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1},
    }
    framework, name = kind.split(".")
    made = getattr(pytest.importorskip(framework), name)(**options[framework])
    if task == "rank":
        relevance = outcome(FRAME)
        groups = {"group": [80, 80]} if framework != "catboost" else {"group_id": np.repeat([0, 1], 80)}
        return made.fit(X, relevance, **groups)
    return made.fit(X, {"two": TWO, "three": outcome(FRAME), "value": VALUE}[task])


def native(framework: str, task: str) -> Any:
    name = {"xgboost": "XGB", "lightgbm": "LGBM", "catboost": "CatBoost"}[framework]
    model = booster(f"{framework}.{name}{'Regressor' if task == 'value' else 'Classifier'}", task)
    if framework == "xgboost":
        return model.get_booster()
    return model.booster_ if framework == "lightgbm" else model


def wrapped(name: str, framework: str) -> Any:
    from ifonly.adapters.boosters import BoosterClassifier, BoosterRegressor

    if name == "BoosterRegressor":
        return BoosterRegressor(native(framework, "value"))
    return BoosterClassifier(native(framework, "two"), ["no", "yes"])


def module(outputs: int) -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.ReLU(), torch.nn.Linear(6, outputs)).eval()


def from_torch(name: str) -> Any:
    from ifonly.adapters.torch import TorchClassifier, TorchRegressor

    scaler = StandardScaler().fit(X)
    last = TorchRegressor(module(1)) if name == "TorchRegressor" else TorchClassifier(module(3), ["a", "b", "c"])
    return make_pipeline(scaler, last)


def graph(estimator: Any, y: Any) -> bytes:
    skl2onnx = pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    fitted = estimator.fit(X.to_numpy(dtype=np.float32), y)
    options = {id(fitted): {"zipmap": False}} if hasattr(fitted, "classes_") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return skl2onnx.to_onnx(fitted, X.to_numpy(dtype=np.float32)[:1], options=options).SerializeToString()


def from_onnx(name: str, inner: str) -> Any:
    from ifonly.adapters.onnx import OnnxClassifier, OnnxRegressor

    if name == "OnnxRegressor":
        made = {"linear": Ridge(), "trees": RandomForestRegressor(**trees, **seed)}[inner]
        return OnnxRegressor(graph(made, VALUE))
    made = {"linear": LogisticRegression(), "trees": RandomForestClassifier(**trees, **seed)}[inner]
    return OnnxClassifier(graph(made, outcome(FRAME)))


def scorecard() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optbinning = pytest.importorskip("optbinning")
        scale = {"scaling_method": "min_max", "scaling_method_params": {"min": 300, "max": 850}}
        made = optbinning.Scorecard(optbinning.BinningProcess(list(X.columns)), LogisticRegression(), **scale)
        return made.fit(X, TWO)


def scorecard_points() -> Any:
    from ifonly.adapters.scorecard import ScorecardPoints

    return ScorecardPoints(scorecard())


def boosting_machine(name: str) -> Any:
    few = {"max_bins": 12, "outer_bags": 1, "max_rounds": 40, "n_jobs": 1, "random_state": 0}
    value = name.endswith("Regressor")
    if name.startswith("DP"):
        few |= {"privacy_bounds": {c: (float(X[c].min()), float(X[c].max())) for c in X}}
        few |= {"privacy_target_min": float(VALUE.min()), "privacy_target_max": float(VALUE.max())} if value else {}
    else:
        few |= {"max_interaction_bins": 5, "interactions": 1}
    home = pytest.importorskip("interpret.privacy" if name.startswith("DP") else "interpret.glassbox")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fixed seed is not private
        return getattr(home, name)(**few).fit(X, VALUE if value else TWO)


FRAMEWORKS: dict[tuple[str, str], list[Any]] = {
    **{
        ("interpret", f"{kind}ExplainableBoosting{task}"): [
            functools.partial(boosting_machine, f"{kind}ExplainableBoosting{task}")
        ]
        for kind in ("", "DP")
        for task in ("Classifier", "Regressor")
    },
    ("optbinning", "Scorecard"): [scorecard],
    ("ifonly", "ScorecardPoints"): [scorecard_points],
    ("xgboost", "XGBClassifier"): [
        lambda: booster("xgboost.XGBClassifier", "two"),
        lambda: booster("xgboost.XGBClassifier", "three"),
    ],
    ("xgboost", "XGBRFClassifier"): [lambda: booster("xgboost.XGBRFClassifier", "two")],
    ("xgboost", "XGBRegressor"): [lambda: booster("xgboost.XGBRegressor", "value")],
    ("xgboost", "XGBRFRegressor"): [lambda: booster("xgboost.XGBRFRegressor", "value")],
    ("xgboost", "XGBRanker"): [lambda: booster("xgboost.XGBRanker", "rank")],
    ("lightgbm", "LGBMClassifier"): [
        lambda: booster("lightgbm.LGBMClassifier", "two"),
        lambda: booster("lightgbm.LGBMClassifier", "three"),
    ],
    ("lightgbm", "LGBMRegressor"): [lambda: booster("lightgbm.LGBMRegressor", "value")],
    ("lightgbm", "LGBMRanker"): [lambda: booster("lightgbm.LGBMRanker", "rank")],
    ("catboost", "CatBoostClassifier"): [
        lambda: booster("catboost.CatBoostClassifier", "two"),
        lambda: booster("catboost.CatBoostClassifier", "three"),
    ],
    ("catboost", "CatBoostRegressor"): [lambda: booster("catboost.CatBoostRegressor", "value")],
    ("catboost", "CatBoostRanker"): [lambda: booster("catboost.CatBoostRanker", "rank")],
    ("ifonly", "BoosterClassifier"): [
        functools.partial(wrapped, "BoosterClassifier", f) for f in ("xgboost", "lightgbm", "catboost")
    ],
    ("ifonly", "BoosterRegressor"): [
        functools.partial(wrapped, "BoosterRegressor", f) for f in ("xgboost", "lightgbm", "catboost")
    ],
    ("ifonly", "TorchClassifier"): [functools.partial(from_torch, "TorchClassifier")],
    ("ifonly", "TorchRegressor"): [functools.partial(from_torch, "TorchRegressor")],
    ("ifonly", "OnnxClassifier"): [functools.partial(from_onnx, "OnnxClassifier", i) for i in ("linear", "trees")],
    ("ifonly", "OnnxRegressor"): [functools.partial(from_onnx, "OnnxRegressor", i) for i in ("linear", "trees")],
}


@pytest.mark.frameworks
@pytest.mark.parametrize(
    "make", [pytest.param(m, id=f"{key[1]}-{i}") for key, makes in FRAMEWORKS.items() for i, m in enumerate(makes)]
)
def test_a_framework_reader_predicts_what_the_model_predicts(make):
    estimator = make()
    check_reader(estimator, X, points=5000, rows=2, tolerance=FLOAT32)
    check_pickle(estimator)


@pytest.mark.parametrize(
    "key",
    [pytest.param(k, marks=() if k[0] == "sklearn" else pytest.mark.frameworks, id=f"{k[0]}.{k[1]}") for k in REFUSED],
)
def test_what_is_refused_is_told_what_to_use(key):
    make, instead = REFUSED[key]
    schema = Schema.infer(X)
    with pytest.raises(UnsupportedModel, match=instead):
        read_estimator(make(), Source.raw(schema, schema.decode, schema.encode(X)[0]))


# -- nothing is left out -----------------------------------------------------------------------------------------------
def test_every_reader_has_an_example():
    missing = [
        key
        for key, reader in known_readers().items()
        if reader.__module__.startswith("ifonly.")  # other tests register readers of their own
        and key not in FRAMEWORKS
        and key not in REFUSED
        and (key[0] != "sklearn" or key[1] not in sklearn_classes())
    ]
    assert not missing, f"readers without an example, add one in {__file__}: {missing}"
    unread = [key for key in (*FRAMEWORKS, *REFUSED) if key not in known_readers()]
    unread += [("sklearn", name) for name in SKLEARN if ("sklearn", name) not in known_readers()]
    assert not unread, f"examples of what no reader reads: {unread}"
