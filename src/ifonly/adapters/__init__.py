"""Adapters: models that scikit-learn does not know, as estimators whose `predict` confirms answers in the user's columns.

An adapter may stand alone or at the end of a scikit-learn `Pipeline`. It is trained already: `fit` does nothing.
"""

from ifonly.adapters.boosters import BoosterClassifier, BoosterRegressor, load
from ifonly.adapters.onnx import OnnxClassifier, OnnxRegressor, load_onnx
from ifonly.adapters.scorecard import ScorecardPoints
from ifonly.adapters.torch import TorchClassifier, TorchRegressor

__all__ = [
    "BoosterClassifier",
    "BoosterRegressor",
    "OnnxClassifier",
    "OnnxRegressor",
    "ScorecardPoints",
    "TorchClassifier",
    "TorchRegressor",
    "load",
    "load_onnx",
]
