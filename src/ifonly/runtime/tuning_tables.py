"""Tuned numbers of what there is before any `Tuning` can be passed in: tables that are read, and caches."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.runtime.tuning_group import Group

__all__ = ["CACHES", "TABLES", "Caches", "Tables"]


@dataclass(frozen=True, kw_only=True)
class Tables(Group):
    """Tables and their rows: `ifonly.data`."""

    first_look: int = 100  # rows by which most continuous columns, and columns of enough values, are told; guess
    wide: int = 64  # features from which on one row is read like a table; guess
    # A frame of which more than this part differs is made anew, one column of which takes some 50 microseconds; guess.
    many: int = 3


@dataclass(frozen=True, kw_only=True)
class Caches(Group):
    """Computed values that are kept: `ifonly.runtime.memo`."""

    kept: int = 16  # of each kind, the most recently used ones; guess


TABLES, CACHES = Tables(), Caches()
