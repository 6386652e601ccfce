"""Environments of the peers: a virtual environment each, made on demand and kept in a cache folder."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Environment", "EnvironmentFailed", "default_cache"]

_READY = "ready.json"


class EnvironmentFailed(RuntimeError):
    """A peer's environment cannot be made here; the message says why."""


def default_cache() -> Path:
    """Return the folder of the environments: ``IFONLY_PEERS``, or one in the user's cache."""
    import pooch

    named = os.environ.get("IFONLY_PEERS")
    return Path(named).expanduser() if named else Path(pooch.os_cache("ifonly")) / "peers"


@dataclass(frozen=True)
class Environment:
    """Requirements of a peer.

    Attributes
    ----------
    name
        The folder in the cache.
    requirements
        What to install.
    pythons
        Versions of Python it runs on, the preferred first.
    shared
        Packages to install in the version that is here, because fitted models are pickled across.
    tools
        What to install first, for a package whose own build no longer works in isolation.
    """

    name: str
    requirements: tuple[str, ...]
    pythons: tuple[str, ...]
    shared: tuple[str, ...] = ("scikit-learn", "xgboost")
    tools: tuple[str, ...] = ()

    def wanted(self) -> list[str]:
        """Return all requirements, with the versions that are here for the shared ones."""
        here = [f"{name}=={v}" for name in self.shared if (v := _version(name)) is not None]
        return [*self.requirements, *here]

    def python(self, cache: Path) -> Path:
        """Return the environment's interpreter, making the environment when it is not there or is out of date."""
        folder = cache / self.name
        python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        note = folder / _READY
        if note.is_file() and json.loads(note.read_text()) == self.wanted():
            return python
        self._make(folder, python)
        note.write_text(json.dumps(self.wanted()))
        return python

    def _make(self, folder: Path, python: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _run([_interpreter(self.pythons), "-m", "venv", str(folder)])
        pip = [str(python), "-m", "pip", "install", "--quiet"]
        if self.tools:
            _run([*pip, *self.tools])
            pip.append("--no-build-isolation")
        _run([*pip, *self.wanted()])


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _interpreter(versions: tuple[str, ...]) -> str:
    """Return a Python of one of these versions: this one, or one on the path (pyenv's shims included)."""
    for version in versions:
        if sys.version_info[:2] == tuple(int(part) for part in version.split(".")):
            return sys.executable
    for version in versions:
        command = shutil.which(f"python{version}")
        if command is None:
            continue
        # A shim of pyenv runs only versions that are switched on.
        told = subprocess.run(
            [command, "-c", "import sys; print(sys.executable)"],
            env=os.environ | {"PYENV_VERSION": version},
            capture_output=True,
            text=True,
            check=False,
        )
        if told.returncode == 0:
            return told.stdout.strip()
    raise EnvironmentFailed(
        f"No Python {' or '.join(versions)} on the path. Install one, or leave this peer out with --peers."
    )


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EnvironmentFailed(f"{' '.join(command[1:6])} ... failed:\n{done.stderr[-2000:]}")
