"""The report: questions asked, kinds covered, and every one that was wrong, failed, late or unproven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.battery.run import Result

__all__ = ["lines", "page", "wrong"]

_HEADS = ("kind", "family", "target", "norm", "scale", "criteria", "diversity", "solver", "units", "columns", "special")
_MANY = ("criteria", "units", "columns", "special")


def wrong(results: Iterable[Result]) -> list[Result]:
    """Return the questions that were answered falsely."""
    return [r for r in results if r.faults and r.verdict != "failed"]


def failed(results: Iterable[Result]) -> list[Result]:
    """Return the questions that ended in an error that is no answer."""
    return [r for r in results if r.verdict == "failed"]


def covered(results: Sequence[Result]) -> dict[str, Counter[str]]:
    """Return, per kind of thing, how many questions had it; a question with several demands counts for each."""
    out: dict[str, Counter[str]] = {head: Counter() for head in _HEADS}
    for r in results:
        for head in _HEADS:
            value = r.tags.get(head, "")
            parts = value.split("|") if head in _MANY else [value]
            out[head].update(p for p in parts if p)
    return out


def asked(results: Iterable[Result]) -> list[Result]:
    """Return the draws that made a question."""
    return [r for r in results if r.verdict != "no question"]


def lines(results: Sequence[Result], seconds: float) -> list[str]:
    """Return the report as text."""
    real = asked(results)
    seeds = sorted({r.seed for r in results})
    verdicts = Counter(r.verdict for r in results)
    late = [r for r in real if r.late]
    out = [
        (
            f"{len(real)} questions asked in {seconds:.0f} s, seed {', '.join(map(str, seeds))} "
            f"({verdicts['no question']} draws made no question)"
        ),
        "  ".join(f"{name} {n}" for name, n in verdicts.most_common()),
        (
            f"wrong {len(wrong(real))}  failed {len(failed(real))}  late {len(late)} "
            f"(by processor time {sum(r.late_by_processor for r in real)})  unproven {verdicts['unproven']}"
        ),
    ]
    for head, counts in covered(real).items():
        out.append(f"{head}: " + ", ".join(f"{name} {n}" for name, n in counts.most_common()))
    notes = Counter(r.note for r in results if r.note)
    out += [f"note: {n} x {note}" for note, n in notes.most_common(12)]
    faults = Counter(f["kind"] for r in real for f in r.faults)
    out += [f"fault: {n} x {kind}" for kind, n in faults.most_common()]
    out += [told(r) for r in (*wrong(real), *failed(real))]
    out += [f"LATE {r.name}  {r.seconds:.2f} s (processor {r.processor:.2f}) of {r.limit:g}" for r in late]
    return out


def told(r: Result) -> str:
    """Return one question that went wrong in one line."""
    what = "; ".join(f"{f['kind']}: {f['text']}" for f in r.faults)
    who = " ".join(r.tags.get(k, "") for k in ("family", "kind", "norm", "solver", "special"))
    return f"{'FAILED' if r.verdict == 'failed' else 'WRONG'} --replay {r.name}  [{who}]  {what[:400]}"


def page(results: Sequence[Result], path: Path, seconds: float) -> None:
    """Write the report as a section in Markdown."""
    real = asked(results)
    seeds = ", ".join(str(s) for s in sorted({r.seed for r in results}))
    verdicts = Counter(r.verdict for r in real)
    text = [
        "## The battery",
        "",
        (
            f"`python -m benchmarks.battery --questions {len(results)} --seed {seeds}`: {len(real):,} random questions in "
            f"small worlds, each judged by enumeration, in {seconds / 60:.0f} minutes."
        ),
        "",
        "| questions | answered and proven | impossible | unproven | out of time | refused | wrong | failed | late |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        (
            f"| {len(real):,} | {verdicts['answered']:,} | {verdicts['impossible']:,} | {verdicts['unproven']:,} | "
            f"{verdicts['out of time']:,} | {verdicts['refused']:,} | {len(wrong(real))} | {len(failed(real))} | "
            f"{sum(r.late for r in real)} |"
        ),
        "",
        "| asked of | questions |",
        "|---|---|",
    ]
    for head, counts in covered(real).items():
        text.append(f"| {head} | " + ", ".join(f"{name} {n:,}" for name, n in counts.most_common()) + " |")
    for r in (*wrong(real), *failed(real)):
        text += ["", f"- `{told(r)}`"]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
