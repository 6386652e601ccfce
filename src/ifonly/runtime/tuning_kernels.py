"""Tuned numbers that are handed over to the compiled kernels of balls; `tuning` has the others, and what all of them are."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.runtime.tuning_group import Group

__all__ = ["NoGoodSearch", "SignSearch"]


@dataclass(frozen=True, kw_only=True)
class NoGoodSearch(Group):
    """Compiled branch and bound over centres of balls, by no-goods: `ifonly.search.balls.trees`."""

    first_slack: float = 0.7  # squares of gaps that no-goods may be touched by at first; guess
    next_slack: float = 0.1  # times as much at each closer look, below 1; guess
    unit: float = 0.3  # of the slack, in half-axes: the grid that splits lie on; guess
    least_part: float = 0.1  # of a way out that a split leaves on either side at least; guess
    most_patience: int = 8  # times the work of a run, that one attack may take; guess
    first_patience: int = 4  # such runs for the way home of a training row; guess
    probes: int = 6  # no-goods that a probe gets away from; guess
    pull_rounds: int = 64  # over the no-goods, to pull one number back; guess: a few are the rule
    pull_attacks: int = 12  # on a number that is pulled back; guess
    pull_sweeps: int = 3  # over the features; guess
    dive_steps: int = 2_000  # no-goods that a dive gets away from; guess
    dive_cost: float = 2.0  # times the budget, beyond which a dive ends; guess

    def __post_init__(self) -> None:
        super().__post_init__()
        self._below_one("next_slack")


@dataclass(frozen=True, kw_only=True)
class SignSearch(Group):
    """Compiled branch and bound over inputs and signs of units: `ifonly.models.forms.signs`."""

    programs: int = 60  # of one node; guess
    most_pivots: int = 2_000  # of one program; guess: what is known then is a bound as well
    most_tries: int = 4  # refused points of one node, after which it is split; guess
    away: float = 0.1  # share of a range that a split leaves on either side at least, below 1; guess
    early: float = 0.1  # share of the loosest unit's score at which one of an earlier layer is split first; guess
    recent: int = 64  # shifts that a new one is compared with; guess
    shift_memory: int = 8  # of as many parts of the memory, one for the shifts of a network; guess
    # Shares of what a row may be behind by at a point that is offered: planes are added that the point is below by so much;
    cut_from: float = 0.05  # guess
    broken_from: float = 0.1  # and shifts that break it by so much are taken in hand; guess
    all_rows: int = 4  # rows of a network up to which all of them are looked at under each shift; guess
    first_ray: float = 1e-3  # times the ray that shows that a program has no point, for a bound above the budget; guess
    longer_ray: float = 4.0  # then so many times as much; guess
    rays: int = 60  # such tries; guess
    dives: int = 2  # nodes, of which one may be a child of the last; guess
    first_proposals: int = 16  # nodes from each of which an incumbent is looked for; guess
    propose_every: int = 8  # then from one in so many; guess
    cuts: int = 12  # linear pieces by which a point of a node is put right; guess
    lifted_from: int = 6  # from which on more is asked of it; guess
    lifted: float = 1.1  # times the lead that it was behind by; guess
    tried: int = 6  # last shifts that are tried at a point; guess
    descents: int = 4  # linear pieces that are followed downhill from there; guess
    betweens: int = 4  # searches between the worst shift and the next one downhill; guess
    thirds: int = 12  # cuts of such a way by a third; guess
    # of the weights of planes over an ellipsoid
    sweeps: int = 200  # guess
    most_weight: float = 1e6  # that one function may gain in one move; guess
    more_weight: float = 10.0  # and times what it has; guess

    def __post_init__(self) -> None:
        super().__post_init__()
        self._below_one("away")
