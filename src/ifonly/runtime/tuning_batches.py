"""Tuned numbers of batches, and of the check of records; `tuning` has the others, and what all of them are."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.runtime.tuning_group import Group

__all__ = ["Batches", "Checking"]


@dataclass(frozen=True, kw_only=True)
class Batches(Group):
    """Many rows, in memory or in a folder: `ifonly.batch`."""

    block_rows: int = 128  # whose guesses are put to the model together; guess
    block_seconds: float = 2.0  # after which a smaller block is: answers are held back no longer; guess
    encoded_rows: int = 1024  # that are made canonical together; guess
    tasks_per_worker: int = 2  # under way at the same time; guess: one at work, one at hand
    parts_per_worker: int = 8  # of a table in memory, so that none waits long for the last one; guess
    part_rows: int = 50  # of such a part at most; guess
    poll_seconds: float = 0.1  # between two looks at futures that cannot be waited for; guess
    look_seconds: float = 0.5  # between two looks for the file that stops a worker; guess
    beat_seconds: float = 1.0  # between two counts of the rows under way; guess
    sync_seconds: float = 2.0  # of work that a loss of power may cost: a journal is forced to the disk so often; guess
    deaths: int = 2  # of workers that a shard may cause, alone, before it is given up; guess


@dataclass(frozen=True, kw_only=True)
class Checking(Group):
    """Records and their proofs, checked by a stranger: `ifonly.record`."""

    samples: int = 200  # points of a range that are put to the model; guess
    most_entries: int = 20_000_000  # of a program whose duals are added up in fractions; guess: minutes, 50 bytes each
    parts_at_once: int = 64  # of a proof about a network, looked at together; guess
    entries_at_once: int = 1_000_000  # of the largest array of all these; guess: 8 MB
    most_halved: int = 64  # parts of a part that is not closed at once; guess
