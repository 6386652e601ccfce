"""Asking: put a question to the library, take the time, judge what comes back, and write it down and read it again."""

from __future__ import annotations

import io
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.battery.ask import BLOCK, Question, Unfit, World, draw_question, draw_world
from benchmarks.battery.judge import Fault, Judge
from benchmarks.battery.units import are_alike, compared
from ifonly import Explainer, Explanation, Infeasible
from ifonly.errors import CriterionError, OutOfTime, SolverFailed, SolverMissing, UnsupportedModel

__all__ = ["Result", "ask", "run_block", "run_one"]

_BRIEFLY = 1.0  # seconds for a row that is asked about before
_PATIENCE = 6.0  # times the limit of processor time: then the question is stopped, and counts as failed
_STARVED = (
    20.0  # times as long by the clock, for one that waits for ever: other people's work is no fault of a question
)


@dataclass
class Result:
    """Result of one question."""

    seed: int
    index: int
    verdict: str
    tags: dict[str, str] = field(default_factory=dict)
    faults: list[dict[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    processor: float = 0.0
    limit: float = 0.0
    note: str = ""
    answer: Any = None

    @property
    def name(self) -> str:
        """Name by which it can be asked again: seed and index."""
        return f"{self.seed}:{self.index}"

    def record(self) -> dict[str, Any]:
        """Return it as plain values, without the answer itself."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "answer"}

    @property
    def late(self) -> bool:
        """Whether the call took more than a tenth, or 50 ms, beyond its limit."""
        return _late(self.seconds, self.limit)

    @property
    def late_by_processor(self) -> bool:
        """Late by the clock, and by processor time, which other people's work on the machine does not touch.

        Processor time alone says nothing: the last step of a solver that was left when its time was over counts in it.
        """
        return self.late and _late(self.processor, self.limit)


def _late(seconds: float, limit: float) -> bool:
    return limit > 0 and seconds > limit + max(0.1 * limit, 0.05)


class _Hung(BaseException):
    """A question that does not come back."""


@dataclass
class _Watch:
    """Looks every second whether a question has had more time than it is given."""

    patience: float
    began: float = field(default_factory=time.perf_counter)
    worked: float = field(default_factory=time.process_time)

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        """Stop a question that does not come back."""
        del signum, frame
        passed = time.perf_counter() - self.began
        if time.process_time() - self.worked > self.patience or passed > _STARVED * self.patience:
            raise _Hung


def explainer_for(q: Question) -> Explainer:
    """Return an explainer of the question's world, which may have answered about another row before."""
    y = q.world.y if q.with_y else None
    house = q.criteria[: q.house]
    explainer = Explainer(q.world.model, q.world.data.X, y, schema=q.world.schema, criteria=house, solver=q.solver)
    if q.before is not None:
        with suppress(Exception):  # that row may have the outcome, or no answer: it is not the question
            explainer.explain(q.before, want=q.target, n=q.n, criteria=q.criteria[q.house :], time_limit=_BRIEFLY)
    return explainer


def ask(q: Question, make: Callable[[Question], Any] = explainer_for) -> tuple[Any, float, float]:
    """Put a question; return the answer or the exception, wall seconds and processor seconds of the call."""
    try:
        explainer = make(q)
    except Exception as error:  # noqa: BLE001 - a limit is for a question, which was not reached
        return error, 0.0, 0.0
    began, worked = time.perf_counter(), time.process_time()
    try:
        asked = {"want": q.target, "n": q.n, "criteria": q.criteria[q.house :], "time_limit": q.limit, "gap": q.gap}
        if q.kind == "batch":
            outcome = explainer.explain_all(q.factual, **asked)[0]
            answer = outcome.explanation if outcome.error is None else outcome.error
        else:
            answer = explainer.explain(q.factual, **asked)
    except Exception as error:  # noqa: BLE001 - whatever comes is judged
        answer = error
    return answer, time.perf_counter() - began, time.process_time() - worked


def judged(q: Question, answer: Any) -> tuple[str, list[Fault], str]:
    """Return the verdict, the faults and a note."""
    judge = Judge(q)
    if isinstance(answer, Explanation):
        faults = judge.explanation(answer) + _read_back(q, answer)
        return "answered" if answer.status in ("optimal", "within_gap") else "unproven", faults, ""
    if isinstance(answer, Infeasible):
        return "impossible", judge.infeasible(answer), ""
    if isinstance(answer, OutOfTime):
        low = judge.cheaper(answer.bound) if not q.ball and np.isfinite(answer.bound) else None
        faults = (
            [] if low is None else [Fault("false bound", f"bound {answer.bound}, but {judge.cost[low]} is possible")]
        )
        return "out of time", faults, ""
    small = isinstance(answer, SolverFailed) and "size-limited license" in str(answer)
    if small or isinstance(answer, (CriterionError, UnsupportedModel, SolverMissing)):
        note = f"{type(answer).__name__}: {str(answer)[:150]}"
        # Drawn from all rows together: asked about this one alone, a model on its threshold may round to the other side.
        if "already there" in str(answer) and not q.world.oracle.met(q.factual, q.want)[0]:
            return "refused", [Fault("not there", str(answer)[:200])], note
        return "refused", [], note
    trace = traceback.extract_tb(answer.__traceback__)[-1]
    where = f"{trace.filename.rsplit('/', 1)[-1]}:{trace.lineno}"
    return "failed", [Fault(f"failed {type(answer).__name__}", f"{where}: {str(answer)[:300]}")], ""


def _read_back(q: Question, answer: Explanation) -> list[Fault]:
    """Write the answers down, read them back, and have the model say it again, of each row alone, as it did before."""
    out, frame = [], answer.frame()
    forms = {"json": Explanation.from_json(answer.to_json()).frame()}
    text = frame.to_csv(index=False)
    types = {c: d for c, d in q.world.data.X.dtypes.items() if not frame[c].isna().any() or d.kind == "f"}
    exact = {} if int(pd.__version__.split(".")[0]) >= 3 else {"float_precision": "round_trip"}
    forms["csv"] = pd.read_csv(io.StringIO(text), dtype=types, **exact)
    try:
        store = io.BytesIO()
        frame.to_parquet(store, engine="pyarrow")
        forms["parquet"] = pd.read_parquet(io.BytesIO(store.getvalue()), engine="pyarrow")
    except ImportError:
        pass
    for name, back in forms.items():
        if not q.world.oracle.met_alone(back, q.want).all():
            out.append(Fault(f"{name} read back", f"{back.to_dict('records')} has lost the outcome"))
    return out


def run_one(seed: int, index: int, world: World, make: Callable[[Question], Any] = explainer_for) -> Result:
    """Ask one question and judge it."""
    try:
        q = draw_question(seed, index, world)
    except Unfit as none:
        return Result(seed, index, "no question", note=str(none))
    except Exception as error:  # noqa: BLE001 - a question that cannot be put is a fault of the battery, and told
        return Result(seed, index, "failed", faults=[{"kind": "not drawn", "text": repr(error)[:300]}])
    result = _asked(seed, index, q, make)
    if q.kind == "units" and result.verdict in ("answered", "impossible"):
        _ask_in_another_unit(seed, index, q, result, make)
    return result


def _ask_in_another_unit(seed: int, index: int, q: Question, result: Result, make: Callable[[Question], Any]) -> None:
    """Ask the same in a world that differs by the unit of one column, and compare."""
    try:
        twin = draw_question(seed, index, draw_world(seed, index // BLOCK, rescale=True))
    except Exception:  # noqa: BLE001 - some steps cannot be fitted in every unit: bins of less than 1e-8 are none
        return
    if not are_alike(q, twin):
        return
    second = _asked(seed, index, twin, make)
    for fault in second.faults:
        result.faults.append({"kind": fault["kind"], "text": "in another unit: " + fault["text"]})
    if not result.faults:
        result.faults += [asdict(f) for f in compared(q, result.answer, twin, second.answer)]


def _asked(seed: int, index: int, q: Question, make: Callable[[Question], Any]) -> Result:
    patience = int(np.ceil(_PATIENCE * q.limit + 5.0))
    before = signal.signal(signal.SIGALRM, _Watch(patience))
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer, seconds, processor = ask(q, make)
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            try:
                verdict, faults, note = judged(q, answer)
            except Exception as error:  # noqa: BLE001 - so is one that cannot be judged
                verdict, faults, note = "failed", [Fault("not judged", repr(error)[:300])], ""
    except _Hung:
        verdict, faults, note = "failed", [Fault("hung", f"no word after {patience} s")], ""
        answer, seconds, processor = None, float(patience), float(patience)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    told = [asdict(f) for f in faults]
    return Result(seed, index, verdict, q.tags, told, seconds, processor, q.limit, note, answer)


def run_block(
    seed: int, block: int, indices: Sequence[int], make: Callable[[Question], Any] = explainer_for
) -> list[Result]:
    """Ask some questions of one block in its world."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            world = draw_world(seed, block)
    except Unfit as none:
        return [Result(seed, i, "no question", note=str(none)) for i in indices]
    except Exception as error:  # noqa: BLE001 - a model that cannot be fitted on so small a table is no question
        note = f"not fitted: {type(error).__name__}: {str(error)[:120]}"
        return [Result(seed, i, "no question", note=note) for i in indices]
    return [run_one(seed, i, world, make) for i in indices]
