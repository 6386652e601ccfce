"""Tuned numbers of questions about models that are only observed; `tuning` has the others, and what all of them are."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.runtime.tuning_group import Group

__all__ = ["Learning", "Observing", "Pulling"]


@dataclass(frozen=True, kw_only=True)
class Observing(Group):
    """Rounds of learning and searching, and the budget of the black box: `ifonly.surrogate`."""

    rows: int = 30_000  # that are put to the black box for one answer at most; guess
    first: int = 16  # rows of the first call, by which its pace is told; guess
    piece: float = 0.25  # seconds that one call may take at most; guess
    share: float = 0.05  # share of the time left that it may take, where that is more; guess
    quick: float = 0.05  # seconds of a call that may find what it looks for among the first rows; guess
    most: int = 2_048  # rows of such a call; guess
    clip: float = 6.0  # log-odds beyond which a probability tells nothing more about the boundary; guess
    least_lead: float = 0.02  # its sign is the black box's word, whatever its scores say; guess
    told: int = 4_000  # training rows whose answers tell the classes; guess
    rounds: int = 12  # of learning and searching; guess
    patience: int = 3  # rounds without a cheaper row after which they end; guess
    starts: int = 6  # confirmed rows of a kind that are pulled towards the factual before anything is learned; guess
    traded: int = 2  # and those of them that features are exchanged of; guess
    near_rows: int = 40  # times as many training rows with the outcome that are put to it first; guess
    mixed_with: int = 10  # times as many of them that the factual is mixed with; guess
    checked: int = 8  # times as many rows as are wanted that are put to it; guess
    judged: int = 8  # points of one search that are put to it; guess
    near: float = 1.5  # times the best cost, up to which a row is worth exchanges; guess
    mixed: int = 400  # rows between the factual and others; guess
    more_mixed: int = 4  # times as many around the factual, where none of them has the outcome; guess
    # One row in so many that can still be asked about: of starts, of values in a sweep, of rows between, and around.
    start_share: int = 1_000  # guess
    sweep_share: int = 100  # guess
    mixed_share: int = 10  # guess
    around_share: int = 5  # guess
    around: int = 60  # rows around a point that a surrogate found; guess
    sizes: tuple[float, ...] = (0.02, 0.1)  # of their moves, as shares of the box; guess
    widely: float = 0.3  # the same around the factual; guess
    moved: float = 0.15  # share of the features that such a row moves; guess
    least_moved: float = 1.5  # and how many at least, on average; guess
    way_share: int = 3  # of as many rows, one on the way to that point; guess
    nearest: int = 1_200  # training rows that a surrogate is learned from; guess
    searched: float = 2.0  # seconds of one search in a surrogate; guess
    longer: float = 1.5  # times the last fit, that must be left for a further round; guess
    gap: float = 0.02  # of such a search; guess
    fit: float = 0.3  # seconds that a first fit is expected to take; guess
    stricter: float = 0.15  # lead asked of the surrogate more after each refusal, in deviations of the leads; guess
    kept: float = 0.1  # share of the time that is kept for the end; guess
    kept_of: float = 5.0  # seconds, the most that this is a share of; guess
    sweep: int = 12  # values of one number in a sweep; guess
    sweep_there: int = 5  # the same around a point that a surrogate found; guess
    quantiles: int = 6  # and those of them that are quantiles of the training rows; guess
    exhausted: int = 20_000  # rows that cost less than the best, up to which all of them are asked; guess
    halvings: int = 8  # by which the cost is found below which there are no more than that; guess


@dataclass(frozen=True, kw_only=True)
class Pulling(Group):
    """A confirmed row on its way back to the factual: `ifonly.surrogate.pulling`."""

    shares: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 0.875, 0.9375, 0.984375)  # parts of a move that are kept; guess
    exchanged: tuple[float, ...] = (0.0, 0.5, 0.9)  # the same, where another feature moves in exchange; guess
    rounds: int = 60  # of moves, at most; guess
    gain: float = 0.002  # share of the cost below which a cheaper row is not worth another round; guess
    exchanges: int = 4_000  # moves of two features that are looked at; guess
    values: int = 6  # of the feature that goes elsewhere; guess
    parts: int = 40  # of the way back that are looked at in the end; guess
    times: int = 3  # that the last one is divided anew; guess


@dataclass(frozen=True, kw_only=True)
class Learning(Group):
    """Readable models of a black box: `ifonly.surrogate.learning`."""

    held_out: float = 0.25  # share of the rows by which they are chosen; guess
    trees: int = 40  # of the boosting; guess
    depth: int = 3  # of its trees; guess
    rate: float = 0.25  # of its learning; guess
    units: int = 10  # of the network; guess
    decay: float = 0.1  # penalty of its weights; guess
    steps: int = 150  # of its training; guess
    ridge: float = 1.0  # penalty of the linear one; guess
