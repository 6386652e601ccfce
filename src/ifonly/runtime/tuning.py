"""Tuning: every number that was chosen and not derived, in one frozen value that can be passed in.

A `Tuning` says when an engine gives up, how often something is repeated, and how the time is shared out. No proof rests on
it: with other numbers a search takes another way or runs out of time, but what it calls proven is proven. Tolerances,
on which proofs do rest, are in `ifonly.tolerances`. Only the groups `Clouds` and `Regressions` have a say in a question's
meaning, and tell where they do.

Behind each number stands what it was chosen by: a *measurement* (sections named in quotes are those of
``docs/what-was-tried.md``), or the word *guess*.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from ifonly.runtime.tuning_batches import Batches, Checking
from ifonly.runtime.tuning_forests import Balls, CentreSearch, CoveringSearch, PriceSearch
from ifonly.runtime.tuning_group import Group as _Numbers
from ifonly.runtime.tuning_hulls import ColumnGeneration, Hulls
from ifonly.runtime.tuning_kernels import NoGoodSearch, SignSearch
from ifonly.runtime.tuning_neighbours import NeighbourSearch
from ifonly.runtime.tuning_networks import NetworkSearch, PlainSigns
from ifonly.runtime.tuning_observed import Learning, Observing, Pulling

__all__ = [
    "DEFAULT",
    "Answering",
    "Asking",
    "Balls",
    "Batches",
    "Blame",
    "BoxSearch",
    "Causes",
    "CellSearch",
    "CentreSearch",
    "Checking",
    "Clouds",
    "ColumnGeneration",
    "CompositeSearch",
    "EllipsoidSearch",
    "Hulls",
    "IncumbentSearch",
    "KnapsackSearch",
    "LargestChangeSearch",
    "LeafSearch",
    "Learning",
    "NeighbourSearch",
    "NetworkSearch",
    "NoGoodSearch",
    "Observing",
    "PlainSigns",
    "PriceSearch",
    "ProgramSize",
    "Pulling",
    "Reading",
    "Regressions",
    "SafeRanges",
    "Shaping",
    "SignSearch",
    "Solving",
    "Tuning",
]


# -- engines ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class KnapsackSearch(_Numbers):
    """Branch and bound of the knapsack: `ifonly.search.linear.knapsack`."""

    most_nodes: int = 4000  # nodes after which it gives up; guess
    most_entries: int = 500_000  # entries of all nodes together; guess: some 5 s
    most_lines: int = 60  # cuts of two lines for one bound; guess
    many: int = 64  # features from which on those that stay are fixed at the root; guess
    around: int = 4  # features more and fewer than those that move at the root's bound, tried as incumbents; guess
    most_cuts: int = 8  # rounds in which slides of an incumbent are shortened together; guess
    # Of the multiplier of a parent: where the top of a child is looked for, below it; guess.
    nearer: tuple[float, ...] = (0.97, 0.7, 0.0)
    farther: tuple[float, ...] = (1.03, 1.4)  # the same above it; guess


@dataclass(frozen=True, kw_only=True)
class LeafSearch(_Numbers):
    """Leaves of one tree: `ifonly.search.cells.single_tree`."""

    entries: int = 2_000_000  # choices times leaves that are looked at together, and remembered if they are all; guess


@dataclass(frozen=True, kw_only=True)
class EllipsoidSearch(_Numbers):
    """Squares of all moves together: `ifonly.search.linear.ellipsoid`."""

    most_numbers: int = 3000  # that may move; guess: some 300 MB of squares in extended precision
    rounds: int = 64  # of the active-set method; guess
    refinements: int = 3  # of a tangent point; guess


@dataclass(frozen=True, kw_only=True)
class CellSearch(_Numbers):
    """Branch and bound over boxes of cells: `ifonly.search.cells`."""

    first_look: int = 500  # parts after which progress is judged first, then whenever they double; measured, as below
    # The same for the compiled kernel, which has done them in the time of some 1,500; measured by benchmarks/kernel.py.
    first_look_compiled: int = 50_000
    kernel_work: int = 2_000_000  # looks at leaves and cells between two at the clock; guess: some 5 ms
    kernel_bytes: int = 1 << 29  # of the kernel's lists of open leaves, and of anything else that grows there; guess
    # Share that must be closed by then; measured, "Forests without a program":
    # at most 9e-16 where the search was not closed, 2e-6 and more where it was.
    least_done: float = 1e-7
    more_done: float = 10.0  # times that share at each further look; guess
    most_parts: int = 400_000  # guess: ten times the most that a closed question took there
    seconds_per_leaf: float = 5e-6  # of making the tables of a search, in one go; guess


@dataclass(frozen=True, kw_only=True)
class CompositeSearch(_Numbers):
    """Branch and bound over the inputs of curves, votes and means of trees: `ifonly.search.composites`."""

    most_nodes: int = 100_000  # after which it gives up; guess
    first_look: int = 4_000  # nodes after which progress is judged first, then whenever they double; guess
    least_done: float = 0.05  # share of the gap at the root that must be closed by then; guess
    share: float = 0.5  # of the time left, after which a solver is asked; guess
    nodes_at_once: int = 64  # guess
    work_at_once: int = 2_000_000  # leaves times rows and scores for all of them; guess: some 20 ms
    small: int = 150  # open leaves up to which changes are not traded in pairs; guess
    rows: int = 3  # training rows whose changes are traded, where the search is not closed by then; guess
    traded_from: int = 2_000  # nodes after which that is done; guess
    priced_from: int = 100  # nodes after which leaves and cells are priced by a linear program; guess
    relaxed_from: int = 300  # nodes after which scores of lines are split, with a linear program per part; guess
    most_programs: int = 3_000  # parts after which that gives up; guess
    relaxed_look: int = 200  # parts after which its progress is judged first, then whenever they double; guess
    relaxed_share: float = 0.5  # of the time left, for all of it; guess
    relaxed_root: float = 0.03  # share of that which its first program may take; guess
    # Share of what a goal can be by which it may be missed at a program's point before scores are split; measured, "Splitting
    # on scores, with a linear program per part": 0.02 to 0.05 are alike, 0.0001 and 0.1 slower.
    missed: float = 0.03
    rays: tuple[float, ...] = (1.0, 1e2, 1e4, 1e6)  # times a ray that must close a part without a point; guess
    points: int = 2  # nodes of each round whose points are taken to the threshold; guess
    polishes: int = 3  # steps towards it; guess
    tries: int = 6  # splits of a node that are tried by prices; measured, "Curves, votes and means without a program"
    least_rise: float = 1e-3  # of a bound, as a share of what closes the node, that a split counts for at least; guess
    same_weight: float = 0.01  # of a tree whose two best leaves are worth the same, as a share of its spread; guess
    odds: float = 0.1  # weight of levels that best leaves have in common two by two only; guess


@dataclass(frozen=True, kw_only=True)
class BoxSearch(_Numbers):
    """Branch and bound over boxes, with a solver: `ifonly.search.boxes`."""

    tiny: int = 80  # columns of a program that is solved without its relaxation first; guess
    large: int = 800  # open leaves that make a better incumbent worth its time; guess
    dear: float = 0.34  # share of the budget that makes a feature worth a split; guess, "Splitting on dear features"
    shallow: float = 0.5  # share of the budget at which a network is tried first; measured, "Networks"
    step: float = 1.5  # factor from one budget of a network to the next; measured, "Networks"
    few_units: int = 30  # undecided units with which a program is easy; guess
    least_share: float = 0.02  # of the budget, at which it is tried however many units are undecided; guess
    deep: float = 0.2  # share of the open gap at which a hull is tried first; measured, "Hulls of many rows"
    deeper: float = 1.5  # by which that share grows when nothing is found; measured, the same
    shift: float = 0.3  # up and down of what is rounded at one half; guess


@dataclass(frozen=True, kw_only=True)
class ProgramSize(_Numbers):
    """Size and start of a program before it is built: `ifonly.search.boxes.affordable`."""

    share: float = 0.3  # of the sum of squared leaves that are entries; measured: 0.19 to 0.42
    per_leaf: float = 7.0  # entries beside that; measured on trees of depth 3
    most_entries: int = 5_000_000  # measured: some 130 bytes each, 650 MB
    per_entry: float = 2.5e-6  # seconds until the solver looks at the clock; measured: 0.5 to 2.3 microseconds
    start: float = 0.05  # seconds that it takes however few there are; guess
    per_entry_of_few: float = 3e-6  # measured: one to two microseconds where there are some ten thousand
    closely: float = 1.0  # seconds that must be left to count thresholds; measured: 0.12 s for half a million leaves
    per_layer: float = 0.008  # seconds to bound the units of a layer; measured: 6 to 9 milliseconds
    per_weight: float = 6e-6  # seconds beside that; measured: 3 to 6 microseconds
    per_score: float = 0.01  # seconds per neighbour and 1,000 weights of rows that are compared; measured: 2 to 11 ms


@dataclass(frozen=True, kw_only=True)
class IncumbentSearch(_Numbers):
    """Incumbents before and during a search: `ifonly.search.incumbents`."""

    small: int = 400  # open leaves that the solver closes in a few milliseconds; guess
    most_pairs: int = 10_000_000  # pairs of values of two features, for one box; guess, "Incumbents"
    pairs_at_once: int = 1_000_000  # in one table; measured: some 50 MB
    pulls: int = 64  # points on the way back of all numbers together; guess


@dataclass(frozen=True, kw_only=True)
class Answering(_Numbers):
    """Repair of answers that the model refused, and further answers: `ifonly.search.answering`, `several`."""

    widenings: int = 6  # of the margin; guess
    widening: float = 100.0  # by which the margin grows each time; guess
    repairs: int = 200  # forms made finer and points ruled out, before the margin is widened; guess
    nearest: int = 4  # points within rounding of their threshold ruled out, before the first margin is asked for; guess
    ties: int = 20  # points within rounding of their threshold ruled out, where nothing goes beyond it; guess
    boxes: int = 12  # in which a further answer is looked for before it is searched; guess
    rows_per_answer: int = 4  # training rows that may start one; guess
    optima: int = 2000  # of boxes, kept for further answers; measured: ten of 100 trees on HELOC take 83
    calls: int = 2  # of the model, for which a search leaves time: one to confirm its answer, one to show it; guess
    kept: float = 0.1  # share of the time left that these may take at most; guess
    kinds: int = 64  # of questions that are kept ready, then they are made anew; guess
    farther: float = 1.01  # times the distance from an earlier answer by which a number of it is moved on; guess
    # A point on the very edge of its outcome is moved on by shares of its way from the factual, so many per halving: from
    # this power of one half, about what a sum may be off by, to that one.
    nudges: int = 4  # guess
    least_nudge: int = 40  # guess
    largest_nudge: int = 10  # guess
    ways_back: int = 7  # shares of the way back, each half of the one before, that put a proof to the test; guess


@dataclass(frozen=True, kw_only=True)
class Blame(_Numbers):
    """Search for the demands that clash: `ifonly.search.blame`."""

    halvings: int = 6  # of the radius of a ball that is too large; guess
    share: float = 0.5  # of the time left that one search may take; guess
    rows: int = 50  # training rows that are looked at before a solver is asked; guess


# -- questions and criteria ------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class Asking(_Numbers):
    """Points that are tried for a question: `ifonly.question`."""

    sample: int = 4000  # training rows, drawn evenly, for heuristics; guess
    halvings: int = 12  # of the way to a point that crosses the boundary; guess: 1/4096 of it
    quick: float = 0.002  # seconds for some rows after which many more are checked at once; guess
    slow: float = 0.01  # and after which fewer are; guess
    more: int = 8  # times as many that are; guess


@dataclass(frozen=True, kw_only=True)
class Causes(_Numbers):
    """Candidates of a causal question: `ifonly.criteria.causality.acting`."""

    halvings: int = 12  # of the way back to the factual; guess: 1/4096 of it
    rows: int = 2  # training rows that are acted towards; guess


@dataclass(frozen=True, kw_only=True)
class Clouds(_Numbers):
    """Clusters and isolation forests of `Manifold`: these say what it demands, so answers depend on them."""

    most_clusters: int = 8  # guess
    silhouette_rows: int = 2000  # by which the number of clusters is chosen; guess
    trees: int = 30  # of an isolation forest; guess
    samples: int = 64  # of one tree; guess: deeper trees make the program larger, not the verdict better


@dataclass(frozen=True, kw_only=True)
class Regressions(_Numbers):
    """Models that `Causality.learn` chooses from: these say what it learns. Others are passed to it as ``models=``."""

    trees: int = 30  # of the boosting; guess
    depth: int = 2  # of its trees; guess
    units: int = 20  # of the network; guess
    decay: float = 0.01  # penalty of its weights; guess
    steps: int = 200  # of its training; guess


@dataclass(frozen=True, kw_only=True)
class SafeRanges(_Numbers):
    """Ranges around an answer: `ifonly.criteria.robustness.ranges`."""

    seconds: float = 2.0  # for one program, if so much is left; guess
    lead: float = 0.5  # share of an answer's own lead that may be used up; guess
    refinements: int = 20  # of a form, for one end; guess
    samples: int = 2049  # values between the ends that must not flip; guess
    inwards: int = 49  # values on the way back from an end that did; guess


# -- solvers and models ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class Solving(_Numbers):
    """Programs and their verdicts: `ifonly.solvers`."""

    heuristic_effort: float = 0.01  # of HiGHS with a cut-off: next to none; measured, "Options of HiGHS"
    patience: float = 0.02  # seconds that HiGHS is waited for beyond its limit; measured: most often 6 to 40 ms late
    loading: float = 0.06  # seconds that the first import of highspy takes; measured: 0.02 to 0.06
    interior_from: int = 300  # columns from which relaxations go to the interior point method; guess, the same
    rounds: int = 40  # of solving and confirming one program; guess: a handful at most in the battery
    repair_seconds: float = 0.05  # kept for the repair of a point that comes at the last moment; guess
    repair_share: float = 0.2  # and no more than this share of the time; guess
    tangent_rounds: int = 200  # of adding tangents; guess
    opening: tuple[float, ...] = (1.0, 0.25, 0.0625)  # of either end of a square, where it has tangents at first; guess
    settled: float = 0.1  # share of the gap within which tangents at fixed integers need not be better; guess
    short: float = 0.05  # the same of the whole by which one square may be short of its height; guess
    rescalings: int = 6  # of a program whose columns have become narrower; guess
    narrower: float = 0.5  # share of its width that makes another scaling worth it; guess
    process_seconds: float = 10.0  # for another process to begin and to end, beyond what it solves; guess


@dataclass(frozen=True, kw_only=True)
class LargestChangeSearch(_Numbers):
    """Bisection of the radius under l-infinity: `ifonly.search.cells.largest`."""

    first_parts: int = 2_000  # that a radius is worth at first; guess
    more_parts: int = 4  # times as many, once all that is left is harder than that; guess
    most_parts: int = 32_000  # for one radius, before a solver takes over; guess
    most_parts_compiled: int = 8_000_000  # the same for the compiled kernel; measured: some 20 to 60 s
    near: float = 1.05  # radius over bound, below which nothing is worth a test of its own; guess
    most_put_off: int = 8  # radii in a row that took too long, before more is spent on each; guess
    first_priced: int = 250  # parts with prices that a radius is worth, after it took too long without; guess
    more_priced: int = 16  # times as many, once all that is left is harder than that; measured: 4 takes a third longer
    near_priced: float = 1.02  # the same as `near`, with prices; measured: with 1.05 one in eight takes twice as long
    as_dear: int = 16  # parts that a part with prices counts for; guess


@dataclass(frozen=True, kw_only=True)
class Reading(_Numbers):
    """Models on their way into forms: `ifonly.models.reading`, `readers`."""

    most_values: int = 100_000  # of a grid that are pushed through a transformer one by one; guess
    most_steps: int = 2_000  # of a column that is read as a step function; guess
    probes: int = 257  # of a declared transformer along a continuous feature; guess
    bisected_rows: int = 1_000  # values put to a transformer at once, to pull thresholds back; guess
    neighbours: int = 16  # floats on either side of a cut on a polynomial; guess: a comparison turns back once or twice
    many: int = 64  # numbers from which on all of them are left out of one row together; guess
    level_rows: int = 256  # rows, one per level, that are put to a transformer at once; guess
    remembered: int = 8  # rows put to the model, per thread that asks one; guess
    most_nodes: int = 2_000_000  # of CatBoost's unfolded statistics; guess
    most_rows: int = 5_000  # that a k-nearest-neighbour model may have kept; measured: 0.5 s a question of COMPAS
    spline_probes: int = 301  # values along a feature at which a spline is compared with its transformer; guess
    compared: int = 16  # rows on which what was read of a graph is compared with its own answers; guess
    far: float = 1e3  # times the size of a feature, how far beyond its bounds a transformer is looked at; guess


@dataclass(frozen=True, kw_only=True)
class Shaping(_Numbers):
    """Forms in a program: `ifonly.models.forms`."""

    pieces: int = 8  # polygons of a curve at first; guess
    bending: int = 1024  # parts of a smooth curve, of which its bending is added up; guess
    bending_of_splines: int = 2048  # the same of a piecewise polynomial; guess
    softmax_pieces: int = 5  # of each curve of a softmax, which is made of many; guess
    finer: float = 1.5  # times as many after a refinement; guess
    closely: float = 0.01  # of a curve's scale: how far around a refused point it is held closely; guess
    tangents: int = 20  # cuts of two tangents for one bound of a network within a budget; guess
    rows_at_once: int = 4096  # that fall through trees together; guess
    halvings: int = 8  # of an interval, until a line from its end touches a curve; guess: it lies above it in any case
    far: float = 30.0  # differences of scores beyond which their exponentials are not looked at; guess
    pivots: int = 4  # rows per nearest neighbour that are looked at first to rule others out; guess
    most_pairs: int = 500_000  # of rows that are compared with each other; guess
    budget_entries: int = 1_000_000  # of such pairs, times columns, that are compared within a budget; measured: 1 s
    few_tangents: int = 4  # the tangents of such a comparison; guess
    entries_at_once: int = 4_000_000  # of such comparisons, and of distances to all rows; guess: 32 MB


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The numbers that ifonly was tuned by, in groups; pass one with other numbers to an `Explainer`.

    Examples
    --------
    >>> tuning = Tuning(cells=CellSearch(most_parts=1000))
    >>> tuning.cells.most_parts, tuning.cells.first_look
    (1000, 500)
    """

    knapsack: KnapsackSearch = field(default=KnapsackSearch())
    leaves: LeafSearch = field(default=LeafSearch())
    ellipsoid: EllipsoidSearch = field(default=EllipsoidSearch())
    cells: CellSearch = field(default=CellSearch())
    prices: PriceSearch = field(default=PriceSearch())
    covering: CoveringSearch = field(default=CoveringSearch())
    largest: LargestChangeSearch = field(default=LargestChangeSearch())
    networks: NetworkSearch = field(default=NetworkSearch())
    plain_signs: PlainSigns = field(default=PlainSigns())
    centres: CentreSearch = field(default=CentreSearch())
    composites: CompositeSearch = field(default=CompositeSearch())
    neighbours: NeighbourSearch = field(default=NeighbourSearch())
    boxes: BoxSearch = field(default=BoxSearch())
    size: ProgramSize = field(default=ProgramSize())
    incumbents: IncumbentSearch = field(default=IncumbentSearch())
    answering: Answering = field(default=Answering())
    blame: Blame = field(default=Blame())
    asking: Asking = field(default=Asking())
    causes: Causes = field(default=Causes())
    clouds: Clouds = field(default=Clouds())
    regressions: Regressions = field(default=Regressions())
    hulls: Hulls = field(default=Hulls())
    balls: Balls = field(default=Balls())
    no_goods: NoGoodSearch = field(default=NoGoodSearch())
    signs: SignSearch = field(default=SignSearch())
    ranges: SafeRanges = field(default=SafeRanges())
    solving: Solving = field(default=Solving())
    columns: ColumnGeneration = field(default=ColumnGeneration())
    reading: Reading = field(default=Reading())
    forms: Shaping = field(default=Shaping())
    observing: Observing = field(default=Observing())
    pulling: Pulling = field(default=Pulling())
    learning: Learning = field(default=Learning())
    batches: Batches = field(default=Batches())
    checking: Checking = field(default=Checking())

    def __post_init__(self) -> None:
        for one in fields(self):
            if not isinstance(getattr(self, one.name), type(one.default)):
                raise TypeError(
                    f"Tuning.{one.name} must be a {type(one.default).__name__}, got {getattr(self, one.name)!r}. "
                    f"Write Tuning({one.name}=replace(Tuning().{one.name}, ...)), with Tuning from ifonly.extend and replace "
                    "from dataclasses."
                )


DEFAULT = Tuning()
