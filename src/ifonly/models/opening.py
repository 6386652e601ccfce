"""Opening a fitted model: is it fitted, does it fit the data, and what does it receive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.features import Feature
from ifonly.data.schema import Numeric, Schema
from ifonly.data.tables import align, as_frame, column_diff, shorten
from ifonly.errors import SchemaError, UnsupportedModel
from ifonly.models.read import Model, Rows
from ifonly.models.reading.source import Source
from ifonly.models.registry import WAY_OUT, read_estimator
from ifonly.runtime.tuning import DEFAULT, Tuning
from ifonly.runtime.warning_filters import silenced

__all__ = ["Observe", "complete_row", "open_model", "open_part"]


class Observe(Protocol):
    """Opener of an estimator that cannot be read: as a model that is only asked."""

    def __call__(self, estimator: Any, schema: Schema, U: FloatArray, *, named: bool) -> Model:
        """Return the model; `named` says whether the estimator receives frames."""
        ...


def open_model(
    estimator: Any, X: Any, schema: Schema | None, observe: Observe | None = None, *, tuning: Tuning = DEFAULT
) -> tuple[Schema, Model, pd.DataFrame, FloatArray]:
    """Return the schema, the read model, the training frame and its canonical rows.

    `observe` opens an estimator that cannot be read; without it, such a one is refused. `tuning` has the numbers that
    readers go by.
    """
    _check_swapped(estimator, X)
    _check_schema(schema)
    _check_fitted(estimator)
    frame = as_frame(X, None if schema is None else schema.names)
    if frame.empty:
        raise SchemaError(
            f"The training data is empty ({len(frame)} rows, {frame.shape[1]} columns): ranges and levels are read off "
            "it. Pass the data the model was trained on."
        )
    _check_columns(estimator, frame, named=hasattr(X, "columns") or schema is not None)
    inferred = schema is None
    schema = Schema.infer(frame) if schema is None else schema
    frame = align(frame, schema.names)
    U = schema.encode(frame, missing=True)
    try:
        schema, U, model = _opened(estimator, schema, frame, U, inferred=inferred, tuning=tuning)
    except UnsupportedModel as error:
        # Who does not count its columns was written by hand, and receives what the caller gave.
        named = _takes_names(estimator) or (hasattr(X, "columns") and not hasattr(estimator, "n_features_in_"))
        if observe is None:
            raise _with_way_out(error, estimator, frame, named=named) from None
        model = observe(estimator, schema, U, named=named)
    schema.encode(frame, missing=model.read.accepts_missing)
    return schema, model, frame, U


def _opened(
    estimator: Any, schema: Schema, frame: pd.DataFrame, U: FloatArray, *, inferred: bool, tuning: Tuning
) -> tuple[Schema, FloatArray, Model]:
    """Return the schema, canonical rows and model; levels that no row has are dropped where the model refuses them."""
    try:
        return schema, U, open_part(estimator, schema, schema.names, complete_row(schema, U), tuning=tuning)
    except UnsupportedModel as refusal:
        fewer = _seen(schema, U) if inferred else schema
        if fewer is schema:
            raise
        rows = fewer.encode(frame, missing=True)
        try:
            return fewer, rows, open_part(estimator, fewer, fewer.names, complete_row(fewer, rows), tuning=tuning)
        except UnsupportedModel:
            raise refusal from None  # the levels were not the reason


def _seen(schema: Schema, U: FloatArray) -> Schema:
    """Return the schema without the levels that no row has; itself where each is seen."""
    features: list[Feature] = []
    for j, feature in enumerate(schema.features):
        there = (np.nan_to_num(U[:, schema.slice(j)]) > 0.0).sum(axis=0).tolist()
        if isinstance(feature, Numeric) or all(there):
            features.append(feature)
            continue
        features.append(replace(feature, levels=tuple(v for v, t in zip(feature.levels, there, strict=True) if t)))
    return schema if all(a is b for a, b in zip(features, schema.features, strict=True)) else Schema(tuple(features))


def _with_way_out(error: UnsupportedModel, estimator: Any, frame: pd.DataFrame, *, named: bool) -> UnsupportedModel:
    """Return a refusal that ends with the way out, where the estimator takes the rows and so can be observed."""
    if WAY_OUT in str(error):
        return error
    try:
        with silenced():
            estimator.predict(frame.iloc[:1] if named else frame.iloc[:1].to_numpy())
    except Exception:  # noqa: BLE001 - whatever it raises, it cannot be asked either
        return error
    return UnsupportedModel(f"{error}\n{WAY_OUT}")


def _check_swapped(estimator: Any, X: Any) -> None:
    if hasattr(X, "predict") and not hasattr(estimator, "predict"):
        raise UnsupportedModel(
            f"The model comes first and the data second; here {type(estimator).__name__} comes first and "
            f"{type(X).__name__} second. Write Explainer(model, X)."
        )


def _check_schema(schema: Any) -> None:
    if schema is not None and not isinstance(schema, Schema):
        raise SchemaError(
            f"The 'schema' must be a Schema, got {type(schema).__name__}. Write Schema.infer(X, integer=[...], "
            "bounds={...}, ...), which reads the rest off the data."
        )


def complete_row(schema: Schema, U: FloatArray) -> FloatArray:
    """Return a row with no missing value: each feature from the first row that has it."""
    base = U[0].copy()
    for j in range(len(schema)):
        part = U[:, schema.slice(j)]
        present = ~np.isnan(part[:, 0]) if isinstance(schema.features[j], Numeric) else part.any(axis=1)
        base[schema.slice(j)] = part[int(np.argmax(present))]
    return np.asarray(base)


def open_part(
    estimator: Any,
    schema: Schema,
    names: Sequence[str],
    base: FloatArray,
    where: str = "",
    *,
    tuning: Tuning = DEFAULT,
) -> Model:
    """Return the model of an estimator that receives these columns only, as a function of all features.

    `base` is a canonical row with no missing value; `where` is a prefix for error messages.
    """
    _check_fitted(estimator)
    parts = [schema.index(name) for name in names]
    # The same schema when it is the whole: a row that is put to the model need not be decoded again to be returned.
    own = schema if parts == list(range(len(schema))) else Schema(tuple(schema.features[j] for j in parts))
    entries = np.concatenate([np.arange(schema.slice(j).start, schema.slice(j).stop) for j in parts])
    prepare = _rows(estimator, own, entries, base, tuning)
    source = Source.raw(schema, prepare, base, tuning.reading)
    source = replace(source, columns=tuple(source.columns[j] for j in parts), where=where)
    read = read_estimator(estimator, source)
    if tuning.forms != DEFAULT.forms:
        from ifonly.models.forms.tuned import tuned  # noqa: PLC0415 - composites are loaded with the readers

        read = tuned(read, tuning.forms)
    return Model(read, estimator, prepare)


def _rows(estimator: Any, schema: Schema, entries: IntArray, base: FloatArray, tuning: Tuning) -> Rows:
    """Return what makes the estimator's rows of canonical ones.

    A first step that was written by hand does not say whether it was fitted on a frame: one that fails on an array gets one.
    """
    most, named = tuning.reading.remembered, _takes_names(estimator)
    rows = Rows(schema, entries, named=named, most=most)
    if named or hasattr(estimator, "n_features_in_") or _takes(estimator, rows(base[None, :])):
        return rows
    by_name = Rows(schema, entries, named=True, most=most)
    return by_name if _takes(estimator, by_name(base[None, :])) else rows


def _takes(estimator: Any, row: Any) -> bool:
    """Whether the estimator predicts a row at all."""
    try:
        with silenced():
            estimator.predict(row)
    except Exception:  # noqa: BLE001 - whatever it raises, it does not take the row
        return False
    return True


def _takes_names(estimator: Any) -> bool:
    """Whether the estimator was fitted on named columns (frames); otherwise it is given plain arrays."""
    if hasattr(estimator, "steps"):
        return any(_takes_names(step) for _, step in estimator.steps if not isinstance(step, str) and step is not None)
    chooses_by_name = hasattr(estimator, "binning_process_")  # a scorecard of optbinning
    return chooses_by_name or hasattr(estimator, "feature_names_in_") or getattr(estimator, "takes_frames", False)


def _check_fitted(estimator: Any) -> None:
    from sklearn.exceptions import NotFittedError  # noqa: PLC0415 - scikit-learn is loaded with the first model
    from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415

    if isinstance(estimator, type) or not hasattr(estimator, "predict"):
        raise UnsupportedModel(
            f"A model must be a fitted estimator with a predict method, got {_shown(estimator)}. Fit it first; a torch or "
            "ONNX network goes into its adapter (ifonly.adapters)."
        )
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise UnsupportedModel(
            f"This {type(estimator).__name__} is not fitted yet. Call fit(X, y) before explaining it."
        ) from None
    except TypeError:
        return  # not a scikit-learn estimator: its reader will see


def _check_columns(estimator: Any, frame: pd.DataFrame, *, named: bool) -> None:
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and not named and len(names) == frame.shape[1]:
        raise SchemaError(
            f"The model was fitted on a frame with the columns {shorten([str(c) for c in names])}, but X is an array, which "
            "has no names. Pass the frame, or pd.DataFrame(X, columns=model.feature_names_in_)."
        )
    if names is not None and list(names) != list(frame.columns) and not _renamed(estimator, names, frame):
        raise SchemaError(
            "The columns of X are not those the model was fitted on (same names, same order):\n"
            + column_diff([str(c) for c in names], list(frame.columns))
            + "\nPass X[model.feature_names_in_]."
        )
    # CatBoost keeps the names of its columns here, also when a loaded model says that it has no features.
    own = [str(name) for name in getattr(estimator, "feature_names_", ())]
    if names is None and own != list(frame.columns) and sorted(own) == sorted(map(str, frame.columns)):
        raise SchemaError(
            "The columns of X are not in the order in which the model was fitted:\n"
            + column_diff(own, list(frame.columns))
            + "\nPass X[model.feature_names_]."
        )
    expected = getattr(estimator, "n_features_in_", None) or len(own)
    if expected and expected != frame.shape[1]:
        raise SchemaError(
            f"The model was fitted on {expected} columns, but X has {frame.shape[1]}. Pass the frame it was trained on, "
            "or the whole Pipeline instead of its last step."
        )


def _shown(thing: Any) -> str:
    """Return a class or a text as it is, and anything else by the name of its class: a repr may be a page."""
    return repr(thing) if isinstance(thing, (type, str)) else f"an object of class {type(thing).__name__}"


def _renamed(estimator: Any, names: Sequence[Any], frame: pd.DataFrame) -> bool:
    """Whether the names differ only by what LightGBM does to them ("a b" becomes "a_b"), and the model takes the frame."""
    if [str(c) for c in names] != [str(c).replace(" ", "_") for c in frame.columns]:
        return False
    try:
        estimator.predict(frame.iloc[:1])
    except ValueError:  # scikit-learn's own refusal of columns under another name
        return False
    return True
