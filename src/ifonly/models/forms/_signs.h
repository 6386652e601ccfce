/* State of the search over centres and signs: networks, nodes, splits, items, programs; memory. See _signs.c. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define OWN 24        /* shifts of each network under which a node is bounded */
#define SLOTS 6       /* shifts of each network that a node hands on to its children */
#define MOST_ROUND 96 /* functions over an ellipsoid */
#define MOST_ROWS 200 /* rows of one program */

enum { CLOSED, PAUSED, OFFER, FULL };  /* how a run ended; the order is that of signs.py */
enum { REFUSED, TAKEN };               /* what became of an offer */
enum { OPTIMAL, NONE, ABOVE };         /* how a program ended: solved, no point, above the budget */

/* The numbers that Python hands over; signs.py has their names. */
typedef struct {
    /* of tolerances.py */
    double rounding;       /* share by which a sum may be off */
    double dust;           /* widens what a budget leaves */
    double float_room;     /* share of a number within which its neighbours lie */
    double tiny;           /* keeps a divisor from being 0 */
    double smallest_pivot; /* entries below this are no pivots */
    double same_ratio;     /* difference of ratios that count as one */
    double kept_row;       /* to which a program keeps its rows */
    double beyond_budget;  /* share by which a program is solved beyond the budget, so that its bound is */
    double same_mean;      /* share by which a mean of planes must become lower for another sweep */
    double same_plane;     /* share by which a plane must be lower to be added */
    /* of Tuning.signs; runtime/tuning_kernels.py says what each is */
    double away, early, cut_from, broken_from, first_ray, longer_ray, lifted, most_weight, more_weight;
    int32_t programs, most_pivots, most_tries, recent, shift_memory, all_rows, rays, dives, first_proposals, propose_every;
    int32_t cuts, lifted_from, tried, descents, betweens, thirds, sweeps;
} Numbers;

/* A network whose rows must not be negative anywhere in the ball around an answer.
 *
 * Inputs: the numbers of the search, its levels, and further numbers that only a shift moves; all counted from an origin.
 * A unit is max(s, 0) + slope min(s, 0) of a sum s over inputs and units of earlier blocks, 0 <= slope <= 1. */
typedef struct {
    const Numbers *num;
    int32_t n_in, n_units, n_rows, n_blocks, n_shifts, most_shifts;
    int round;                                  /* the ball is an ellipsoid; else a box */
    int32_t *block, *of;                        /* the first unit of each block, and behind the last; each unit's block */
    double *weights, *constant, *slope, *room;  /* units: n_in + n_units weights each; rounding of a bound of its sum */
    double *across;                             /* the first block's weights, input by input */
    double *rows, *row_constant, *row_room;
    double *reach, *end_low, *end_high, *step;  /* per input: half-axis (0: not moved), where values end, grid (0: none) */
    double passes, asked;                       /* what a row may fall short by at a point that is offered; what it is asked for */
    double *shifts;                             /* those that were found, in the order of finding */
    size_t shift_bytes;                         /* that they may take */
    /* units of the first block in the node at hand, without a shift: at the cheapest point, ends, most rise and fall per cost,
     * and what each way to spend adds */
    double *s0, *lower, *upper, *rise, *fall, *ways;
    char *natural;                              /* whether no split moved its ends */
    /* units under the shift at hand: values at a point, ends, what the shift adds; looseness of a plane's lines */
    double *h, *sum, *from, *to, *delta, *loose, *coef, *there, *beside;
    /* shifts that the node at hand is bounded under, and the ends of all units under each */
    int32_t n_own, own[OWN];
    double *own_shift, *own_from, *own_to, *own_delta;
} Net;

/* In a subtree the sum of a unit lies between two ends: of the first block without a shift, of a later one under a shift. */
typedef struct Split {
    struct Split *before, *made_before;
    int32_t net, unit, shift;
    double low, high;
} Split;

typedef struct {
    double bound;
    Split *splits;
    int32_t tries, depth;
    double *low, *high, *point;  /* ends of the numbers; the parent's cheapest point: numbers and levels */
    int32_t *slots;              /* per network: shifts, by their number; -1: none */
    char *allowed;
} Node;

/* A way to spend: a number or a level that moves by `unit` per unit of cost, or in all, where it costs nothing. */
typedef struct {
    int32_t input, base, group;  /* the input that grows, the level that shrinks and its category; -1: none */
    double unit, cost, cap;
} Item;

/* Program: min cost @ v over 0 <= v <= cap with rows @ v >= rhs. Its dictionary: basic = beta + t @ (what others differ by). */
typedef struct {
    const Numbers *num;
    int32_t n, m, pivots;
    double *rows, *rhs, *cap, *cost;
    double *t, *beta, *z, *value, *y, *ray;
    int32_t *basic, *column;
    char *upper, *flipped;
    double objective;
} Lp;

/* A row of a node's program: the plane above a network's row under a shift; no network: a split or a category. */
typedef struct {
    int32_t net, row, own;
} Plane;

/* Functions over an ellipsoid, and their weights. See _signs_round.h. */
typedef struct {
    int32_t n, m;
    double *a, *c, *w, *gram, *q; /* per function: slopes in half-axes, value at home, weight, products with all, with the sum */
    char *is_plane;
} Mean;

