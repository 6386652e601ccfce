"""The commands for many rows: ``ifonly batch plan``, ``run``, ``status``, ``verify`` and ``collect``."""

# ruff: noqa: PLC0415 - each command loads what it needs, so that --help stays quick

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import files, show
from ifonly.cli.exits import INTERRUPTED
from ifonly.cli.opening import goal_of, open_explainer
from ifonly.cli.options import FILE, SECONDS, debug, wish

if TYPE_CHECKING:
    from ifonly.batch import Batch
    from ifonly.batch.plan import Plan

__all__ = ["batch"]

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_LARGEST_TRAINING = 200_000_000  # bytes; what is read as training data is in memory as a whole
_MOST_NAMED = 12


class _InOrder(click.Group):
    """A group that lists its commands in the order in which they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of this file."""
        del ctx
        return list(self.commands)


@click.group(cls=_InOrder, short_help="Explain many rows: plan, run, resume, verify, collect.")
def batch() -> None:
    """Explain the rows of a file into a folder: planned once, run by anybody, resumed after anything."""


@batch.command(short_help="Write a plan: fingerprints and shards.")
@click.argument("data", type=FILE)
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--model", required=True, type=FILE, help="A skops file of a fitted model or Pipeline.")
@click.option("--background", type=FILE, help="The training data, when DATA is not it.")
@click.option("--target", metavar="COLUMN", help="Outcome column to leave out, if the model does not name its columns.")
@wish
@click.option("--n", type=click.IntRange(min=1), default=1, help="How many different answers per row.")
@click.option("--policy", type=FILE, help="Features and demands; 'ifonly schema' writes one.")
@click.option("--key", metavar="COLUMN", help="Column that names the rows in the output.")
@click.option("--shard-rows", type=click.IntRange(min=1), default=1000, help="Rows per shard.")
@click.option(
    "--format", "output", type=click.Choice(["csv", "parquet"]), help="Of the output.  [default: parquet if there]"
)
@click.option("--time-limit", type=SECONDS, default=30.0, help="Seconds to search for one row.")
@click.option("--reproducible", is_flag=True, help="No search ends by the clock: every run writes the same bytes.")
@click.option("--solver", default="auto", help="One of those 'ifonly solvers' lists.")
@click.option("--trust", is_flag=True, help="Open MODEL even if opening it can run code.")
@debug
def plan(data: Path, out: Path, model: Path, **options: Any) -> None:
    """Plan to explain every row of DATA, a CSV or Parquet file, into the folder OUT."""
    from ifonly.batch.folder import open_source, plan_batch, write_or_check_plan
    from ifonly.record.fingerprints import of_file

    paths = {"data": data, "model": model, "background": options["background"], "policy": options["policy"]}
    given = {name: path for name, path in paths.items() if path is not None}
    explainer = _open(given, options)
    source = open_source(explainer, data, options["key"])
    names = ("want", "probability", "at_least", "at_most", "target", "key")
    planned, _ = plan_batch(
        explainer,
        source,
        want=goal_of(explainer, options),
        **{name: options[name] for name in ("n", "time_limit", "reproducible", "shard_rows", "output")},
        files={name: _relative(path, out) for name, path in given.items()},
        file_prints={f"{name} file": of_file(path) for name, path in given.items() if name != "data"},
        asked={name: options[name] for name in names},
    )
    write_or_check_plan(planned, out)
    click.echo(f"{planned.rows:,} rows in {len(planned):,} shards. Next: ifonly batch run {out}")


def _relative(path: Path, folder: Path) -> str:
    """Return a path as seen from the plan's folder, so that the two can move together."""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()


def _open(paths: dict[str, Path], options: dict[str, Any]) -> Any:
    """Return the explainer of a plan's files."""
    from ifonly.batch.shards import need_parquet

    data, background = paths["data"], paths.get("background")
    training = background or data
    if any(path.suffix.lower() == ".parquet" for path in (data, training)):
        need_parquet()
    if background is None and data.stat().st_size > _LARGEST_TRAINING:
        raise click.UsageError(
            f"{data} is large, and training data is held in memory. Give the data the model was trained on, or a sample "
            "of it, by --background."
        )
    fitted = files.load_model(paths["model"], trust=options["trust"])
    given = options | {"background": training, "policy": paths.get("policy")}
    return open_explainer(fitted, files.read_table(training), training, given)


