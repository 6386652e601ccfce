"""The registry of preprocessing steps: a fitted transformer and a source give the next source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ifonly.errors import UnsupportedModel, did_you_mean
from ifonly.models.reading.columnwise import declaration, read_columns
from ifonly.models.reading.source import Column, Source
from ifonly.models.registry import WAY_OUT, known_readers

__all__ = ["Transform", "apply_transformer", "through", "transforms"]

Transform = Callable[[Any, Source], Sequence[Column]]
_TRANSFORMS: dict[tuple[str, str], Transform] = {}


def transforms(framework: str, *class_names: str) -> Callable[[Transform], Transform]:
    """Mark a function as the reader of some transformers: it returns the columns that come out, symbolically."""

    def register(transform: Transform) -> Transform:
        for name in class_names:
            _TRANSFORMS[framework.split(".", maxsplit=1)[0], name] = transform
        return transform

    return register


def apply_transformer(transformer: Any, source: Source) -> Source:
    """Return the source behind one fitted transformer; its values still come from the user's own `transform`."""
    if transformer is None or transformer == "passthrough":
        return source
    known_readers()
    if declaration(transformer) not in (None, False):
        return through(transformer, source, read_columns(transformer, source))
    for cls in type(transformer).__mro__:
        reader = _TRANSFORMS.get((cls.__module__.split(".")[0], cls.__name__))
        if reader is not None:
            return through(transformer, source, reader(transformer, source))
    name = type(transformer).__name__
    names = sorted({n for _, n in _TRANSFORMS})
    raise UnsupportedModel(
        f"{source.where}the transformer {name} cannot be read exactly.{_nearest(name) or did_you_mean(name, names)} "
        "A transformer whose columns are functions of one column each can say so: an attribute column_wise = True, "
        f"'monotone' or 'affine' (the reference, Models, lists all that are supported).\n{WAY_OUT}"
    )


def _nearest(name: str) -> str:
    hints = {
        "Binarizer": "KBinsDiscretizer(2)",
        "IterativeImputer": "SimpleImputer",
        "KNNImputer": "SimpleImputer",
        "Normalizer": "StandardScaler",
        "Nystroem": "PCA",
        "KernelPCA": "PCA",
        "PolynomialFeatures": "a model that bends by itself (trees, a ReLU network) on the columns as they are",
        "FeatureHasher": "OneHotEncoder",
        "DictVectorizer": "OneHotEncoder",
    }
    return f" The nearest thing that can be: {hints[name]}." if name in hints else ""


def through(transformer: Any, source: Source, columns: Sequence[Column]) -> Source:
    """Return a source whose values pass through `transformer`, with the given symbolic columns.

    A ColumnTransformer (it has `transformers_`) keeps its columns' branches; any other step comes after them.
    """
    kept = columns if hasattr(transformer, "transformers_") else [replace(c, branch=None) for c in columns]
    return replace(source, columns=tuple(kept), evaluate=lambda U: transformer.transform(source.evaluate(U)))
