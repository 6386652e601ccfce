/* Tables of the robust search, copied from Python and indexed. See _balls.c. */
enum { HAT, RATE, SQUARE, PRICE, LOW, HIGH, PUSH, KIND, ENTRY_FIRST, N_ENTRIES, HOME, LEVEL_COST, LEVELS, N_TABLES };
enum {
    G_VALUES, G_TREE, G_RANGE_FIRST, G_RANGE_NUMBER, G_RANGE_BEGIN, G_RANGE_END, G_SET_FIRST, G_SET_CATEGORY, G_SET_LEVELS,
    G_FIRST, G_SIZE, G_LOW, G_HIGH, G_UP, G_DOWN, G_HARD, G_REACH, G_LEAST, N_PARTS
};

#include "../../models/forms/_copied.h"
#include "../../models/forms/_numbers.h"

static const Number NUMBERS[] = {
    DOUBLE(Numbers, dust), DOUBLE(Numbers, rounding), DOUBLE(Numbers, squared_gap), DOUBLE(Numbers, on_grid), DOUBLE(Numbers, tiny),
    DOUBLE(Numbers, first_slack), DOUBLE(Numbers, next_slack), DOUBLE(Numbers, unit), DOUBLE(Numbers, least_part), DOUBLE(Numbers, dive_cost),
    COUNT(Numbers, most_patience), COUNT(Numbers, first_patience), COUNT(Numbers, probes), COUNT(Numbers, pull_rounds),
    COUNT(Numbers, pull_attacks), COUNT(Numbers, pull_sweeps), COUNT(Numbers, dive_steps),
};

static int read_all_numbers(Search *s, PyObject *given) {
    if (!read_numbers(given, NUMBERS, sizeof NUMBERS / sizeof *NUMBERS, &s->num)) return 0;
    s->need = 1.0 + s->num.dust, s->beyond = 1.0 + 2.0 * s->num.dust, s->hair = s->num.dust;
    return 1;
}

static void release_constraint(Constraint *g) {
    free(g->values), free(g->tree), free(g->range_first), free(g->set_first), free(g->ranges), free(g->sets);
    free(g->first), free(g->size), free(g->low), free(g->high), free(g->up), free(g->down), free(g->hard), free(g->reach);
    free(g->begin_first), free(g->begin_leaf), free(g->end_first), free(g->end_leaf), free(g->level_first), free(g->level_leaf);
}

static void release(Search *s) {
    if (!s) return;
    for (int32_t i = 0; s->constraints && i < s->n_constraints; i++) release_constraint(s->constraints + i);
    while (s->n_heap) free(s->heap[--s->n_heap].box);
    while (s->free_box) {
        char *box = s->free_box;
        memcpy(&s->free_box, box, sizeof(char *));
        free(box);
    }
    void *blocks[] = {s->hat, s->rate, s->square, s->price, s->root_low, s->root_high, s->push, s->kind, s->entry_first, s->n_entries,
                      s->home, s->level_cost, s->root_levels, s->constraints, s->owner, s->wild, s->ends, s->sets, s->heap, s->lists, s->a, s->b,
                      s->worst, s->flip, s->meet_low, s->meet_high, s->ended, s->begun, s->square_gap, s->base_gap, s->home_cell,
                      s->open_sets, s->excluded, s->top, s->old_top, s->touched, s->grown_low, s->grown_high, s->grown_sets,
                      s->priority, s->level_priority, s->done, s->level_done, s->items, s->near, s->trial, s->near_level,
                      s->trial_level, s->seen, s->own, s->root, s->offer, s->offer_level};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
    free(s);
}

static void forget(PyObject *capsule) { release((Search *)PyCapsule_GetPointer(capsule, NAME)); }

