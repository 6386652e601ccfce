"""Tuned numbers of the searches over inputs of networks; `tuning` has the others, and what all of them are."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.runtime.tuning_group import Group

__all__ = ["NetworkSearch", "PlainSigns"]


@dataclass(frozen=True, kw_only=True)
class NetworkSearch(Group):
    """Branch and bound over the inputs of networks: `ifonly.search.inputs.networks`."""

    most_nodes: int = 20_000  # after which it gives up; guess
    first_look: int = 2_000  # nodes after which progress is judged first, then whenever they double; guess
    least_done: float = 0.1  # share of the gap at the root that must be closed by then; guess
    share: float = 0.5  # of the time left, after which a solver is asked; guess
    nodes_at_once: int = 64  # guess
    work_at_once: int = 400_000_000  # multiplications for all of them; guess: less than 0.1 s
    most_work: int = 400_000_000  # the same for one node, beyond which a solver is asked at once; guess
    per_entry: int = 2_000  # multiplications that an input in the knapsack of a unit is worth; measured: 50 to 90 ns
    most_entries: int = 2_000_000  # such inputs of one node, beyond which a solver is asked at once; measured: 0.14 s
    points: int = 2  # nodes of each round that are looked at for incumbents; guess
    polishes: int = 1  # linear pieces that are looked at from each of their points; guess
    # The same where rows bend, by Newton's method; measured, "Networks inside of curves": one, up to twice the nodes.
    bent_polishes: int = 3
    most_thresholds: int = 6  # scores inside a composite that have a row of their own in a node; guess
    looked_at: int = 64  # parts of what a single score may be, to see whether it is compared with a threshold; guess


@dataclass(frozen=True, kw_only=True)
class PlainSigns(Group):
    """Course of the compiled branch and bound over signs of units in plain questions: `ifonly.search.inputs.signs`."""

    many_values: float = 8.0  # steps of its grid from which on a number is as good as continuous; guess
    # Such numbers from which on it comes before boxes; measured, "Networks without a program": 10 to 20 of HELOC, where it is
    # quicker, and 3 of German Credit, where boxes are.
    least_many: int = 8
    # Share of the features that they must be for that; measured, "Networks without a program": two thirds; a half.
    least_share: float = 0.65
    at_first: int = 4_000_000_000  # multiplications before boxes are halved, if it comes first; guess: some 10 s
    afterwards: int = 40_000_000_000  # the same afterwards, before a solver is asked; guess: some 100 s
    first_look: int = 4_000_000_000  # after which progress is judged first, then whenever they double; guess
    least_done: float = 0.1  # share of the gap at first that must be closed by then; guess
    kernel_work: int = 20_000_000  # multiplications between two looks at the clock; guess: some 40 ms
    kernel_bytes: int = 1 << 29  # of its nodes; guess
    most_inputs: int = 10_000  # beyond which its programs take too much memory; guess: 64 MB
    most_refused: int = 100  # points in a row after which what is left is rounding; guess