typedef struct {
    Numbers num;
    int32_t n, n_levels, n_categories, n_nets, most, most_items, most_inputs, most_units;
    double *home, *origin, *rate, *square, *price, *step, *room, *level_cost;
    double *axes;       /* half-axes of an ellipsoid around home that points lie in; NULL: there is none */
    int32_t *first;     /* the first level of each category, and behind the last */
    char *level_home;
    double elsewhere, budget;
    double slack;       /* what planes may be missed by, less its half, at as much cost; 0: they may not be missed */
    Net *nets;
    Node **heap;
    size_t n_heap, most_heap, bytes, most_bytes, node_bytes;
    Split *made;        /* all splits, linked by made_before */
    Node *diving, *waiting;
    double open_bound;
    uint64_t work, looked;
    /* the node at hand */
    double *low, *high, *near, *least, *onward;
    char *allowed;
    int32_t *cheapest;  /* per category: the level that its items begin at */
    double base, spare; /* the least that it costs, and what the budget leaves beyond that */
    Item *items;
    int32_t n_items;
    Lp lp, pieces;
    Mean mean;
    Plane *planes;
    double *gains, *extra, *at_base, *x, *slopes, *shift, *worst, *step_shift, *trial, *score, *place;
    int32_t *trial_level, *by, *used, n_used; /* used: ways that the program's point goes */
    char *taken;
    uint64_t dived;
    /* the point that is offered */
    double *offer;
    int32_t *offer_level;
    int busy, full;
} Search;

static double *weights_of(const Net *net, int32_t unit) { return net->weights + (size_t)unit * (size_t)(net->n_in + net->n_units); }

/* -- nodes ----------------------------------------------------------------------------------------------------------- */
static Node *new_node(Search *s) {
    size_t doubles = sizeof(double) * (size_t)(3 * s->n + s->n_levels), ints = 4 * (size_t)(s->n_nets * SLOTS);
    size_t bytes = sizeof(Node) + doubles + ints + (size_t)s->n_levels + 8;
    if (s->bytes + bytes > s->most_bytes) return NULL;
    Node *node = malloc(bytes);
    if (!node) return NULL;
    s->bytes += bytes, s->node_bytes = bytes;
    node->low = (double *)(node + 1), node->high = node->low + s->n, node->point = node->high + s->n;
    node->slots = (int32_t *)(node->point + s->n + s->n_levels);
    node->allowed = (char *)(node->slots + s->n_nets * SLOTS);
    return node;
}

static void drop(Search *s, Node *node) {
    if (!node) return;
    s->bytes -= s->node_bytes;
    free(node);
}

static Node *copied_node(Search *s, const Node *from) {
    Node *node = new_node(s);
    if (!node) return NULL;
    node->bound = from->bound, node->splits = from->splits, node->tries = 0, node->depth = from->depth + 1;
    memcpy(node->low, from->low, s->node_bytes - sizeof(Node));
    return node;
}

static int push(Search *s, Node *node) {
    if (s->n_heap == s->most_heap) {
        size_t more = s->most_heap ? 2 * s->most_heap : 256;
        Node **heap = realloc(s->heap, more * sizeof(Node *));
        if (!heap) return 0;
        s->heap = heap, s->most_heap = more;
    }
    size_t i = s->n_heap++;
    for (; i && s->heap[(i - 1) / 2]->bound > node->bound; i = (i - 1) / 2) s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = node;
    return 1;
}

static Node *pop(Search *s) {
    Node *top = s->heap[0], *last = s->heap[--s->n_heap];
    size_t i = 0;
    for (size_t child = 1; child < s->n_heap; child = 2 * i + 1) {
        if (child + 1 < s->n_heap && s->heap[child + 1]->bound < s->heap[child]->bound) child++;
        if (s->heap[child]->bound >= last->bound) break;
        s->heap[i] = s->heap[child], i = child;
    }
    if (s->n_heap) s->heap[i] = last;
    return top;
}

static Split *new_split(Search *s, Split *before, int32_t net, int32_t unit) {
    if (s->bytes + sizeof(Split) > s->most_bytes) return NULL;
    Split *split = malloc(sizeof(Split));
    if (!split) return NULL;
    s->bytes += sizeof(Split);
    split->before = before, split->made_before = s->made, s->made = split;
    split->net = net, split->unit = unit, split->shift = -1, split->low = -INFINITY, split->high = INFINITY;
    return split;
}

/* Keep a shift of a network; its number, or that of a recent one that is the same; -1: there is no room for it. */
static int32_t keep_shift(Net *net, const double *shift) {
    size_t n = (size_t)net->n_in;
    for (int32_t k = net->n_shifts, last = k > net->num->recent ? k - net->num->recent : 0; k-- > last;)
        if (!memcmp(net->shifts + (size_t)k * n, shift, n * sizeof(double))) return k;
    if (net->n_shifts == net->most_shifts) {
        int32_t more = 2 * net->most_shifts + 64;
        size_t bytes = sizeof(double) * (size_t)more * n;
        double *shifts = bytes > net->shift_bytes ? NULL : realloc(net->shifts, bytes);
        if (!shifts) return -1;
        net->shifts = shifts, net->most_shifts = more;
    }
    memcpy(net->shifts + (size_t)net->n_shifts * n, shift, n * sizeof(double));
    return net->n_shifts++;
}
