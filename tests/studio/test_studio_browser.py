"""The studio in a real browser: everything a person can do, what goes wrong, on a phone, in the dark, with axe.

Run with ``-m browser``. It drives the Chromium that the machine has (``CHROMIUM`` names another one).
"""

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from ifonly import Explainer, Explanation
from ifonly.studio.demo import demo_subjects
from ifonly.studio.server import Address, Studio
from ifonly.studio.subject import Subject
from studio_world import classifier, loans, regression

playwright = pytest.importorskip("playwright.sync_api")
axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright")
pytestmark = pytest.mark.browser

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}


def hard() -> Subject:
    """A forest whose proof takes far longer than anybody waits."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 60)), columns=[f"x{i}" for i in range(60)])
    y = np.where(np.sin(X.sum(axis=1)) + (X**2).sum(axis=1) / 60 > 1.2, "yes", "no")
    model = RandomForestClassifier(300, random_state=0).fit(X, y)
    return Subject("hard", "A hard forest", Explainer(model, X), X, "yes", int(model.predict_proba(X)[:, 0].argmax()))


@pytest.fixture(scope="module")
def subjects() -> tuple[Subject, ...]:
    return (*demo_subjects(), hard(), classifier(), regression(), three())


def three() -> Subject:
    """A model of three outcomes."""
    X = loans()[["income", "debts"]]
    y = np.array(["poor", "fair", "good"])[np.digitize(X.income - 5 * X.debts, [10, 35])]
    return Subject("three", "Three outcomes", Explainer(DecisionTreeClassifier(max_depth=4).fit(X, y), X), X)


@pytest.fixture(scope="module")
def studio(subjects: tuple[Subject, ...]) -> Iterator[Studio]:
    with Studio(subjects) as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    assert CHROMIUM is not None, "no Chromium on this machine: apt-get install chromium, or set CHROMIUM"
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """One person's browser window, and everything that went wrong or left the machine in it."""

    def __init__(self, chromium: Any, studio: Studio, **options: Any) -> None:
        self.studio = studio
        self.context = chromium.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
        self.trouble: list[str] = []
        self.asked: set[str] = set()
        self.page = self.tab()

    def tab(self) -> Any:
        page = self.context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda m: self.trouble.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: self.trouble.append(str(e)))
        page.on("dialog", lambda d: (self.trouble.append(f"dialog {d.message}"), d.dismiss()))
        page.on("request", lambda r: self.asked.add(r.url))
        return page

    def open(self, path: str = "", page: Any = None) -> Any:
        page = page or self.page
        page.goto(self.studio.base + path)
        return page

    def answer(self, page: Any = None) -> str:
        heading = (page or self.page).locator("[data-watch] [data-focus]")
        heading.wait_for()
        return str((page or self.page).locator("[data-watch]").inner_text())


@pytest.fixture
def visit(chromium: Any, studio: Studio) -> Iterator[Visit]:
    one = Visit(chromium, studio)
    one.page.goto(studio.link())
    one.page.wait_for_selector("table")
    yield one
    assert one.trouble == []
    assert all(url.startswith((studio.base, "data:")) for url in one.asked)
    one.context.close()


# -- 1, opening -------------------------------------------------------------------------------------------------------
def test_the_token_leaves_the_address_and_the_cookie_is_out_of_reach(visit: Visit) -> None:
    assert visit.page.url == visit.studio.base
    assert visit.page.evaluate("document.cookie") == ""
    cookies = [c for c in visit.context.cookies() if c["name"].startswith("ifonly")]
    assert [c["httpOnly"] and c["sameSite"] == "Strict" for c in cookies] == [True]


def test_a_used_link_opens_nothing_elsewhere(chromium: Any, studio: Studio) -> None:
    link = studio.link()
    first, second = Visit(chromium, studio), Visit(chromium, studio)
    first.page.goto(link)
    first.page.wait_for_selector("table")
    second.page.goto(link)
    assert "does not know you" in second.page.inner_text("body")
    first.context.close()
    second.context.close()


