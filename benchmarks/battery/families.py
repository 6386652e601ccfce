"""Every family of models that has a reader: small ones, fitted on a small world, with random preprocessing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import ensemble, linear_model, neural_network, svm, tree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MinMaxScaler, StandardScaler

__all__ = ["FAMILIES", "Family", "Rng", "either", "members", "seed_of", "single_network"]

Rng = np.random.Generator
Make = Callable[[Rng, int], Any]

# Over a column around 1e9 that nothing scales libsvm goes on for hours; what it has after so many steps is a model as well.
_ITERATIONS = 100_000


@dataclass(frozen=True)
class Family:
    """A kind of model: how to make one, what it can be asked, and how it meets numbers.

    Attributes
    ----------
    make
        From a generator and the number of classes (0: a regression) to an unfitted estimator.
    classes
        The numbers of classes it takes; 0 stands for a regression.
    steps
        Whether its scores take finitely many values, so that ties are exact.
    missing
        Whether it takes missing numbers by itself.
    share
        How often it is drawn.
    adapt
        From a fitted estimator, the transformer before it and the number of classes to another framework's model.
    single
        Whether it computes in single precision, so that a score is known to seven digits only.
    positive
        Whether the values of its regression must be positive.
    """

    name: str
    make: Make
    classes: tuple[int, ...] = (2, 3)
    steps: bool = False
    missing: bool = False
    share: float = 1.0
    adapt: Callable[[Any, Any, int], Any] | None = None
    single: bool = False
    positive: bool = False


def seed_of(rng: Rng) -> int:
    """Return a seed for an estimator."""
    return int(rng.integers(1 << 30))


def either(rng: Rng, *options: Any) -> Any:
    """Return one of several things."""
    return options[int(rng.integers(len(options)))]


# -- linear ------------------------------------------------------------------------------------------------------------
def _logistic(rng: Rng, k: int) -> Any:
    del k
    return linear_model.LogisticRegression(C=float(either(rng, 0.3, 1.0, 10.0)), max_iter=2000)


def _linear_classifier(rng: Rng, k: int) -> Any:
    makers: list[Callable[[], Any]] = [
        lambda: svm.LinearSVC(dual=False),
        linear_model.RidgeClassifier,
        lambda: linear_model.SGDClassifier(loss=either(rng, "log_loss", "hinge"), random_state=seed_of(rng)),
        lambda: linear_model.Perceptron(random_state=seed_of(rng)),
        LinearDiscriminantAnalysis,
        lambda: OneVsRestClassifier(linear_model.LogisticRegression(max_iter=2000)),
    ]
    if k == 2:
        makers.append(lambda: svm.SVC(kernel="linear", max_iter=_ITERATIONS))
    return either(rng, *makers)()


def _linear_regressor(rng: Rng, k: int) -> Any:
    del k
    makers: list[Callable[[], Any]] = [
        linear_model.LinearRegression,
        linear_model.Ridge,
        lambda: linear_model.Lasso(alpha=0.02),
        lambda: linear_model.ElasticNet(alpha=0.02),
        linear_model.BayesianRidge,
        linear_model.HuberRegressor,
        lambda: svm.SVR(kernel="linear", max_iter=_ITERATIONS),
        lambda: linear_model.QuantileRegressor(alpha=0.01),
    ]
    return either(rng, *makers)()


# -- trees -------------------------------------------------------------------------------------------------------------
def _tree(rng: Rng, k: int) -> Any:
    kinds = (
        (tree.DecisionTreeClassifier, tree.ExtraTreeClassifier)
        if k
        else (tree.DecisionTreeRegressor, tree.ExtraTreeRegressor)
    )
    return either(rng, *kinds)(
        max_depth=int(rng.integers(2, 7)), min_samples_leaf=int(rng.integers(1, 5)), random_state=seed_of(rng)
    )


def _forest(rng: Rng, k: int) -> Any:
    kinds = (
        (ensemble.RandomForestClassifier, ensemble.ExtraTreesClassifier)
        if k
        else (ensemble.RandomForestRegressor, ensemble.ExtraTreesRegressor)
    )
    trees, depth = int(rng.choice([2, 3, 4, 6, 8])), either(rng, 2, 3, 5, None)
    return either(rng, *kinds)(trees, max_depth=depth, max_features=either(rng, 1, None), random_state=seed_of(rng))


def _boosting(rng: Rng, k: int) -> Any:
    kind = ensemble.GradientBoostingClassifier if k else ensemble.GradientBoostingRegressor
    return kind(n_estimators=int(rng.integers(2, 9)), max_depth=int(rng.integers(1, 4)), random_state=seed_of(rng))


def _hist(rng: Rng, k: int) -> Any:
    kind = ensemble.HistGradientBoostingClassifier if k else ensemble.HistGradientBoostingRegressor
    return kind(
        max_iter=int(rng.integers(2, 7)),
        max_leaf_nodes=5,
        min_samples_leaf=3,
        early_stopping=False,
        random_state=seed_of(rng),
    )


def _adaboost(rng: Rng, k: int) -> Any:
    depth, n = int(rng.integers(1, 3)), int(rng.integers(2, 7))
    if k:
        return ensemble.AdaBoostClassifier(
            tree.DecisionTreeClassifier(max_depth=depth), n_estimators=n, random_state=seed_of(rng)
        )
    return ensemble.AdaBoostRegressor(
        tree.DecisionTreeRegressor(max_depth=depth), n_estimators=n, random_state=seed_of(rng)
    )


def _bagging(rng: Rng, k: int) -> Any:
    n = int(rng.choice([2, 4, 5]))
    if k:
        return ensemble.BaggingClassifier(
            tree.DecisionTreeClassifier(max_depth=3), n_estimators=n, random_state=seed_of(rng)
        )
    return ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=3), n_estimators=n, random_state=seed_of(rng))


# -- networks ----------------------------------------------------------------------------------------------------------
def single_network(rng: Rng, k: int) -> Any:
    """Return a small network."""
    layers = either(rng, (4,), (6,), (4, 3), (5, 4))
    kind = neural_network.MLPClassifier if k else neural_network.MLPRegressor
    return kind(
        hidden_layer_sizes=layers,
        solver="lbfgs",
        alpha=0.05,
        max_iter=int(rng.integers(30, 90)),
        random_state=seed_of(rng),
    )


# -- made of others ----------------------------------------------------------------------------------------------------
def members(rng: Rng, k: int) -> list[tuple[str, Any]]:
    """Return two or three models to put together, with names."""
    pool = [_logistic, _tree, _boosting, _forest] if k else [_linear_regressor, _tree, _boosting, _forest]
    chosen = rng.permutation(len(pool))[: int(rng.integers(2, 4))]
    return [(f"m{i}", pool[int(j)](rng, k)) for i, j in enumerate(chosen)]


def _voting(rng: Rng, k: int) -> Any:
    parts = members(rng, k)
    if not k:
        return ensemble.VotingRegressor(parts)
    weights = either(rng, None, [1.0, 2.0, 1.0][: len(parts)])
    return ensemble.VotingClassifier(parts, voting=either(rng, "hard", "soft"), weights=weights)


def _stacking(rng: Rng, k: int) -> Any:
    if not k:
        return ensemble.StackingRegressor(members(rng, 0), final_estimator=linear_model.Ridge(), cv=3)
    return ensemble.StackingClassifier(members(rng, k), final_estimator=linear_model.LogisticRegression(), cv=3)


def _calibrated(rng: Rng, k: int) -> Any:
    base = either(rng, _logistic, _forest, _tree)(rng, k)
    return CalibratedClassifierCV(
        base, method=either(rng, "sigmoid", "isotonic"), ensemble=bool(rng.random() < 0.4), cv=3
    )


def _threshold(rng: Rng, k: int) -> Any:
    base = either(rng, _logistic, _forest, _boosting)(rng, k)
    if rng.random() < 0.3:
        return TunedThresholdClassifierCV(base, cv=3)
    return FixedThresholdClassifier(base, threshold=float(either(rng, 0.25, 0.5, 0.6)))


def _searched(rng: Rng, k: int) -> Any:
    return GridSearchCV(_tree(rng, k), {"max_depth": [2, 3]}, cv=3)


def _transformed(rng: Rng, k: int) -> Any:
    base = either(rng, _linear_regressor, _tree, _boosting)(rng, k)
    return TransformedTargetRegressor(base, transformer=either(rng, StandardScaler(), MinMaxScaler()))


# -- boosters of others, and other frameworks' networks -----------------------------------------------------------------
def _xgboost(rng: Rng, k: int) -> Any:
    import xgboost

    options = {
        "n_estimators": int(rng.integers(2, 6)),
        "max_depth": int(rng.integers(1, 4)),
        "n_jobs": 1,
        "random_state": seed_of(rng),
    }
    if rng.random() < 0.2:
        return (xgboost.XGBRFClassifier if k else xgboost.XGBRFRegressor)(**options)
    return (xgboost.XGBClassifier if k else xgboost.XGBRegressor)(**options)


def _lightgbm(rng: Rng, k: int) -> Any:
    import lightgbm

    options = {"n_estimators": int(rng.integers(2, 6)), "num_leaves": 5, "min_child_samples": 3, "min_data_in_bin": 1}
    options |= {"n_jobs": 1, "verbose": -1, "random_state": seed_of(rng)}
    return (lightgbm.LGBMClassifier if k else lightgbm.LGBMRegressor)(**options)


def _catboost(rng: Rng, k: int) -> Any:
    import catboost

    options = {"iterations": int(rng.integers(2, 6)), "depth": int(rng.integers(1, 4)), "verbose": 0}
    options |= {"allow_writing_files": False, "thread_count": 1, "random_seed": seed_of(rng)}
    return (catboost.CatBoostClassifier if k else catboost.CatBoostRegressor)(**options)


def _as_torch(net: Any, transform: Any, k: int) -> Any:
    """Return a fitted network of scikit-learn as a module of PyTorch, in single precision."""
    import torch

    from ifonly.adapters.torch import TorchClassifier, TorchRegressor

    layers: list[Any] = []
    for weights, bias in zip(net.coefs_, net.intercepts_, strict=True):
        linear = torch.nn.Linear(*weights.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.as_tensor(weights.T))
            linear.bias.copy_(torch.as_tensor(bias))
        layers += [linear, torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers[:-1])
    if not k:
        return TorchRegressor(module, transform=transform)
    return TorchClassifier(module, list(net.classes_), transform=transform)


def _as_onnx(estimator: Any, transform: Any, k: int) -> Any:
    """Return a fitted estimator as an ONNX file, in single precision."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType

    from ifonly.adapters.onnx import OnnxClassifier, OnnxRegressor

    options = {id(estimator): {"zipmap": False}} if k else {}
    inputs = [("x", FloatTensorType([None, estimator.n_features_in_]))]
    graph = convert_sklearn(estimator, initial_types=inputs, options=options, target_opset=15)
    return (OnnxClassifier if k else OnnxRegressor)(graph, transform=transform)


