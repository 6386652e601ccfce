"""Options that several commands have, and their types."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["APPLICANT", "FILE", "NEW_FILE", "SECONDS", "STDIN", "TABLE", "debug", "wish"]

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
# A table may come from a pipe, and text may go into one.
STDIN = Path("-")
TABLE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
SECONDS = click.FloatRange(min=0, min_open=True)
APPLICANT = 375  # of the demo, refused by both of its models


def _set_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    root = context.find_root().command
    if value and hasattr(root, "debug"):
        root.debug = True


debug: Callable[[Any], Any] = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show the traceback of an error."
)

_WISH = (
    click.option("--want", metavar="CLASS", multiple=True, help="The wanted class; repeat it for any of several."),
    click.option("--probability", type=float, help="The least probability of the wanted class."),
    click.option("--at-least", type=float, help="For regression: the least wanted prediction."),
    click.option("--at-most", type=float, help="For regression: the largest wanted prediction."),
)


def wish(command: Any) -> Any:
    """Add the options that say which outcome is wanted."""
    for option in reversed(_WISH):
        command = option(command)
    return command
