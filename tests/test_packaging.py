"""The page of a package index: the README, without links that lead nowhere."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_links_into_the_checkout_are_left_out_of_what_an_index_shows() -> None:
    sys.path.insert(0, str(ROOT))
    try:
        from hatch_readme import for_index
    finally:
        sys.path.remove(str(ROOT))
    told = "See [the page](docs/a.md#b) and [HiGHS](https://highs.dev).\n\n![A picture](docs/a.png)\n\nEnd. [here](#here)\n"
    assert for_index(told) == "See the page and [HiGHS](https://highs.dev).\n\nEnd. [here](#here)\n"
    shown = for_index((ROOT / "README.md").read_text(encoding="utf-8"))
    assert "pip install" in shown
    assert "https://highs.dev" in shown
    assert [link for link in re.findall(r"\]\(([^)]*)\)", shown) if not link.startswith(("https://", "#"))] == []