def _for_onnx(rng: Rng, k: int) -> Any:
    options = [_logistic, _forest, _tree] if k else [_tree, _forest]
    return either(rng, *options)(rng, k)


FAMILIES: dict[str, Family] = {
    f.name: f
    for f in (
        Family("logistic", _logistic, share=2.0),
        Family("linear classifier", _linear_classifier, share=2.0),
        Family("linear regression", _linear_regressor, (0,), share=1.5),
        Family("tree", _tree, (0, 2, 3), steps=True, missing=True, share=2.0),
        Family("forest", _forest, (0, 2, 3), steps=True, missing=True, share=4.0),
        Family("gradient boosting", _boosting, (0, 2, 3), steps=True, share=2.5),
        Family("hist boosting", _hist, (0, 2, 3), steps=True, missing=True, share=2.0),
        Family("AdaBoost", _adaboost, (0, 2, 3), steps=True, share=1.5),
        Family("bagging", _bagging, (0, 2, 3), steps=True, missing=True),
        Family("network", single_network, (0, 2, 3), share=3.0),
        Family("voting", _voting, (0, 2, 3), share=1.5),
        Family("stacking", _stacking, (0, 2, 3), share=0.7),
        Family("calibrated", _calibrated, (2, 3), share=1.0),
        Family("threshold", _threshold, (2,), share=1.0),
        Family("search", _searched, (0, 2, 3), steps=True, share=0.4),
        Family("transformed target", _transformed, (0,), share=0.7),
        Family("xgboost", _xgboost, (0, 2, 3), steps=True, missing=True, share=1.0),
        Family("lightgbm", _lightgbm, (0, 2, 3), steps=True, missing=True, share=1.0),
        Family("catboost", _catboost, (0, 2, 3), steps=True, share=0.5),
        Family("torch", single_network, (0, 2, 3), share=0.6, adapt=_as_torch, single=True),
        Family("onnx", _for_onnx, (0, 2, 3), share=0.4, adapt=_as_onnx, single=True),
    )
}