/* Lists of the leaves that begin at a cell, end at a cell, or ask for a category and allow a level. */
static int index_leaves(const Search *s, Constraint *g) {
    int32_t cells = g->n_cells;
    if (!(g->begin_first = calloc((size_t)cells + 2, 4)) || !(g->end_first = calloc((size_t)cells + 2, 4)) ||
        !(g->level_first = calloc((size_t)s->n_levels + 2, 4)))
        return 0;
    size_t in_sets = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t l = 0; l < g->n_leaves; l++) {
            for (int32_t r = g->range_first[l]; r < g->range_first[l + 1]; r++) {
                const Range *q = g->ranges + r;
                int32_t first = g->first[q->number];
                if (pass == 0) g->begin_first[first + q->begin + 1]++, g->end_first[first + q->end + 1]++;
                else g->begin_leaf[g->begin_first[first + q->begin]++] = l, g->end_leaf[g->end_first[first + q->end]++] = l;
            }
            for (int32_t r = g->set_first[l]; r < g->set_first[l + 1]; r++) {
                int32_t first = s->entry_first[g->sets[r].category];
                for (int32_t e = 0; e < s->n_entries[g->sets[r].category]; e++) {
                    if (!(g->sets[r].levels >> e & 1)) continue;
                    if (pass == 0) g->level_first[first + e + 1]++, in_sets++;
                    else g->level_leaf[g->level_first[first + e]++] = l;
                }
            }
        }
        if (pass == 0) {
            for (int32_t i = 0; i <= cells; i++) g->begin_first[i + 1] += g->begin_first[i], g->end_first[i + 1] += g->end_first[i];
            for (int32_t i = 0; i <= s->n_levels; i++) g->level_first[i + 1] += g->level_first[i];
            size_t in_ranges = (size_t)g->range_first[g->n_leaves];
            if (!(g->begin_leaf = calloc(in_ranges + 1, 4)) || !(g->end_leaf = calloc(in_ranges + 1, 4)) ||
                !(g->level_leaf = calloc(in_sets + 1, 4)))
                return 0;
        } else {  /* filling moved each offset to the next one */
            memmove(g->begin_first + 1, g->begin_first, 4 * ((size_t)cells + 1));
            memmove(g->end_first + 1, g->end_first, 4 * ((size_t)cells + 1));
            memmove(g->level_first + 1, g->level_first, 4 * ((size_t)s->n_levels + 1));
            g->begin_first[0] = g->end_first[0] = g->level_first[0] = 0;
        }
    }
    return 1;
}

static int read_constraint(const Search *s, Constraint *g, PyObject *parts) {
    size_t leaves = 0, ranges = 0, sets = 0, cells = 0;
    int32_t *number = NULL, *begin = NULL, *end = NULL, *category = NULL;
    uint64_t *levels = NULL;
    double *least = NULL;
    if (PySequence_Size(parts) != N_PARTS) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "wrong number of parts of a constraint");
        return 0;
    }
    int fine = (g->values = copied(parts, G_VALUES, 8, -1, &leaves)) && (g->tree = copied(parts, G_TREE, 4, (long long)leaves, NULL)) &&
               (g->range_first = copied(parts, G_RANGE_FIRST, 4, (long long)leaves + 1, NULL)) &&
               (number = copied(parts, G_RANGE_NUMBER, 4, -1, &ranges)) && (begin = copied(parts, G_RANGE_BEGIN, 4, (long long)ranges, NULL)) &&
               (end = copied(parts, G_RANGE_END, 4, (long long)ranges, NULL)) &&
               (g->set_first = copied(parts, G_SET_FIRST, 4, (long long)leaves + 1, NULL)) &&
               (category = copied(parts, G_SET_CATEGORY, 4, -1, &sets)) && (levels = copied(parts, G_SET_LEVELS, 8, (long long)sets, NULL)) &&
               (g->first = copied(parts, G_FIRST, 4, s->n, NULL)) && (g->size = copied(parts, G_SIZE, 4, s->n, NULL)) &&
               (g->low = copied(parts, G_LOW, 8, -1, &cells)) && (g->high = copied(parts, G_HIGH, 8, (long long)cells, NULL)) &&
               (g->up = copied(parts, G_UP, 8, (long long)cells, NULL)) && (g->down = copied(parts, G_DOWN, 8, (long long)cells, NULL)) &&
               (g->hard = copied(parts, G_HARD, 1, s->n, NULL)) && (g->reach = copied(parts, G_REACH, 8, s->n, NULL)) &&
               (least = copied(parts, G_LEAST, 8, 1, NULL));
    if (fine) {
        g->n_leaves = (int32_t)leaves, g->n_cells = (int32_t)cells, g->least = *least;
        for (size_t l = 0; l < leaves; l++) g->n_trees += l == 0 || g->tree[l] != g->tree[l - 1];
        fine = leaves > 0 && g->range_first[leaves] == (int32_t)ranges && g->set_first[leaves] == (int32_t)sets;
        for (size_t l = 0, t = 0; fine && l < leaves; l++) {  /* trees are numbered one after the other */
            if (l && g->tree[l] != g->tree[l - 1]) t++;
            fine = g->tree[l] == (int32_t)t && g->range_first[l] <= g->range_first[l + 1] && g->set_first[l] <= g->set_first[l + 1];
        }
        for (int32_t k = 0; fine && k < s->n; k++) fine = g->first[k] >= 0 && g->size[k] > 0 && (size_t)g->first[k] + (size_t)g->size[k] <= cells;
        for (size_t r = 0; fine && r < ranges; r++)
            fine = number[r] >= 0 && number[r] < s->n && begin[r] >= 0 && begin[r] <= end[r] && end[r] < g->size[number[r]];
        for (size_t r = 0; fine && r < sets; r++) fine = category[r] >= 0 && category[r] < s->nc;
        if (!fine) PyErr_SetString(PyExc_ValueError, "a constraint whose parts do not fit together");
    }
    if (fine && (!(g->ranges = calloc(ranges + 1, sizeof(Range))) || !(g->sets = calloc(sets + 1, sizeof(Set))))) fine = 0, PyErr_NoMemory();
    for (size_t r = 0; fine && r < ranges; r++) g->ranges[r] = (Range){number[r], begin[r], end[r]};
    for (size_t r = 0; fine && r < sets; r++) g->sets[r] = (Set){category[r], levels[r]};
    if (fine && !index_leaves(s, g)) fine = 0, PyErr_NoMemory();
    free(number), free(begin), free(end), free(category), free(levels), free(least);
    return fine;
}