# -- 2, finding a row -------------------------------------------------------------------------------------------------
def test_search_filters_as_one_types_and_keeps_the_focus(visit: Visit) -> None:
    page = visit.page
    page.fill("[name=q]", "radio")
    page.locator(".count", has_text=re.compile(r"^280 ")).wait_for()
    page.wait_for_url("**/?q=radio")
    assert page.evaluate("document.activeElement.name") == "q"
    page.click("summary >> text=Filter by feature")
    page.fill("[name=a1]", "40")
    page.locator(".count", has_text=re.compile(r"^(?!280 )")).wait_for()
    page.click("tbody tr:first-child a")
    page.wait_for_url("**/row?row=*")


def test_what_is_typed_before_the_page_listens_is_searched_for(visit: Visit) -> None:
    page, held = visit.page, []

    def hold(route: Any) -> None:
        held.append(route)

    page.route("**/studio.js", hold)
    page.goto(visit.studio.base, wait_until="commit")
    page.fill("[name=q]", "radio")
    held[0].continue_()
    page.locator(".count", has_text=re.compile(r"^280 ")).wait_for()


def test_type_a_row_in_and_paste_one(visit: Visit) -> None:
    page = visit.open()
    page.click("text=Type one in")
    page.locator("h1", has_text="A row of your own").wait_for()
    visit.open("?s=yes")
    page.click("summary >> text=Paste a row")
    page.fill("textarea", "33,1.25,nurse,mid")
    page.click("text=Open this row")
    playwright.expect(page.locator("[name=v0]")).to_have_value("33")


# -- 3, the row -------------------------------------------------------------------------------------------------------
def test_the_prediction_follows_every_edit(visit: Visit, subjects: tuple[Subject, ...]) -> None:
    page, subject = visit.open("row?row=11"), subjects[0]
    for duration in (20, 60, 12):
        page.fill("[name=v1]", str(duration))
        row = subject.data.iloc[[11]].assign(duration=duration)
        expected = f"{subject.explainer.model.estimator.predict_proba(row)[0, 1]:.2f}"
        page.locator("#now .scores div", has_text=f"good{expected}").wait_for()
        assert page.input_value("[data-j='1'] [data-slider]") == str(duration)
    page.focus("[data-j='1'] [data-slider]")
    page.keyboard.press("ArrowRight")
    assert page.input_value("[name=v1]") == "13"


# -- 4, what may change -----------------------------------------------------------------------------------------------
def test_limits_are_in_the_address_and_undo_takes_them_back(visit: Visit) -> None:
    page = visit.open("row?row=11")
    page.select_option("[name=m1]", "down")
    page.wait_for_url("**/row?row=11&m1=down*")
    page.click("[data-j='4'] summary")
    page.focus("[name=hi4]")
    for _ in range(3):
        page.keyboard.press("PageDown")
    page.keyboard.press("Tab")
    high = page.inner_text("[data-j='4'] [data-high]")
    page.wait_for_url(re.compile(rf"hi4={high}\b"))
    # Going back loads the page anew: to ask for a load while that one is under way would abort one of the two.
    with page.expect_event("load"):
        page.click("text=Undo")
    page.wait_for_url(lambda url: int((re.search(r"hi4=(\d+)", url) or [0, 99999])[1]) > int(high))
    page.reload()
    assert page.input_value("[name=m1]") == "down"


def test_a_range_is_dragged_on_the_histogram(visit: Visit) -> None:
    page = visit.open("row?row=11")
    page.click("[data-j='1'] summary")
    box = page.locator("[name=hi1]").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    page.wait_for_url("**hi1=*")
    assert 30 <= int(page.input_value("[name=hi1]")) <= 46


def test_who_makes_a_rule_is_shown_and_what_is_mine_is_marked_as_i_go(visit: Visit) -> None:
    page = visit.open("row?row=11")
    fixed = page.locator("fieldset", has=page.locator(".chip.law", has_text="law: stays as it is"))
    assert fixed.count() == 2
    assert page.locator(".chip.house", has_text="house rule: stays as it is").count() == 1
    assert fixed.locator("select[name^=m]").count() == 0  # the law is read, not edited
    mine = page.locator("[data-j='1'] [data-mine]")
    assert not mine.is_visible()
    page.select_option("[name=m1]", "down")
    mine.wait_for()
    page.select_option("[name=m1]", "")
    mine.wait_for(state="hidden")
    page.fill("[name=v1]", "20")
    page.locator("[data-j='1'] [data-edited]").wait_for()


