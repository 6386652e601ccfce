"""The version of the package, for everything that is stamped with it."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
