"""An explanation as JSON and back, without loss: values, dtypes, levels, schema and certificates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, isnan
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ifonly.data.schema import Binary, Categorical, Feature, Integer, Numeric, Ordinal, Schema
from ifonly.errors import SchemaError
from ifonly.result.origin import Origin
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation, Status, worst_status

__all__ = [
    "FORMAT",
    "answer_to_dict",
    "explanation_from_dict",
    "explanation_to_dict",
    "feature_from_dict",
    "feature_to_dict",
    "frame_from_dict",
    "frame_to_dict",
    "from_json",
    "plain_value",
    "to_json",
    "value_of",
]

FORMAT = "ifonly/2"
_FORMATS = ("ifonly/1", FORMAT)

_KINDS: dict[str, type[Numeric | Categorical]] = {
    kind.kind: kind for kind in (Numeric, Integer, Categorical, Ordinal, Binary)
}


def explanation_to_dict(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as plain values that JSON can hold; the training data it refers to is left out.

    A missing value is None, an infinite number is ``"inf"`` or ``"-inf"``.
    """
    origin = None if explanation.origin is None else dict(explanation.origin.data())
    return {
        "format": FORMAT,
        "kind": "explanation",
        "want": _wish(origin),
        "wanted": explanation.want,
        "status": explanation.status,
        "prediction": plain_value(explanation.prediction),
        "score": _number(explanation.score),
        "score_name": explanation.score_name,
        "seconds": _number(explanation.seconds),
        "solver": explanation.solver,
        "notes": list(explanation.notes),
        "counterfactuals": [answer_to_dict(c) for c in explanation],
        "factual": frame_to_dict(explanation.factual),
        "schema": [feature_to_dict(f) for f in explanation.schema.features],
        "origin": origin,
        **(
            {}
            if explanation.proof is None
            else {"proof": _proof(explanation.proof, [c.certificate.solver for c in explanation])}
        ),
    }


def _proof(proof: bytes, solvers: Sequence[str]) -> dict[str, Any]:
    from ifonly.record.proof import describe_proof  # noqa: PLC0415 - loaded where there is a proof

    return describe_proof(proof, solvers)


def _wish(origin: Mapping[str, Any] | None) -> Any:
    """Return the wanted label itself; all parts of a target that is more than that."""
    if origin is None:
        return None
    want: Mapping[str, Any] = origin["want"]
    if want.get("any_of") is not None:
        return list(want["any_of"])
    more = any(want[name] is not None for name in ("probability", "at_least", "at_most"))
    return dict(want) if more else want["label"]


def explanation_from_dict(data: Any) -> Explanation:
    """Return the explanation that `explanation_to_dict` described.

    Raises
    ------
    SchemaError
        When the data is of another format, or lacks a part.
    """
    found = data.get("format") if isinstance(data, Mapping) else None
    if found not in _FORMATS:
        raise SchemaError(
            f"Not an explanation this version can read: its format is {found!r}, expected {FORMAT!r}. Read it with the "
            "version of ifonly that wrote it, or explain again."
        )
    try:
        return _read(data)
    except KeyError as error:
        raise SchemaError(
            f"The explanation lacks {error.args[0]!r}: the data was cut or edited. Write it anew with to_json()."
        ) from None


def to_json(explanation: Explanation, path: str | Path | None = None, *, indent: int | None = 2) -> str:
    """Return an explanation as JSON text and, given a path, write it there."""
    text = json.dumps(explanation_to_dict(explanation), indent=indent, ensure_ascii=False, allow_nan=False)
    if path is not None:
        Path(path).write_text(text + "\n", encoding="utf-8")
    return text


def from_json(text: str | Path) -> Explanation:
    """Return the explanation in JSON text, or in the file at a `Path`."""
    content = text.read_text(encoding="utf-8") if isinstance(text, Path) else text
    try:
        data = json.loads(content)
    except json.JSONDecodeError as error:
        hint = "" if isinstance(text, Path) else " To read a file, pass a pathlib.Path."
        raise SchemaError(f"Not JSON: {error}.{hint}") from None
    return explanation_from_dict(data)


def _read(data: Mapping[str, Any]) -> Explanation:
    schema = Schema(tuple(feature_from_dict(f) for f in data["schema"]))
    answers = tuple(_answer_from_dict(c, schema) for c in data["counterfactuals"])
    return Explanation(
        counterfactuals=answers,
        factual=frame_from_dict(data["factual"]),
        prediction=value_of(data["prediction"]),
        score=None if data["score"] is None else float(data["score"]),
        want=data["wanted"] if data["format"] == FORMAT else data["want"],
        schema=schema,
        status=_status(data, answers),
        seconds=_float(data["seconds"]),
        solver=data["solver"],
        notes=tuple(data["notes"]),
        score_name=data["score_name"],
        origin=Origin(None, described=data["origin"]) if data.get("origin") else None,
    )


