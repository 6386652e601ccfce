"""Registry of readers: the reader of an estimator is found by the name of its class, so no framework is imported in vain.

A reader is a function marked with ``@reads("framework", "ClassName", ...)`` in `models/readers`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ifonly.errors import UnsupportedModel

if TYPE_CHECKING:
    from ifonly.models.reading.source import Source
from ifonly.models.read import Read

__all__ = ["WAY_OUT", "known_readers", "read_estimator", "reads"]

WAY_OUT = (
    'Or let it be observed: Explainer(model, X, surrogate="auto") answers for any model with a predict; its answers are '
    "confirmed by the model and keep every demand, but are not proven optimal."
)

Reader = Callable[[Any, "Source"], Read]


_READERS: dict[tuple[str, str], Reader] = {}


def reads(framework: str, *class_names: str) -> Callable[[Reader], Reader]:
    """Mark a function as the reader of some classes of a framework.

    `framework` is the top-level package of the classes; of a module inside it, its package counts.
    """

    def register(reader: Reader) -> Reader:
        for name in class_names:
            _READERS[framework.split(".", maxsplit=1)[0], name] = reader
        return reader

    return register


def known_readers() -> Mapping[tuple[str, str], Reader]:
    """Return every (framework, class name) that can be read; loads the reader modules, not the frameworks."""
    from ifonly.models import readers  # noqa: PLC0415 - readers import this module

    _load_all(readers.__name__, tuple(readers.__path__))
    return _READERS


@cache
def _load_all(package: str, paths: tuple[str, ...]) -> None:
    """Import every module of a package; once per process, and a thread that comes meanwhile waits at each import."""
    for module in pkgutil.iter_modules(paths):
        importlib.import_module(f"{package}.{module.name}")


def read_estimator(estimator: Any, source: Source) -> Read:
    """Return the form of a fitted estimator that receives the columns of `source`."""
    table = known_readers()
    for cls in type(estimator).__mro__:
        reader = table.get((cls.__module__.split(".")[0], cls.__name__))
        if reader is not None:
            return reader(estimator, source)
    name = type(estimator).__name__
    raise UnsupportedModel(
        f"{source.where}{name} cannot be turned into an exact optimisation model: it is neither linear, nor made of "
        f"trees, nor a ReLU network, or its reader is not there.{_nearest(name)}\n{WAY_OUT}"
    )


def _nearest(name: str) -> str:
    hints = {
        "RadiusNeighbors": "KNeighborsClassifier, KNeighborsRegressor or a random forest",
        "GaussianProcess": "GradientBoosting or a ReLU network",
        "GaussianNB": "LogisticRegression or LinearDiscriminantAnalysis",
        "NuSVC": "LinearSVC, or a gradient boosting model",
        "Dummy": "any model that looks at its input",
    }
    near = next((v for k, v in hints.items() if name.startswith(k)), "a random forest or gradient boosting model")
    return f" The nearest thing that can be read: {near}."
