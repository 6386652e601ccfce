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
    "BEYOND_A_TIE",
    "BEYOND_A_TIE_IN_BALL",
    "BEYOND_A_VOTE_IN_BALL",
    "CHAINED_ROUNDING",
    "CLOSING",
    "DUST",
    "EDGE",
    "FEASIBILITY",
    "FLOAT32_ROOM",
    "FLOAT64_ROOM",
    "FOLDS",
    "INTEGRALITY",
    "IN_HULL",
    "LEAST_GAIN",
    "LONG_SUM",
    "LP_EXACT",
    "LP_ROOM",
    "MODEL_ROUNDINGS",
    "MOST_BEYOND_A_VOTE",
    "MOST_COUNTS",
    "MULTIPLE",
    "NOISE",
    "NO_GAP",
    "ON_BREAKPOINT",
    "ON_GRID",
    "OPTIMALITY",
    "ORDINARY",
    "OUTLIERS_RULE",
    "PAIRWISE_ROUNDINGS",
    "PROGRAM_ROUNDINGS",
    "REFUTES",
    "RIDGE",
    "ROUNDING",
    "SAME_GRAPH",
    "SAME_POINT",
    "SCORE_OPERATIONS",
    "SHORT_SUM",
    "SMALLEST_ENTRY",
    "SMALLEST_THRESHOLD",
    "SOLVER_ROUNDINGS",
    "SPACING",
    "STEEPEST",
    "STORED_MOVE",
    "SURELY_OFF",
    "TINY",
    "UNIT_PARTS",
    "allowed_gap",
    "closing_gap",
]

# -- proofs ----------------------------------------------------------------------------------------------------------
OPTIMALITY = 1e-6  # relative gap up to which an answer is called proven optimal
# Share of a proven cost by which a point must be cheaper to refute the proof: demands hold to some millionths of their scale.
REFUTES = 1e-2
# Share of what a relative gap allows at which a search may stop looking; the rest is for storing the answer (`closing_gap`).
CLOSING = 0.5
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
SHORT_SUM = 8.0 * SPACING  # share of its size by which a sum of few terms, or a balanced one of many, may be off
LONG_SUM = 64.0 * SPACING  # share of its size by which a product of two vectors may be off
# Of two sums of up to 16,000 products, one in the other, each added up pairwise: 16 in each of eight running sums of a block
# of 128, three for the eight, seven for the blocks, one for the product; 27 in all.
PAIRWISE_ROUNDINGS = 2.0 * 32.0
# Rounding errors that add up along one score, in our arithmetic and in the model's: a chain of scaling, products and sums.
SCORE_OPERATIONS = 32.0
PROGRAM_ROUNDINGS = 64.0  # of a score in double precision, in which programs are solved
MODEL_ROUNDINGS = 4.0  # of the model's own precision: half of it is kept by an answer, a quarter by a proof
SMALLEST_THRESHOLD = 1e-30  # the same around 0, where there is no share


class _Same(TypedDict):
    rtol: float
    atol: float


SAME_POINT = _Same(rtol=ROUNDING, atol=NOISE)  # of numpy.allclose, for two points or curves that are the same

SAME_GRAPH = (
    1e-3  # share by which scores of a graph may differ: float32 keeps seven digits, a misread one the first few not
)

# -- grids -----------------------------------------------------------------------------------------------------------
ON_GRID = DUST  # share of a step within which a number lies on the grid: steps are decimal numbers, and so not exact
MULTIPLE = 0.1 * ON_GRID  # share of its count within which a leaf value is a multiple of a common unit
UNIT_PARTS = 24  # parts of the least leaf value among which a common unit is looked for
MOST_COUNTS = 1e6  # of units or steps that are told apart: beyond, one of them is below `FEASIBILITY` of the whole

# -- solvers ---------------------------------------------------------------------------------------------------------
FEASIBILITY = 1e-6  # to which branch and bound keeps rows and integers: the solvers' own tolerance
INTEGRALITY = 0.1 * FEASIBILITY  # within which a value of a linear program counts as whole
LP_EXACT = 1e-9  # to which linear programs are asked to keep rows and reduced costs, for points that are used
LP_ROOM = 10.0 * LP_EXACT  # what that can move a coordinate or a combination of rows by, several times over
IN_HULL = 10.0 * LP_ROOM  # distance at which a point counts as in a hull: `LP_ROOM` in each of several coordinates
SMALLEST_ENTRY = 1e-9  # entries of a matrix below this are zero to HiGHS (its option small_matrix_value)
LEAST_GAIN = 1e-6  # of a branch in the product score of branching (Achterberg 2007), so that no factor is 0
FOLDS = 14  # of a plane, after which a length is right to 5e-9 per storey of the tower of rows
ON_BREAKPOINT = 0.1 * FEASIBILITY  # share of a curve's scale within which a point is one where a chain is exact
# How far beyond a tie a score must lie after none, one, two ... refusals by the model: none at first, so that no point is
# lost, and bounds hold; then more than a linear program can be off by, which costs less than the gap of a proof; at last
# more than branch and bound can overlook.
BEYOND_A_TIE = (0.0, 4.0 * LP_ROOM, 4.0 * FEASIBILITY, 40.0 * FEASIBILITY, 400.0 * FEASIBILITY)
# Of what the score can change by in a ball: by how much it must clear its threshold all over. A tie is not robust, and a
# solver is off by a little less than this.
BEYOND_A_TIE_IN_BALL = 10.0 * FEASIBILITY
# Of what the score of a member of a hard vote ranges over: by how much it must clear its own ties all over a ball. Its rows
# have a big-M of that range, so a solver may be off by FEASIBILITY of it; the adversary attacks with half of this.
BEYOND_A_VOTE_IN_BALL = 4.0 * FEASIBILITY
# Of what that score ranges over in the ball: more than this it need not clear its ties by, whatever other columns range over.
MOST_BEYOND_A_VOTE = 100.0 * FEASIBILITY

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


def closing_gap(value: float, gap: float) -> float:
    """Return how far below the incumbent a search may stop looking: half of what the relative gap allows.

    A search that proves that nothing costs less than ``value - closing_gap(value, gap)`` has closed the gap. The other
    half is for what follows it: the answer is stored in the dtypes of the data, and its cost measured again.
    """
    return CLOSING * allowed_gap(value, gap)


if not TYPE_CHECKING:  # to type checkers, what is not above is not there
    __getattr__ = forwarding(__name__)
