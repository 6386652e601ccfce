"""Tolerances: every number below which two things count as the same, in one place.

Three things are not exact, and all tolerances come from them:

* sums of floats: a float64 has a spacing of ``2^-52 = 2.2e-16``, and a sum of some thousand terms loses some thousand of it;
* solvers: branch and bound keeps rows and integers to 1e-6, a linear program that is asked to keeps its rows to 1e-9;
* proofs: an answer is optimal when its cost is within a gap of 1e-6 of the bound.

Costs are not negative, and a gap is relative to the cost of the answer: ``(objective - bound) / |objective|``, however
small that is: in units of 1e-9, squared, every cost is below 1e-18, and one of them may still be three times another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from ifonly._moved import forwarding

__all__ = [
    "ANOTHER_ANSWER",
    "ASKED_OF_ROUNDING",
    "AT_AN_EDGE",
    "BEYOND_A_TIE",
    "BEYOND_A_TIE_IN_BALL",
    "BEYOND_A_VOTE_IN_BALL",
    "BEYOND_BUDGET",
    "BEYOND_ROUNDING",
    "BEYOND_THE_THRESHOLD",
    "BROKEN_OF_ROOM",
    "CELL_COST_ROUNDINGS",
    "CHAINED_ROUNDING",
    "CLOSING",
    "COARSE",
    "COST_LEFT_ROUNDINGS",
    "DUST",
    "EDGE",
    "ENOUGH_OF_ROOM",
    "FACTUAL_ROUNDINGS",
    "FEASIBILITY",
    "FLOAT32_ROOM",
    "FLOAT64_ROOM",
    "FOLDS",
    "HALF_CLOSING",
    "HALF_ULP",
    "INPUT_ROUNDINGS",
    "INSIDE",
    "INTEGRALITY",
    "IN_HULL",
    "KEPT_ROW",
    "LARGEST_LOGIT",
    "LATTICE_STEP",
    "LAYER_ROUNDINGS",
    "LEAST_FLOAT",
    "LEAST_GAIN",
    "LINE_OF_UNIT",
    "LONG_ROUNDINGS",
    "LONG_SUM",
    "LOST_OF_ROOM",
    "LP_EXACT",
    "LP_ROOM",
    "MARGINS_AT_THE_EDGE",
    "MODEL_ROUNDINGS",
    "MOST_BEYOND_A_VOTE",
    "MOST_COUNTS",
    "MULTIPLE",
    "NEAR_A_STEP",
    "NEAR_A_TIE",
    "NOISE",
    "NO_GAP",
    "OFFERED_OF_ROUNDING",
    "ON_BREAKPOINT",
    "ON_GRID",
    "OPTIMALITY",
    "ORDINARY",
    "OUTLIERS_RULE",
    "OUT_OF_REACH",
    "PAIRWISE_ROUNDINGS",
    "PASSES_OF_ROOM",
    "PRICED_PRODUCT",
    "PRICE_ROUNDINGS",
    "PROGRAM_ROUNDINGS",
    "REACH_ROUNDINGS",
    "REFUTES",
    "RIDGE",
    "ROUNDING",
    "SAME_BREAKPOINT",
    "SAME_FILE",
    "SAME_FOOT",
    "SAME_GRAPH",
    "SAME_LABELS",
    "SAME_MEAN",
    "SAME_PLANE",
    "SAME_POINT",
    "SAME_RATIO",
    "SCORE_OPERATIONS",
    "SHORT_SUM",
    "SMALLEST_ENTRY",
    "SMALLEST_PIVOT",
    "SMALLEST_THRESHOLD",
    "SOLVER_ROUNDINGS",
    "SPACING",
    "SPACING_OF_FLOAT32",
    "SPENT_ROUNDINGS",
    "SQUARED_GAP",
    "STEEPEST",
    "STORED_MOVE",
    "STORED_ROUNDINGS",
    "SURELY_OFF",
    "TERMS_OF_ROUNDING",
    "TINY",
    "TOLD_STEP",
    "TWICE",
    "UNIT_PARTS",
    "UNIT_ROUNDINGS",
    "VOTE_DIGITS",
    "WEIGHED_VOTERS",
    "WIDER",
    "WIDEST",
    "allowed_gap",
    "closing_gap",
    "near_a_tie",
]

# -- proofs ----------------------------------------------------------------------------------------------------------
OPTIMALITY = 1e-6  # relative gap up to which an answer is called proven optimal
# Share of a proven cost by which a point must be cheaper to refute the proof: demands hold to some millionths of their scale.
REFUTES = 1e-2
# Share of what a relative gap allows at which a search may stop looking; the rest is for storing the answer (`closing_gap`).
CLOSING = 0.5
# Share of a gap to which each of two programs is solved where both optima must lie within `CLOSING` of it.
HALF_CLOSING = 0.5 * CLOSING
NO_GAP = OPTIMALITY**2  # gap that a solver is given where it may leave none

# -- sums of floats --------------------------------------------------------------------------------------------------
ROUNDING = 1e-12  # share of the sum of absolute terms by which a sum may be off: some 4,000 spacings of float64
EDGE = 1e-12  # share of an end of an interval by which a value may lie beyond it: decimal numbers are not exact
CHAINED_ROUNDING = 10.0 * ROUNDING  # the same for sums of sums: layers, chains of a curve, a transformer's columns
NOISE = 0.1 * ROUNDING  # share of the scores' size below which a single term is lost in the rounding of the others
DUST = 1e-9  # share that is more than sums can lose and less than a solver sees: widens bounds, and is no gain
ORDINARY = 1e-140, 1e140  # between these, nothing that is multiplied underflows or overflows, not even its square
STEEPEST = (
    1e9  # rate of a cost, in the unit of its program, beyond which it is charged less: a step of DUST costs 1 then
)
TINY = 1e-300  # keeps a divisor from being 0: near the least normal float64
FLOAT64_ROOM = 1e-14  # share of a number within which its neighbours in float64 lie, some 45 of them
SURELY_OFF = (
    1e-4  # share of the terms of a unit by which it must be below zero to be off in float32 too: 800 of its spacings
)
FLOAT32_ROOM = 1e-6  # share of a number within which its neighbours in float32 lie, some eight of them (2^-23 = 1.2e-7)
SPACING = 2.0**-52  # share of a number within which its neighbour in float64 lies; a rounding is at most half of it
SPACING_OF_FLOAT32 = 2.0**-23  # the same in float32
SHORT_SUM = 8.0 * SPACING  # share of its size by which a sum of few terms, or a balanced one of many, may be off
# Of a product of two vectors, in the precision it is computed in: an output that a model adds up in its own way is off by so
# many of the model's own.
LONG_ROUNDINGS = 64.0
LONG_SUM = LONG_ROUNDINGS * SPACING  # share of its size by which a product of two vectors may be off
SQUARED_GAP = 2e-15  # share by which the square of a gap in half-axes may be off: nine spacings
STORED_ROUNDINGS = 4.0  # spacings of its dtype by which a value may be off that is stored, and moved and moved back
TERMS_OF_ROUNDING = 1e3  # terms of a sum that `ROUNDING` is for: longer ones are off by as many times more
# Times what a row may be off by: how much more than it a cheapest point is asked for, so that it is surely on the other side.
BEYOND_ROUNDING = 4.0
# Times what a row may be off by: how far a single point may be behind and is still offered, more than 1, lest one that holds
# be closed; and what a point is asked for if it can be had, more than the form itself rounds.
OFFERED_OF_ROUNDING = 1.25
ASKED_OF_ROUNDING = 0.1
# Of two sums of up to 16,000 products, one in the other, each added up pairwise: 16 in each of eight running sums of a block
# of 128, three for the eight, seven for the blocks, one for the product; 27 in all.
PAIRWISE_ROUNDINGS = 2.0 * 32.0
# Rounding errors that add up along one score, in our arithmetic and in the model's: a chain of scaling, products and sums.
SCORE_OPERATIONS = 32.0
PROGRAM_ROUNDINGS = 64.0  # of a score in double precision, in which programs are solved
MODEL_ROUNDINGS = 4.0  # of the model's own precision: half of it is kept by an answer, a quarter by a proof
# Roundings of one score by which an answer must clear its threshold where the search began at the edge, and then where that
# was refused: such a row may be off by one, by which `SCORE_OPERATIONS` bounds all rows.
MARGINS_AT_THE_EDGE = (2.0, 8.0)
# Share of the spread of scores beyond which their rounding decides outcomes by itself: no margin makes a proof of it. Plain
# sums have a third of this where a column around 1e9 varies by a hundredth, a hundred thousand floats.
COARSE = 1e-2
PRICE_ROUNDINGS = 16  # of a bound by prices, beside those of its sums over trees, splits and features
# -- and of the bounds that the checker of a proof computes anew, in roundings of `HALF_ULP`: `ifonly.record`
HALF_ULP = 0.5 * SPACING  # share of a number by which one operation may be off: `u` of the derivations there
LEAST_FLOAT = 2.0**-1074  # the least float above 0: by as much a product may be off that is nearly 0
TWICE = 2.0  # times what is derived to first order: more than all that `k u / (1 - k u)` adds to `k u`, as long as k u < 1/2
CELL_COST_ROUNDINGS = 8.0  # in the cost of one cell: a difference, two products, a square and three sums
COST_LEFT_ROUNDINGS = 8.0  # between a cost and what is left for it, twice as many as there are
# Of a unit's size, by which its two lines are moved apart: whatever slope the chord was given, an end is a difference, a
# product and the sum with this, three roundings of twice the size at most.
LINE_OF_UNIT = 8.0 * HALF_ULP
# Of a bound through a network, before it is doubled: two per unit and four per layer, of the sums that carry it through them;
# six per input of the sum at the end, whose terms have up to three times their size; and what the operations beside these
# sums take, of that sum and of one of costs. The derivation is at the head of `ifonly.record.network_bounds`.
UNIT_ROUNDINGS, LAYER_ROUNDINGS, INPUT_ROUNDINGS, SPENT_ROUNDINGS = 2.0, 4.0, 6.0, 32.0
# Of how far a number may go for what is left to it, a square root and a quotient among a dozen operations; and of the
# factual's value that it goes away from.
REACH_ROUNDINGS, FACTUAL_ROUNDINGS = 64.0, 8.0
PRICED_PRODUCT = 8.0 * HALF_ULP  # share of a product by which it is moved, so that two more roundings cannot undo it
SMALLEST_THRESHOLD = 1e-30  # the same around 0, where there is no share


class _Same(TypedDict):
    """Tolerances of a comparison by `numpy.allclose`."""

    rtol: float
    atol: float


SAME_POINT = _Same(rtol=ROUNDING, atol=NOISE)  # of numpy.allclose, for two points or curves that are the same

SAME_GRAPH = (
    1e-3  # share by which scores of a graph may differ: float32 keeps seven digits, a misread one the first few not
)
SAME_FILE = 1e-4  # share by which a booster's score may differ from what its file says: the same, of a sum of leaves
# Share of some rows whose labels may differ where a graph has no probabilities: near ties fall either way in float32.
SAME_LABELS = 0.25
SAME_BREAKPOINT = 0.01 * DUST  # share of its argument within which two breakpoints of a curve are one

# -- grids -----------------------------------------------------------------------------------------------------------
ON_GRID = DUST  # share of a step within which a number lies on the grid: steps are decimal numbers, and so not exact
# Step of a lattice of scores, in roundings of sums: `ON_GRID` of a step is then more than a score may be off in float64.
LATTICE_STEP = 1e6
MULTIPLE = 0.1 * ON_GRID  # share of its count within which a leaf value is a multiple of a common unit
TOLD_STEP = 0.1  # share of a step below which `FLOAT64_ROOM` must stay for its grid to be told
NEAR_A_STEP = 0.25  # share of a step within which a computed end lies at a point of the grid: it is off by less
AT_AN_EDGE = 1e-3  # share of a step within which a point of a linear program lies at the edge of its cell
UNIT_PARTS = 24  # parts of the least leaf value among which a common unit is looked for
WEIGHED_VOTERS = 10  # voters of which all sums of weights are compared, for the least difference between two of them
VOTE_DIGITS = 9  # decimals in which they are, those of `DUST`; of more voters it is `FEASIBILITY` of the least weight
MOST_COUNTS = 1e6  # of units or steps that are told apart: beyond, one of them is below `FEASIBILITY` of the whole

# -- solvers ---------------------------------------------------------------------------------------------------------
FEASIBILITY = 1e-6  # to which branch and bound keeps rows and integers: the solvers' own tolerance
INTEGRALITY = 0.1 * FEASIBILITY  # within which a value of a linear program counts as whole
LP_EXACT = 1e-9  # to which linear programs are asked to keep rows and reduced costs, for points that are used
LP_ROOM = 10.0 * LP_EXACT  # what that can move a coordinate or a combination of rows by, several times over
SAME_FOOT = 1e-3  # within which the foot of a perpendicular is met by a square that is off by `FEASIBILITY`: its root
INSIDE = 2.0 * LP_EXACT  # by which a repaired point stays within its rows: more than a linear program can be off
# Times `LP_EXACT`: to which a linear program without a verdict is solved again. What an answer breaks is seen in the end.
WIDER, WIDEST = 10.0, 100.0
IN_HULL = 10.0 * LP_ROOM  # distance at which a point counts as in a hull: `LP_ROOM` in each of several coordinates
SMALLEST_ENTRY = 1e-9  # entries of a matrix below this are zero to HiGHS (its option small_matrix_value)
# -- of our own simplex method, whose multipliers alone count: a bound that follows from them holds, whatever they are
KEPT_ROW = 1e-10  # to which it keeps its rows: a tenth of `LP_EXACT`
SMALLEST_PIVOT = SMALLEST_ENTRY  # entries below this are no pivots
SAME_RATIO = NOISE  # difference of ratios that count as one: of these the largest pivot is taken
BEYOND_BUDGET = 0.1 * FEASIBILITY  # share beyond a budget up to which it solves: more than rounding takes off the bound
# -- and of the mean of planes, any weights of which bound a row: weights stay where a sweep changes the bound by less, and a
# plane that is not lower by more is not added
SAME_MEAN = DUST
SAME_PLANE = 0.1 * FEASIBILITY

LEAST_GAIN = 1e-6  # of a branch in the product score of branching (Achterberg 2007), so that no factor is 0
FOLDS = 14  # of a plane, after which a length is right to 5e-9 per storey of the tower of rows
ON_BREAKPOINT = 0.1 * FEASIBILITY  # share of a curve's scale within which a point is one where a chain is exact
# How far beyond a tie a score must lie after none, one, two ... refusals by the model: none at first, so that no point is
# lost, and bounds hold; then more than a linear program can be off by, which costs less than the gap of a proof; at last
# more than branch and bound can overlook.
BEYOND_A_TIE = (0.0, 4.0 * LP_ROOM, 4.0 * FEASIBILITY, 40.0 * FEASIBILITY, 400.0 * FEASIBILITY)
NEAR_A_TIE = 10.0  # times that, or times what a solver can overlook: a refused point within it lies at a tie
# Of what the score can change by in a ball: by how much it must clear its threshold all over. A tie is not robust, and a
# solver is off by a little less than this.
BEYOND_A_TIE_IN_BALL = 10.0 * FEASIBILITY
# Of what the score of a member of a hard vote ranges over: by how much it must clear its own ties all over a ball. Its rows
# have a big-M of that range, so a solver may be off by FEASIBILITY of it; the adversary attacks with half of this.
BEYOND_A_VOTE_IN_BALL = 4.0 * FEASIBILITY
# Of what that score ranges over in the ball: more than this it need not clear its ties by, whatever other columns range over.
MOST_BEYOND_A_VOTE = 100.0 * FEASIBILITY
# Shares of the room that a robust row is demanded with beyond its margin. The first is what a lead must keep to be enough:
# the rest is left to the solver. An attack must take so much more than that to break an answer; the search for centres lets
# half of it pass. The compiled attack looks for what is lost by a little more still.
ENOUGH_OF_ROOM = 0.5
BROKEN_OF_ROOM = 0.25
PASSES_OF_ROOM = 0.5 * BROKEN_OF_ROOM
LOST_OF_ROOM = 0.2 * BROKEN_OF_ROOM
LARGEST_LOGIT = 36.0  # of a probability that float64 can tell from 1: 2^-52 is exp(-36)
OUT_OF_REACH = 1e12  # a threshold that a program can hold and no score reaches
# Shares by which a point on its threshold is moved beyond it, till it clears it: from some spacings of a float up to `DUST`.
BEYOND_THE_THRESHOLD = (0.0, *(10.0**k for k in range(-15, -8)))
SOLVER_ROUNDINGS = 1e8  # roundings of a score that the tolerances of a solver may be worth

# -- answers ---------------------------------------------------------------------------------------------------------
ANOTHER_ANSWER = 1e-4  # of the training range: what moves by less is not another answer
STORED_MOVE = 0.999  # share of that move which storing it in the data's dtypes may leave

# -- statistics ------------------------------------------------------------------------------------------------------
OUTLIERS_RULE = 25.0  # a range so many times the width of the middle nine tenths says nothing of a usual change
RIDGE = (
    1e-6  # of each variance, added to a covariance to keep it invertible: correlations up to 1 - 1e-6 are told apart
)


def allowed_gap(objective: float, gap: float = OPTIMALITY) -> float:
    """Return the absolute difference between objective and bound that a relative gap allows."""
    return gap * abs(objective)


def near_a_tie(away: float) -> float:
    """Return the distance from a tie within which a refused point counts as lying at it, where a program keeps `away`."""
    return NEAR_A_TIE * max(FEASIBILITY, away)


def closing_gap(value: float, gap: float) -> float:
    """Return how far below the incumbent a search may stop looking: half of what the relative gap allows.

    A search that proves that nothing costs less than ``value - closing_gap(value, gap)`` has closed the gap. The other
    half is for what follows it: the answer is stored in the dtypes of the data, and its cost measured again.
    """
    return CLOSING * allowed_gap(value, gap)


if not TYPE_CHECKING:  # to type checkers, what is not above is not there
    __getattr__ = forwarding(__name__)
