"""The files of the command line: tables, models that may or may not be trusted, rows in tables, answers."""

# ruff: noqa: PLC0415 - pandas and skops are loaded by the commands that read files, so that --help stays quick

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import show
from ifonly.errors import IfOnlyError, Infeasible, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from ifonly.result.values import Explanation

__all__ = [
    "FORMATS",
    "checkout",
    "deliver",
    "features",
    "format_of",
    "load_model",
    "pick_row",
    "positions",
    "read_table",
    "read_text",
    "without",
    "write_impossible",
    "write_text",
]

_WHY_REFUSED = (
    "opening it can run any code that its author put into it. If you made the file yourself, or know who did, add "
    "--trust. Better, save the model with skops, which opens without running code: "
    "skops.io.dump(model, 'model.skops')."
)


# -- where we are -----------------------------------------------------------------------------------------------
def checkout() -> Path | None:
    """Return the folder of the project that this package was loaded from, None for an installed package."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "benchmarks" / "paper" / "__main__.py").is_file() else None


# -- tables -----------------------------------------------------------------------------------------------------
def read_table(path: Path) -> pd.DataFrame:
    """Return a CSV, TSV or Parquet file as a frame; - is standard input, CSV or JSON."""
    import pandas as pd

    if str(path) == "-":
        return _read_stdin()

    kinds: dict[str, Callable[[Path], pd.DataFrame]] = {
        ".csv": pd.read_csv,
        ".tsv": lambda p: pd.read_csv(p, sep="\t"),
        ".parquet": _read_parquet,
    }
    suffix = Path(path.stem).suffix if path.suffix in (".gz", ".zip", ".xz", ".bz2", ".zst") else path.suffix
    read = kinds.get(suffix.lower())
    if read is None:
        raise click.ClickException(f"{path} is no table that can be read: its name must end in {', '.join(kinds)}.")
    try:
        return read(path)
    except (ValueError, OSError) as error:
        raise click.ClickException(f"{path} cannot be read as a table: {error}") from error


def _read_stdin() -> pd.DataFrame:
    """Return the table on standard input: a list of JSON objects, one object, an object per line, or CSV."""
    import pandas as pd

    text = str(sys.stdin.read())
    start = text.lstrip()[:1]
    if not start:
        raise click.ClickException("Standard input is empty. Pipe CSV or JSON into it, or name a file.")
    try:
        if start in "[{":
            return pd.DataFrame(_objects(text))
        return pd.read_csv(io.StringIO(text))
    except ValueError as error:
        raise click.ClickException(f"Standard input cannot be read as CSV or JSON: {error}") from error


def _objects(text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
    except ValueError:
        found = [json.loads(line) for line in text.splitlines() if line.strip()]
    rows = found if isinstance(found, list) else [found]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("rows must be objects, {column: value}")
    return rows


def positions(listed: str, count: int, path: Path) -> list[int]:
    """Return the positions of a list such as ``0,3,7-9``, or all."""
    if listed == "all":
        return list(range(count))
    out: list[int] = []
    for part in listed.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise click.BadParameter(f"{part!r} is no position. Write all, or e.g. 0,3,7-9.", param_hint="'--rows'")
        out += range(int(first), int(last if dash else first) + 1)
    beyond = [p for p in out if p >= count]
    if beyond or not out:
        raise click.BadParameter(f"{path} has {count:,} rows, counted from 0.", param_hint="'--rows'")
    return out


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise click.ClickException(
            f"{path}: pandas needs pyarrow to read Parquet. Install it (pip install pyarrow), or give a CSV file."
        ) from error


def without(table: pd.DataFrame, target: str | None, path: Path) -> pd.DataFrame:
    """Return the table without its outcome."""
    if target is None:
        return table
    if target not in table.columns:
        hint = did_you_mean(target, table.columns)
        raise click.BadParameter(f"{path} has no column {target!r}.{hint}", param_hint="'--target'")
    return table.drop(columns=target)


def features(model: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that the model was fitted on, when it knows their names and the table has them all."""
    names = list(getattr(model, "feature_names_in_", ())) or _names_in(model)
    chosen = table[names] if names and set(names) <= set(table.columns) else table
    if getattr(model, "framework", "") in ("lightgbm", "xgboost"):  # they take words for categories only if told so
        words = chosen.select_dtypes(exclude=["number", "bool"]).columns
        chosen = chosen.astype(dict.fromkeys(words, "category"))
    return chosen


def _names_in(model: Any) -> list[str]:
    """Return the column names that a native booster or an ONNX graph with one input per column was saved with."""
    booster = getattr(model, "booster", None)
    if booster is not None:
        known = {"xgboost": "feature_names", "catboost": "feature_names_", "lightgbm": "feature_name"}
        names = getattr(booster, known[model.framework], None)
        return [str(n) for n in ((names() if callable(names) else names) or ())]
    inputs = model.input_names() if hasattr(model, "input_names") else []
    return inputs if len(inputs) > 1 else []


def pick_row(table: pd.DataFrame, row: int | None, where: Sequence[str], path: Path) -> pd.DataFrame:
    """Return the one row at a position, or the one row that meets all conditions ``column=value``."""
    if row is not None and where:
        raise click.UsageError("Give --row or --where, not both.")
    if where:
        return _matching(table, where, path)
    if row is None and len(table) != 1:
        raise click.UsageError(
            f"Which of the {len(table):,} rows? Say --row NUMBER, counted from 0, --where COLUMN=VALUE, or --rows all."
        )
    position = row or 0
    if position >= len(table):
        raise click.BadParameter(f"{path} has {len(table):,} rows, counted from 0.", param_hint="'--row'")
    return table.iloc[[position]]


