"""Trails written again: the events of a proof, moved or left out by a forger, as bytes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ifonly.question.trail import Alternative, Duals, Event, Leaf, Ledger, Prices, alternatives

__all__ = ["write", "written"]


def write(ledger: Ledger, event: Event) -> None:
    """Add an event to a ledger, as the search would have."""
    if isinstance(event, Alternative):
        ledger.data += alternatives({event.name: b"\x00"})[:-1]
    elif isinstance(event, Duals):
        values = np.zeros(event.n_rows)
        values[event.row] = event.dual
        ledger.duals(values)
    elif isinstance(event, Prices):
        ledger.prices(event)
    elif isinstance(event, Leaf):
        ledger.leaf(event.price)
    elif event.levels is not None:
        ledger.levels(event.feature, event.levels, event.second_first)
    elif event.value is not None:
        ledger.cut(event.feature, event.value, event.second_first)
    else:
        ledger.stays(event.feature, event.second_first)


def written(parts: Iterable[Event]) -> bytes:
    """Return the trail of some events."""
    ledger = Ledger()
    for part in parts:
        write(ledger, part)
    return bytes(ledger.data)
