"""Native XGBoost, LightGBM and CatBoost boosters as estimators, from memory or from their own files.

A native booster has no labels and, in XGBoost's case, takes no frames. The classes here give it `predict` in the user's
columns, so that an answer can be confirmed. They are trained already: `fit` does nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ifonly.adapters.estimator import Trained
from ifonly.arrays import FloatArray
from ifonly.errors import UnsupportedModel

__all__ = ["BoosterClassifier", "BoosterRegressor", "load"]


class _Booster(Trained):
    """Base class of the boosters' adapters: a fitted estimator to scikit-learn."""

    booster: Any
    takes_frames: ClassVar[bool] = True
    _allows_missing = True

    @property
    def framework(self) -> str:
        """The package the booster comes from."""
        return type(self.booster).__module__.split(".")[0]

    def outputs(self, X: Any) -> npt.NDArray[Any]:
        """Return what the booster itself predicts: probabilities of a classifier, values of a regressor."""
        if self.framework == "xgboost":
            return _xgboost_outputs(self.booster, X)
        if self.framework == "lightgbm":
            return np.asarray(self.booster.predict(X))
        kind = "Probability" if self._estimator_type == "classifier" else _catboost_kind(self.booster)
        return np.asarray(self.booster.predict(X, prediction_type=kind))

    def _check(self) -> None:
        if self.framework not in ("catboost", "lightgbm", "xgboost"):
            raise UnsupportedModel(
                f"A booster must come from xgboost, lightgbm or catboost, got {type(self.booster)!r}."
            )


@dataclass(eq=False)
class BoosterClassifier(_Booster):
    """A trained native booster as a classifier.

    Parameters
    ----------
    booster
        `xgboost.Booster`, `lightgbm.Booster` or `catboost.CatBoost`. It predicts with the rounds that its own `predict`
        uses: all of them for XGBoost (slice it, ``booster[:best]``, to use fewer), the best ones for LightGBM.
    classes
        The labels, in the booster's order.

    Examples
    --------
    ``Explainer(BoosterClassifier(xgboost.train(...), classes=["bad", "good"]), X)``
    """

    booster: Any
    classes: Sequence[Any]
    classes_: npt.NDArray[Any] = field(init=False, repr=False)

    _estimator_type = "classifier"

    def __post_init__(self) -> None:
        self._check()
        self.classes_ = np.asarray(self.classes)
        if len(self.classes_) < 2:
            raise UnsupportedModel(f"A classifier needs at least two classes, got {list(self.classes)!r}.")

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class."""
        p = np.asarray(self.outputs(X), dtype=np.float64)
        if p.ndim == 1 and len(self.classes_) > 2:
            return np.asarray(np.eye(len(self.classes_))[p.astype(np.int64)])
        return np.column_stack([1.0 - p, p]) if p.ndim == 1 else p

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of each row; a tie goes to the earlier class."""
        if self.framework == "catboost":
            known = list(self.booster.classes_)
            said = np.asarray(self.booster.predict(X, prediction_type="Class")).reshape(-1)
            return np.asarray(self.classes_[[known.index(label) for label in said]])
        p = self.outputs(X)
        if p.ndim > 1:
            return np.asarray(self.classes_[p.argmax(axis=1)])
        position = p if len(self.classes_) > 2 else p > 0.5
        return np.asarray(self.classes_[position.astype(np.int64)])


@dataclass(eq=False)
class BoosterRegressor(_Booster):
    """A trained native booster as a regressor.

    Parameters
    ----------
    booster
        `xgboost.Booster`, `lightgbm.Booster` or `catboost.CatBoost`.
    """

    booster: Any

    _estimator_type = "regressor"

    def __post_init__(self) -> None:
        self._check()

    def predict(self, X: Any) -> FloatArray:
        """Return the value of each row."""
        return np.asarray(self.outputs(X), dtype=np.float64)


def _xgboost_outputs(booster: Any, X: Any) -> npt.NDArray[Any]:
    import xgboost  # noqa: PLC0415 - an optional framework

    data = X.to_numpy() if booster.feature_names is None and hasattr(X, "to_numpy") else X
    given = None if hasattr(data, "columns") else booster.feature_types
    matrix = xgboost.DMatrix(data, feature_types=given, enable_categorical=True)
    return np.asarray(booster.predict(matrix, validate_features=hasattr(data, "columns")))


def _catboost_kind(booster: Any) -> str:
    loss = json.loads(booster.get_metadata()["params"])["loss_function"]["type"]
    return "Exponent" if loss in ("Poisson", "Tweedie") else "RawFormulaVal"


# -- files ----------------------------------------------------------------------------------------------------------
def load(path: str | Path, classes: Sequence[Any] | None = None) -> BoosterClassifier | BoosterRegressor:
    """Return the booster of a file that XGBoost (JSON, UBJ), LightGBM (text) or CatBoost (JSON, CBM) has written.

    Parameters
    ----------
    path
        The file.
    classes
        The labels, in the booster's order; by default what the file says, else 0, 1, ...
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    with path.open("rb") as file:
        head = file.read(64)
    if head.startswith(b"tree"):
        return _load_lightgbm(path, classes)
    if head.startswith(b"CBM") or (head.lstrip().startswith(b"{") and "features_info" in _keys(path)):
        return _load_catboost(path, classes, "cbm" if head.startswith(b"CBM") else "json")
    if head.startswith(b"{"):
        return _load_xgboost(path, classes)
    raise UnsupportedModel(
        f"{str(path)!r} is no model file of XGBoost (JSON or UBJ), LightGBM (text) or CatBoost (JSON or CBM)."
    )


def _keys(path: Path) -> set[str]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        return set()
    return set(document) if isinstance(document, dict) else set()


def _load_xgboost(path: Path, classes: Sequence[Any] | None) -> BoosterClassifier | BoosterRegressor:
    import xgboost  # noqa: PLC0415 - an optional framework

    booster = xgboost.Booster(model_file=str(path))
    learner = json.loads(booster.save_config())["learner"]
    objective = learner["objective"]["name"]
    n = int(learner["learner_model_param"]["num_class"])
    return _adapted(booster, classes, objective.startswith(("binary:", "multi:")), max(n, 2))


def _load_lightgbm(path: Path, classes: Sequence[Any] | None) -> BoosterClassifier | BoosterRegressor:
    import lightgbm  # noqa: PLC0415 - an optional framework

    booster = lightgbm.Booster(model_file=str(path))
    model = booster.dump_model(num_iteration=1)
    objective = str(model.get("objective", ""))
    return _adapted(booster, classes, objective.startswith(("binary", "multiclass")), max(model["num_class"], 2))


def _load_catboost(path: Path, classes: Sequence[Any] | None, form: str) -> BoosterClassifier | BoosterRegressor:
    import catboost  # noqa: PLC0415 - an optional framework

    booster = catboost.CatBoost().load_model(str(path), format=form)
    known = list(booster.classes_)
    return _adapted(booster, known if classes is None and known else classes, bool(known), len(known))


def _adapted(
    booster: Any, classes: Sequence[Any] | None, classifies: bool, n: int
) -> BoosterClassifier | BoosterRegressor:
    if not classifies and classes is None:
        return BoosterRegressor(booster)
    return BoosterClassifier(booster, list(range(n)) if classes is None else classes)
