"""One question in a notebook cell: the same fragments, over messages; in Python, and its script in a real browser."""

import queue
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from studio_world import HOSTILE, classifier

pytest.importorskip("anywidget")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the notebook's own packages
]


@pytest.fixture
def cell() -> Iterator[tuple[Any, "queue.Queue[dict[str, Any]]"]]:
    """A widget, and what it says to its cell."""
    from ifonly.studio.widget import question

    subject = classifier()
    refused = int(np.flatnonzero(subject.known()[0] == "no")[0])
    widget = question(subject.explainer, subject.data.iloc[refused])
    said: queue.Queue[dict[str, Any]] = queue.Queue()
    widget.send = lambda message, buffers=None: said.put(message)
    yield widget, said
    widget.close()
    widget.close()


def until(said: "queue.Queue[dict[str, Any]]", words: str, seconds: float = 60.0) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while True:
        message = said.get(timeout=max(deadline - time.monotonic(), 0.01))
        if words in message.get("html", message.get("text", "")):
            return message


def test_it_predicts_asks_refuses_and_exports(cell: Any) -> None:
    widget, said = cell
    assert HOSTILE not in widget.html
    widget._heard(widget, {"kind": "predict", "query": "v0=88"}, [])
    assert "The model says" in until(said, "The model says")["html"]
    widget._heard(widget, {"kind": "ask", "query": "v0=20&v1=5&v2=clerk&v3=low&m0=lock&m1=lock&m2=lock&m3=lock"}, [])
    assert "loosen" in until(said, "that is proven")["html"]
    widget._heard(widget, {"kind": "open", "query": "v0=20&v1=5&v2=clerk&v3=low&ask=1"}, [])
    until(said, "no smaller change would do")
    assert widget.explanation.status == "optimal"
    widget._heard(widget, {"kind": "export", "query": "as=py"}, [])
    assert "explainer.explain(" in until(said, "explainer.explain(")["text"]
    widget._heard(widget, {"kind": "ask", "query": "v0=nonsense"}, [])
    until(said, "is no number")


def test_its_script_in_a_browser(cell: Any, chromium_page: Any) -> None:
    widget, said = cell
    page, sent = chromium_page, []
    page.expose_function("sendToPython", lambda message: sent.append(message))  # noqa: PLW0108 - a method has no attributes
    page.set_content('<!doctype html><html lang="en"><body><div id="cell"></div></body></html>')
    page.evaluate(
        """([html, style]) => { window.listeners = {}; window.model = {
            get: (name) => ({html, style_text: style})[name], send: (m) => window.sendToPython(m),
            on: (name, f) => { window.listeners[name] = f; } }; }""",
        [widget.html, widget.style_text],
    )
    script = widget._esm if isinstance(widget._esm, str) else str(widget._esm)
    start = "render({model: window.model, el: document.getElementById('cell')});"
    page.add_script_tag(content=f"{script}\n{start}", type="module")
    page.locator("[name=v0]").fill("30")
    page.get_by_role("button", name="What would have to be different?").click()
    page.wait_for_timeout(300)
    assert [m["kind"] for m in sent] in (["ask"], ["predict", "ask"], ["ask", "predict"])
    for message in sent:
        widget._heard(widget, message, [])
    page.evaluate("(m) => window.listeners['msg:custom'](m)", until(said, "no smaller change would do"))
    assert "no smaller change would do" in page.locator("#answer").inner_text()
    with page.expect_download() as waiting:
        page.evaluate(
            "() => window.listeners['msg:custom']({kind: 'file', name: 'a.txt', media: 'text/plain', text: 'x'})"
        )
    assert waiting.value.suggested_filename == "a.txt"


@pytest.fixture
def chromium_page() -> Iterator[Any]:
    from test_studio_browser import CHROMIUM, FLAGS, playwright

    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser.new_page()
        browser.close()
