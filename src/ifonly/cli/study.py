"""A case study of the paper: criteria added step by step, two tables and a figure."""

from __future__ import annotations

from pathlib import Path

import click

from ifonly.cli import files, show
from ifonly.studies import Part, german_study, heart_study
from ifonly.studies.figure import draw_effect

__all__ = ["run"]


def run(name: str, time_limit: float, save: Path | None) -> None:
    """Print a study; see ``ifonly demo --help``."""
    make = german_study if name == "german" else heart_study
    with show.Live(show.console(), "Training the model and searching, part by part") as live:

        def on_part(part: Part) -> None:
            live.tell(f"Part {part.letter} done in {part.explanation.seconds:.1f} s")

        study = make(time_limit=time_limit, on_part=on_part)
    click.echo(str(study))
    if save is None:
        click.echo()
        show.steps("Next", {f"ifonly demo --study {name} --save study": "keep the tables and draw the figure"})
        return
    _save(save, name, str(study))


def _save(folder: Path, name: str, text: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"{folder} cannot be written to: {error.strerror}.") from error
    files.write_text(folder / f"{name}.txt", f"{text}\n")
    show.wrote(folder / f"{name}.txt")
    try:
        draw_effect(path=folder / "manifold.svg")
    except ImportError:
        raise click.ClickException("The figure needs matplotlib: pip install 'ifonly[plots]'.") from None
    show.wrote(folder / "manifold.svg")
