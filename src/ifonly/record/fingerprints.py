"""Fingerprints: SHA-256 of files, frames, models and criteria, the same in every process."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["of_file", "of_frame", "of_json", "of_model", "of_schema", "of_training", "of_value", "without_storage"]

_MOST_SCORED = 4000  # rows, of the format: by other rows the same model has another fingerprint


def of_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, read in pieces."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def of_json(value: Any) -> str:
    """Return the SHA-256 of plain values, whatever the order of their keys."""
    return _of(json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False))


def of_schema(features: Sequence[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of a schema as plain values, wherever its texts are stored: pandas puts them where it can."""
    return of_json([without_storage(feature) for feature in features])


def without_storage(value: Any) -> Any:
    """Return plain values of a schema without the library in whose memory its texts lie."""
    if isinstance(value, Mapping):
        kept = {name: part for name, part in value.items() if name != "string" or "missing" not in value}
        return {name: without_storage(part) for name, part in kept.items()}
    return [without_storage(part) for part in value] if isinstance(value, (list, tuple)) else value


def of_frame(frame: pd.DataFrame) -> str:
    """Return the SHA-256 of a frame's names, dtypes, index and values."""
    digest = sha256(repr([(str(n), str(d)) for n, d in frame.dtypes.items()]).encode())
    if len(frame):
        digest.update(pd.util.hash_pandas_object(frame, index=True).to_numpy().tobytes())
    return digest.hexdigest()


def of_training(explainer: Explainer) -> str:
    """Return the SHA-256 of the training data: names, the canonical rows, and the true outcomes where they are given."""
    training = explainer.training
    digest = sha256(json.dumps(list(map(str, training.schema.names))).encode())
    digest.update(np.ascontiguousarray(np.where(np.isnan(training.U), np.nan, training.U) + 0.0).tobytes())
    if training.labels is not None:
        digest.update(json.dumps([str(label) for label in training.labels]).encode())
    return digest.hexdigest()


def of_model(explainer: Explainer) -> str:
    """Return the SHA-256 of what the model says: its classes, and its own outputs for some thousand training rows in 32 bits.

    The bytes of a model in memory are no fingerprint: padding, caches and the order of dictionaries differ between two
    processes that fitted or loaded the same model, and two versions of its library write other bytes. Rounding leaves out
    the last bits, in which machines differ.
    """
    model, U = explainer.model, explainer.training.U
    rows = U[:: max(1, len(U) // _MOST_SCORED)]
    outputs = model.predict_proba(rows) if model.read.classes else None
    said = model.predict(rows) if outputs is None else outputs
    if model.read.classes and outputs is None:
        said = np.array([model.read.classes.index(label) for label in said])
    digest = sha256(json.dumps([str(label) for label in model.read.classes]).encode())
    digest.update(np.ascontiguousarray(np.asarray(said).astype(np.float32) + np.float32(0.0)).tobytes())
    return digest.hexdigest()


def of_value(value: Any) -> str:
    """Return the SHA-256 of a value by what it is made of: dataclasses, collections, arrays, frames, estimators."""
    return _of(_described(value, frozenset()))


def _of(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _described(value: Any, above: frozenset[int]) -> str:
    """Return a text that is the same for equal values; `above` are the objects that hold this one."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return f"{type(value).__name__}:{value!r}"
    if id(value) in above:
        return "itself"
    tell = partial(_described, above=above | {id(value)})
    if isinstance(value, np.ndarray):
        return _described_array(value, tell)
    if isinstance(value, (pd.DataFrame, pd.Series)):
        return f"frame:{of_frame(value if isinstance(value, pd.DataFrame) else value.to_frame())}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.compare}
        return f"{type(value).__qualname__}{tell(parts)}"
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{tell(k)}={tell(v)}" for k, v in value.items())) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ",".join(sorted(map(tell, value))) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(tell, value)) + "]"
    return _described_object(value, tell)


def _described_array(value: Any, tell: Any) -> str:
    if value.dtype.names:  # field by field: the bytes between fields are not set
        return tell([value[name] for name in value.dtype.names])  # type: ignore[no-any-return]
    if value.dtype == object:
        return tell([value.shape, value.tolist()])  # type: ignore[no-any-return]
    return f"{value.dtype.str}{value.shape}{sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"


def _described_object(value: Any, tell: Any) -> str:
    if isinstance(value, np.generic):
        return f"{value.dtype.str}:{value.item()!r}"
    named = getattr(value, "__qualname__", None)
    if named is not None:  # a function or class, by its name and code
        code = getattr(getattr(value, "__code__", None), "co_code", b"")
        return f"{getattr(value, '__module__', '')}.{named}{sha256(code).hexdigest()}"
    try:
        made = value.__reduce_ex__(4)
    except TypeError:  # nothing that could be sent to a worker either
        return f"{type(value).__qualname__}:{value!r}"
    if isinstance(made, str):
        return f"{type(value).__qualname__}:{made}"
    state = [list(part) if part is not None and i > 2 else part for i, part in enumerate(made[1:], start=1)]
    return f"{type(value).__qualname__}{tell(state)}"
