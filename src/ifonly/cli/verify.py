"""The command that checks a record from scratch."""

# ruff: noqa: PLC0415 - each command loads what it needs, so that --help stays quick

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ifonly.cli import files, show
from ifonly.cli.exits import REFUTED
from ifonly.cli.options import FILE, SECONDS, debug

__all__ = ["verify"]


@click.command(short_help="Check a record from scratch: fingerprints, predictions, demands, costs.")
@click.argument("record", type=FILE)
@click.option("--model", type=FILE, required=True, help="The model, as for 'ifonly explain'.")
@click.option("--data", type=FILE, required=True, help="The data it was trained on.")
@click.option("--target", metavar="COLUMN", help="Outcome column to leave out, if the model does not name its columns.")
@click.option("--row", type=click.IntRange(min=0), help="For a record without its factual: its position in DATA.")
@click.option("--salt", metavar="HEX", help="The key of a salted record.")
@click.option("--proof", type=FILE, help="The proof to replay; by default the file beside RECORD that ends in .proof.")
@click.option("--time-limit", type=SECONDS, default=60.0, help="Seconds to replay a proof, or to ask again.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
@click.option("--trust", is_flag=True, help="Open MODEL even if opening it can run code.")
@debug
def verify(record: Path, model: Path, data: Path, **options: Any) -> int:
    """Check RECORD, written by 'ifonly explain --output record.json' or Explanation.record().

    A sentence for each check. Exit codes: 0 the record stands, 6 it does not, or is none.
    """
    from ifonly.errors import SchemaError
    from ifonly.record.reading import read_record

    try:
        told = read_record(record)  # before anything else is opened
    except SchemaError as error:
        return _refuted(str(error), options)
    try:
        fitted = files.load_model(model, trust=options["trust"])
    except click.ClickException as error:
        raise _unopened(error, told) from error
    return _checked(record, told, fitted, data, options)


def _checked(record: Path, told: Any, fitted: Any, data: Path, options: dict[str, Any]) -> int:
    """Check a record that has been read, against a model that has been opened; return the exit code."""
    from ifonly.errors import SchemaError
    from ifonly.record import verify as check

    table = files.read_table(data)
    X = files.features(fitted, files.without(table, options["target"], data))
    factual = None if options["row"] is None else X.iloc[[options["row"]]]
    try:
        salt = None if options["salt"] is None else bytes.fromhex(options["salt"])
    except ValueError:
        raise click.BadParameter("The salt is written in hexadecimal digits.", param_hint="'--salt'") from None
    beside = record.with_suffix(".proof")
    proof = options["proof"] or (beside if "proof" in told and beside.exists() else None)
    try:
        verdict = check(told, fitted, X, factual=factual, salt=salt, proof=proof, time_limit=options["time_limit"])
    except SchemaError as error:
        return _refuted(str(error), options)
    if options["as_json"]:
        click.echo(json.dumps(verdict.to_dict(), ensure_ascii=False, indent=1))
    else:
        show.verdict(verdict)
    return 0 if verdict.ok else REFUTED


def _refuted(sentence: str, options: dict[str, Any]) -> int:
    """Say why this is no record that could stand."""
    if options["as_json"]:
        checks = [{"name": "record", "ok": False, "sentence": sentence}]
        click.echo(json.dumps({"ok": False, "checks": checks}, ensure_ascii=False, indent=1))
    else:
        show.error(sentence)
    return REFUTED


def _unopened(error: click.ClickException, told: Any) -> click.ClickException:
    """Return the error of a model that cannot be opened, with the versions that the record was written under."""
    from ifonly.record.versions import differing_now

    other = differing_now((told["origin"] or {}).get("versions", {}))
    then = f" Other versions are installed than those of the record: {'; '.join(other)}." if other else ""
    return click.ClickException(error.format_message() + then)