def answer_to_dict(answer: Counterfactual) -> dict[str, Any]:
    """Return one counterfactual as plain values."""
    certificate = answer.certificate
    return {
        "changes": [
            {"feature": c.feature, "before": plain_value(c.before), "after": plain_value(c.after)}
            for c in answer.changes
        ],
        "prediction": plain_value(answer.prediction),
        "score": _number(answer.score),
        "distance": _number(answer.distance),
        "certificate": {
            "objective": _number(certificate.objective),
            "bound": _number(certificate.bound),
            "gap": _number(certificate.gap),
            "proven": bool(certificate.proven),
            "margin": _number(certificate.margin),
            "solver": certificate.solver,
            "asked_gap": _number(certificate.asked_gap),
            "status": certificate.status,
            **({"observed": True} if certificate.observed else {}),
        },
        "ranges": {name: [_number(low), _number(high)] for name, (low, high) in answer.ranges.items()},
        "measures": {name: _number(value) for name, value in answer.measures.items()},
        "row": frame_to_dict(answer.row),
    }


def _answer_from_dict(data: Mapping[str, Any], schema: Schema) -> Counterfactual:
    return Counterfactual(
        row=frame_from_dict(data["row"]),
        changes=tuple(
            Change(c["feature"], *(_changed(c[side], schema[c["feature"]]) for side in ("before", "after")))
            for c in data["changes"]
        ),
        prediction=value_of(data["prediction"]),
        score=None if data["score"] is None else float(data["score"]),
        distance=_float(data["distance"]),
        certificate=_certificate(data["certificate"]),
        ranges={name: (_float(low), _float(high)) for name, (low, high) in data["ranges"].items()},
        measures={name: _float(value) for name, value in data["measures"].items()},
    )


def _certificate(data: Mapping[str, Any]) -> Certificate:
    """Return a certificate; one of before gaps were relative to the cost is made anew from its objective and bound."""
    objective, bound = _float(data["objective"]), _float(data["bound"])
    margin, solver = _float(data["margin"]), data["solver"]
    if "asked_gap" not in data:
        return Certificate.of(objective, bound, margin=margin, solver=solver)
    gap, asked = _float(data["gap"]), _float(data["asked_gap"])
    return Certificate(objective, bound, gap, data["proven"], margin, solver, asked, bool(data.get("observed", False)))


def _status(data: Mapping[str, Any], answers: Sequence[Counterfactual]) -> Status:
    """Return the status; of an old file, what the certificates say that were called proven when it was written."""
    proofs = [c["certificate"] for c in data["counterfactuals"]]
    if all("asked_gap" in proof for proof in proofs):
        found: Status = data["status"]
        return found
    counted = [a for a, p in zip(answers, proofs, strict=True) if p["proven"] or data["status"] != "optimal"]
    return worst_status(a.certificate for a in counted)


def _changed(value: Any, feature: Feature) -> Any:
    return float("nan") if value is None and isinstance(feature, Numeric) else value_of(value)


def feature_to_dict(feature: Feature) -> dict[str, Any]:
    """Return a feature as plain values."""
    data: dict[str, Any] = {"name": feature.name, "kind": feature.kind, "label": feature.label}
    if isinstance(feature, Numeric):
        bounds = {"lower": _number(feature.lower), "upper": _number(feature.upper)}
        data |= {**bounds, "precision": feature.precision}
        data |= {} if feature.decimals is None else {"decimals": feature.decimals}  # not in older files
    else:
        data["levels"] = [plain_value(level) for level in feature.levels]
    return {**data, "dtype": _dtype_to_json(feature.dtype)}


def feature_from_dict(data: Mapping[str, Any]) -> Feature:
    """Return the feature that `feature_to_dict` described."""
    kind = _KINDS.get(data["kind"])
    if kind is None:
        raise SchemaError(f"Unknown kind {data['kind']!r} of feature {data['name']!r}; known: {', '.join(_KINDS)}.")
    common = {"label": data["label"], "dtype": _dtype_from_json(data["dtype"])}
    if issubclass(kind, Numeric):
        common |= {"precision": data["precision"], "decimals": data.get("decimals")}
        return kind(data["name"], _float(data["lower"]), _float(data["upper"]), **common)
    return kind(data["name"], tuple(value_of(v) for v in data["levels"]), **common)


