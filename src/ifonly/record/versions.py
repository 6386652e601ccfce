"""Versions of then and now, and the fault of a model that cannot be asked under those of now."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from ifonly.errors import IfOnlyError, UnsupportedModel
from ifonly.version import __version__

__all__ = ["differing", "differing_now", "fault_of", "unasked"]


def differing(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each package that was of another version when a record was written."""
    return [
        f"{package} {then[package]} then, {version} now"
        for package, version in now.items()
        if then.get(package, version) != version
    ]


def differing_now(then: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each package that is now installed in another version, or not at all."""
    return differing(then, {package: _installed(str(package)) for package in then})


def fault_of(model: Any, X: Any, y: Any) -> Exception | None:
    """Return why a model cannot be asked about its own data, whatever a record says; None if it can."""
    from ifonly.explain import Explainer  # noqa: PLC0415 - records are written by its answers

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dict(Explainer(model, X, y).fingerprints)
    except UnsupportedModel as error:
        return error
    except IfOnlyError:  # data that need a schema of their own say nothing of the model
        return None
    except Exception as error:  # noqa: BLE001 - a model of another version can raise anything
        return error
    return None


def unasked(error: Exception, then: Mapping[str, Any]) -> str:
    """Return the sentence about a model that cannot be asked here: why, under which versions, and what next."""
    other = differing_now(then)
    said = str(error) if isinstance(error, IfOnlyError) else f"{type(error).__name__}: {error}"
    versions = (
        f"Other versions are installed than those of the record: {'; '.join(other)}. Check it under those of the record."
        if other
        else "The versions are those of the record, so the file is damaged, or it is another model."
    )
    return f"The model cannot be asked here: {said[:300].rstrip('.')}. {versions}"


def _installed(package: str) -> str:
    """Return the version of a package that is installed now."""
    if package in ("python", "ifonly"):
        return platform.python_version() if package == "python" else __version__
    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, ValueError):  # a record can name anything
        return "none"
