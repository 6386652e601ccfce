"""An explanation as HTML: one self-contained page, or a fragment for notebooks."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from ifonly.result.plots import Lane, lanes
from ifonly.result.text import facts, format_change, format_range, format_value, outcome, remarks
from ifonly.result.values import Counterfactual, Explanation

__all__ = ["PAGE_STYLE", "STYLE", "THEMES", "fragment", "page"]

_WIDTH, _BASE, _HEIGHT, _TALL = 220.0, 31.0, 40.0, 25.0

_DARK = """--ink:#e8eaed;--soft:#a3abb5;--line:#3a4048;--card:#1d2126;--sheet:#14171a;--crowd:#444c56;
--now:#ff9d57;--then:#6cb8f0;--wash:#16293a;--good:#7fd1a0"""
_LIGHT = """--ink:#1c2127;--soft:#5d6670;--line:#e1e5e9;--card:#fff;--sheet:#f5f6f8;--crowd:#d5dae0;
--now:#b84e00;--then:#0068a8;--wash:#e9f3fa;--good:#1b7a45"""

# Notebooks and documentation sites say themselves whether they are dark; elsewhere the reader's system does.
THEMES = f"""
.ifonly{{{_LIGHT}}}
@media (prefers-color-scheme:dark){{.ifonly{{{_DARK}}}}}
[data-jp-theme-light=true] .ifonly,.vscode-light .ifonly,[data-md-color-scheme=default] .ifonly{{{_LIGHT}}}
[data-jp-theme-light=false] .ifonly,.vscode-dark .ifonly,[data-md-color-scheme=slate] .ifonly{{{_DARK}}}
"""
STYLE = """
.ifonly{color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
 max-width:54rem;font-variant-numeric:tabular-nums;text-align:left}
.ifonly *{box-sizing:border-box}
.ifonly .card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.25rem 1.5rem 1rem;
 margin:0 0 1rem}
.ifonly .top{display:flex;flex-wrap:wrap;align-items:baseline;gap:.25rem .75rem;margin:0 0 .9rem}
.ifonly .top h2{font-size:1.25rem;line-height:1.3;font-weight:650;margin:0;padding:0;border:0;color:var(--ink)}
.ifonly .top .rank{color:var(--soft);font-size:.85rem;margin-left:auto}
.ifonly table{border-collapse:collapse;width:100%;margin:0;font-size:inherit;color:inherit;background:none}
.ifonly th,.ifonly td{text-align:left;vertical-align:middle;padding:.55rem 1rem .55rem 0;border:0;
 border-top:1px solid var(--line);background:none;overflow-wrap:break-word;white-space:normal;max-width:none}
.ifonly thead th{border-top:0;padding-top:0;font-size:.8rem;font-weight:500;color:var(--soft)}
.ifonly tbody tr{background:none}
.ifonly tbody th{font-weight:600}
.ifonly td:last-child,.ifonly th:last-child{padding-right:0}
.ifonly .now{color:var(--now)}
.ifonly .then{color:var(--then);font-weight:650}
.ifonly small{display:block;font-size:.8rem;font-weight:400;color:var(--soft);line-height:1.35}
.ifonly table.changes{table-layout:fixed}
.ifonly .where{width:220px}
.ifonly .dot{display:inline-block;width:9px;height:9px;border-radius:50%;border:2px solid var(--now);
 margin-right:.45em}
.ifonly .dot.full{background:var(--then);border-color:var(--then)}
.ifonly svg{display:block;width:220px;height:40px;overflow:visible}
.ifonly .crowd{fill:var(--crowd)}
.ifonly .axis{stroke:var(--soft);stroke-width:1;opacity:.6}
.ifonly .band{stroke:var(--then);stroke-width:9;stroke-linecap:round;opacity:.22}
.ifonly .way{stroke:var(--then);stroke-width:1.8}
.ifonly .head{fill:var(--then)}
.ifonly .ring{fill:var(--card);stroke:var(--now);stroke-width:2}
.ifonly .ring.open{fill:none}
.ifonly .disc{fill:var(--then);stroke:var(--card);stroke-width:1.5}
.ifonly .result{display:flex;flex-wrap:wrap;align-items:center;gap:.4rem .9rem;background:var(--wash);
 border-radius:8px;padding:.6rem .9rem;margin:.35rem 0 .8rem}
.ifonly .result .go{color:var(--soft)}
.ifonly .result svg{margin:0 1rem 0 auto;width:200px;height:20px}
.ifonly svg text{fill:var(--soft);font-size:11px}
.ifonly ul.facts{list-style:none;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;margin:0;padding:0;font-size:.85rem;
 color:var(--soft)}
.ifonly ul.facts li{margin:0}
.ifonly ul.facts .sure{color:var(--good);font-weight:600}
.ifonly details{margin-top:.7rem;font-size:.85rem}
.ifonly summary{cursor:pointer;color:var(--soft);width:max-content}
.ifonly details table{margin-top:.5rem}
.ifonly details th,.ifonly details td{padding:.25rem 1rem .25rem 0}
.ifonly details tbody th{font-weight:400;width:40%}
.ifonly .notes{margin:0 0 1rem;padding:0 0 0 1.1rem;font-size:.85rem;color:var(--soft)}
@media (max-width:640px){.ifonly .where{display:none}.ifonly .result svg{margin-left:1rem}
 .ifonly table.changes{table-layout:auto;font-size:.9em}.ifonly .card{padding:1rem}
 .ifonly th,.ifonly td{padding-right:.6rem}}
"""
PAGE_STYLE = """
body.ifonly-page{margin:0;background:#f5f6f8}
@media (prefers-color-scheme:dark){body.ifonly-page{background:#14171a}}
.ifonly-page .ifonly{margin:0 auto;padding:2.5rem 1.25rem}
.ifonly header{margin:0 0 1.5rem}
.ifonly h1{font-size:2rem;line-height:1.15;letter-spacing:-.02em;font-weight:700;margin:0 0 .4rem}
.ifonly header p{font-size:1.05rem;color:var(--soft);margin:0;text-wrap:pretty}
.ifonly header p b{color:var(--ink);font-weight:600}
.ifonly .record{font-size:.85rem;color:var(--soft);margin:0 0 1.25rem}
.ifonly .record summary{cursor:pointer}
.ifonly .record dd{margin:0 0 .3rem}
.ifonly .record code{overflow-wrap:anywhere}
.ifonly .record pre{max-height:14rem;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;background:var(--card);
border:1px solid var(--line);border-radius:8px;padding:.75rem;font-size:.75rem}
.ifonly footer{font-size:.8rem;color:var(--soft)}
@media print{body.ifonly-page{background:none}.ifonly .card{break-inside:avoid}.ifonly-page .ifonly{padding:0}}
"""


