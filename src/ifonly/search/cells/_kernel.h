/* Types of the cell search, sums in the order of NumPy, and the memory of its stacks. Included by _kernel.c. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CLOSED, PAUSED, OFFER, FULL, BROKEN, POINT };  /* how a run ended; the order is that of kernel.py */
enum { REFUSED, TAKEN, DEAD };  /* what became of an offer; dead: refused by its scores, as every point of the meeting is */
enum { LEAF_EVENT = 0, CUT_EVENT = 2, LEVELS_EVENT = 4 };  /* as in question/trail.py */

typedef struct {
    int32_t number, begin, end;  /* the cells of a number that a leaf asks for */
} Range;

typedef struct {
    int32_t category, mask;  /* the levels of a category that a leaf asks for: where their bits are */
} Set;

typedef struct {
    double share;    /* of the whole, halved at each split */
    double bound;    /* no point of it that is within the budget costs less */
    size_t list;     /* where the list of its parent's open leaves is */
    size_t record;   /* where the prices of its parent are */
    uint64_t split;  /* the feature in which it is smaller than its parent, as a bit */
    int32_t steps;   /* by which its prices are improved */
} Node;

typedef struct {
    /* what cells and levels cost, rising to both sides of the cheapest cell of each number (cost_tables.py) */
    int64_t *cheapest, *up_first, *down_first;
    double *cost, *dearest, *up, *down, *level_cost;
    double elsewhere, size;  /* what all other features cost; the largest costs, added up */
} Costs;

typedef struct Prices Prices;

typedef struct {
    /* the grid: numbers, their cells, categories, their entries (grids.py has the words) */
    int32_t n_numbers, n_categories, n_entries, n_cells, n_words, n_trees, n_goals, n_leaves;
    int64_t *first, *size, *unchanged;
    double *highest;
    Costs *costs;  /* of the objective, and of surrogates that no answer within the budget exceeds it by */
    int32_t n_costs;
    int64_t *entry_first, *number_id, *category_id;
    int32_t *word_first, *entry_word, *entry_owner;
    uint64_t *entry_bit, *home, *open;
    double dust;
    int64_t changed_elsewhere, most;
    /* leaves, ordered by tree and value */
    double *values, *need;
    unsigned char *on_grid;  /* per leaf: whether it is on the lattice of scores; NULL: there is none (lattice.py) */
    double grid_need;        /* half a step below its least point that reaches the goal */
    double *sure;  /* sums of leaves from which on the goal is reached for certain; NULL: any point that is offered will do */
    uint32_t *range_first, *set_first;
    Range *ranges;
    Set *sets;
    uint64_t *masks, *looks;  /* sets of levels; the features that a leaf looks at, as bits */
    /* stacks */
    Node *nodes;
    char *parts;
    size_t n_nodes, room_nodes, part_bytes;
    int32_t *lists;
    size_t room_lists, most_bytes;
    /* the part at hand */
    double share;
    size_t list, own;  /* of its parent's open leaves, of its own */
    uint64_t smaller;  /* the features in which it is smaller than its parent, as bits */
    int32_t *low, *high, *there_low, *there_high;
    uint64_t *allowed, *there_allowed;
    int32_t *best, *ended, *begun, *total_ended, *total_begun, *hold, *only, *asked;
    double *least_numbers, *least_levels, *there_numbers, *there_levels, *tops;
    int waiting;  /* for what became of an offer: of a meeting, or of a point that the prices led to */
    int32_t steps;
    Prices *prices;  /* NULL: a search without */
    double beyond;   /* by how much prices should beat the goal */
    /* the account */
    double done, budget;
    int64_t n_parts;
    uint64_t work;
    int busy, keeps_trail;
    unsigned char *trail;
    size_t n_trail, room_trail;
} Search;

/* -- sums ---------------------------------------------------------------------------------------------------------- */
static double total(const double *a, size_t n) {
    /* NumPy's order: eight running sums in blocks of up to 128, blocks by halves. */
    if (n < 8) {
        double sum = 0.0;
        for (size_t i = 0; i < n; i++) sum += a[i];
        return sum;
    }
    if (n <= 128) {
        double r[8];
        size_t i;
        for (i = 0; i < 8; i++) r[i] = a[i];
        for (; i < n - n % 8; i += 8)
            for (size_t j = 0; j < 8; j++) r[j] += a[i + j];
        double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
        for (; i < n; i++) sum += a[i];
        return sum;
    }
    size_t half = n / 2;
    half -= half % 8;
    return total(a, half) + total(a + half, n - half);
}

static int bits_of(uint64_t word) {
    int count = 0;
    for (; word; word &= word - 1) count++;
    return count;
}

/* -- memory -------------------------------------------------------------------------------------------------------- */
static int grow(void **block, size_t *room, size_t needed, size_t item, size_t most_bytes) {
    /* Room for so many items, at least doubled; 0: there is none, or it would be more than the limit. */
    if (needed <= *room) return 1;
    size_t more = *room * 2 > needed ? *room * 2 : needed;
    if (more * item > most_bytes) more = needed;
    if (more * item > most_bytes) return 0;
    void *moved = realloc(*block, more * item);
    if (!moved) return 0;
    *block = moved;
    *room = more;
    return 1;
}

static int32_t *part_low(Search *s, size_t node) { return (int32_t *)(s->parts + node * s->part_bytes + 8 * (size_t)s->n_words); }
static uint64_t *part_allowed(Search *s, size_t node) { return (uint64_t *)(s->parts + node * s->part_bytes); }

static int room_for_nodes(Search *s, size_t needed) {
    size_t room = s->room_nodes;
    if (needed <= room) return 1;
    size_t count = s->room_nodes;
    if (!grow((void **)&s->nodes, &count, needed, sizeof(Node), s->most_bytes)) return 0;
    room = s->room_nodes;
    if (!grow((void **)&s->parts, &room, count, s->part_bytes, s->most_bytes)) return 0;
    s->room_nodes = count;
    return 1;
}

/* Features share 64 bits, so a bit can stand for several: more leaves are looked at then, and none is overlooked. */
static uint64_t bit_of(int32_t feature) { return (uint64_t)1 << (feature % 64); }

static void note_prices(const Search *s, Node *node);

static int push(Search *s, double share, size_t list, uint64_t split) {
    /* A child with the ranges and levels of the part at hand, to be changed by the caller. */
    if (!room_for_nodes(s, s->n_nodes + 1)) return 0;
    size_t at = s->n_nodes++;
    s->nodes[at] = (Node){share, -Py_HUGE_VAL, list, 0, split, 0};
    if (s->prices) note_prices(s, &s->nodes[at]);
    int32_t *low = part_low(s, at);
    memcpy(low, s->low, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(low + s->n_numbers, s->high, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(part_allowed(s, at), s->allowed, sizeof(uint64_t) * (size_t)s->n_words);
    return 1;
}
