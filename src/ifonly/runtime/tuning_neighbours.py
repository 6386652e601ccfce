"""Tuned numbers of the search for k-nearest-neighbour models; `tuning` has the others, and what all of them are."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.runtime.tuning_group import Group

__all__ = ["NeighbourSearch"]


@dataclass(frozen=True, kw_only=True)
class NeighbourSearch(Group):
    """Branch and bound over the inputs of k nearest neighbours: `ifonly.search.inputs.nearest`."""

    most_nodes: int = 200_000  # after which it gives up; guess
    first_look: int = 4_000  # nodes after which progress is judged first, then whenever they double; guess
    least_done: float = 0.05  # share of the gap at the root that must be closed by then; guess
    share: float = 0.8  # of the time left, after which a solver is asked; guess
    nodes_at_once: int = 16  # guess
    work_at_once: int = 1_000_000  # entries of knapsacks of all of them; guess
    rivals: int = 8  # rows that are compared with each row of a set, beyond the least number; guess
    most_levels: int = 4  # values by which rows are divided into two sets; guess
    rows: int = 16  # of the training data with the wanted outcome, from which incumbents are looked for; guess
    shares: int = 16  # of the way home that are tried to take a change back; guess
