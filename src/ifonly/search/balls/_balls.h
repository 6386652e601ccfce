/* State of the robust search: constraints, no-goods, nodes, points at hand; costs of centres; memory. See _balls.c. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Ways out in order: those within the node and the budget, then the others within the node, then the rest. */
#define NOT_IN_BUDGET 1e100  /* added to a cost that is not within the budget, which is lost beside it */
#define NOT_IN_NODE 1e200

enum { CLOSED, PAUSED, OFFER, FULL };        /* how a run ended; the order is that of runtime/kernels.py */
enum { REFUSED, TAKEN };                     /* what became of an offer */
enum { REAL, SINGLE, WHOLE };                /* values of a number: float64, float32, whole steps */
enum { SAFE, FLIPS, UNKNOWN };               /* what an attack found */

/* The numbers that Python hands over; trees.py has their names. */
typedef struct {
    /* of tolerances.py */
    double dust;        /* squares by which a ball touches what is beyond its end, and a no-good may be touched by a hair */
    double rounding;    /* share by which a sum may be off */
    double squared_gap; /* share by which the square of one gap may be off */
    double on_grid;     /* share of a step within which a number lies on its grid */
    double tiny;        /* keeps a divisor from being 0 */
    /* of Tuning.no_goods; runtime/tuning_kernels.py says what each is */
    double first_slack, next_slack, unit, least_part, dive_cost;
    int32_t most_patience, first_patience, probes, pull_rounds, pull_attacks, pull_sweeps, dive_steps;
} Numbers;

typedef struct {
    int32_t number, begin, end;  /* the cells of a number that a leaf asks for */
} Range;

typedef struct {
    int32_t category;
    uint64_t levels;  /* the levels of a category that a leaf asks for */
} Set;

typedef struct {
    int32_t n_leaves, n_trees, n_cells;
    double least;                       /* a sum below this flips */
    double *values;
    int32_t *tree;                      /* leaves come by tree, the worst of each first */
    int32_t *range_first, *set_first;
    Range *ranges;
    Set *sets;
    int32_t *first, *size;              /* cells of each number */
    double *low, *high;                 /* first and last value of a cell */
    double *up, *down;                  /* hard: the first centre above a cell, the last one below it, that do not touch it */
    unsigned char *hard;
    double *reach;                      /* soft: the half-axis */
    int32_t *begin_first, *begin_leaf, *end_first, *end_leaf;  /* leaves that begin or end at a cell */
    int32_t *level_first, *level_leaf;  /* leaves that ask for a category, and allow a level */
} Constraint;

typedef struct {
    double bound;
    char *box;
    int depth;  /* how closely its no-goods are looked at */
} Node;

typedef struct {
    double cost;     /* bound of the node */
    int32_t number;  /* where to split: a number at `at`, upwards or downwards; or a category */
    int32_t category;
    int up;
    double at;
} Way;

typedef struct {
    double gain, cost, length, end;
    int32_t number, category;
    int up, whole;  /* whole: this item alone is enough, at its end */
} Item;

typedef struct {
    Numbers num;
    double need;    /* squares of a ball's gaps up to which it touches: one, and dust */
    double beyond;  /* squares at which a centre is taken to have got away */
    double hair;    /* squares by which a no-good may be touched, and a point a little farther on not touch it */
    /* features */
    int32_t n, nc, n_levels, n_constraints;
    double *hat, *rate, *square, *price, *root_low, *root_high, *push;
    int32_t *kind;
    int32_t *entry_first, *n_entries, *home;
    double *level_cost;
    uint64_t *root_levels;
    double elsewhere, budget, open_bound;
    int64_t most;                       /* how many of these features may change */
    Constraint *constraints;
    /* no-goods: per number two ends, per category the levels */
    int32_t *owner;
    double *ends;
    uint64_t *sets;
    size_t n_pool, room_pool;
    unsigned char *wild;                /* grown on the way to an incumbent, not for a node: it bounds none */
    int on_the_way, soft;
    /* nodes */
    Node *heap;
    size_t n_heap, room_heap, box_bytes, bytes, most_bytes;
    char *free_box;
    /* the adversary */
    int32_t *lists, *a, *b, *worst, *flip, *meet_low, *meet_high, *ended, *begun;
    size_t room_lists;
    double *square_gap, *base_gap;
    int32_t *home_cell;
    uint64_t *open_sets;
    double flip_sum, limit;  /* limit: squares of gaps up to which a ball reaches */
    int64_t flip_looks, most_looks;
    int lost, full;
    uint64_t work, patience, spent;
    uint64_t first_patience;
    uint64_t stop;  /* work at which the way to an incumbent ends: the clock is waiting */
    /* growing */
    int32_t *excluded;
    double *top, *old_top;
    int32_t *touched, *grown_low, *grown_high;
    uint64_t *grown_sets;
    double *priority, *level_priority;
    unsigned char *done, *level_done;
    /* points and boxes at hand */
    Item *items;
    double *near, *trial;
    int32_t *near_level, *trial_level;
    unsigned char *seen;
    char *own, *root;
    double *offer;
    int32_t *offer_level;
    double offer_bound;
    int offered, offer_closes, busy;
    int64_t looked;
} Search;