def _matching(table: pd.DataFrame, where: Sequence[str], path: Path) -> pd.DataFrame:
    found = table
    for condition in where:
        column, equals, value = condition.partition("=")
        if not equals or column not in table.columns:
            hint = did_you_mean(column, table.columns) if equals else " Write COLUMN=VALUE."
            raise click.BadParameter(f"{path} has no column {column!r}.{hint}", param_hint="'--where'")
        found = found[[same(cell, value) for cell in found[column]]]
    if len(found) != 1:
        rows = [str(i) for i, index in enumerate(table.index) if index in set(found.index)]
        listed = f" ({', '.join(rows[:5])}{', ...' * (len(rows) > 5)})" if rows else ""
        raise click.BadParameter(
            f"{len(found):,} rows of {path}{listed} have {' and '.join(where)}; one is needed.",
            param_hint="'--where'",
        )
    return found


def same(value: Any, typed: str) -> bool:
    """Whether a value is what somebody typed: its text, or the same number."""
    if str(value) == typed or (isinstance(value, bool) and str(value).lower() == typed.lower()):
        return True
    try:
        return float(value) == float(typed)
    except (TypeError, ValueError):
        return False


# -- models -----------------------------------------------------------------------------------------------------
def load_model(path: Path, *, trust: bool) -> Any:
    """Return the model in a skops file or in a framework's own; if its author is trusted, in a pickle or joblib file."""
    if _is_skops(path):
        return _load_skops(path, trust)
    native = {".onnx": _load_onnx} | dict.fromkeys((".json", ".ubj", ".txt", ".cbm"), _load_booster)
    if path.suffix.lower() in native:
        return _load_native(path, native[path.suffix.lower()])
    if not trust:
        raise click.ClickException(
            f"{path} is not a skops file, nor one of XGBoost (.json, .ubj), LightGBM (.txt), CatBoost (.cbm) or ONNX "
            f"(.onnx). If it is a pickle or joblib file: {_WHY_REFUSED}"
        )
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:  # unpickling can raise anything
        raise click.ClickException(f"{path} cannot be opened as a model: {type(error).__name__}: {error}") from error


def _is_skops(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return "schema.json" in archive.namelist()


def _load_skops(path: Path, trust: bool) -> Any:
    import skops.io

    try:
        unknown = skops.io.get_untrusted_types(file=path)
        if not unknown or trust:
            return skops.io.load(path, trusted=unknown)
    except Exception as error:  # a damaged file, or a type whose module is not installed here
        raise click.ClickException(f"{path} cannot be opened as a model: {type(error).__name__}: {error}") from error
    raise click.ClickException(
        f"{path} holds types that skops does not trust by itself: {', '.join(unknown)}. A file made to do harm could "
        "use them. If you made it yourself, or know who did, add --trust."
    )


def _load_native(path: Path, load: Callable[[Path], Any]) -> Any:
    """Open a file in a framework's own format, none of which runs code."""
    try:
        return load(path)
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{path} needs the package {error.name}: pip install {error.name}.") from error
    except IfOnlyError:
        raise
    except Exception as error:  # every framework has its own errors for a damaged file
        raise click.ClickException(f"{path} cannot be opened as a model: {type(error).__name__}: {error}") from error


def _load_booster(path: Path) -> Any:
    from ifonly.adapters.boosters import load

    return load(path)


def _load_onnx(path: Path) -> Any:
    from ifonly.adapters.onnx import load_onnx

    return load_onnx(path)


# -- text and answers -------------------------------------------------------------------------------------------
def read_text(path: Path) -> str:
    """Return the text of a file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from error


def write_text(path: Path, text: str) -> None:
    """Write text to a file."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from error


def deliver(text: str, output: Path | None) -> None:
    """Write text to a file and say so; without a file, to standard output."""
    if output is None:
        click.echo(text, nl=False)
        return
    write_text(output, text)
    show.wrote(output)


def write_proof(path: Path, proof: bytes) -> Path:
    """Write a proof beside its record, and return where."""
    beside = path.with_suffix(".proof")
    try:
        beside.write_bytes(proof)
    except OSError as error:
        raise click.ClickException(f"{beside} cannot be written: {error.strerror}.") from error
    return beside


def write_impossible(path: Path, error: Infeasible, form: str | None) -> bool:
    """Write a proven impossibility to a file whose format can hold it; return whether it was written."""
    if form == "json":
        write_text(path, json.dumps(error.record(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    elif form == "txt":
        write_text(path, f"{error}\n")
    else:
        return False
    return True


# Formats by name: from an answer to the text of a file.
FORMATS: dict[str, Callable[[Explanation], str]] = {
    "html": lambda answer: answer.to_html(),
    "json": lambda answer: answer.to_json() + "\n",
    "csv": lambda answer: answer.rows().to_csv(index=False),
    "txt": lambda answer: f"{answer}\n",
}


def format_of(path: Path | None, said: str | None) -> str | None:
    """Return the format of an output: what was said, else what the end of its name says; None: printed for people."""
    if path is None:
        return said
    ending = path.suffix.lower().removeprefix(".")
    if said is None and ending not in FORMATS:
        raise click.BadParameter(
            f"{path.name!r} must end in .{', .'.join(FORMATS)}: that chooses the format. Or say --format.",
            param_hint="'--output'",
        )
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"There is no folder {path.parent}.", param_hint="'--output'")
    return said or ending
