"""The rows to pick from: filtered, searched, sorted and cut into pages on the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt
import pandas as pd

from ifonly.studio.library import Numeric
from ifonly.studio.subject import Subject
from ifonly.studio.told import Told

__all__ = ["PAGE", "Page", "Search", "find", "read_search"]

PAGE = 25


@dataclass(frozen=True)
class Search:
    """Search for rows: text, filters, order and page."""

    text: str = ""
    outcome: int | None = None
    score: tuple[float | None, float | None] = (None, None)
    numbers: Mapping[int, tuple[float | None, float | None]] = field(default_factory=dict)
    levels: Mapping[int, int] = field(default_factory=dict)
    sort: str = ""
    down: bool = False
    page: int = 0

    def query(self, subject: Subject, first: str, **changed: Any) -> str:
        """Return it as the query of an address, with some things changed."""
        named: dict[str, Any] = {"q": self.text, "o": self.outcome, "pmin": self.score[0], "pmax": self.score[1]}
        for j, (low, high) in self.numbers.items():
            named |= {f"a{j}": low, f"b{j}": high}
        named |= {f"l{j}": level for j, level in self.levels.items()}
        named |= {"sort": self.sort, "down": 1 if self.down else None, "page": self.page or None} | changed
        pairs = [] if subject.key == first else [("s", subject.key)]
        return urlencode([*pairs, *((k, v) for k, v in named.items() if v is not None and v != "")])

    @property
    def filters(self) -> int:
        """Number of filters set beyond the search text."""
        return len(self.numbers) + len(self.levels)


@dataclass(frozen=True)
class Page:
    """One page of what was found: positions of rows, and how many there are in all."""

    rows: tuple[int, ...]
    total: int
    number: int
    pages: int


def read_search(given: Sequence[tuple[str, str]], subject: Subject) -> Search:
    """Return what a query looks for; what does not make sense is an error that says so."""
    one = {name: value.strip() for name, value in given if value.strip()}
    numbers, levels = {}, {}
    for j, feature in enumerate(subject.schema.features):
        if isinstance(feature, Numeric):
            ends = _number(one, f"a{j}"), _number(one, f"b{j}")
            if ends != (None, None):
                numbers[j] = ends
        elif f"l{j}" in one:
            levels[j] = _index(one[f"l{j}"], len(feature.levels))
    sort = one.get("sort", "")
    known = {"row", "o", "p", *(f"v{j}" for j in range(len(subject.schema)))}
    return Search(
        one.get("q", "")[:200],
        _index(one["o"], len(subject.classes)) if "o" in one else None,
        (_number(one, "pmin"), _number(one, "pmax")),
        numbers,
        levels,
        sort if sort in known else "",
        one.get("down") == "1",
        _index(one.get("page", "0"), 10**7),
    )


def _number(one: dict[str, str], name: str) -> float | None:
    if name not in one:
        return None
    try:
        value = float(one[name].replace(",", "."))
    except ValueError:
        raise Told("slip.number", text=one[name]) from None
    if not np.isfinite(value):
        raise Told("slip.finite", text=one[name])
    return value


def _index(text: str, end: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) >= end:
        raise Told("slip.choice", text=text)
    return int(text)


def find(search: Search, subject: Subject) -> Page:
    """Return the page of rows that a search finds."""
    mask = np.ones(len(subject.data), dtype=np.bool_)
    outcomes, scores = subject.known()
    if search.outcome is not None:
        mask &= np.asarray(outcomes == subject.classes[search.outcome], dtype=np.bool_)
    if scores.shape[1]:
        mask &= _between(wanted_score(subject), search.score)
    features = subject.schema.features
    for j, ends in search.numbers.items():
        mask &= _between(subject.data[features[j].name].to_numpy(dtype=np.float64, na_value=np.nan), ends)
    for j, level in search.levels.items():
        mask &= (subject.data[features[j].name] == features[j].levels[level]).to_numpy()  # type: ignore[union-attr]
    if search.text:
        mask &= _containing(subject, search.text)
    found = np.flatnonzero(mask)
    found = found[_sorted(search, subject, found)]
    pages = max(1, -(-len(found) // PAGE))
    number = min(search.page, pages - 1)
    return Page(tuple(int(i) for i in found[number * PAGE : (number + 1) * PAGE]), len(found), number, pages)


def wanted_score(subject: Subject) -> npt.NDArray[np.float64]:
    """Return each row's score of the outcome that people wish for (of a regression: its prediction)."""
    _, scores = subject.known()
    return scores[:, score_column(subject)]


def score_column(subject: Subject) -> int:
    """Return which class the one score in the table belongs to: the wished-for one, or the last."""
    if subject.wanted in subject.classes:
        return subject.classes.index(subject.wanted)
    return max(len(subject.classes) - 1, 0)


def _between(values: npt.NDArray[np.float64], ends: tuple[float | None, float | None]) -> npt.NDArray[np.bool_]:
    good = np.ones(len(values), dtype=np.bool_)
    if ends[0] is not None:
        good &= values >= ends[0]
    if ends[1] is not None:
        good &= values <= ends[1]
    return good


def _containing(subject: Subject, text: str) -> npt.NDArray[np.bool_]:
    """Say which rows have a cell that contains the text, or are the row of that number."""
    good = np.zeros(len(subject.data), dtype=np.bool_)
    needle = text.casefold()
    for feature in subject.schema.features:
        column = subject.data[feature.name]
        if isinstance(feature, Numeric):
            # Numbers are found by their beginning, as a person types them.
            texts = column.astype(str) if needle[:1].isdigit() or needle[:1] == "-" else None
            if texts is not None:
                good |= texts.str.startswith(needle).to_numpy(dtype=np.bool_)
        else:
            hits = [level for level in feature.levels if needle in str(level).casefold()]
            good |= column.isin(hits).to_numpy()
    if text.isascii() and text.isdigit() and len(text) < 9 and int(text) < len(good):
        good[int(text)] = True
    return good


def _sorted(search: Search, subject: Subject, found: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    keys: Any
    if not search.sort or (search.sort == "row" and not search.down):
        return np.arange(len(found))
    if search.sort == "row":
        keys = found
    elif search.sort == "o":
        keys = pd.Series(subject.known()[0][found]).astype(str)
    elif search.sort == "p":
        keys = wanted_score(subject)[found] if subject.known()[1].shape[1] else found
    else:
        keys = subject.data[subject.schema.names[int(search.sort[1:])]].iloc[found]
    series = pd.Series(np.asarray(keys) if not isinstance(keys, pd.Series) else keys).reset_index(drop=True)
    return series.sort_values(ascending=not search.down, kind="stable").index.to_numpy()
