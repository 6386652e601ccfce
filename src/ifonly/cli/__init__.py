"""The command line: ``ifonly demo``, ``studio``, ``explain``, ``batch``, ``schema``, ``lint``, ``solvers`` and ``bench``.

Exit codes: 0 found, 3 proven impossible, 4 misuse, 5 out of time, 6 a record refuted, 130 interrupted, 1 anything else.
"""

# ruff: noqa: PLC0415 - each command loads what it needs, so that --help stays quick

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

import ifonly
from ifonly.cli import files, show
from ifonly.cli.batch import batch
from ifonly.cli.exits import IMPOSSIBLE, INTERRUPTED, MISUSE, OUT_OF_TIME
from ifonly.cli.explain import explain
from ifonly.cli.lint import lint
from ifonly.cli.opening import open_explainer
from ifonly.cli.options import APPLICANT, FILE, NEW_FILE, SECONDS, STDIN, debug
from ifonly.cli.verify import verify
from ifonly.cli.wording import translated
from ifonly.errors import (
    CriterionError,
    IfOnlyError,
    IfOnlyWarning,
    Infeasible,
    OutOfTime,
    PlanError,
    SchemaError,
    SolverMissing,
    UnsupportedModel,
)

if TYPE_CHECKING:
    from ifonly.bench import ModelName

__all__ = ["main"]

_MISUSES = (SchemaError, CriterionError, PlanError, UnsupportedModel, SolverMissing, FileNotFoundError)

_MODEL = click.Choice(["linear", "forest"])


