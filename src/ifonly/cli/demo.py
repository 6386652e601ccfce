"""The demo: train a model on German Credit, explain a refused applicant, and say what to type next."""

# ruff: noqa: PLC0415 - skops is loaded only to save

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.bench import credit_model
from ifonly.cli import files, show
from ifonly.cli.options import APPLICANT
from ifonly.criteria.actionability.criterion import Actionability
from ifonly.criteria.house import DEFAULT_CRITERIA
from ifonly.datasets import german_credit
from ifonly.explain import Explainer
from ifonly.policy import write_policy
from ifonly.question.criterion import Criterion

if TYPE_CHECKING:
    from ifonly.bench import ModelName
    from ifonly.datasets import Dataset

__all__ = ["run"]

_KINDS = {"linear": "logistic regression", "forest": "forest of 100 trees"}
_HOLD_OUT = 5


def run(name: ModelName, row: int, n: int, time_limit: float, save: Path | None) -> None:
    """Run the demo; see ``ifonly demo --help``."""
    credit = german_credit()
    X = credit.frame
    show.done(f"German Credit: {len(X):,} applicants, {X.shape[1]} features (UCI, Hans Hofmann, CC BY 4.0)")
    model = _trained(name, credit)
    applicant = X.iloc[[row]]
    show.done(f"Applicant {row}: the model says {model.predict(applicant)[0]}")
    house = (*DEFAULT_CRITERIA, Actionability(frozen=credit.immutable, increase=["age"]))
    fixed = ", ".join(credit.schema.label(feature).lower() for feature in credit.immutable)
    show.done(f"House policy: {fixed} stay as they are; age may only go up")
    explainer = Explainer(model, X, schema=credit.schema, criteria=house)
    with show.Progress(show.console()) as progress:
        answer = explainer.explain(applicant, want=credit.wanted, n=n, time_limit=time_limit, on_event=progress)
    show.done(f"Searched: {progress.summary()}")
    click.echo()
    show.answer(str(answer))
    click.echo()
    if save is not None:
        _save(save, model, credit, house)
    _next_steps(name, row, n, save)


def _trained(name: ModelName, credit: Dataset) -> Any:
    held = [i % _HOLD_OUT == 0 for i in range(len(credit.frame))]
    seen = [not h for h in held]
    with show.Live(show.console(), f"Training a {_KINDS[name]}"):
        model = credit_model(name, credit.frame[seen], credit.target[seen])
        right = model.score(credit.frame[held], credit.target[held])
    show.done(f"A {_KINDS[name]}, trained on {sum(seen)}, is right about {right:.0%} of the other {sum(held)}")
    return model


def _save(folder: Path, model: Any, credit: Dataset, house: Sequence[Criterion]) -> None:
    import skops.io

    try:
        folder.mkdir(parents=True, exist_ok=True)
        skops.io.dump(model, folder / "model.skops")
    except OSError as error:
        raise click.ClickException(f"{folder} cannot be written to: {error.strerror}.") from error
    table = credit.frame.assign(**{str(credit.target.name): credit.target})
    files.write_text(folder / "applicants.csv", table.to_csv(index=False))
    files.write_text(folder / "policy.toml", write_policy(credit.schema, house))


def _next_steps(name: ModelName, row: int, n: int, save: Path | None) -> None:
    """Say what to type next: nothing that was just done, and of the same applicant."""
    if save is None:
        own = f" --row {row}" * (row != APPLICANT)
        same = "ifonly demo" + " --model forest" * (name == "forest") + own
        other = "linear" if name == "forest" else "forest"
        steps = {
            f"{same} --n 3": "three different ways",
            f"ifonly demo --model {other}{own}": f"the same for a {_KINDS[other]}",
            f"{same} --save credit": "keep model, data and policy, to try your own demands",
        }
        if n == 3:
            del steps[f"{same} --n 3"]
    else:
        trust = " --trust" * (name != "linear")
        where = f"{save / 'model.skops'} {save / 'applicants.csv'}"
        policy = f"--policy {save / 'policy.toml'}{trust}"
        steps = {
            f"ifonly explain {where} --row {row} {policy} --output why.html": "as a page; or .json, .csv, .txt",
            f"ifonly explain {where} --rows 0-9 {policy}": "ten applicants, one line each",
            f"ifonly studio {where} {policy}": "in a browser, with your own demands",
        }
    show.steps("Next", steps)
