"""Take the pictures of docs/studio.md: start the demo, walk through it in Chromium, and save one picture per screen."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from ifonly.studio.demo import demo_subjects
from ifonly.studio.server import Studio

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "figures"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--force-color-profile=srgb"]  # fmt: skip
ANSWER = "[data-watch] [data-focus]"
# name -> address, what to wait for, look of the browser
SCREENS = {
    "rows": ("?q=radio", "table", {}),
    "row": ("row?row=11&m1=down&hi1=48&lo1=12&e0=4", "#now", {}),
    "answer": ("row?s=linear&row=11&ask=1", ANSWER, {}),
    "ways": ("row?row=11&n=3&ask=1", ANSWER, {}),
    "proof": ("row?row=11&p=0.7&on=manifold&ask=1", ANSWER, {}),
    "no": ("row?row=11&k=1&m0=lock&m1=lock&m4=lock&ask=1", ANSWER, {}),
    "dark": ("row?s=linear&row=11&p=0.6&ask=1", ANSWER, {"color_scheme": "dark"}),
    "german": ("row?row=11&on=robust&ask=1", ANSWER, {"locale": "de-DE"}),
    "phone": ("row?row=11&ask=1", ANSWER, {"viewport": {"width": 390, "height": 844}, "is_mobile": True}),
}


def main() -> None:
    """Take all pictures, or those named."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    FOLDER.mkdir(exist_ok=True)
    with Studio(demo_subjects()) as studio, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        for name in sys.argv[1:] or SCREENS:
            path, ready, look = SCREENS[name]
            page: Page = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **look}).new_page()
            page.goto(studio.link())
            page.wait_for_selector("table")
            page.goto(studio.base + path)
            page.wait_for_selector(ready, timeout=120_000)
            if name == "proof":
                page.click(".certificate summary")
                page.locator(".certificate").scroll_into_view_if_needed()
            page.wait_for_timeout(300)
            page.screenshot(path=FOLDER / f"studio-{name}.png")
            print(f"studio-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