def frame_to_dict(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a frame as plain values: columns, dtypes and index."""
    index = [frame.index.get_level_values(i) for i in range(frame.index.nlevels)]
    return {
        "columns": {name: [plain_value(v) for v in frame[name]] for name in frame.columns},
        "dtypes": {name: _dtype_to_json(frame[name].dtype) for name in frame.columns},
        "index": [
            {
                "name": plain_value(level.name),
                "values": [plain_value(v) for v in level],
                "dtype": _dtype_to_json(level.dtype),
            }
            for level in index
        ],
    }


def frame_from_dict(data: Mapping[str, Any]) -> pd.DataFrame:
    """Return the frame that `frame_to_dict` described."""
    levels = [_index(level["values"], level["dtype"], level["name"]) for level in data["index"]]
    index = levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels)
    columns = {}
    for name, values in data["columns"].items():
        dtype = _dtype_from_json(data["dtypes"][name])
        columns[name] = pd.Series(_array(values, dtype), index=index, dtype=dtype)
    return pd.DataFrame(columns, index=index)


def _index(values: list[Any], dtype: Any, name: Any = None) -> pd.Index[Any]:
    known = _dtype_from_json(dtype)
    index: pd.Index[Any] = pd.Index(_array(values, known), dtype=known, name=value_of(name))
    return index


def _array(values: list[Any], dtype: Any) -> Any:
    plain = [value_of(v) for v in values]
    if not isinstance(dtype, np.dtype):
        return pd.array(plain, dtype=dtype)
    if dtype.kind != "O":
        return np.array(plain, dtype=dtype)
    # Filled one by one, because NumPy would turn equal-length levels such as tuples into a second axis.
    array = np.empty(len(plain), dtype=object)
    for i, value in enumerate(plain):
        array[i] = value
    return array


def _dtype_to_json(dtype: Any) -> Any:
    if isinstance(dtype, pd.CategoricalDtype):
        return {
            "category": [plain_value(v) for v in dtype.categories],
            "ordered": bool(dtype.ordered),
            "of": _dtype_to_json(dtype.categories.dtype),
        }
    if isinstance(dtype, pd.StringDtype):
        missing = "NA" if dtype.na_value is pd.NA else "nan"
        return {"string": dtype.storage, "missing": missing}
    return str(dtype)


def _dtype_from_json(data: Any) -> Any:
    if isinstance(data, str):
        return pd.api.types.pandas_dtype(data)
    if "string" in data:
        missing = pd.NA if data["missing"] == "NA" else np.nan
        return _string_dtype(data["string"], missing)
    return pd.CategoricalDtype(_index(data["category"], data["of"]), ordered=data["ordered"])


def _string_dtype(storage: str, missing: Any) -> Any:
    try:
        return pd.StringDtype(storage=storage, na_value=missing)
    except ImportError:  # written where pyarrow is installed, read where it is not: the values are the same
        return pd.StringDtype(storage="python", na_value=missing)


def _number(value: float | None) -> float | str | None:
    """Return a number as JSON can hold it: NaN is null, infinity is a word."""
    if value is None or isnan(value):
        return None
    return float(value) if isfinite(value) else str(float(value))


def _float(value: float | str | None) -> float:
    return float("nan") if value is None else float(value)


# Levels that JSON has no word for, each as {"tag": plain values}.
_TAGS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "interval": (
        pd.Interval,
        lambda v: [plain_value(v.left), plain_value(v.right), v.closed],
        lambda p: pd.Interval(value_of(p[0]), value_of(p[1]), p[2]),
    ),
    "timestamp": (pd.Timestamp, lambda v: v.isoformat(), pd.Timestamp),
    "tuple": (tuple, lambda v: [plain_value(x) for x in v], lambda p: tuple(value_of(x) for x in p)),
}


def plain_value(value: Any) -> Any:
    """Return a value or level as JSON can hold it; missing values of all kinds are None."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = _number(float(value))
        return {"float": number} if isinstance(number, str) else number
    for tag, (kind, write, _) in _TAGS.items():
        if isinstance(value, kind):
            return {tag: write(value)}
    raise SchemaError(
        f"JSON has no word for {value!r} ({type(value).__name__}). Turn the column's levels into text or numbers."
    )


def value_of(plain: Any) -> Any:
    """Return the value that `plain_value` described."""
    if not isinstance(plain, Mapping):
        return plain
    ((tag, content),) = plain.items()
    return float(content) if tag == "float" else _TAGS[tag][2](content)
