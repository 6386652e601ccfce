"""Peak memory of this process. Workers import this file from their own environments, so it needs nothing but Python."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

__all__ = ["forget_peak", "peak_memory"]

_UNIT = 1024.0 if sys.platform != "darwin" else 1024.0**2
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_memory() -> float:
    """Return the most memory that this process has had since `forget_peak`, in MB; elsewhere than on Linux: ever.

    The kernel's own count (`ru_maxrss`) is handed down to a program that a process starts, so it is the last resort.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return float(line.split()[1]) / 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _UNIT


def forget_peak() -> None:
    """Count the peak from here on, where the system can do that."""
    try:
        _RESET.write_text("5", encoding="ascii")
    except OSError:
        return
