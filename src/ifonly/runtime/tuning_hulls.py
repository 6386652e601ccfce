"""Tuned numbers of hulls, and of column generation in their programs; `tuning` has the others, and what all of them are."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.runtime.tuning_group import Group

__all__ = ["ColumnGeneration", "Hulls"]


@dataclass(frozen=True, kw_only=True)
class Hulls(Group):
    """Hulls of training rows: `ifonly.criteria.manifold`."""

    seeds: int = 8  # rows near a point with which its program starts; guess
    looked_at: int = 20_000  # rows among which these are looked for; guess
    rows_in_memory: int = 65_536  # that are computed with at once, beyond those that are kept; guess: some 10 MB
    tangents: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125, 0.03125)  # of a square, as shares of its reach; guess
    wolfe_rounds: int = 2000  # of Wolfe's algorithm; guess
    squeezes: int = 3  # passes over the box; guess
    worth: float = 0.8  # share of the box that must go to make another pass worth it; guess
    rows_at_once: int = 256  # that are put to the model; guess
    lines: int = 40  # to training rows, along which points are looked for; guess
    stops: int = 12  # points on a line; guess
    walks: int = 6  # from the most promising points; guess
    steps: int = 12  # of a walk; guess
    sparser: int = 4  # rounds of fewer changes; guess
    least_move: float = 1e-3  # below which a change costs no more to take back; guess
    ridge: float = 1e-3  # penalty of the slope of scores that candidates follow; guess


@dataclass(frozen=True, kw_only=True)
class ColumnGeneration(Group):
    """Column generation, and branch and price: `ifonly.solvers.priced_lp`, `branch_and_price`."""

    written_down: int = 200  # columns that are cheaper to write down than to generate; guess
    smaller: float = 0.6  # share of the first gap at which a smaller program is worth building; guess
    at_once: int = 20  # columns that enter in one round; guess
    penalty: float = 100.0  # of slack at first; guess
    dearer: float = 10.0  # times as much where some is left; guess
    dearest: float = 1e7  # penalty at which that ends; guess
    many: int = 50_000  # columns from which on those along some directions are remembered; guess: some 2 ms for all
    listed: int = 8_192  # columns that are remembered for a direction; guess: some 0.1 ms
    directions: int = 48  # that are remembered; guess: some 60 MB of rows of twenty numbers
