"""A batch in a folder: planned, run, looked at, verified and collected by one object."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ifonly.record.fingerprints as prints
from ifonly.batch.collecting import Collected, collect_plan
from ifonly.batch.jobs import Job
from ifonly.batch.plan import PLAN_FILE, Output, Plan, read_plan, write_plan
from ifonly.batch.progress import Listener, listener
from ifonly.batch.reading import FrameSource, Source, file_source
from ifonly.batch.records import label_kind
from ifonly.batch.running import Run, plan_state, run_plan
from ifonly.batch.shards import State, need_parquet, shard_folder
from ifonly.batch.verifying import Verdict, verify_plan
from ifonly.data.tables import align, as_frame
from ifonly.errors import CriterionError, PlanError
from ifonly.question.criterion import Criterion
from ifonly.runtime.deadline import FOREVER
from ifonly.runtime.tuning import DEFAULT
from ifonly.version import __version__

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = [
    "Batch",
    "check_explainer",
    "explain_to",
    "open_source",
    "plan_batch",
    "question_options",
    "write_or_check_plan",
]

SHARD_ROWS = 1000  # the default of a parameter, which the plan writes down
# Long enough for no search to meet it: a search that counts on the clock is not reproducible.
_ENDLESS = FOREVER


@dataclass(frozen=True)
class Batch:
    """Many rows explained into a folder.

    Attributes
    ----------
    folder
        Where the plan, the shards and the collected tables are.
    plan
        What was planned.
    explainer, source, options
        What it takes to run and to verify; None for a batch that is only looked at.
    last_run
        How the last run ended.
    """

    folder: Path
    plan: Plan
    explainer: Explainer | None = field(default=None, repr=False)
    source: Source | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    last_run: Run | None = field(default=None, repr=False)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Batch:
        """Return the batch in a folder, to look at and to collect."""
        return cls(Path(folder), read_plan(Path(folder)))

    def run(
        self,
        *,
        shards: Sequence[int] | None = None,
        n_jobs: int | None = 1,
        executor: Any = None,
        hears: Listener | None = None,
    ) -> Run:
        """Run what is not done, or only some shards; see `run_plan`."""
        if self.explainer is None or self.source is None:
            raise PlanError(f"The batch in {self.folder} was opened without its explainer, so it cannot be run.")
        job = Job(self.plan, self.explainer, self.options, self.source)
        return run_plan(job, self.folder, hears or listener(False), shards=shards, executor=executor, n_jobs=n_jobs)

    def status(self) -> dict[str, list[int]]:
        """Return the shards that are done, missing, foreign (of another plan) and corrupt, by their footers."""
        return {str(state): shards for state, shards in plan_state(self.folder, self.plan).items()}

    def is_complete(self) -> bool:
        """Whether all shards are done."""
        return not any(shards for state, shards in self.status().items() if state != State.DONE)

    def verify(self) -> Verdict:
        """Check every shard, that every row is there once, and every answer by the model and the demands."""
        return verify_plan(self.folder, self.plan, self.explainer, self.source, self.options)

    def collect(self, *, partial: bool = False) -> Collected:
        """Put all shards together: the answers, the tidy table of changes, and a summary."""
        return collect_plan(self.folder, self.plan, partial=partial)


def open_source(explainer: Explainer, rows: Any, key: str | None = None) -> Source:
    """Return rows as a source: a path is a file that is read in pieces, anything else a table in memory."""
    names = explainer.schema.names
    if isinstance(rows, (str, os.PathLike)):
        path = Path(rows).resolve()  # workers may have another working folder
        if path.suffix.lower() == ".parquet":
            need_parquet()
        return file_source(path, explainer.schema, key)
    frame = as_frame(rows, names)
    if key is not None:
        if key not in frame.columns:
            raise PlanError(f"The rows have no column {key!r} to take keys from.")
        labels = frame[key].astype(str).tolist()
        frame = (frame if key in names else frame.drop(columns=key)).set_axis(labels, axis=0)
    return FrameSource(align(frame, names))


def plan_batch(
    explainer: Explainer,
    source: Source,
    *,
    want: Any,
    n: int = 1,
    criteria: Sequence[Criterion] = (),
    time_limit: float = 30.0,
    reproducible: bool = False,
    shard_rows: int = SHARD_ROWS,
    output: Output | None = None,
    files: Mapping[str, str] | None = None,
    file_prints: Mapping[str, str] | None = None,
    asked: Mapping[str, Any] | None = None,
) -> tuple[Plan, dict[str, Any]]:
    """Return the plan of a batch, and the options of every question."""
    if shard_rows < 1 or n < 1:
        raise CriterionError(f"'shard_rows' and 'n' must be at least 1, got {shard_rows!r} and {n!r}.")
    measured = source.measure(shard_rows)
    parts = {"input": measured.sha256} | _prints(explainer, want, criteria)
    settings = {
        "n": n,
        "reproducible": reproducible,
        "seed": explainer.random_state,
        "solver": explainer.backend.name,
        "time_limit": None if reproducible else float(time_limit),
    }
    plan = Plan(
        prints=parts | dict(file_prints or {}),
        rows=measured.rows,
        shard_rows=shard_rows,
        output=output or _default_output(),
        labels=label_kind(explainer),
        settings=settings,
        offsets=measured.offsets,
        files=dict(files or {}),
        asked=dict(asked or {"want": repr(want)}),
    )
    return plan, question_options(plan, want, criteria)


def question_options(plan: Plan, want: Any, criteria: Sequence[Criterion] = ()) -> dict[str, Any]:
    """Return the options of every question of a plan."""
    limit = plan.settings["time_limit"]
    options = {"want": want, "n": plan.settings["n"], "criteria": tuple(criteria)}
    return options | {"time_limit": _ENDLESS if limit is None else limit}


def _prints(explainer: Explainer, want: Any, criteria: Sequence[Criterion]) -> dict[str, str]:
    """Return the fingerprints of all that an answer depends on besides its row."""
    return {
        "ifonly": __version__,
        "model": prints.of_model(explainer),
        "policy": prints.of_value((explainer.criteria, tuple(criteria))),
        "schema": prints.of_value(explainer.schema),
        "training": prints.of_training(explainer),
        "wish": prints.of_value(want),
    } | {name: prints.of_value(value) for name, value in _unusual(explainer).items()}


def _unusual(explainer: Explainer) -> dict[str, Any]:
    """Return those of the numbers and engines of searches that are not the default ones: a plan names no others."""
    tuning = {} if explainer.tuning == DEFAULT else {"tuning": explainer.tuning}
    return tuning | ({} if explainer.engines is None else {"engines": explainer.engines})


def check_explainer(plan: Plan, folder: Path, explainer: Explainer, want: Any) -> None:
    """Refuse an explainer that is not the one that was planned with, and say in what it differs."""
    others = {name: value for name, value in plan.prints.items() if name not in ("tuning", "engines")}
    now = replace(plan, prints=others | _prints(explainer, want, ()))
    plan.refuse_changes(now, folder)


def _default_output() -> Output:
    try:
        need_parquet()
    except PlanError:
        return "csv"
    return "parquet"


def write_or_check_plan(plan: Plan, folder: Path) -> None:
    """Write a plan into a folder, or find it there already; refuse a folder with another one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlanError(f"The folder {folder} cannot be made: {error.strerror}.") from None
    if (folder / PLAN_FILE).exists():
        read_plan(folder).refuse_changes(plan, folder)
        return
    if shard_folder(folder).exists():
        raise PlanError(f"{folder} has shards but no plan. Give another folder, or delete {shard_folder(folder)}.")
    write_plan(plan, folder)


def explain_to(
    explainer: Explainer,
    rows: Any,
    to: str | os.PathLike[str],
    *,
    n_jobs: int | None = 1,
    executor: Any = None,
    progress: bool = False,
    key: str | None = None,
    **options: Any,
) -> Batch:
    """Plan a batch into a folder, or find the same plan there, and run what is not done; see `Explainer.explain_all`."""
    folder, source = Path(to), open_source(explainer, rows, key)
    plan, asked = plan_batch(explainer, source, **options)
    write_or_check_plan(plan, folder)
    batch = Batch(folder, plan, explainer, source, asked)
    ended = batch.run(n_jobs=n_jobs, executor=executor, hears=listener(progress))
    return Batch(folder, plan, explainer, source, asked, ended)