class _Commands(click.Group):
    """The group, which turns whatever happens into a sentence and an exit code."""

    debug = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of this file, which is the order in which people need them."""
        del ctx
        return list(self.commands)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; see `click.Command.main`."""
        run: Callable[[], Any] = partial(super().main, args, prog_name, complete_var, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        self.debug = False
        for stream in (sys.stdout, sys.stderr):
            # A terminal or pipe that knows few characters shows a question mark rather than a traceback.
            getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
        with warnings.catch_warnings():
            warnings.simplefilter("always", IfOnlyWarning)
            warnings.showwarning = show.note
            try:
                code = run()
            except Exception as error:  # noqa: BLE001 - the last resort
                self._leave(error)
        sys.exit(code if isinstance(code, int) else 0)

    def _leave(self, error: Exception) -> NoReturn:
        if self.debug:
            traceback.print_exception(error)
        sys.exit(_complain(error))


def _complain(error: Exception) -> int:
    """Say what happened and return the exit code."""
    if isinstance(error, Infeasible):
        show.impossible(error)
        return IMPOSSIBLE
    if isinstance(error, click.Abort):
        show.error("Interrupted.")
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        show.error(error.format_message(), f"Try '{context.command_path} --help'." if context else "")
        return MISUSE
    if isinstance(error, IfOnlyError):
        show.error(translated(str(error)))
        return OUT_OF_TIME if isinstance(error, OutOfTime) else MISUSE if isinstance(error, _MISUSES) else 1
    show.error(
        f"Unexpected {type(error).__name__}: {error}",
        "This is a bug in ifonly. Please report it with the output of --debug.",
    )
    return 1


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    epilog="Start with: ifonly demo",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(ifonly.__version__, prog_name="ifonly", message="%(prog)s %(version)s")
@debug
@click.pass_context
def main(context: click.Context) -> None:
    """Find the least change that would have given another outcome. Proven, and confirmed by the model.

    Exit codes: 0 found, 3 proven impossible, 4 misuse, 5 out of time, 6 a record does not stand.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@main.command(short_help="Explain a refused applicant of German Credit.")
@click.option("--model", "name", type=_MODEL, default="linear", help="A logistic regression, or 100 trees.")
@click.option("--row", type=click.IntRange(0, 999), default=APPLICANT, help="Which applicant.")
@click.option("--n", type=click.IntRange(min=1), default=1, help="How many different answers.")
@click.option("--time-limit", type=SECONDS, default=30.0, help="Seconds to search.")
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), help="Folder to keep the files in.")
@click.option("--study", type=click.Choice(["german", "heart"]), help="Instead: a case study of the paper.")
@debug
def demo(name: ModelName, row: int, n: int, time_limit: float, save: Path | None, study: str | None) -> None:
    """Train a model on German Credit and explain a refused applicant; or print a case study of the paper."""
    if study is not None:
        from ifonly.cli.study import run as run_study

        run_study(study, time_limit, save)
        return
    from ifonly.cli.demo import run

    run(name, row, n, time_limit, save)


@main.command(short_help="Ask in a browser: pick a row, say what may change, see the proof.")
@click.argument("model", type=FILE, required=False)
@click.argument("data", type=FILE, required=False)
@click.option("--policy", type=FILE, help="Features and demands of the house; 'ifonly schema' writes one.")
@click.option("--background", type=FILE, help="The training data, when DATA is not it.")
@click.option("--target", metavar="COLUMN", help="Outcome column to leave out, if the model does not name its columns.")
@click.option("--solver", default="auto", help="One of those 'ifonly solvers' lists.")
@click.option("--trust", is_flag=True, help="Open MODEL even if opening it can run code.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; 0 takes a free one.")
@click.option("--open/--no-open", "open_browser", default=True, help="Open the browser.")
@click.option("--keep", type=NEW_FILE, help="Keep bookmarks in this file.")
@click.option("--workers", type=click.IntRange(1, 64), default=2, help="How many questions are answered at a time.")
@click.option("--host", default="127.0.0.1", help="The interface; others than loopback need a certificate or a proxy.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A name under which it may be asked for; repeatable.")
@click.option("--certificate", type=FILE, help="Certificate for TLS.")
@click.option("--key", type=FILE, help="Its key.")
@click.option("--behind-proxy", is_flag=True, help="Something in front of it encrypts and has a port of its own.")
@debug
def studio(model: Path | None, data: Path | None, **options: Any) -> None:
    """Open a page in the browser in which a person picks a row, says what may change, asks, and sees the proof.

    MODEL is a skops file of a fitted model, DATA the CSV or Parquet file it was trained on; without them the studio shows
    German Credit with a forest and a logistic regression. Only this machine can reach it.
    """
    from ifonly.cli.studio import from_files, run

    if (model is None) != (data is None):
        raise click.UsageError("Give MODEL and DATA, or neither for the demo.")
    subject = None
    if model is not None and data is not None:
        fitted = files.load_model(model, trust=options["trust"])
        table = files.read_table(data)
        explainer = open_explainer(fitted, table, data, options)
        subject = from_files(explainer, table, model, data, options)
    run(subject, options)


main.add_command(explain)
main.add_command(batch)
main.add_command(verify)


@main.command(short_help="Write an editable policy: features and demands.")
@click.argument("data", type=FILE)
@click.option("--target", metavar="COLUMN", help="The outcome, which is no feature.")
@click.option("--output", type=NEW_FILE, help="Write the policy there instead of printing it.")
@click.option("--force", is_flag=True, help="Write over a policy that is there.")
@debug
def schema(data: Path, target: str | None, output: Path | None, force: bool) -> None:
    """Write an editable policy: the features of DATA, and the demands you may make of answers."""
    from ifonly.data.schema import Schema
    from ifonly.policy import write_policy

    if output == STDIN:
        output = None
    if output is not None and output.exists() and not force:
        raise click.ClickException(f"{output} is there already, perhaps with your edits. Add --force to write over it.")
    text = write_policy(Schema.infer(files.without(files.read_table(data), target, data), precision="data"))
    files.deliver(text, output)


main.add_command(lint)


@main.command()
@debug
def solvers() -> None:
    """List the solvers and what they can do, and the kernel of our own search."""
    from ifonly.models.forms import signs
    from ifonly.search.cells.kernel import kernel_in_use
    from ifonly.solvers.registry import known_solvers

    rows = []
    for name, backend in known_solvers().items():
        able = sorted(capability.name.lower().replace("_", " ") for capability in backend.capabilities)
        there = backend.available()
        install = f"pip install 'ifonly[{name}]'"
        rows.append([name, backend.label, backend.version() if there else install, ", ".join(able)])
    show.table(["name", "solver", "installed", "capabilities"], rows)
    click.echo(f"Forests are searched without a solver first; kernel: {kernel_in_use()}.")
    click.echo(f"So are balls around answers of ReLU networks; kernel: {signs.kernel_in_use()}.")


@main.group(invoke_without_command=True, short_help="Time answers, phase by phase; or rerun the paper.")
@click.option("--model", "name", type=_MODEL, default="linear", help="A logistic regression, or 100 trees.")
@click.option("--rows", type=click.IntRange(min=1), default=100, help="How many refused applicants, at most.")
@click.option("--changes", type=click.IntRange(min=1), default=3, help="How many features may change.")
@click.option("--time-limit", type=SECONDS, default=30.0, help="Seconds per applicant.")
@click.option("--solver", default="auto", help="One of those 'ifonly solvers' lists.")
@debug
@click.pass_context
def bench(context: click.Context, name: ModelName, rows: int, changes: int, time_limit: float, solver: str) -> None:
    """Time the answers to refused applicants of German Credit, phase by phase, on one core."""
    if context.invoked_subcommand is not None:
        return
    from ifonly.bench import benchmark

    with show.Counter(show.console(err=True), "Explaining") as count:
        found = benchmark(rows, model=name, solver=solver, at_most=changes, time_limit=time_limit, on_answer=count)
    answered = found.answered()
    proven = sum(timing.status == "optimal" for timing in answered)
    click.echo(
        f"German Credit, {name} model, at most {changes} changes, {found.solver}: {len(found.timings)} applicants, "
        f"{len(answered)} answered, {proven} proven optimal"
    )
    if answered:
        figures = found.table()
        lines = [
            [str(phase), *(f"{value:.1f}" for value in row)]
            for phase, row in zip(figures.index, figures.to_numpy(), strict=True)
        ]
        show.table(["ms per answer", *figures.columns], lines, numbers=True)


@bench.command(
    add_help_option=False,
    short_help="Rerun the paper's comparison with its peers (from a checkout).",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def paper(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Rerun the comparison of the paper: its data, factuals, models and peers; 'paper --help' lists what to choose."""
    import os
    import subprocess

    root = files.checkout()
    if root is None:
        raise click.ClickException(
            "The paper's comparison is not part of the installed package: it runs from a checkout of the project. Clone "
            "the repository, and run this there."
        )
    # A process of its own: it must set the number of threads before NumPy is loaded.
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "benchmarks.paper", *arguments]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False)  # noqa: S603 - our own module
    context.exit(done.returncode)
