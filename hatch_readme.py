"""Metadata hook: the README as a package index shows it, where links into this folder would lead nowhere.

Links to files of the checkout become their words, and its pictures are left out; links to other places stay.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n+", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)[^)]*\)")


def for_index(readme: str) -> str:
    """Return a README without links into the folder that it lies in."""
    return _LINK.sub(r"\1", _PICTURE.sub("", readme))


class ReadmeHook(MetadataHookInterface):
    """Give a built package the README of an index."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the long description."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(readme)}