/* Memory of fixed size: scratch of the adversary and of growing, points and boxes. */
static int reserve(Search *s) {
    size_t n = (size_t)s->n + 1, nc = (size_t)s->nc + 1, leaves = 1, trees = 1, cells = 1;
    for (int32_t i = 0; i < s->n_constraints; i++) {
        const Constraint *g = s->constraints + i;
        if ((size_t)g->n_leaves > leaves) leaves = (size_t)g->n_leaves;
        if ((size_t)g->n_trees > trees) trees = (size_t)g->n_trees;
        if ((size_t)g->n_cells > cells) cells = (size_t)g->n_cells;
    }
    size_t many = leaves > cells ? leaves : cells;
    s->box_bytes = 16 * (size_t)s->n + 8 * (size_t)s->nc;
    if (s->box_bytes < sizeof(char *)) s->box_bytes = sizeof(char *);
    return (s->a = calloc(n, 4)) && (s->b = calloc(n, 4)) && (s->worst = calloc(trees + 1, 4)) && (s->flip = calloc(n, 4)) &&
           (s->meet_low = calloc(n, 4)) && (s->meet_high = calloc(n, 4)) && (s->ended = calloc(many + 1, 4)) &&
           (s->begun = calloc(many + 1, 4)) && (s->square_gap = calloc(cells + 1, 8)) && (s->base_gap = calloc(n, 8)) &&
           (s->home_cell = calloc(n, 4)) && (s->open_sets = calloc(nc, 8)) && (s->excluded = calloc(leaves + 1, 4)) &&
           (s->top = calloc(trees + 1, 8)) && (s->old_top = calloc(leaves + 1, 8)) && (s->touched = calloc(leaves + 1, 4)) &&
           (s->grown_low = calloc(n, 4)) && (s->grown_high = calloc(n, 4)) && (s->grown_sets = calloc(nc, 8)) &&
           (s->priority = calloc(2 * n, 8)) && (s->level_priority = calloc((size_t)s->n_levels + 1, 8)) && (s->done = calloc(2 * n, 1)) &&
           (s->level_done = calloc((size_t)s->n_levels + 1, 1)) && (s->items = calloc(2 * n + nc, sizeof(Item))) &&
           (s->near = calloc(n, 8)) && (s->trial = calloc(n, 8)) && (s->near_level = calloc(nc, 4)) && (s->trial_level = calloc(nc, 4)) &&
           (s->seen = calloc(n + nc, 1)) && (s->own = calloc(1, s->box_bytes)) && (s->root = calloc(1, s->box_bytes)) &&
           (s->offer = calloc(n, 8)) && (s->offer_level = calloc(nc, 4));
}

static int begin_with_all(Search *s) {
    memcpy(lows(s, s->root), s->root_low, sizeof(double) * (size_t)s->n);
    memcpy(highs(s, s->root), s->root_high, sizeof(double) * (size_t)s->n);
    memcpy(levels_of(s, s->root), s->root_levels, sizeof(uint64_t) * (size_t)s->nc);
    char *box = new_box(s);
    if (!box) return 0;
    memcpy(box, s->root, s->box_bytes);
    return push(s, s->elsewhere, box, 0);
}
