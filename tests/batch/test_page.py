"""The page "Many rows" lists every column and every status that a batch writes."""

from __future__ import annotations

import re
from pathlib import Path

from ifonly.batch.records import answer_columns

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "many-rows.md").read_text(encoding="utf-8")


def test_the_page_lists_the_columns_as_they_are() -> None:
    table = PAGE.partition("| column | type | meaning |")[2].partition("\n\n")[0]
    found = re.findall(r"^\| `(\w+)` \| .*? \| (.*) \|$", table, re.MULTILINE)
    assert found == [(c.name, c.meaning.replace("|", "\\|")) for c in answer_columns("text")]


def test_the_page_explains_every_status() -> None:
    (told,) = [c.meaning for c in answer_columns("text") if c.name == "status"]
    table = PAGE.partition("| status | meaning |")[2].partition("\n\n")[0]
    assert set(told.split(", ")) == set(re.findall(r"`(\w+)`(?=[^|]*\|[^|]*\|$|,)", table, re.MULTILINE)) - {
        "gap",
        "conflict",
        "relaxations",
        "message",
    }