def _opened(out: Path, *, trust: bool) -> Batch:
    """Return the batch in a folder with everything it takes to run it, or say what changed since it was planned."""
    from ifonly.batch.folder import Batch, check_explainer, open_source, question_options
    from ifonly.batch.plan import read_plan

    planned = read_plan(out)
    if not planned.files:
        raise click.ClickException(
            f"The plan in {out} was made from Python, without files: run it there, by the same call of explain_all."
        )
    paths = {name: out / path for name, path in planned.files.items()}
    _check_files(planned, out, paths)
    asked = dict(planned.asked)
    explainer = _open(paths, asked | {"trust": trust, "solver": planned.settings["solver"]})
    want = goal_of(explainer, asked)
    check_explainer(planned, out, explainer, want)
    source = open_source(explainer, paths["data"], asked["key"])
    return Batch(out, planned, explainer, source, question_options(planned, want))


def _check_files(planned: Plan, out: Path, paths: dict[str, Path]) -> None:
    from ifonly.errors import PlanError
    from ifonly.record.fingerprints import of_file

    for name, path in paths.items():
        if not path.is_file():
            raise PlanError(f"The plan in {out} needs the file {path}, which is not there. Put it back, or plan anew.")
        stored = planned.prints["input" if name == "data" else f"{name} file"]
        if of_file(path) != stored:
            raise PlanError(
                f"This is not the batch that was planned in {out}: {path} ({name}) changed since. Answers of two plans are "
                "never mixed. Put it back, or plan into another folder."
            )


@batch.command(short_help="Run what is not done yet.")
@click.argument("out", type=_FOLDER)
@click.option("--shard", "shards", type=click.IntRange(min=0), multiple=True, help="Only this shard; repeatable.")
@click.option("--jobs", type=int, default=1, help="How many processes; -1 is one per core.")
@click.option("--trust", is_flag=True, help="Open the model even if opening it can run code.")
@debug
@click.pass_context
def run(context: click.Context, out: Path, shards: tuple[int, ...], jobs: int, trust: bool) -> None:
    """Run the shards of the plan in OUT that are not done; after an interruption or a crash, run it again."""
    from ifonly.batch.progress import listener

    opened = _opened(out, trust=trust)
    ended = opened.run(shards=shards or None, n_jobs=jobs, hears=listener(True))
    if ended.interrupted:
        show.error("Interrupted. What is done is kept.", f"Go on: ifonly batch run {out}")
        context.exit(INTERRUPTED)
    if ended.busy:
        click.echo(f"{len(ended.busy):,} shards were left to other runners: {_some(ended.busy)}")
    _say_status(opened)


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:_MOST_NAMED])) + (", ..." if len(numbers) > _MOST_NAMED else "")


@batch.command(short_help="Say what is done, missing, foreign or corrupt.")
@click.argument("out", type=_FOLDER)
@debug
@click.pass_context
def status(context: click.Context, out: Path) -> None:
    """Say which shards of the plan in OUT are done, missing, foreign or corrupt; exit code 0 when all are done."""
    from ifonly.batch.folder import Batch

    context.exit(0 if _say_status(Batch.open(out)) else 1)


def _say_status(opened: Batch) -> bool:
    """Print the state of a batch and return whether it is complete."""
    from ifonly.batch.jobs import rows_under_way

    found, planned = opened.status(), opened.plan
    done = sum(planned.shard(k).rows for k in found["done"])
    click.echo(f"{done:,} of {planned.rows:,} rows are done, {len(found['done']):,} of {len(planned):,} shards")
    for state in ("missing", "foreign", "corrupt"):
        if found[state]:
            click.echo(f"{state}: {_some(found[state])}")
    under_way = rows_under_way(opened.folder)
    if under_way:
        click.echo(f"{under_way:,} more rows are kept in shards under way")
    complete = len(found["done"]) == len(planned)
    click.echo(f"Next: ifonly batch {'verify' if complete else 'run'} {opened.folder}")
    return complete


@batch.command(short_help="Check every shard, row and answer.")
@click.argument("out", type=_FOLDER)
@click.option("--shallow", is_flag=True, help="Only shards and rows: no answer is put to the model again.")
@click.option("--trust", is_flag=True, help="Open the model even if opening it can run code.")
@debug
@click.pass_context
def verify(context: click.Context, out: Path, shallow: bool, trust: bool) -> None:
    """Check that shards are whole, every row is there once, and the model confirms every answer; exit code 0 if so."""
    from ifonly.batch.folder import Batch

    opened = Batch.open(out) if shallow else _opened(out, trust=trust)
    verdict = opened.verify()
    click.echo(str(verdict))
    context.exit(0 if verdict.ok else 1)


@batch.command(short_help="Put all shards together, with a summary.")
@click.argument("out", type=_FOLDER)
@click.option("--partial", is_flag=True, help="Leave out shards that are not done.")
@debug
def collect(out: Path, partial: bool) -> None:
    """Write answers, changes and summary.json into OUT, and print the summary."""
    from ifonly.batch.folder import Batch

    collected = Batch.open(out).collect(partial=partial)
    click.echo(str(collected.summary))
    for path in (collected.answers, collected.changes, collected.summary_file):
        show.wrote(path)
