"""Tuned numbers of searches with prices, and of balls; `tuning` has the others, and what all of them are."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.runtime.tuning_group import Group

__all__ = ["Balls", "CentreSearch", "CoveringSearch", "PriceSearch"]


@dataclass(frozen=True, kw_only=True)
class PriceSearch(Group):
    """Prices of splits, where a search over cells gets nowhere without: `ifonly.search.cells.split_prices`, `improving`."""

    plain_parts: int = 200  # of the search without prices, before; guess
    plain_parts_compiled: int = 2_000  # the same for the compiled kernel; guess: some 5 ms
    first_steps: int = 200  # for the whole; measured: 400 take a fifth longer, and save no parts
    steps: int = 15  # for a part; measured: between 10 and 40 it makes little difference, with 6 three times the parts
    work_at_once: int = 4_000_000  # leaves, of the steps between two looks at the clock; guess: some 20 ms
    least_at_once: int = 5  # steps in any case, with which a point is looked at; guess
    first_work: int = 20_000_000  # the same for all steps in the whole; guess
    momentum: float = 0.7  # share of a step's direction that the next one keeps; guess
    stretch: float = 1.4  # of a step beyond where the goal would be missed if the bound were linear; guess
    patience: int = 10  # steps without progress after which they become shorter; guess
    shorter: float = 0.7  # by this factor; guess
    round_every: int = 5  # steps between two points that are looked at; guess
    round_work: int = 500_000  # trees times points that are tried on the way home, of one point; guess: some 15 ms
    counted: int = 20  # last steps whose best leaves tell where to split, at most; guess
    beyond: float = 1e-6  # of the size of the scores, by which the goal should be missed; guess
    trade_parts: int = 250  # after which changes of the incumbent are traded; measured: as long as these take
    most_parts: int = 400_000  # before a solver takes over; guess
    share: float = 0.7  # of the time left, after which a solver takes over; guess
    weight_share: float = 0.1  # of the size of scores, by which goals differ; guess
    kept_unit: float = 1 / 8  # of the largest value of a leaf, to which kept prices are rounded; measured: 97 bytes
    kept_bytes: int = 48 * 2**20  # of a proof with prices, before they are packed; guess: less than a file may have


@dataclass(frozen=True, kw_only=True)
class CoveringSearch(Group):
    """Covering problems of distances that are to be kept: `ifonly.search.distances`."""

    plain_parts_compiled: int = 50_000  # of a search over cells, before prices are tried; measured, "At a distance"
    most_nodes: int = 2_000  # of one region, after which it is left open; guess
    most_nodes_of_scores: int = 200  # of a box with linear scores, after which a solver takes over; guess
    steps: int = 200  # of the simplex method, for one relaxation; guess
    vertices: int = 12  # rounds in which least points of squares become candidates; guess
    rough: float = 0.01  # share to which that is done where the node is branched on anyway; guess
    dear: float = 1e4  # price of a unit by which a row falls short, in the unit of the costs; guess
    list_every: int = 4  # splits after which all points of a region are listed, if they are few; guess
    most_listed: int = 20_000  # such points; guess: some 20 ms
    looked_at: int = 8  # times as many that are looked at for them at once; guess
    points: int = 4  # earlier answers with one more change that are offered as incumbents; guess


@dataclass(frozen=True, kw_only=True)
class Balls(Group):
    """Robust answers: `ifonly.criteria.robustness`, all but the ranges."""

    reserved: float = 0.25  # share of the time kept for the proof of an answer that comes at the last moment; guess
    as_long: float = 2.0  # times the longest proof so far is kept, if that is less; guess
    refinements: int = 20  # of a form, for one attack; guess
    gap: float = 0.1  # of the least lead at which an attack may end; guess: what flips, flips by however much
    fine: float = 10.0  # steps of a grid within the reach that make it as good as continuous; guess
    copies: int = 5  # of a model that boxes can replace, in linf; guess: more make the program slow
    copies_round: int = 3  # the same in l2; guess
    lifts: int = 4  # of an answer that an attack broke; guess
    lift_gap: float = 0.02  # to which such a lift is solved; guess
    lifted: float = 1.2  # times the lead that it was behind by, which is asked for more; guess
    firmer: tuple[float, ...] = (1.0, 0.7)  # shares of what a box takes from members of a vote, to ask for first; guess
    tangents: int = 200  # of an l2 ball, for one attack on a hard vote; guess: a dozen are the rule
    mixes: int = 32  # directions between the steepest ones of two members in which an attack is deepened; guess
    sweeps: int = 2  # over the features, to pull a robust point back; guess
    spread: int = 65  # values of one feature that are tried on the way; guess
    pulling: float = 0.2  # share of the time left that this may take; guess
    halvings: int = 60  # of the price at which a shift fills its ball; guess: beyond the digits of a float64
    looks: int = 20  # boxes of cells in which a worse point than the first flipping one is looked for; guess
    kernel_work: int = 300_000  # looks at leaves and no-goods between two at the clock; guess: some 6 ms, at most 30
    kernel_bytes: int = 1 << 29  # of the compiled search's nodes and no-goods; guess
    rows: int = 8  # training rows that are tried as first robust answers; guess
    row_answers: int = 2  # of which so many are enough; guess
    around: float = 0.2  # share of the time for incumbents of an l2 ball by the box around it; guess
    around_runs: int = 300  # the same in runs of the compiled search; guess: some half a second
    ball_prices: int = 4  # steps towards the price at which the best shift of a part of an l2 ball fills it; guess
    descents: int = 3  # linear pieces of a network that an attack follows downhill; guess
    parts_at_once: int = 512  # of a ball around a point of a network; guess
    part_work: int = 100_000_000  # multiplications for all of them; guess: less than 0.1 s
    sign_runs: int = 20  # of the compiled attack on a network, after which boxes are divided; guess: one is the rule
    sign_work: int = 20_000_000  # its multiplications between two looks at the clock; guess: some 40 ms
    handed: int = 1  # points of a first search that are attacked besides its answer; guess
    most_ball_parts: int = 20_000  # of a ball, beyond which a solver is asked; guess


@dataclass(frozen=True, kw_only=True)
class CentreSearch(Group):
    """Branch and bound over centres of balls, of networks: `ifonly.search.balls.networks`."""

    # without the kernel:
    least_units: int = 16  # below which a solver is asked at once; measured: 10 take it 0.7 s, the search up to 3
    most_numbers: int = 20  # in a ball, beyond which a solver is asked at once; measured: sooner with 34, not with 8
    most_nodes: int = 400_000  # after which it gives up; guess
    first_look: int = 20_000  # nodes after which progress is judged first, then whenever they double; guess
    least_done: float = 0.1  # share of the gap at the root that must be closed by then; guess
    share: float = 0.8  # of the time left, after which a solver is asked; guess
    nodes_at_once: int = 256  # guess
    work_at_once: int = 800_000_000  # multiplications for all of them; guess: less than 0.2 s
    points: int = 2  # nodes of each round that are looked at for incumbents; guess
    polishes: int = 3  # linear pieces that are looked at from each of their points, and again for more lead; guess
    shifts: int = 3  # of one ball under which a node is bounded; guess
    same: float = 0.2  # of the reach, within which two of them count as one; guess
    weights: int = 5  # halvings of the weight between the rows under two of them; guess
    planes: int = 1  # rounds of further planes through the points that the first ones leave cheapest; guess
    learned: int = 8  # shifts that broke a point, which are tried at further ones; guess
    kernel_work: int = 20_000_000  # its multiplications between two looks at the clock; guess: some 40 ms
    kernel_bytes: int = 1 << 29  # of the compiled search's nodes; guess
    on_the_way: int = 65  # points between the row and a training row that are tried; guess
    farthest: float = 2.0  # times the way to the training row, where the last of them lies; guess
