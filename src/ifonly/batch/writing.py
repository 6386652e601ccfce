"""Atomic writes: a file is there as a whole, with its bytes on the disk, or it is not there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ifonly.errors import BatchFailed

__all__ = ["TEMPORARY", "refused", "write_atomically"]

TEMPORARY = ".tmp"


def write_atomically(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file under another name in the same folder, force it to the disk, and rename it.

    A reader, or a process that is killed at any moment, sees the old file, the new one or none, and never a part.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY}")
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise refused(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Force the rename itself to the disk, where folders can be opened for that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def refused(path: Path, error: OSError) -> BatchFailed:
    """Return the error for a file that could not be written."""
    return BatchFailed(
        f"{path} cannot be written: {error.strerror or error}. What is done so far is kept; make room or set the "
        "permissions, and run the batch again: it goes on where it stopped."
    )
