"""``ifonly lint``: slips of a policy, before anybody is told an answer by it."""

# ruff: noqa: PLC0415 - each command loads what it needs, so that --help stays quick

from __future__ import annotations

from pathlib import Path

import click

from ifonly.cli import files, show
from ifonly.cli.options import FILE, debug

__all__ = ["lint"]


@click.command(short_help="Name slips of a policy: what it leaves open, and what can never bind.")
@click.argument("policy", type=FILE)
@click.argument("data", type=FILE)
@click.option("--target", metavar="COLUMN", help="The outcome, which is no feature.")
@click.option(
    "--protected", multiple=True, metavar="COLUMN", help="A feature nobody may be asked to change; repeatable."
)
@debug
@click.pass_context
def lint(context: click.Context, policy: Path, data: Path, target: str | None, protected: tuple[str, ...]) -> None:
    """Name slips of POLICY: protected attributes that may change, ranges outside DATA, rules that can never bind.

    Exits with 0 when there are none, with 1 otherwise. Without --protected, names such as sex, race and age are looked for.
    """
    from ifonly.policy import lint as slips
    from ifonly.policy import read_policy

    said = read_policy(files.read_text(policy))
    schema = said.schema(files.without(files.read_table(data), target, data))
    found = slips(schema, said.criteria, list(protected) or None)
    for text in found:
        click.echo(f"- {text}")
    if found:
        context.exit(1)
    show.done(f"{policy}: nothing to mend")
