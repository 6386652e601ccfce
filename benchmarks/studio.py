"""Response times of the studio on German Credit's forest, alone and under a crowd.

``python -m benchmarks.studio`` starts the demo, drives it in Chromium, and prints medians: the command to its first line, a
page to its readiness, an edit to its prediction, a click to its answer. ``python -m benchmarks.studio crowd`` lets visitors
ask at once for two minutes, and counts answers, places told, lost events, and the memory of each minute.
``python -m benchmarks.studio cost`` prints processor time, which a busy machine stretches less: of the start, an edit, and
of looking through 100,000 rows.
"""

import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from ifonly.studio.demo import demo_subjects
from ifonly.studio.server import Studio

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


class Running:
    """A studio as a person starts it: a process of its own, its workers, and its links."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ifonly", "studio", "--no-open"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.next = self.process.stdout.readline().strip()
        self.base, self.token = self.next.split("?token=")
        self.process.stderr.readline()

    def opener(self) -> urllib.request.OpenerDirector:
        """Use the link up, as a browser does, and take the next one from the terminal."""
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        opener.open(self.next, timeout=60).read()
        assert self.process.stderr is not None
        self.next = self.process.stderr.readline().split()[-1]
        return opener

    def get(self, path: str) -> bytes:
        """Ask for a page as a script does."""
        asked = urllib.request.Request(self.base + path, headers={"Authorization": f"token {self.token}"})
        return urllib.request.urlopen(asked, timeout=60).read()

    def seconds(self) -> float:
        """Return the processor time of the studio, without its workers."""
        spent = Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(spent[11]) + int(spent[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> list[int]:
        """Return the resident memory of the studio and of its workers in MB."""
        pid = self.process.pid
        tasks = Path(f"/proc/{pid}/task").iterdir()
        workers = sorted({int(w) for task in tasks for w in (task / "children").read_text("utf-8").split()})
        return [memory(one) for one in (pid, *workers)]

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def command_ready() -> float:
    """Return the seconds from the command to its first line."""
    began = time.perf_counter()
    with Running():
        return time.perf_counter() - began


# Timed inside the page, from the event to the change that a person sees; what drives the browser is not counted.
_EDIT = """value => new Promise(done => {
  const now = document.querySelector("#now"), field = document.querySelector("[name=v1]"), began = performance.now();
  new MutationObserver((_, me) => { me.disconnect(); requestAnimationFrame(() => done(performance.now() - began)); })
    .observe(now, { childList: true, subtree: true });
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
})"""
_ASK = """() => new Promise(done => {
  const place = document.querySelector("#answer"), began = performance.now();
  new MutationObserver((_, me) => {
    if (!place.querySelector("[data-focus]")) return;
    me.disconnect();
    requestAnimationFrame(() => done(performance.now() - began));
  }).observe(place, { childList: true, subtree: true });
  document.querySelector("button[type=submit]").click();
})"""
_READY = "() => performance.getEntriesByType('navigation')[0].loadEventEnd"
GOALS = {"command to first line": 3.0, "page ready": 2.0, "edit to prediction": 0.1, "click to answer": 1.0}


def speed(times: int) -> None:
    """Print what a person waits for."""
    from playwright.sync_api import sync_playwright

    taken: dict[str, list[float]] = {name: [] for name in GOALS}
    taken["command to first line"] = [command_ready() for _ in range(3)]
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with Studio(demo_subjects()) as studio, sync_playwright() as driver:
        page = driver.chromium.launch(executable_path=chromium, args=FLAGS).new_page()
        page.goto(studio.link())
        page.wait_for_selector("table")
        page.goto(f"{studio.base}row?row=11&ask=1")
        page.wait_for_selector("[data-watch] [data-focus]", timeout=120_000)
        for i in range(times):
            page.goto(f"{studio.base}row?row=11")
            page.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
            taken["page ready"].append(page.evaluate(_READY) / 1e3)
            taken["edit to prediction"].append(page.evaluate(_EDIT, str(40 + i)) / 1e3)
            taken["click to answer"].append(page.evaluate(_ASK) / 1e3)
    print(f"load of the machine (1, 5, 15 minutes): {', '.join(f'{x:.1f}' for x in os.getloadavg())}")
    for name, seconds in taken.items():
        middle, best, worst = statistics.median(seconds), min(seconds), max(seconds)
        print(
            f"{name}: median {1e3 * middle:.0f} ms, best {1e3 * best:.0f}, worst {1e3 * worst:.0f} of {len(seconds)}; "
            f"goal {1e3 * GOALS[name]:.0f} ms {'met' if middle < GOALS[name] else 'MISSED'}"
        )


class Visitor(threading.Thread):
    """A person with a browser of his own who asks, waits for the answer, and asks again."""

    def __init__(self, studio: Running, number: int, until: float) -> None:
        super().__init__(daemon=True)
        self.studio, self.number, self.until = studio, number, until
        self.waits: list[float] = []
        self.places, self.busy = 0, 0
        self.faults: list[str] = []
        self.opener = studio.opener()

    def get(self, path: str, data: dict[str, Any] | None = None) -> str:
        """Ask for a page, or post a form."""
        body = None if data is None else urllib.parse.urlencode(data).encode()
        request = urllib.request.Request(self.studio.base + path, body, {"Origin": self.studio.base.rstrip("/")})
        return self.opener.open(request, timeout=120).read().decode()

    def run(self) -> None:
        """Ask until the time is over."""
        asked = 0
        while time.monotonic() < self.until:
            began, row = time.perf_counter(), (self.number * 37 + asked) % 1000
            asked += 1
            try:
                watching = self.get("ask", {"row": row, "k": 4, "t": 5})
            except urllib.error.HTTPError as error:
                self.busy += error.code == 429
                self.faults += [] if error.code == 429 else [f"{error.code}"]
                time.sleep(0.5)
                continue
            job = re.search(r"job=(\w+)", watching)
            if job is None:
                self.faults.append(watching)
                continue
            events = self.get(f"events?job={job[1]}")
            numbers = [int(n) for n in re.findall(r"^id: (\d+)$", events, re.MULTILINE)]
            self.places += "In the queue: place" in events
            # Every event says how the question stands, so none is lost when the last one is the end and numbers only grow.
            ended = events.rstrip().endswith("data: done") and "data-focus" in events
            if not ended or numbers != sorted(set(numbers)):
                self.faults.append(events[-300:])
            self.waits.append(time.perf_counter() - began)


def memory(pid: int) -> int:
    """Return the resident memory of a process in MB."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text("utf-8"))
    return int(found[1]) // 1024 if found else 0