static double *lows(const Search *s, char *box) { (void)s; return (double *)box; }
static double *highs(const Search *s, char *box) { return (double *)box + s->n; }
static uint64_t *levels_of(const Search *s, char *box) { return (uint64_t *)((double *)box + 2 * s->n); }

/* -- costs ---------------------------------------------------------------------------------------------------------- */
static double cost_of(const Search *s, int32_t k, double x) {
    double moved = fabs(x - s->hat[k]);
    return moved == 0.0 ? 0.0 : s->rate[k] * moved + s->square[k] * moved * moved + s->price[k];
}

static double total_cost(const Search *s, const double *x, const int32_t *level) {
    double total = s->elsewhere;
    for (int32_t k = 0; k < s->n; k++) total += cost_of(s, k, x[k]);
    for (int32_t c = 0; c < s->nc; c++) total += s->level_cost[s->entry_first[c] + level[c]];
    return total;
}

static int64_t changes(const Search *s, const double *x, const int32_t *level) {
    int64_t count = 0;
    for (int32_t k = 0; k < s->n; k++) count += x[k] != s->hat[k];
    for (int32_t c = 0; c < s->nc; c++) count += level[c] != s->home[c];
    return count;
}

static double clipped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static int32_t cheapest_level(const Search *s, int32_t c, uint64_t open) {
    int32_t best = -1;
    for (int32_t e = 0; e < s->n_entries[c]; e++) {
        if (!(open >> e & 1)) continue;
        double cost = s->level_cost[s->entry_first[c] + e];
        if (best < 0 || cost < s->level_cost[s->entry_first[c] + best] || (e == s->home[c] && cost <= s->level_cost[s->entry_first[c] + best]))
            best = e;
    }
    return best;
}

/* Cheapest centre of a box; 0 where the box is empty, or too many features must change. Where no more may, the rest stays. */
static int nearest(const Search *s, char *box, double *x, int32_t *level) {
    double *low = lows(s, box), *high = highs(s, box);
    uint64_t *open = levels_of(s, box);
    for (int32_t k = 0; k < s->n; k++) {
        if (!(low[k] <= high[k])) return 0;
        x[k] = clipped(s->hat[k], low[k], high[k]);
    }
    for (int32_t c = 0; c < s->nc; c++) {
        if (!open[c]) return 0;
        level[c] = cheapest_level(s, c, open[c]);
        if (s->home[c] >= 0 && (open[c] >> s->home[c] & 1) && s->level_cost[s->entry_first[c] + level[c]] >= s->level_cost[s->entry_first[c] + s->home[c]])
            level[c] = s->home[c];
    }
    if (s->most >= s->n + s->nc) return 1;
    int64_t count = changes(s, x, level);
    /* a level that is cheaper than staying is still a change: only what must change is counted against the limit */
    for (int32_t c = 0; c < s->nc; c++)
        if (level[c] != s->home[c] && s->home[c] >= 0 && (open[c] >> s->home[c] & 1)) count--;
    if (count > s->most) return 0;
    if (count == s->most) {
        for (int32_t k = 0; k < s->n; k++)
            if (low[k] <= s->hat[k] && s->hat[k] <= high[k]) low[k] = high[k] = x[k] = s->hat[k];
        for (int32_t c = 0; c < s->nc; c++)
            if (s->home[c] >= 0 && (open[c] >> s->home[c] & 1)) open[c] = (uint64_t)1 << s->home[c], level[c] = s->home[c];
    }
    return 1;
}

/* -- memory --------------------------------------------------------------------------------------------------------- */
static int room_for(Search *s, void **block, size_t *room, size_t needed, size_t item) {
    if (needed <= *room) return 1;
    size_t more = *room * 2 > needed ? *room * 2 : needed + 64;
    if (s->bytes + (more - *room) * item > s->most_bytes) return 0;
    void *moved = realloc(*block, more * item);
    if (!moved) return 0;
    s->bytes += (more - *room) * item;
    *block = moved, *room = more;
    return 1;
}

static char *new_box(Search *s) {
    char *box = s->free_box;
    if (box) {
        memcpy(&s->free_box, box, sizeof(char *));
        return box;
    }
    if (s->bytes + s->box_bytes > s->most_bytes) return NULL;
    box = malloc(s->box_bytes);
    if (box) s->bytes += s->box_bytes;
    return box;
}

static void drop_box(Search *s, char *box) {
    memcpy(box, &s->free_box, sizeof(char *));
    s->free_box = box;
}

static int push(Search *s, double bound, char *box, int depth) {
    if (!room_for(s, (void **)&s->heap, &s->room_heap, s->n_heap + 1, sizeof(Node))) return 0;
    size_t i = s->n_heap++;
    for (; i && s->heap[(i - 1) / 2].bound > bound; i = (i - 1) / 2) s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = (Node){bound, box, depth};
    return 1;
}

static Node pop(Search *s) {
    Node top = s->heap[0], last = s->heap[--s->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->n_heap) break;
        if (child + 1 < s->n_heap && s->heap[child + 1].bound < s->heap[child].bound) child++;
        if (s->heap[child].bound >= last.bound) break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    if (s->n_heap) s->heap[i] = last;
    return top;
}
