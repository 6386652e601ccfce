"""``ifonly studio``: from files, or the shipped demo, to a page in the browser."""

# ruff: noqa: PLC0415 - the web framework is an extra, loaded by this command alone

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import files

if TYPE_CHECKING:
    import pandas as pd

    from ifonly.explain import Explainer
    from ifonly.studio.server import Studio
    from ifonly.studio.subject import Subject

__all__ = ["run"]


def run(subject: Subject | None, options: dict[str, Any]) -> None:
    """Serve until Ctrl-C; the first line on standard output is the address with its token."""
    with _loading():
        studio = _studio(subject, options)
    click.echo(studio.url)
    click.echo("Ctrl-C ends the studio. The link opens once; after that, another one is printed here.", err=True)
    if options["open_browser"]:
        studio.open()
    studio.serve()


def _studio(subject: Subject | None, options: dict[str, Any]) -> Studio:
    try:
        from ifonly.studio.demo import demo_subjects
        from ifonly.studio.server import Address, Studio
    except ImportError as error:
        raise click.ClickException(
            f"The studio needs {error.name}, which is not installed. Install it: pip install 'ifonly[studio]'."
        ) from None
    address = Address(
        options["host"],
        options["port"],
        options["allow_host"],
        options["certificate"],
        options["key"],
        options["behind_proxy"],
    )
    subjects = demo_subjects() if subject is None else (subject,)
    return Studio(subjects, address, workers=options["workers"], keep=options["keep"], on_link=_another)


@contextmanager
def _loading() -> Iterator[None]:
    """Load without the collector of garbage, and let it pass over what was loaded: that stays as long as the process."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _another(link: str) -> None:
    click.echo(f"Opened. For another browser: {link}", err=True)


def from_files(explainer: Explainer, table: pd.DataFrame, model: Path, data: Path, options: dict[str, Any]) -> Subject:
    """Return what was given on the command line as something to ask about."""
    from ifonly.policy import read_policy
    from ifonly.studio.subject import Subject, standard_switches

    law = read_policy(files.read_text(options["policy"])).law if options["policy"] else ()
    X = files.features(explainer.model.estimator, table.drop(columns=options["target"] or [], errors="ignore"))
    source = options["background"] or data
    names = list(explainer.schema.names)
    recipe = (
        "from pathlib import Path",
        "",
        "from ifonly.cli.files import features, load_model, read_table",
        *(["from ifonly.policy import read_policy"] if options["policy"] else []),
        "",
        f"model = load_model(Path({str(model)!r}), trust={options['trust']})",
        f"X = features(model, read_table(Path({str(source)!r})))[{names!r}]",
        f"schema = read_policy(Path({str(options['policy'])!r}).read_text('utf-8')).schema(X)"
        if options["policy"]
        else "schema = None  # read off the data",
    )
    rows = explainer.schema.frame(X).reset_index(drop=True)
    title = f"{model.name} · {data.name}"
    return Subject("model", title, explainer, rows, recipe=recipe, switches=standard_switches(), law=law)
