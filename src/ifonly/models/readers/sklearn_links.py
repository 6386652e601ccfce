"""Readers of scikit-learn's estimators that bend another's output: calibrated classifiers, transformed targets."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import UnsupportedModel
from ifonly.models.form import Form
from ifonly.models.forms.bends import EXP, EXPM1, SIGMOID, SQUARE, Bend, Broken
from ifonly.models.forms.compose import combine, mean
from ifonly.models.forms.curves import Curve, Softmax
from ifonly.models.links import shares
from ifonly.models.own_links import ValueLink
from ifonly.models.read import Read
from ifonly.models.readers.sklearn_compose import response
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.reading.links import Back
from ifonly.models.reading.outcomes import Bent, Function, least, missing_for_all
from ifonly.models.reading.source import Source
from ifonly.models.registry import read_estimator, reads
from ifonly.tolerances import OUT_OF_REACH

__all__: list[str] = []


# -- calibration -----------------------------------------------------------------------------------------------------
@reads("sklearn", "CalibratedClassifierCV")
def read_calibrated(estimator: Any, source: Source) -> Read:
    """The mean over the folds of each member's calibrated probabilities.

    One fold and two classes need no curve: its probability is an increasing function of one score, so the decision is
    a threshold on that score. Several folds are a mean of curves.
    """
    classes = labels_of(estimator)
    folds = [_Fold(fold, source, classes) for fold in estimator.calibrated_classifiers_]
    missing = missing_for_all(f.read for f in folds)
    steady = all(f.read.piecewise_constant for f in folds)
    if len(folds) == 1:
        read = folds[0].alone()
        return replace(read, classes=classes, piecewise_constant=steady, accepts_missing=missing)
    form = mean([f.probabilities() for f in folds])
    return Read(form, classes, "argmax", "identity", piecewise_constant=steady, accepts_missing=missing)


class _Fold:
    """One classifier with its calibrators."""

    def __init__(self, fold: Any, source: Source, classes: tuple[Any, ...]) -> None:
        self.calibrators, self.method, self.classes = fold.calibrators, fold.method, classes
        self.where = f"{source.where}CalibratedClassifierCV"
        self.read = read_estimator(fold.estimator, source)
        if len(fold.estimator.classes_) != len(classes):
            raise UnsupportedModel(
                f"{self.where} has a fold whose classifier has not seen every class. Use a stratified cv with fewer "
                "folds, or ensemble=False."
            )
        scored = hasattr(fold.estimator, "decision_function")
        self.response = "decision_function" if scored else "predict_proba"
        self.scores = response(fold.estimator, self.read, self.response, source)

    def alone(self) -> Read:
        """Return the reading of a single calibrated classifier."""
        if len(self.classes) == 2:
            return self._threshold()
        if self.method == "temperature":
            return self._temperature()
        bent = [self._bent(k) for k in range(len(self.classes))]
        inner = combine(self.scores, np.diag([a for a, _, _ in bent]), np.array([b for _, b, _ in bent]))
        return Read(Curve(inner, tuple(bend for _, _, bend in bent)), self.classes, "argmax", "shares")

    def probabilities(self) -> Form:
        """Return the form of the probabilities, to be averaged over folds."""
        n = len(self.classes)
        if self.method == "temperature" and self.response == "predict_proba":
            raise UnsupportedModel(
                f"{self.where} with method='temperature' averages powers of probabilities over its folds. Use "
                "method='sigmoid', or ensemble=False."
            )
        if n == 2:
            a, b, bend = self._bent(0)
            p = Curve(combine(self.scores, np.array([[a]]), np.array([b])), (bend,))
            return combine(p, np.array([[-1.0], [1.0]]), np.array([1.0, 0.0]))
        if self.method == "isotonic":
            raise UnsupportedModel(
                f"{self.where} with method='isotonic' divides the steps of {n} classes by their sum, and averages that "
                "over folds: not exact in a program. Use method='sigmoid', or ensemble=False."
            )
        bent = [self._bent(k) for k in range(n)]
        inner = combine(self.scores, np.diag([a for a, _, _ in bent]), np.array([b for _, b, _ in bent]))
        if self.method == "temperature":
            return Softmax(combine(self.scores, float(self.calibrators[0].beta_) * np.eye(n)))
        return shares(inner)

    def _bent(self, k: int) -> tuple[float, float, Bend]:
        """Return ``a, b, f`` with which calibrator `k` gives ``f(a s + b)``."""
        calibrator = self.calibrators[0 if self.method == "temperature" else k]
        if self.method == "temperature":
            return 2.0 * float(calibrator.beta_), 0.0, SIGMOID
        if self.method == "sigmoid":
            return -float(calibrator.a_), -float(calibrator.b_), SIGMOID
        xs = np.asarray(calibrator.X_thresholds_, dtype=np.float64)
        ys = np.asarray(calibrator.y_thresholds_, dtype=np.float64)
        return 1.0, 0.0, Broken(xs, ys)

    def _threshold(self) -> Read:
        if self.method == "temperature" and self.response == "predict_proba":
            return self._by(Bent(self._cooled_second, classes=True))
        a, b, bend = self._bent(0)
        form = combine(self.scores, np.array([[a]]), np.array([b]))
        if bend is SIGMOID:
            return Read(form, self.classes, "sign", "sigmoid")
        return self._by(Bent(bend, classes=True, bend=bend))

    def _by(self, link: Bent) -> Read:
        """Return the reading by a link that may be flat in places: the second class iff its probability is larger."""
        threshold = float(np.clip(least(link.function, float(np.nextafter(0.5, 1.0))), -OUT_OF_REACH, OUT_OF_REACH))
        return Read(
            self.scores,
            self.classes,
            "sign",
            "sigmoid",
            threshold,
            strict=False,
            link_forward=link,
            link_inverse=link.inverse,
        )

    def _temperature(self) -> Read:
        """Softmax of scores, or of logarithms of probabilities, whose order is that of the probabilities."""
        beta = float(self.calibrators[0].beta_)
        if self.response == "decision_function":
            cooled = combine(self.scores, beta * np.eye(len(self.classes)))
            return Read(cooled, self.classes, "argmax", "softmax")
        return Read(self.scores, self.classes, "argmax", "normalised", link_forward=self.calibrators[0].predict)

    def _cooled_second(self, p: FloatArray) -> FloatArray:
        """Return the second class's probability from its uncalibrated one, by the calibrator itself."""
        inside = np.clip(p, 0.0, 1.0)
        return np.asarray(self.calibrators[0].predict(np.column_stack([1.0 - inside, inside])))[:, 1]


