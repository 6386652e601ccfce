"""Reading a record from a stranger: bounded in size and depth, nothing executed, every fault a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from ifonly.errors import SchemaError

__all__ = ["read_record", "record_schema"]

# Limits that no file of a stranger may pass.
MOST_BYTES = 64 * 2**20
_MOST_DEEP = 40  # values in values: a record has a dozen

_TYPES: Mapping[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": int,
}


@cache
def record_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of the format."""
    text = (files("ifonly.record") / "record.schema.json").read_text(encoding="utf-8")
    schema: Mapping[str, Any] = json.loads(text)
    return schema


def read_record(record: Any) -> Mapping[str, Any]:
    """Return a record as plain values: from a `Path`, from JSON text, or from values that were read already.

    Raises
    ------
    SchemaError
        When it is too large, too deep, no JSON, or not of the form that the JSON Schema describes.
    """
    data = _parsed(record) if isinstance(record, (str, bytes, Path)) else record
    if not isinstance(data, Mapping):
        raise SchemaError(f"A record is a JSON object, but this is {_kind(data)}.")
    found = data.get("format")
    if found == "ifonly/1":
        raise SchemaError(
            "This file is of format 'ifonly/1', of before records: it holds an answer, but neither the policy nor any "
            "fingerprint to check it against. Explanation.from_json reads it."
        )
    schema = record_schema()
    _check(data, schema, schema, "the record", 0)
    return data


def _parsed(source: str | bytes | Path) -> Any:
    if isinstance(source, Path):
        try:
            size = source.stat().st_size
            if size > MOST_BYTES:
                _too_large(size)
            with source.open("rb") as file:  # a file may grow while it is read, and devices have no size
                source = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise SchemaError(f"The record cannot be read: {error}.") from None
    if len(source) > MOST_BYTES:
        _too_large(len(source))
    try:
        text = source.decode("utf-8") if isinstance(source, bytes) else source
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise SchemaError("The record is nested too deeply to be one.") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise SchemaError(f"The record is no JSON: {error}.") from None


def _too_large(size: int) -> NoReturn:
    raise SchemaError(f"The record has {size:,} bytes, more than the {MOST_BYTES:,} that a record may have.")


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _kind(value: Any) -> str:
    for name in ("null", "boolean", "string", "array", "object", "number"):
        if isinstance(value, _TYPES[name]):
            return name
    return type(value).__name__


# -- the part of JSON Schema that the format uses -----------------------------------------------------------------------
def _check(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], where: str, depth: int) -> None:
    """Complain about the first place where a value is not of the form that a schema describes."""
    if depth > _MOST_DEEP:
        raise SchemaError(f"The record is nested too deeply at {where[:200]}.")
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in schema:
        _check_any(value, schema["anyOf"], root, where, depth)
        return
    _check_itself(value, schema, where)
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, part in value.items():
            _check(part, known.get(name, others), root, f"{where}.{name}", depth + 1)
        for name in schema.get("required", ()):
            if name not in value:
                raise SchemaError(f"{where[:200]} lacks {name!r}: it was cut or edited.")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            _check(part, schema.get("items", {}), root, f"{where}[{i}]", depth + 1)


def _check_itself(value: Any, schema: Mapping[str, Any], where: str) -> None:
    if "const" in schema and value != schema["const"]:
        raise SchemaError(f"{where[:200]} must be {schema['const']!r}, got {str(value)[:100]!r}.")
    if "enum" in schema and value not in schema["enum"]:
        raise SchemaError(f"{where[:200]} must be one of {schema['enum']}, got {str(value)[:100]!r}.")
    if "type" in schema and not _is(value, schema["type"]):
        raise SchemaError(f"{where[:200]} must be of type {schema['type']}, got {_kind(value)}.")


def _check_any(value: Any, options: list[Mapping[str, Any]], root: Mapping[str, Any], where: str, depth: int) -> None:
    complaints = []
    for option in options:
        try:
            _check(value, option, root, where, depth + 1)
        except SchemaError as error:
            complaints.append(str(error))
        else:
            return
    # the alternative that was meant is the one whose own kind is not what is wrong
    raise SchemaError(min(complaints, key=lambda words: (".kind must be" in words, f"{where} must be" in words)))


def _is(value: Any, types: str | list[str]) -> bool:
    names = [types] if isinstance(types, str) else types
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _TYPES[name]) for name in names)
