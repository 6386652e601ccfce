"""The page stands alone, escapes everything, and says the same as the text."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ifonly.data.schema import Categorical, Integer, Numeric, Schema
from ifonly.result.html import fragment, page
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation

EVIL = "<script>alert('x')</script>\"&"
FEATURES = (
    Integer("duration", 4, 72),
    Numeric("amount", 250, 20000, label=EVIL),
    Categorical("savings", ("<100", ">=100 & more", EVIL)),
)
FACTUAL = pd.DataFrame({"duration": [24], "amount": [1371.26], "savings": ["<100"]})
TRAINING = pd.DataFrame(
    {
        "duration": [6, 12, 12, 24, 24, 48],
        "amount": [300.0, 900.0, 1200.0, 2500.0, 7000.0, 9000.0],
        "savings": ["<100", "<100", "<100", ">=100 & more", EVIL, EVIL],
    }
)
PROVEN = Certificate(0.31, 0.31, 0.0, proven=True)


def answer(*changes: Change, **parts: Any) -> Counterfactual:
    values = {change.feature: change.after for change in changes}
    return Counterfactual(
        FACTUAL.assign(**values),
        changes,
        **{"prediction": "good", "score": 0.52, "distance": 0.31, "certificate": PROVEN} | parts,
    )


def explanation(*answers: Counterfactual, **parts: Any) -> Explanation:
    return Explanation(
        answers,
        FACTUAL,
        **{
            "prediction": "bad",
            "score": 0.38,
            "want": "good",
            "schema": Schema(FEATURES),
            "status": "optimal",
            "seconds": 0.031,
            "reference": TRAINING,
        }
        | parts,
    )


SHORTER = Change("duration", 24, 18)
LESS = Change("amount", 1371.26, 1283.518765)
SAVED = Change("savings", "<100", ">=100 & more")


class Reader(HTMLParser):
    """Collects the elements and the words, and fails on a tag that closes another."""

    VOID = frozenset({"meta", "rect", "line", "circle", "path"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def count(self, tag: str, **attributes: str) -> int:
        return sum(
            element == tag and all(have.get(k.rstrip("_")) == v for k, v in attributes.items())
            for element, have in self.elements
        )


@pytest.fixture
def rich() -> Explanation:
    robust = answer(SHORTER, LESS, SAVED, ranges={"duration": (11.0, 19.0)}, measures={"hull_distance": 0.02})
    loose = replace(answer(SAVED), certificate=Certificate.of(0.31, 0.3))
    return explanation(robust, loose, notes=(EVIL,))


def test_page_says_what_the_text_says() -> None:
    read = Reader(page(explanation(answer(SHORTER, SAVED))))
    for words in ("duration", "24", "18", "<100", ">=100 & more", "bad (0.38)", "good (0.52)"):
        assert words in read.words
    for words in (
        "2 of 3 features",
        "distance 0.31",
        "✓ proven optimal",
        "✓ confirmed by the model",
        "0.03 s (HiGHS)",
    ):
        assert words in read.words
    assert "if 2 of 3 features were different" in read.text


def test_page_stands_alone(rich: Explanation) -> None:
    text = page(rich)
    assert text.startswith("<!DOCTYPE html>")
    read = Reader(text)
    assert read.count("html", lang="en") == 1
    assert not {"script", "link", "img", "iframe", "a"} & {tag for tag, _ in read.elements}
    assert not re.search(r"https?:|url\(|@import|src=|href=", text)
    assert "prefers-color-scheme:dark" in text


@pytest.mark.parametrize("face", [page, fragment])
def test_everything_is_escaped(rich: Explanation, face: Any) -> None:
    evil = replace(rich, prediction=EVIL, want=EVIL, solver=EVIL)
    text = face(evil)
    assert "<script" not in text
    assert EVIL in Reader(text).text
    assert not any(name.startswith("on") for _, attributes in Reader(text).elements for name in attributes)


def test_tables_can_be_read_aloud(rich: Explanation) -> None:
    read = Reader(page(rich))
    assert read.count("th", scope="row") == 3 + 1 + 2 * 3  # the changes of both answers, and the whole row twice
    pictures = [attributes for tag, attributes in read.elements if tag == "svg"]
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in pictures)
    # Of 6, 12, 12, 24, 24 and 48, three lie below 18; below 24 three, and two equal it, which count half.
    assert "duration: from 24 to 18, percentile 67 → 50" in {a["aria-label"] for a in pictures}
    assert "savings: from <100 to >=100 & more, 50% → 17% of the rows" in {a["aria-label"] for a in pictures}


def test_several_answers(rich: Explanation) -> None:
    read = Reader(page(rich))
    assert [word for word in read.words if word.startswith("Answer")] == ["Answer 1 of 2", "Answer 2 of 2"]
    assert "holds between 11 and 19" in read.words
    assert "hull distance 0.02" in read.words
    assert "within 3.3% of the best, proven" in read.words
    assert "2 answers in 0.03 s (HiGHS)" in read.words
    assert any(word.startswith("long numbers are rounded") for word in read.words)


def test_fragment_touches_nothing_else(rich: Explanation) -> None:
    text = fragment(rich)
    style = re.sub(r"@media[^{]*", "", text[text.index("<style>") + 7 : text.index("</style>")])
    selectors = re.findall(r"([^{}]+)\{", style)
    assert selectors
    assert all(".ifonly" in part for selector in selectors for part in selector.split(",") if part.strip())
    assert not re.search(r"\bid=", text)
    assert "If only …" in Reader(text).words
    assert rich._repr_html_() == text


def test_bars_follow_the_training_rows() -> None:
    read = Reader(fragment(explanation(answer(SAVED))))
    heights = [float(a["height"] or 0) for tag, a in read.elements if tag == "rect"]
    assert heights == pytest.approx([25.0, 25.0 / 3, 25.0 * 2 / 3], abs=0.06)
    assert "Among the training rows" in read.words


def test_without_training_rows_the_range_is_drawn() -> None:
    read = Reader(fragment(explanation(answer(SHORTER, SAVED), reference=None)))
    assert "In its range" in read.words
    assert read.count("rect") == 0
    assert read.count("circle", class_="disc") == 3


def test_a_short_step_has_no_arrow_and_a_missing_value_no_ring() -> None:
    near = Reader(fragment(explanation(answer(LESS), score=None)))
    assert near.count("path") == 0
    assert near.count("circle", class_="ring open") == 1
    absent = Reader(fragment(explanation(answer(Change("amount", float("nan"), 900.0)), score=None)))
    assert absent.count("circle", class_="disc") == 1
    assert absent.count("circle", class_="ring") == 0
    assert "missing" in absent.words


def test_only_probabilities_have_a_scale() -> None:
    one = explanation(answer(SAVED), reference=None)
    assert Reader(fragment(one)).count("svg") == 2
    assert Reader(fragment(replace(one, score_name="score"))).count("svg") == 1


def test_nothing_to_change_and_nothing_found() -> None:
    still = Reader(page(explanation(answer())))
    assert "Nothing has to change" in still.words
    assert "as things are" in still.text
    several = Reader(fragment(explanation(answer(), answer(SAVED))))
    assert "Answer 1 of 2" in several.words
    assert "No counterfactual was found." in Reader(page(explanation())).words


def test_page_is_written(tmp_path: Path, rich: Explanation) -> None:
    text = rich.to_html(tmp_path / "why.html")
    assert (tmp_path / "why.html").read_text(encoding="utf-8") == text == page(rich)
