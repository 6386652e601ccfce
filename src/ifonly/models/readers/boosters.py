"""Readers of native boosters behind their adapters: each goes to its framework's own reader."""

from __future__ import annotations

from typing import Any

from ifonly.models.read import Read
from ifonly.models.readers import catboost, lightgbm, xgboost
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.reading.source import Source
from ifonly.models.registry import reads

__all__: list[str] = []

_READERS = {
    "catboost": catboost.read_booster,
    "lightgbm": lightgbm.read_booster,
    "xgboost": xgboost.read_booster,
}


@reads("ifonly", "BoosterClassifier")
def read_native_classifier(adapter: Any, source: Source) -> Read:
    """The booster's scores before its sigmoid or softmax."""
    return _READERS[adapter.framework](adapter.booster, source, labels_of(adapter))


@reads("ifonly", "BoosterRegressor")
def read_native_regressor(adapter: Any, source: Source) -> Read:
    """The booster's value before its output transform."""
    return _READERS[adapter.framework](adapter.booster, source, ())