# -- transformed targets ---------------------------------------------------------------------------------------------
_INCREASING: dict[str, Bend | None] = {
    **dict.fromkeys(("log", "log1p", "log2", "log10", "sqrt", "cbrt", "exp2"), None),
    **dict.fromkeys(("sinh", "arcsinh", "tanh", "expit"), None),
    "exp": EXP,
    "expm1": EXPM1,
}
_AFFINE = frozenset({"StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"})
_MONOTONE = frozenset({"PowerTransformer", "QuantileTransformer"})


@reads("sklearn", "TransformedTargetRegressor")
def read_transformed_target(estimator: Any, source: Source) -> Read:
    """The inner prediction, taken back through the target's transformer."""
    read = read_estimator(estimator.regressor_, source)
    transformer, kind = estimator.transformer_, type(estimator.transformer_).__name__
    if isinstance(read.link, ValueLink):
        raise UnsupportedModel(
            f"{source.where}TransformedTargetRegressor over {type(estimator.regressor_).__name__}, which bends its "
            "output already. Transform the target in one place only."
        )
    back = Back(transformer)
    if kind == "FunctionTransformer":
        name = "" if transformer.inverse_func is None else getattr(transformer.inverse_func, "__name__", "?")
        if not name:
            return read
        if name == "square":
            return replace(read, form=Curve(read.form, (SQUARE,)))
        if name not in _INCREASING:
            known = ", ".join(sorted([*_INCREASING, "square"]))
            raise UnsupportedModel(
                f"{source.where}TransformedTargetRegressor with inverse_func={name!r}: only NumPy's {known} are known "
                "to be monotone. Pass the NumPy function itself, not one that calls it."
            )
        return _linked(read, back, _INCREASING[name], source)
    if kind in _AFFINE:
        at_zero, at_one = back(np.array([0.0, 1.0]))
        return replace(read, form=combine(read.form, np.array([[at_one - at_zero]]), np.array([at_zero])))
    if kind in _MONOTONE:
        return _linked(read, back, None, source)
    raise UnsupportedModel(
        f"{source.where}TransformedTargetRegressor with transformer {kind}. Targets can be taken back through a "
        "scaler, PowerTransformer, QuantileTransformer, or a NumPy function such as inverse_func=np.exp."
    )


def _linked(read: Read, back: Function, bend: Bend | None, source: Source) -> Read:
    """Return the reading whose prediction is an increasing function of the score."""
    start = float(read.form(source.base[None, :])[0, 0])
    return replace(read, link=ValueLink(Bent(back, classes=False, bend=bend), partial(least, back, start=start)))
