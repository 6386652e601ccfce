"""Many answers as HTML: how rows ended, what would change most often, and a line for each row."""

from __future__ import annotations

from html import escape

from ifonly.result.html import STYLE, THEMES, whole_page
from ifonly.result.many import Explanations, Outcome
from ifonly.result.text import format_change, outcome

__all__ = ["batch_fragment", "batch_page"]

_MOST_ROWS = 20  # of a batch that a notebook shows

_BATCH_STYLE = """
.ifonly .batch h2{font-size:1rem;margin:1.1rem 0 .4rem}
.ifonly .batch .ends{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;list-style:none;margin:0;padding:0;color:var(--soft)}
.ifonly .batch .ends b{color:var(--ink)}
.ifonly .batch .wide{overflow-x:auto}
.ifonly .batch table{border-collapse:collapse;font-size:.85rem;width:100%}
.ifonly .batch th{text-align:left;font-weight:600}
.ifonly .batch th,.ifonly .batch td{padding:.25rem .8rem .25rem 0;vertical-align:top;border-bottom:1px solid var(--line)}
.ifonly .batch .bar{width:50%}
.ifonly .batch .bar span{display:block;height:.6rem;margin-top:.25rem;background:var(--then);border-radius:3px;min-width:2px}
"""


def batch_fragment(explanations: Explanations) -> str:
    """Return a batch as a piece of HTML for a notebook: how rows ended, what changed most often, and the first rows."""
    return f'<div class="ifonly"><style>{THEMES}{STYLE}{_BATCH_STYLE}</style>{_batch(explanations, _MOST_ROWS)}</div>'


def batch_page(explanations: Explanations) -> str:
    """Return one self-contained HTML page of all rows."""
    title = f"If only … · {len(explanations)} rows"
    body = f"<header><h1>{title}</h1></header>{_batch(explanations, len(explanations))}"
    return whole_page(title, body, _BATCH_STYLE)


def _batch(explanations: Explanations, most: int) -> str:
    """Return the summary of a batch, what its answers change, and a line for each of the first rows."""
    counts = explanations.status().value_counts()
    ends = "".join(
        f"<li><b>{count}</b> {escape(str(status).replace('_', ' '))}</li>" for status, count in counts.items()
    )
    table = explanations.importance()
    table = table[table.times > 0]
    bars = "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td class="bar">'
        f'<span style="width:{100 * float(share):.1f}%"></span></td>'
        f"<td>{int(times)}</td></tr>"
        for name, times, share in zip(table.feature, table.times, table.share, strict=True)
    )
    shown = explanations[:most]
    rows = "".join(_batch_row(outcome) for outcome in shown)
    more = f"<p>... and {len(explanations) - len(shown)} more rows</p>" if len(explanations) > len(shown) else ""
    often = f"<h2>What would change, and in how many rows</h2><table>{bars}</table>" if bars else ""
    return (
        f'<section class="card batch"><ul class="ends">{ends}</ul>{often}<h2>Rows</h2><div class="wide"><table><thead><tr>'
        '<th scope="col">row</th><th scope="col">status</th><th scope="col">now</th><th scope="col">would be</th>'
        f'<th scope="col">if only</th></tr></thead><tbody>{rows}</tbody></table></div>{more}</section>'
    )


def _batch_row(result: Outcome) -> str:
    head = f'<th scope="row">{escape(str(result.index))}</th><td>{escape(result.status.replace("_", " "))}</td>'
    explanation = result.explanation
    if explanation is None or not len(explanation):
        return f'<tr>{head}<td colspan="3">{escape(result.reason())}</td></tr>'
    best = explanation[0]
    now, then = outcome(explanation, best)
    schema = explanation.schema
    changes = "; ".join(
        f"{schema.label(c.feature)}: {' → '.join(format_change(c.before, c.after, schema[c.feature]))}"
        for c in best.changes
    )
    return f"<tr>{head}<td>{escape(now)}</td><td>{escape(then)}</td><td>{escape(changes)}</td></tr>"
