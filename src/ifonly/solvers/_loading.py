"""Import of highspy in a process that has, or will have, another library by the name of libhighs.

Two packages may each ship a ``libhighs.so.1`` of their own, of different versions: highspy and OR-Tools do. The dynamic
linker of Linux tells libraries apart by this name alone (``DT_SONAME``; see ld.so(8)), so whoever comes second is bound
to the library of whoever came first, and ends with an undefined symbol. Here highspy's own two files are loaded under
another name: copies in memory in which that one string is replaced by one of the same length.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path
from threading import Lock

from ifonly.errors import SolverFailed

__all__ = ["load_highspy", "loads_within"]

_SHARED, _OWN = b"libhighs.so.1", b"libifonly.so1"
_RIVAL = "ortools"
# A library stays mapped after its file is closed, but the linker knows it by its path: no other may get the same one.
_kept_open: list[int] = []
_LOADING = Lock()  # a library under another name is loaded once, however many threads ask for it


def load_highspy() -> None:
    """Import highspy, under a name of its own where OR-Tools is installed or where a plain import fails.

    Raises
    ------
    SolverFailed
        When another libhighs is in the way and this platform has no remedy.
    """
    with _LOADING:
        _load()


def loads_within(seconds: float, needed: float) -> bool:
    """Whether highspy is there already, or some seconds are what its import needs, which nobody can interrupt."""
    return seconds >= needed or "highspy" in sys.modules


def _load() -> None:
    if "highspy" in sys.modules:
        return
    if importlib.util.find_spec(_RIVAL) is not None:
        _under_own_name()
    try:
        importlib.import_module("highspy")
    except ModuleNotFoundError:
        raise
    except ImportError as error:
        if not _under_own_name():
            raise SolverFailed(_blocked(error)) from error
        importlib.import_module("highspy")


def _blocked(error: ImportError) -> str:
    rival = f" {_RIVAL} is imported already, and brings one." if _RIVAL in sys.modules else ""
    return (
        f"highspy, the solver, cannot be imported ({error}). Most often another package has loaded a libhighs of another "
        f"version into this process.{rival} Import highspy before that package, or solve in a process without it; "
        "solver='scip' and solver='gurobi' need no libhighs."
    )


def _under_own_name() -> bool:
    """Load highspy's extension module bound to its own library; whether that could be done."""
    files = _files()
    if files is None or not hasattr(os, "memfd_create"):
        return False
    library, extension = (path.read_bytes() for path in files)
    if _SHARED not in library or _SHARED not in extension:
        return False
    name = "highspy._core"
    try:
        # The extension asks for a library of this name, and the linker finds that it is there already.
        ctypes.CDLL(_in_memory(library))
        loader = ExtensionFileLoader(name, _in_memory(extension))
        spec = importlib.util.spec_from_file_location(name, loader.path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except (OSError, ImportError):  # a system that runs no code from memory
        return False
    sys.modules[name] = module
    return True


def _files() -> tuple[Path, Path] | None:
    """Return highspy's shared library and extension module; None when it has no library of its own."""
    spec = importlib.util.find_spec("highspy")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    library = folder / _SHARED.decode()
    extension = next((p for s in EXTENSION_SUFFIXES if (p := folder / f"_core{s}").is_file()), None)
    return (library, extension) if extension is not None and library.is_file() else None


def _in_memory(content: bytes) -> str:
    """Return the path of a file in memory with this content, the library's name replaced."""
    file = os.memfd_create("highs")
    _kept_open.append(file)
    with os.fdopen(os.dup(file), "wb") as stream:
        stream.write(content.replace(_SHARED, _OWN))
    return f"/proc/self/fd/{file}"
