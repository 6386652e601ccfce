"""``ifonly explain``: one row, or several, from files or from standard input, in the format that is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import files, show
from ifonly.cli.exits import IMPOSSIBLE
from ifonly.cli.opening import goal_of, open_explainer
from ifonly.cli.options import FILE, NEW_FILE, SECONDS, STDIN, TABLE, debug, wish
from ifonly.errors import Infeasible

if TYPE_CHECKING:
    import pandas as pd

    from ifonly.explain import Explainer

__all__ = ["explain"]


@click.command(short_help="Say what would have had to be different in one row, or in several.")
@click.argument("model", type=FILE)
@click.argument("data", type=TABLE)
@click.option("--row", type=click.IntRange(min=0), help="Position of the row in DATA, counted from 0.")
@click.option("--rows", metavar="LIST", help="Several rows: all, or positions such as 0,3,7-9.")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="Or: the one row with this value; repeatable.")
@click.option("--background", type=FILE, help="The training data, when DATA is not it.")
@click.option("--target", metavar="COLUMN", help="Outcome column to leave out, if the model does not name its columns.")
@wish
@click.option("--n", type=click.IntRange(min=1), default=1, help="How many different answers.")
@click.option("--policy", type=FILE, help="Features and demands; 'ifonly schema' writes one.")
@click.option("--output", type=NEW_FILE, help="Write the answer there: .html, .json, .csv or .txt; - prints it.")
@click.option(
    "--format", "form", type=click.Choice(list(files.FORMATS)), help="The format, where no file name says it."
)
@click.option("--proof", is_flag=True, help="Keep the proof, in a file beside --output x.json: x.proof.")
@click.option("--surrogate", is_flag=True, help="Let a model that cannot be read be observed: answers, but no proofs.")
@click.option("--time-limit", type=SECONDS, default=30.0, help="Seconds to search, for each row.")
@click.option("--jobs", type=int, default=1, help="Processes, for --rows; -1 uses all cores.")
@click.option("--solver", default="auto", help="One of those 'ifonly solvers' lists.")
@click.option("--trust", is_flag=True, help="Open MODEL even if opening it can run code.")
@debug
@click.pass_context
def explain(context: click.Context, /, model: Path, data: Path, **options: Any) -> None:
    """Say what would have had to be different in rows of DATA for MODEL to decide otherwise.

    MODEL is a skops file (skops.io.dump) of a fitted model or Pipeline, or a file of XGBoost, LightGBM, CatBoost or ONNX;
    DATA is a CSV or Parquet file of the data it was trained on, with the row among it; - reads CSV or JSON from standard
    input, with the training data in --background.
    """
    output = None if options["output"] in (None, STDIN) else options["output"]
    if options["proof"] and (output is None or output.suffix.lower() != ".json"):
        raise click.UsageError("A proof is written beside a record: add --output x.json.")
    if options["rows"] is not None and (options["row"] is not None or options["where"] or options["proof"]):
        raise click.UsageError("--rows takes the place of --row and --where, and keeps no proofs.")
    form = files.format_of(output, options["form"])
    fitted = files.load_model(model, trust=options["trust"])
    table = files.read_table(data)
    if options["rows"] is None:
        one = files.pick_row(table, options["row"], options["where"], data)
        explainer = open_explainer(fitted, table, data, options)
        _one(explainer, _asked(fitted, one, options), output, form, options)
    else:
        several = table.iloc[files.positions(options["rows"], len(table), data)]
        explainer = open_explainer(fitted, table, data, options)
        context.exit(_several(explainer, _asked(fitted, several, options), output, form, options))


def _asked(fitted: Any, rows: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    return files.features(fitted, rows.drop(columns=options["target"] or [], errors="ignore"))


def _one(
    explainer: Explainer, row: pd.DataFrame, output: Path | None, form: str | None, options: dict[str, Any]
) -> None:
    goal = goal_of(explainer, options)
    try:
        with show.Progress(show.console(err=True)) as progress:
            limit = options["time_limit"]
            answer = explainer.explain(
                row, want=goal, n=options["n"], time_limit=limit, on_event=progress, proof=options["proof"]
            )
    except Infeasible as error:
        if _write_impossible(error, output, form):
            raise click.exceptions.Exit(IMPOSSIBLE) from error
        raise
    if output is None and form is None:
        show.answer(str(answer))
    else:
        files.deliver(files.FORMATS[form or "txt"](answer), output)
    if output is not None and answer.proof is not None:
        show.wrote(files.write_proof(output, answer.proof))


def _write_impossible(error: Infeasible, output: Path | None, form: str | None) -> bool:
    """Write a proven impossibility, where the format can hold it; return whether standard output has it already."""
    if output is not None:
        if files.write_impossible(output, error, form):
            show.wrote(output)
            if error.proof is not None:
                show.wrote(files.write_proof(output, error.proof))
    elif form == "json":
        click.echo(json.dumps(error.record(), indent=2, ensure_ascii=False, allow_nan=False))
        return True
    return False


def _several(
    explainer: Explainer, rows: pd.DataFrame, output: Path | None, form: str | None, options: dict[str, Any]
) -> int:
    """Explain several rows; return 0 when one of them has an answer, else the code of an impossible question."""
    answers: Any = explainer.explain_all(
        rows, want=goal_of(explainer, options), n=options["n"], time_limit=options["time_limit"], n_jobs=options["jobs"]
    )
    faces = {"json": answers.to_json, "csv": answers.to_csv, "html": answers.to_html, "txt": lambda: _lines(answers)}
    text = faces[form or "txt"]()
    text += "" if text.endswith("\n") else "\n"
    files.deliver(text, output)
    return 0 if answers.found else IMPOSSIBLE


def _lines(answers: Any) -> str:
    """Return a line for each row: what would be different, or why there is no answer; and the summary below."""
    lines = []
    for outcome in answers:
        if outcome.explanation is None:
            said = outcome.reason().splitlines()
            lines.append(f"{outcome.index}: {outcome.status}" + (f" ({said[0]})" if said else ""))
            continue
        for answer in outcome.explanation:
            moves = ", ".join(f"{c.feature} {c.before} -> {c.after}" for c in answer.changes)
            lines.append(f"{outcome.index}: {moves}")
    return "\n".join([*lines, str(answers)])