def test_everything_is_locked_and_freed_at_once(visit: Visit) -> None:
    page = visit.open("row?row=11")
    page.click("text=Lock all")
    page.wait_for_url("**m0=lock*m19=lock*") if page.locator("[name=m19]").count() else page.wait_for_url("**m0=lock*")
    page.select_option("[name=m1]", "")
    page.click("text=What would have to be different?")
    assert "Duration" in visit.answer()
    assert page.locator("article.way .changes > li").count() == 1
    page.click("text=Free all")
    page.wait_for_url(lambda url: "lock" not in url)


# -- 5 to 8, asking ---------------------------------------------------------------------------------------------------
def test_an_answer_with_its_proof(visit: Visit) -> None:
    page = visit.open("row?row=11")
    page.click("text=What would have to be different?")
    text = visit.answer()
    assert "Duration (months)" in text
    assert "no smaller change would do" in text
    page.wait_for_function("document.activeElement.matches('[data-focus]')")
    page.reload()
    assert "Duration (months)" in visit.answer()


def test_several_ways_side_by_side_with_a_probability(visit: Visit) -> None:
    page = visit.open("row?s=linear&row=11")
    page.select_option("[name=n]", "3")
    page.focus("[data-probability-slider]")
    page.keyboard.press("End")
    for _ in range(39):
        page.keyboard.press("ArrowLeft")
    assert page.input_value("[name=p]") == "0.6"
    page.keyboard.press("Enter")
    visit.answer()
    ways = page.locator("article.way")
    assert ways.count() == 3
    tops = {round(ways.nth(i).bounding_box()["y"]) for i in range(3)}
    assert len(tops) == 1


def test_a_no_and_the_button_that_makes_it_possible(visit: Visit) -> None:
    page = visit.open("row?row=11&k=1&m0=lock&m1=lock&m4=lock&ask=1")
    assert "that is proven" in visit.answer()
    assert page.locator("text=not yours to change").count() >= 1
    page.click("a.loosen >> text=Allow 2 changes")
    playwright.expect(page.locator("[name=k]")).to_have_value("2")
    assert "no smaller change would do" in visit.answer()