def page(explanation: Explanation) -> str:
    """Return one self-contained HTML page: no scripts, nothing fetched, light or dark as the reader's system is."""
    title = "If only …"
    body = (
        f"<header><h1>{title}</h1><p>{_lead(explanation)}</p></header>"
        f"{_cards(explanation, '')}"
        f"{_record(explanation)}"
        "<footer>Made with ifonly. Every answer was put to the model itself before it was shown.</footer>"
    )
    return whole_page(title, body)


def whole_page(title: str, body: str, style: str = "") -> str:
    """Return a page of its own around a body, with the styles of all pages and its own."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>{THEMES}{STYLE}{style}{PAGE_STYLE}</style></head>"
        f'<body class="ifonly-page"><main class="ifonly">{body}</main></body></html>\n'
    )


def _record(explanation: Explanation) -> str:
    """Return the record, folded away, for whoever wants to check the answer."""
    if explanation.origin is None:
        return ""
    origin = explanation.origin.data()
    prints = "".join(
        f"<dt>SHA-256 of the {escape(name)}</dt><dd><code>{escape(str(value))}</code></dd>"
        for name, value in origin["sha256"].items()
    )
    versions = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    demands = "".join(f"<li>{escape(text)}</li>" for text in (*origin["demands"], *origin["costs"]))
    text = json.dumps(explanation.to_dict(), ensure_ascii=False, allow_nan=False)
    return (
        '<details class="record"><summary>Record: what a stranger needs to check this</summary>'
        f"<p>Asked on {escape(origin['asked_at'])} of {escape(', '.join(origin['model']))}; {escape(versions)}.</p>"
        f"<ul>{demands}</ul><dl>{prints}</dl>"
        "<p>Save the lines below as <code>record.json</code> and run "
        "<code>ifonly verify record.json --model MODEL --data DATA</code>.</p>"
        f"<pre>{escape(text)}</pre></details>"
    )


def fragment(explanation: Explanation) -> str:
    """Return the explanation as a piece of HTML for a notebook; its style touches nothing outside it."""
    return f'<div class="ifonly"><style>{THEMES}{STYLE}</style>{_cards(explanation, "If only …")}</div>'


def _lead(explanation: Explanation) -> str:
    if not len(explanation):
        return f"Wanted: <b>{escape(explanation.want)}</b>."
    best = explanation[0]
    now, then = outcome(explanation, best)
    count = len(best.changes)
    change = f"if {count} of {len(explanation.schema)} features were different" if count else "as things are"
    return (
        f"Wanted: <b>{escape(explanation.want)}</b>. The model says <b>{escape(now)}</b>. "
        f"It would say <b>{escape(then)}</b> {change}."
    )


def _cards(explanation: Explanation, title: str) -> str:
    cards = "".join(_card(explanation, i, title) for i in range(len(explanation)))
    effort = [f"{len(explanation)} answers in {_effort(explanation)}"] if len(explanation) > 1 else []
    notes = [*effort, *remarks(explanation)]
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (cards or '<section class="card">No counterfactual was found.</section>') + (
        f'<ul class="notes">{items}</ul>' if items else ""
    )


def _card(explanation: Explanation, which: int, title: str) -> str:
    """Return one answer; without a title, it is headed by its rank where there are several."""
    answer = explanation[which]
    rank = f"Answer {which + 1} of {len(explanation)}" if len(explanation) > 1 else ""
    heading = title or rank if answer.changes else "Nothing has to change"
    aside = f'<span class="rank">{rank}</span>' if rank and heading != rank else ""
    top = f'<div class="top"><h2>{heading}</h2>{aside}</div>' if heading else ""
    return (
        f'<section class="card">{top}{_table(explanation, which)}{_result(explanation, answer)}'
        f"{_facts(explanation, answer)}{_whole_row(explanation, answer)}</section>"
    )


def _table(explanation: Explanation, which: int) -> str:
    answer = explanation[which]
    if not answer.changes:
        return ""
    drawn = lanes(explanation, which)
    crowd = "Among the training rows" if any(lane.bars for lane in drawn) else "In its range"
    rows = [
        f'<tr><th scope="row">{escape(lane.label)}</th><td class="now">{escape(lane.before)}</td>'
        f'<td class="then">{escape(lane.after)}{_holds(explanation, answer, change.feature)}</td>'
        f'<td class="where">{_picture(lane)}</td></tr>'
        for lane, change in zip(drawn, answer.changes, strict=True)
    ]
    return (
        '<table class="changes"><thead><tr><th scope="col">Feature</th>'
        '<th scope="col"><i class="dot"></i>It is now</th><th scope="col"><i class="dot full"></i>It would be</th>'
        f'<th scope="col" class="where">{crowd}</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _holds(explanation: Explanation, answer: Counterfactual, name: str) -> str:
    if name not in answer.ranges:
        return ""
    low, high = format_range(*answer.ranges[name], explanation.schema[name])
    return f"<small>holds between {escape(low)} and {escape(high)}</small>"


def _picture(lane: Lane) -> str:
    """Draw a lane: bars for the training rows, a ring where it is now, a disc where it would be."""
    words = f"{lane.label}: from {lane.before} to {lane.after}" + (f", {lane.caption}" if lane.caption else "")
    bars = "".join(
        f'<rect class="crowd" x="{_n(_WIDTH * left)}" y="{_n(_BASE - _TALL * height)}" '
        f'width="{_n(_WIDTH * (right - left))}" height="{_n(_TALL * height)}"/>'
        for left, right, height in lane.bars
    )
    ticks = "".join(_line("axis", x, x, _BASE - 2, _BASE + 2) for x in lane.stops)
    band = "" if lane.band is None else _line("band", *lane.band, _BASE, _BASE)
    return (
        f'<svg viewBox="0 0 {_n(_WIDTH)} {_n(_HEIGHT)}" role="img" aria-label="{escape(words)}">'
        f"{bars}{_line('axis', 0, 1, _BASE, _BASE)}{ticks}{band}{_travel(lane.start, lane.end, _BASE)}</svg>"
        f'<small aria-hidden="true">{escape(lane.caption)}</small>'
    )


def _travel(start: float | None, end: float, y: float) -> str:
    disc = f'<circle class="disc" cx="{_n(_WIDTH * end)}" cy="{_n(y)}" r="5.5"/>'
    if start is None:
        return disc
    x, to = _WIDTH * start, _WIDTH * end
    if abs(to - x) < 9:  # too short a step for an arrow: the ring goes around the disc
        return f'{disc}<circle class="ring open" cx="{_n(x)}" cy="{_n(y)}" r="8"/>'
    side = 1 if to > x else -1
    tip = to - 5 * side
    head = f"M{_n(tip)} {_n(y)}l{_n(-6.0 * side)} -3.5v7z"
    return (
        f"{_line('way', start, (tip - 5 * side) / _WIDTH, y, y)}"
        f'<path class="head" d="{head}"/><circle class="ring" cx="{_n(x)}" cy="{_n(y)}" r="4.5"/>{disc}'
    )


def _line(kind: str, left: float, right: float, top: float, bottom: float) -> str:
    return f'<line class="{kind}" x1="{_n(_WIDTH * left)}" y1="{_n(top)}" x2="{_n(_WIDTH * right)}" y2="{_n(bottom)}"/>'


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _result(explanation: Explanation, answer: Counterfactual) -> str:
    now, then = outcome(explanation, answer)
    return (
        '<div class="result"><span class="go">then</span>'
        f'<span class="now">{escape(now)}</span><span class="go" aria-label="becomes">→</span>'
        f'<span class="then">{escape(then)}</span>{_scale(explanation, answer)}</div>'
    )


def _scale(explanation: Explanation, answer: Counterfactual) -> str:
    """Draw both probabilities on the way from 0 to 1; other scores have no ends to draw."""
    if explanation.score_name != "probability" or explanation.score is None or answer.score is None:
        return ""
    now, then = outcome(explanation, answer)
    words = f"probability of what is wanted, from 0 to 1: {now} becomes {then}"
    track = _line("axis", 0, 1, 11, 11) + _line("axis", 0, 0, 7, 15) + _line("axis", 1, 1, 7, 15)
    ends = f'<text x="-7" y="15" text-anchor="end">0</text><text x="{_n(_WIDTH + 7)}" y="15">1</text>'
    return (
        f'<svg viewBox="0 0 {_n(_WIDTH)} 22" role="img" aria-label="{escape(words)}">'
        f"{track}{ends}{_travel(explanation.score, answer.score, 11)}</svg>"
    )


def _effort(explanation: Explanation) -> str:
    return f"{explanation.seconds:.2f} s ({explanation.solver})"


def _facts(explanation: Explanation, answer: Counterfactual) -> str:
    measured = [f"{name.replace('_', ' ')} {format_value(value)}" for name, value in answer.measures.items()]
    known = [*facts(explanation, answer), "confirmed by the model", *measured]
    if len(explanation) == 1:
        known.append(_effort(explanation))
    sure = {"confirmed by the model"} | ({"proven optimal"} if answer.certificate.proven else set())
    items = "".join(
        f'<li class="sure">✓ {escape(fact)}</li>' if fact in sure else f"<li>{escape(fact)}</li>" for fact in known
    )
    return f'<ul class="facts">{items}</ul>'


def _whole_row(explanation: Explanation, answer: Counterfactual) -> str:
    changed = {change.feature: change for change in answer.changes}
    rows = []
    for feature in explanation.schema.features:
        label = escape(explanation.schema.label(feature.name))
        before: Any = explanation.factual[feature.name].iloc[0]
        if feature.name in changed:
            texts = format_change(changed[feature.name].before, changed[feature.name].after, feature)
            cells = f'<td class="now">{escape(texts[0])}</td><td class="then">{escape(texts[1])}</td>'
        else:
            cells = f'<td colspan="2">{escape(format_value(before, feature))}</td>'
        rows.append(f'<tr><th scope="row">{label}</th>{cells}</tr>')
    return (
        "<details><summary>The whole row</summary><table><thead><tr>"
        '<th scope="col">Feature</th><th scope="col">It is now</th><th scope="col">It would be</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></details>"
    )