def crowd(visitors: int, seconds: float) -> None:
    """Print how visitors fare who ask at once, and the memory after each half of the time."""
    with Running() as studio:
        warm = Visitor(studio, 0, time.monotonic() + 15)
        warm.run()
        people = [Visitor(studio, i, time.monotonic() + seconds) for i in range(visitors)]
        marks = [studio.memory()]
        for person in people:
            person.start()
        for _ in range(4):
            time.sleep(seconds / 4)
            marks.append(studio.memory())
        for person in people:
            person.join(timeout=180)
        waits = sorted(w for person in people for w in person.waits)
        faults = [f for person in people for f in person.faults]
        alive = sum(person.is_alive() for person in people)
        few = min(len(person.waits) for person in people)
        print(f"{visitors} visitors, {seconds:g} s: {len(waits)} answers, the fewest of one visitor {few}")
        print(f"median wait {statistics.median(waits):.2f} s, worst {waits[-1]:.2f} s")
        print(
            f"told their place {sum(p.places for p in people)} times, told to wait {sum(p.busy for p in people)} times"
        )
        print(f"faults {len(faults)}, still waiting {alive}")
        print(f"memory in MB (studio, workers), at the start and after each quarter: {marks}")
        for fault in faults[:3]:
            print(fault)


def cost(times: int) -> None:
    """Print processor time: of the start until pages are served, of an edit, and of 100,000 rows."""
    spent: dict[str, list[float]] = {}
    for _ in range(3):
        with Running() as studio:
            spent.setdefault("start to first line", []).append(studio.seconds())
            studio.get("")
            spent.setdefault("start to first page", []).append(studio.seconds())
            studio.get("row?row=11")
            before = studio.seconds()
            for i in range(times):
                studio.get(f"predict?row=11&v1={20 + i}")
            spent.setdefault("edit to prediction", []).append((studio.seconds() - before) / times)
    for name, seconds in spent.items():
        print(
            f"{name}: median {1e3 * statistics.median(seconds):.0f} ms of processor time, best {1e3 * min(seconds):.0f}"
        )
    many_rows(times)


# Ways to look through the demo's rows: features 1 and 4 are numbers, feature 0 has levels.
LOOKS = {
    "a page": "",
    "a filter on a number": "a1=12&b1=24",
    "a filter on a level": "l0=1",
    "a filter on the outcome and the score": "o=0&pmin=0.2",
    "sorted by a number": "sort=v1",
    "sorted by a category": "sort=v0&down=1",
    "sorted by the score": "sort=p&down=1",
    "sorted by the outcome": "sort=o",
    "a search for a word": "q=car",
    "a search for a number": "q=24",
    "all of it": "q=2&a1=12&o=0&sort=p&down=1",
}


def many_rows(times: int) -> None:
    """Print the processor time of each way to look through 100,000 rows of German Credit's forest."""
    subject = demo_subjects()[0]
    rows = subject.data.sample(100_000, replace=True, random_state=0, ignore_index=True)
    with Studio([replace(subject, data=rows)], workers=1) as studio:

        def look(query: str) -> float:
            asked = urllib.request.Request(
                f"{studio.base}?{query}", headers={"Authorization": f"token {studio.keys.token}"}
            )
            began = time.process_time()
            urllib.request.urlopen(asked, timeout=120).read()
            return 1e3 * (time.process_time() - began)

        print(f"100,000 rows, the first page, for which all are put to the model: {look(''):.0f} ms of processor time")
        for name, query in LOOKS.items():
            taken = [look(f"{query}&page={i}") for i in range(times)]
            print(f"100,000 rows, {name}: median {statistics.median(taken):.0f} ms, first {taken[0]:.0f}; goal 300 ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["speed", "crowd", "cost"], default="speed")
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--visitors", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    if given.what == "speed":
        speed(given.times)
    elif given.what == "cost":
        cost(given.times)
    else:
        crowd(given.visitors, given.seconds)


if __name__ == "__main__":
    main()