def test_a_no_is_taken_home_as_a_record(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("row?row=11&k=1&m0=lock&m1=lock&m4=lock&ask=1")
    assert "law" in visit.answer()
    with page.expect_download() as waiting:
        page.click("a[href$='as=json']")
    waiting.value.save_as(tmp_path / "no.json")
    assert json.loads((tmp_path / "no.json").read_text("utf-8"))["kind"] == "impossible"


def test_any_of_several_outcomes_will_do(visit: Visit, subjects: tuple[Subject, ...]) -> None:
    row = int(np.flatnonzero(subjects[-1].known()[0] == "poor")[0])
    page = visit.open(f"row?s=three&row={row}")
    for label in ("fair", "good"):
        page.locator(".ask label", has_text=label).locator("input").check()
    page.click("text=What would have to be different?")
    assert "Probability of" in visit.answer()
    assert page.url.count("want=") == 2


def test_the_proof_is_a_chart_that_closes_and_stays_with_the_answer(visit: Visit) -> None:
    page = visit.open("row?row=11&p=0.8&ask=1")
    visit.answer()
    page.click("text=How sure is that?")
    chart = page.locator(".certificate figure.chart")
    chart.wait_for()
    ends = [
        page.locator(f".certificate polyline.{kind}").get_attribute("points").split()[-1] for kind in ("best", "bound")
    ]
    assert ends[0] == ends[1]  # proven: best and bound meet
    assert "How changes are counted" in page.inner_text(".certificate")


def test_what_is_there_already_is_no_error(visit: Visit) -> None:
    page = visit.open("row?row=11&v1=20&want=1")
    page.click("text=What would have to be different?")
    assert "The model says that already" in visit.answer()


def test_a_regression_is_asked_for_an_interval(visit: Visit) -> None:
    page = visit.open("row?s=value&row=3")
    page.fill("[name=ge]", "60")
    page.click("text=What would have to be different?")
    assert "then the model says" in visit.answer()


def test_switches_and_german(visit: Visit) -> None:
    page = visit.open("row?row=11&lang=de")
    page.check("[name=on][value=robust]")
    page.click("text=Was müsste anders sein?")
    text = visit.answer()
    assert "Bewiesen: Keine kleinere Änderung genügt." in text
    assert "(bewiesen)" in text


@pytest.mark.parametrize("deep", [False, True], ids=["early", "deep in the solver"])
def test_a_stopped_search_keeps_its_best_answer_and_says_how_good_it_is(
    visit: Visit, subjects: tuple[Subject, ...], deep: bool
) -> None:
    page = visit.open(f"row?s=hard&row={subjects[2].first}&t=120&ask=1")
    page.wait_for_selector("figure.chart")
    if deep:
        page.wait_for_timeout(8000)
    page.click("text=Stop, and keep the best answer so far")
    text = visit.answer()
    assert "You stopped the search" in text
    assert "Not proven to be the smallest" in text
    assert "the model itself was asked" in text


def test_a_worker_that_is_killed_is_replaced(visit: Visit, subjects: tuple[Subject, ...]) -> None:
    page = visit.open(f"row?s=hard&row={subjects[2].first}&t=120&ask=1")
    page.wait_for_selector("[data-watch] >> text=Searching")
    pool = visit.studio.desk.pool
    busy = next(w for w in pool._workers if w.job is not None)
    os.kill(busy.process.pid, signal.SIGKILL)
    assert "its process ended" in visit.answer()
    visit.open("row?row=11&ask=1")
    assert "no smaller change would do" in visit.answer()


def test_two_tabs_ask_different_things(visit: Visit) -> None:
    first, second = visit.page, visit.tab()
    visit.open("row?row=11&ask=1", first)
    visit.open("row?row=11&m1=lock&ask=1", second)
    assert "Duration" in visit.answer(first)
    assert "Duration" not in visit.answer(second)


# -- 9, keeping -------------------------------------------------------------------------------------------------------
def test_downloads_bookmarks_and_notes(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("row?row=11&m4=lock&ask=1")
    visit.answer()
    for kind in ("html", "json", "csv", "py", "toml"):
        with page.expect_download() as waiting:
            page.click(f"a[href$='as={kind}']")
        waiting.value.save_as(tmp_path / f"answer.{kind}")
    answer = Explanation.from_json(tmp_path / "answer.json")
    assert answer.status == "optimal"
    page.click("summary >> text=Keep")
    page.fill("[name=note]", "ask her about the <b>car</b>")
    page.click("text=Bookmark this question")
    page.wait_for_selector("#kept >> text=Kept.")
    visit.open("row?row=11")
    assert "<b>car</b>" in page.inner_text(".notes-here")
    visit.open("row?row=12")
    assert page.locator(".notes-here").count() == 0
    visit.open("bookmarks")
    assert "<b>car</b>" in page.inner_text(".kept")
    page.click(".kept a")
    page.wait_for_url("**m4=lock*")
    visit.open("bookmarks")
    page.click("text=Forget")
    page.wait_for_selector("text=Nothing is kept yet")


def test_printing_leaves_the_answer_alone_on_the_page(visit: Visit) -> None:
    page = visit.open("row?row=11&ask=1")
    visit.answer()
    page.evaluate("window.print = () => { document.title = 'printed'; }")
    page.click(".take button")
    assert page.title() == "printed"
    page.emulate_media(media="print")
    assert page.locator("article.way").is_visible()
    assert not page.locator(".features").is_visible()
    assert not page.locator(".bar").is_visible()


# -- 10, for everybody ------------------------------------------------------------------------------------------------
def test_labels_with_scripts_in_them_are_only_text(visit: Visit) -> None:
    visit.open("?s=yes")
    page = visit.open("row?s=yes&row=2&ask=1")
    assert "<script>alert(1)</script>" in visit.answer() + page.inner_text("main")


def test_the_keyboard_alone_is_enough(visit: Visit) -> None:
    page = visit.open("row?row=11")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('button[type=submit]')"):
            break
    page.keyboard.press("Enter")
    assert "Duration" in visit.answer()


SCREENS = {
    "rows": ("", "table"),
    "row": ("row?row=11&lo4=1000&e0=5&m1=down", "#now"),
    "ways": ("row?row=11&s=linear&n=2&ask=1", "[data-watch] [data-focus]"),
    "a no": ("row?row=11&k=1&m0=lock&m1=lock&m4=lock&ask=1", "[data-watch] [data-focus]"),
    "house rules": ("row?s=yes&row=2", "#now"),
    "three outcomes": ("row?s=three&row=2", "#now"),
    "searching": ("row?s=hard&row=161&t=120&ask=1", "figure.chart"),
    "bookmarks": ("bookmarks", "h1"),
    "an error": ("row?row=x", "h1"),
}
# Both themes, both languages and both widths; what belongs to the theme does not depend on the width.
LOOKS = {
    "light": {"color_scheme": "light"},
    "german, dark": {"locale": "de-DE", "color_scheme": "dark"},
    "phone": PHONE,
    "phone, german, dark": {**PHONE, "locale": "de-DE", "color_scheme": "dark"},
}


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing(chromium: Any, studio: Studio, look: str) -> None:
    visit = Visit(chromium, studio, **LOOKS[look])
    visit.page.goto(studio.link())
    visit.page.wait_for_selector("table")
    axe = axe_playwright.Axe()
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
    for name, (path, ready) in SCREENS.items():
        page = visit.open(path)
        page.wait_for_selector(ready)
        if name == "rows":
            page.click(".search summary")
        if name == "row":
            page.click("[data-j='2'] summary")
        if name == "ways":
            page.locator(".certificate summary").first.click()
        found = axe.run(page, options=rules)
        assert found.violations_count == 0, f"{look}, {name}\n{found.generate_report()}"
        wide, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= window, f"{look}, {name} scrolls sideways"
        if name == "searching":
            page.locator("[data-watch] button").click()
            visit.answer()
    visit.context.close()


def test_a_press_during_which_the_page_is_updated_is_a_click(visit: Visit, subjects: tuple[Subject, ...]) -> None:
    page = visit.open(f"row?s=hard&row={subjects[2].first}&t=120&ask=1")
    page.wait_for_selector("figure.chart")
    # in one step of the page: between two, an update may take the button away
    where = """() => {
        const button = document.querySelector("[data-watch] button");
        if (!button) return null;
        button.scrollIntoView({block: "center", behavior: "instant"});
        const place = button.getBoundingClientRect();
        return [place.x + place.width / 2, place.y + place.height / 2];
    }"""
    page.mouse.move(*page.wait_for_function(where).json_value())
    page.mouse.down()
    page.evaluate("window.held = document.querySelector('[data-watch] button')")
    page.wait_for_function("() => !window.held.isConnected")
    page.mouse.up()
    assert "You stopped the search" in visit.answer()


# -- when it goes wrong -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("late", ["htmx.min.js", "hx-sse.min.js", "controls.js", "studio.js"])
def test_a_script_that_comes_late_loses_no_answer(visit: Visit, late: str) -> None:
    def delayed(route: Any) -> None:
        time.sleep(0.7)
        route.continue_()

    visit.page.route(f"**/{late}", delayed)
    visit.open("row?row=11&ask=1")
    assert "the model itself was asked" in visit.answer()


def test_a_studio_that_was_started_anew_is_missed_and_not_mistaken(chromium: Any) -> None:
    subject = classifier()
    first = Studio([subject]).start()
    visit = Visit(chromium, first)
    visit.page.goto(first.link())
    visit.page.wait_for_selector("table")
    page = visit.open("row?row=2")
    first.stop()
    page.fill("[name=v0]", "80")
    page.wait_for_selector("#lost:not([hidden])")
    with Studio([subject], Address(port=first.port)) as second:
        page.fill("[name=v0]", "70")
        page.wait_for_timeout(500)
        assert page.is_visible("#lost")
        assert page.locator("#refused").count() == 0
        page.goto(second.link())
        page.wait_for_selector("table")
        visit.open("row?row=2&ask=1")
        assert "the model itself was asked" in visit.answer()
    visit.context.close()
