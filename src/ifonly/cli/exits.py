"""Exit codes of the command line, beside 0 for what went well and 1 for what nobody foresaw."""

from __future__ import annotations

__all__ = ["IMPOSSIBLE", "INTERRUPTED", "MISUSE", "OUT_OF_TIME", "REFUTED"]

IMPOSSIBLE, MISUSE, OUT_OF_TIME, REFUTED = 3, 4, 5, 6
INTERRUPTED = 130  # as shells say it: 128, and the number of SIGINT
