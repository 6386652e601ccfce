/* Compiled kernel of the cell search: branch and bound over boxes of cells, by the rules of cells.py and grids.py.
 *
 * The NumPy search is the twin of this file and the specification of it: from the same tables both visit the same parts in
 * the same order (tests/search/test_kernel.py compares their trails byte by byte). So sums are added up in the order of
 * NumPy's pairwise summation, and the compiler is told not to fuse or reorder operations.
 *
 * A part is a range of cells per number and a set of levels per category, here as bits. A leaf is kept as a list of the
 * ranges and sets that it asks for: most leaves look at few features. Along the path from the root to the part at hand,
 * each part has a list of the leaves that are open in it, tree by tree, the best ones first. The search goes depth first,
 * so parts and lists are two stacks, and memory is bounded by the depth of the search, and by a limit.
 *
 * It knows no clock and no models. It returns to Python whenever a point is to be offered as incumbent, and after a given
 * number of parts or amount of work: there the deadline and Ctrl-C are looked at. It holds no reference to any
 * Python object while it runs, so the interpreter lock is released.
 *
 * Limited API of Python 3.11: one binary serves every later version.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NAME "ifonly.search._kernel.Search"

enum { CLOSED, PAUSED, OFFER, FULL, BROKEN };  /* how a run ended; the order is that of kernel.py */
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
    size_t list;     /* where the list of its parent's open leaves is */
    uint64_t split;  /* the feature in which it is smaller than its parent, as a bit */
} Node;

typedef struct {
    /* the grid: numbers, their cells, categories, their entries (grids.py has the words) */
    int32_t n_numbers, n_categories, n_entries, n_cells, n_words, n_trees, n_goals, n_leaves;
    int64_t *first, *size, *cheapest, *unchanged, *up_first, *down_first;
    double *cost, *highest, *dearest, *up, *down;
    int64_t *entry_first, *number_id, *category_id;
    int32_t *word_first, *entry_word, *entry_owner;
    uint64_t *entry_bit, *home, *open;
    double *level_cost;
    double elsewhere, dust;
    int64_t changed_elsewhere, most;
    /* leaves, ordered by tree and value */
    double *values, *need;
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
    int waiting;  /* for what became of an offer */
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

static int push(Search *s, double share, size_t list, uint64_t split) {
    /* A child with the ranges and levels of the part at hand, to be changed by the caller. */
    if (!room_for_nodes(s, s->n_nodes + 1)) return 0;
    size_t at = s->n_nodes++;
    s->nodes[at].share = share;
    s->nodes[at].list = list;
    s->nodes[at].split = split;
    int32_t *low = part_low(s, at);
    memcpy(low, s->low, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(low + s->n_numbers, s->high, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(part_allowed(s, at), s->allowed, sizeof(uint64_t) * (size_t)s->n_words);
    return 1;
}

/* -- the trail ----------------------------------------------------------------------------------------------------- */
static void put(Search *s, const void *bytes, size_t n) {
    memcpy(s->trail + s->n_trail, bytes, n);
    s->n_trail += n;
}

static void put_number(Search *s, uint64_t value, int n_bytes) {
    for (int i = 0; i < n_bytes; i++) s->trail[s->n_trail++] = (unsigned char)(value >> (8 * i));
}

static int room_for_event(Search *s, size_t bytes) {
    return grow((void **)&s->trail, &s->room_trail, s->n_trail + bytes, 1, s->most_bytes);
}

static int note_leaf(Search *s) {
    if (!s->keeps_trail) return 1;
    if (!room_for_event(s, 1)) return 0;
    put_number(s, LEAF_EVENT, 1);
    return 1;
}

static int note_cut(Search *s, int32_t k, int32_t cell, int above_first) {
    if (!s->keeps_trail) return 1;
    if (!room_for_event(s, 13)) return 0;
    uint64_t value;
    memcpy(&value, &s->highest[s->first[k] + cell], 8);
    put_number(s, CUT_EVENT + (uint64_t)above_first, 1);
    put_number(s, (uint64_t)s->number_id[k], 4);
    put_number(s, value, 8);
    return 1;
}

static int note_levels(Search *s, int32_t c, const uint64_t *sooner) {
    if (!s->keeps_trail) return 1;
    int32_t begin = (int32_t)s->entry_first[c], end = c + 1 < s->n_categories ? (int32_t)s->entry_first[c + 1] : s->n_entries;
    if (!room_for_event(s, 7 + (size_t)(end - begin + 7) / 8)) return 0;
    put_number(s, LEVELS_EVENT, 1);
    put_number(s, (uint64_t)s->category_id[c], 4);
    put_number(s, (uint64_t)(end - begin), 2);
    for (int32_t e = begin; e < end; e += 8) {
        unsigned char packed = 0;
        for (int32_t i = e; i < e + 8 && i < end; i++)
            if (sooner[s->entry_word[i]] & s->entry_bit[i]) packed |= (unsigned char)(0x80 >> (i - e));
        put(s, &packed, 1);
    }
    return 1;
}

/* -- one part: what is left of it ----------------------------------------------------------------------------------- */
static void least(const Search *s, const int32_t *low, const int32_t *high, const uint64_t *allowed, double *numbers,
                  double *levels) {
    for (int32_t k = 0; k < s->n_numbers; k++) {
        int64_t at = s->cheapest[k] > low[k] ? s->cheapest[k] : low[k];
        if (at > high[k]) at = high[k];
        numbers[k] = s->cost[s->first[k] + at];
    }
    for (int32_t c = 0; c < s->n_categories; c++) levels[c] = Py_HUGE_VAL;
    for (int32_t e = 0; e < s->n_entries; e++)
        if (allowed[s->entry_word[e]] & s->entry_bit[e] && s->level_cost[e] < levels[s->entry_owner[e]])
            levels[s->entry_owner[e]] = s->level_cost[e];
}

static int32_t affordable(const double *steps, int64_t begin, int64_t end, double most) {
    /* How many of the rising costs are at most this. */
    int64_t low = begin, high = end;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (steps[middle] <= most) low = middle + 1;
        else high = middle;
    }
    return (int32_t)(low - begin);
}

static int stays_within_changes(Search *s) {
    /* 0: more features must change than may; where no more may, the others stay. */
    if (s->most >= s->n_numbers + s->n_categories + s->changed_elsewhere) return 1;
    int64_t count = s->changed_elsewhere;
    for (int32_t k = 0; k < s->n_numbers; k++) count += s->unchanged[k] < s->low[k] || s->unchanged[k] > s->high[k];
    for (int32_t c = 0; c < s->n_categories; c++) {
        int stays = 0;
        for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) stays |= (s->allowed[w] & s->home[w]) != 0;
        count += !stays;
    }
    if (count > s->most) return 0;
    if (count < s->most) return 1;
    for (int32_t k = 0; k < s->n_numbers; k++)
        if (s->unchanged[k] >= s->low[k] && s->unchanged[k] <= s->high[k]) s->low[k] = s->high[k] = (int32_t)s->unchanged[k];
    for (int32_t c = 0; c < s->n_categories; c++) {
        int stays = 0;
        for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) stays |= (s->allowed[w] & s->home[w]) != 0;
        for (int32_t w = s->word_first[c]; stays && w < s->word_first[c + 1]; w++) s->allowed[w] &= s->home[w];
    }
    return 1;
}

static int reduced(Search *s) {
    /* Keep what the budget and the number of changes leave of the part; 0: nothing. */
    if (!stays_within_changes(s)) return 0;
    least(s, s->low, s->high, s->allowed, s->least_numbers, s->least_levels);
    double paid = total(s->least_numbers, (size_t)s->n_numbers) + total(s->least_levels, (size_t)s->n_categories);
    double spare = s->budget - s->elsewhere - paid;
    if (!(spare >= 0.0)) return 0;
    if (spare == Py_HUGE_VAL) return 1;
    for (int32_t k = 0; k < s->n_numbers; k++) {
        double share = (s->least_numbers[k] + spare) / s->dearest[k] + s->dust;
        double most = 2.0 * k + (share < 1.5 ? share : 1.5);
        int32_t up = affordable(s->up, s->up_first[k], s->up_first[k + 1], most);
        int32_t down = affordable(s->down, s->down_first[k], s->down_first[k + 1], most);
        int32_t low = (int32_t)s->cheapest[k] - down + 1, high = (int32_t)s->cheapest[k] + up - 1;
        if (low > s->low[k]) s->low[k] = low;
        if (high < s->high[k]) s->high[k] = high;
    }
    for (int32_t c = 0; c < s->n_categories; c++) {
        double left = s->least_levels[c] + spare;
        double enough = left + s->dust * (left > 0.0 ? left : -left);
        int32_t end = c + 1 < s->n_categories ? (int32_t)s->entry_first[c + 1] : s->n_entries;
        for (int32_t e = (int32_t)s->entry_first[c]; e < end; e++)
            if (!(s->level_cost[e] <= enough)) s->allowed[s->entry_word[e]] &= ~s->entry_bit[e];
    }
    return 1;
}

/* -- one part: its leaves ------------------------------------------------------------------------------------------- */
static void compare(Search *s, const int32_t *low, const uint64_t *allowed, uint64_t split) {
    /* Which features are smaller than in the parent: by the split, or by the reduction after it. */
    s->smaller = split;
    for (int32_t k = 0; k < s->n_numbers; k++)
        if (s->low[k] != low[k] || s->high[k] != low[s->n_numbers + k]) s->smaller |= bit_of(k);
    for (int32_t c = 0; c < s->n_categories; c++)
        for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++)
            if (s->allowed[w] != allowed[w]) s->smaller |= bit_of(s->n_numbers + c);
}

static int is_open(const Search *s, int32_t leaf) {
    /* Whether a leaf that was open in the parent is: only features in which the part is smaller can have closed it. */
    if (!(s->looks[leaf] & s->smaller)) return 1;
    for (uint32_t i = s->range_first[leaf]; i < s->range_first[leaf + 1]; i++) {
        const Range *r = &s->ranges[i];
        if (r->begin > s->high[r->number] || r->end < s->low[r->number]) return 0;
    }
    for (uint32_t i = s->set_first[leaf]; i < s->set_first[leaf + 1]; i++) {
        const Set *t = &s->sets[i];
        const uint64_t *mask = s->masks + t->mask, *allowed = s->allowed + s->word_first[t->category];
        int32_t n = s->word_first[t->category + 1] - s->word_first[t->category];
        uint64_t common = 0;
        for (int32_t w = 0; w < n; w++) common |= mask[w] & allowed[w];
        if (!common) return 0;
    }
    return 1;
}

/* A list is n_trees + 1 offsets, and behind them the leaves of tree after tree. */
static size_t list_end(const Search *s, size_t list) {
    return list + (size_t)s->n_trees + 1 + (size_t)s->lists[list + (size_t)s->n_trees];
}

enum { PRUNED = -1, NO_ROOM = -2, NO_LEAF = -3 };

static int keep_leaves(Search *s) {
    /* Write the list of open leaves behind that of the parent; those before `best` of each tree are known to be closed. */
    size_t trees = (size_t)s->n_trees, list = s->list, own = list_end(s, list);
    if (!grow((void **)&s->lists, &s->room_lists, own + (own - list), sizeof(int32_t), s->most_bytes)) return NO_ROOM;
    const int32_t *from = s->lists + list, *leaves = from + trees + 1;
    int32_t *to = s->lists + own, *kept = to + trees + 1;
    int32_t n = 0;
    for (size_t t = 0; t < trees; t++) {
        to[t] = n;
        for (int32_t i = from[t] + s->best[t]; i < from[t + 1]; i++) {
            kept[n] = leaves[i];
            n += is_open(s, leaves[i]);
        }
        s->work += (uint64_t)(from[t + 1] - from[t]);
        if (n == to[t]) return NO_LEAF;
    }
    to[trees] = n;
    s->own = own;
    return 0;
}

static int best_for_one_goal(Search *s) {
    /* The first open leaf of each tree is its best: a part that they do not lift to the goal needs no list. */
    const int32_t *from = s->lists + s->list, *leaves = from + s->n_trees + 1;
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t i = from[t];
        while (i < from[t + 1] && !is_open(s, leaves[i])) i++;
        s->work += (uint64_t)(i - from[t] + 1);
        if (i == from[t + 1]) return NO_LEAF;
        s->best[t] = i - from[t];
        s->tops[t] = s->values[leaves[i]];
    }
    if (total(s->tops, (size_t)s->n_trees) < s->need[0]) return PRUNED;
    int said = keep_leaves(s);
    if (said < 0) return said;
    const int32_t *own = s->lists + s->own;
    for (int32_t t = 0; t < s->n_trees; t++) s->best[t] = own[s->n_trees + 1 + own[t]];
    return 0;
}

static int best_for_goals(Search *s) {
    /* The best leaves for the goal that is nearest to being missed; the first of equals. */
    memset(s->best, 0, sizeof(int32_t) * (size_t)s->n_trees);
    int said = keep_leaves(s);
    if (said < 0) return said;
    const int32_t *own = s->lists + s->own, *leaves = own + s->n_trees + 1;
    size_t goals = (size_t)s->n_goals;
    int32_t nearest = 0;
    double slack = Py_HUGE_VAL;
    for (size_t g = 0; g < goals; g++) {
        double sum = 0.0;
        for (int32_t t = 0; t < s->n_trees; t++) {
            double top = s->values[(size_t)leaves[own[t]] * goals + g];
            for (int32_t i = own[t] + 1; i < own[t + 1]; i++) {
                double value = s->values[(size_t)leaves[i] * goals + g];
                if (value > top) top = value;
            }
            s->tops[(size_t)t * goals + g] = top;
            sum += top;
        }
        double spare = sum - s->need[g];
        if (spare < 0.0) return PRUNED;
        if (g == 0 || spare < slack) nearest = (int32_t)g, slack = spare;
    }
    s->work += (uint64_t)own[s->n_trees] * goals;
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t i = own[t];
        while (s->values[(size_t)leaves[i] * goals + (size_t)nearest] != s->tops[(size_t)t * goals + (size_t)nearest]) i++;
        s->best[t] = leaves[i];
    }
    return 0;
}

/* -- one part: best leaves that lie apart --------------------------------------------------------------------------- */
static int32_t apart(Search *s, int32_t *at_number, int32_t *at_cell) {
    /* How many best leaves end at or before a cell, while no fewer begin behind it, and where: the first of equals. */
    memset(s->total_ended, 0, sizeof(int32_t) * (size_t)s->n_numbers);
    memset(s->total_begun, 0, sizeof(int32_t) * (size_t)s->n_numbers);
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t leaf = s->best[t];
        for (uint32_t i = s->range_first[leaf]; i < s->range_first[leaf + 1]; i++) {
            const Range *r = &s->ranges[i];
            int32_t k = r->number;
            if (r->end < s->high[k]) s->ended[s->first[k] + r->end]++, s->total_ended[k]++;
            if (r->begin > s->low[k]) s->begun[s->first[k] + r->begin]++, s->total_begun[k]++;
        }
        s->work += s->range_first[leaf + 1] - s->range_first[leaf];
    }
    int32_t most = 0;
    for (int32_t k = 0; k < s->n_numbers; k++) {
        if (!s->total_ended[k] && !s->total_begun[k]) continue;
        int32_t *ended = s->ended + s->first[k], *begun = s->begun + s->first[k];
        int32_t before = 0, behind = s->total_begun[k];
        if (s->total_ended[k] > most && behind > most)
            for (int32_t cell = s->low[k]; cell < s->high[k]; cell++) {
                before += ended[cell];
                behind -= begun[cell];
                int32_t score = before < behind ? before : behind;
                if (score > most) most = score, *at_number = k, *at_cell = cell;
            }
        size_t width = sizeof(int32_t) * (size_t)(s->high[k] - s->low[k] + 1);
        memset(ended + s->low[k], 0, width);
        memset(begun + s->low[k], 0, width);
        s->work += (uint64_t)(s->high[k] - s->low[k] + 1);
    }
    return most;
}

static int32_t most_at_odds(const Search *s, const int32_t *want, const int32_t *is_apart, int32_t *at_entry) {
    int32_t most = 0;
    *at_entry = 0;
    for (int32_t e = 0; e < s->n_entries; e++) {
        if (!(s->allowed[s->entry_word[e]] & s->entry_bit[e]) || (is_apart && !is_apart[s->entry_owner[e]])) continue;
        int32_t out = s->n_trees - s->hold[e], score = want[e] < out ? want[e] : out;
        if (score > most) most = score, *at_entry = e;
    }
    return most;
}

static int32_t at_odds(Search *s, int32_t *at_entry) {
    /* How many best leaves want a level and no other one, while no fewer rule it out, and which level. */
    if (!s->n_categories) return 0;
    memset(s->hold, 0, sizeof(int32_t) * (size_t)s->n_entries);
    memset(s->only, 0, sizeof(int32_t) * (size_t)s->n_entries);
    memset(s->asked, 0, sizeof(int32_t) * (size_t)s->n_categories);
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t leaf = s->best[t];
        for (uint32_t i = s->set_first[leaf]; i < s->set_first[leaf + 1]; i++) {
            int32_t c = s->sets[i].category, width = 0, last = 0;
            const uint64_t *mask = s->masks + s->sets[i].mask, *allowed = s->allowed + s->word_first[c];
            int32_t end = c + 1 < s->n_categories ? (int32_t)s->entry_first[c + 1] : s->n_entries;
            s->asked[c]++;
            for (int32_t e = (int32_t)s->entry_first[c]; e < end; e++) {
                int32_t w = s->entry_word[e] - s->word_first[c];
                if (mask[w] & allowed[w] & s->entry_bit[e]) s->hold[e]++, width++, last = e;
            }
            if (width == 1) s->only[last]++;
            s->work += (uint64_t)(end - s->entry_first[c]);
        }
    }
    for (int32_t c = 0; c < s->n_categories; c++) {  /* leaves that do not look at a category hold all that is allowed */
        int32_t end = c + 1 < s->n_categories ? (int32_t)s->entry_first[c + 1] : s->n_entries, width = 0;
        for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) width += bits_of(s->allowed[w]);
        for (int32_t e = (int32_t)s->entry_first[c]; e < end; e++)
            if (s->allowed[s->entry_word[e]] & s->entry_bit[e]) {
                s->hold[e] += s->n_trees - s->asked[c];
                if (width == 1) s->only[e] += s->n_trees - s->asked[c];
            }
    }
    int32_t most = most_at_odds(s, s->only, NULL, at_entry);
    if (most) return most;
    /* Sets can meet two by two and still have nothing in common. */
    int some = 0;
    for (int32_t c = 0; c < s->n_categories; c++) s->asked[c] = 1;
    for (int32_t e = 0; e < s->n_entries; e++)
        if (s->hold[e] == s->n_trees) s->asked[s->entry_owner[e]] = 0;
    for (int32_t c = 0; c < s->n_categories; c++) some |= s->asked[c];
    return some ? most_at_odds(s, s->hold, s->asked, at_entry) : 0;
}

/* -- one part: its children ----------------------------------------------------------------------------------------- */
static int split_number(Search *s, int32_t k, int32_t cell) {
    /* Behind a cell; the side of the cheapest value is searched first. */
    int below_first = s->cheapest[k] <= cell;
    for (int second = 0; second < 2; second++) {
        if (!push(s, 0.5 * s->share, s->own, bit_of(k))) return 0;
        int32_t *low = part_low(s, s->n_nodes - 1);
        if (second == below_first) low[s->n_numbers + k] = cell;
        else low[k] = cell + 1;
    }
    return note_cut(s, k, cell, !below_first);
}

static int split_levels(Search *s, int32_t c, const uint64_t *later, const uint64_t *sooner) {
    /* Two sets of levels of a category, as its words. */
    size_t bytes = sizeof(uint64_t) * (size_t)(s->word_first[c + 1] - s->word_first[c]);
    for (int second = 0; second < 2; second++) {
        if (!push(s, 0.5 * s->share, s->own, bit_of(s->n_numbers + c))) return 0;
        memcpy(part_allowed(s, s->n_nodes - 1) + s->word_first[c], second ? sooner : later, bytes);
    }
    return note_levels(s, c, part_allowed(s, s->n_nodes - 1));
}

static int split_entry(Search *s, int32_t entry) {
    /* One level and the others; the side of the level of the factual is searched first. */
    int32_t c = s->entry_owner[entry], begin = s->word_first[c], n = s->word_first[c + 1] - begin;
    uint64_t *only = s->there_allowed, *rest = only + n;  /* room for two sets: see `reserve` */
    for (int32_t w = 0; w < n; w++) only[w] = 0, rest[w] = s->allowed[begin + w];
    only[s->entry_word[entry] - begin] = s->allowed[s->entry_word[entry]] & s->entry_bit[entry];
    rest[s->entry_word[entry] - begin] &= ~s->entry_bit[entry];
    int at_home = (s->home[s->entry_word[entry]] & s->entry_bit[entry]) != 0;
    return at_home ? split_levels(s, c, rest, only) : split_levels(s, c, only, rest);
}

static void meet(Search *s) {
    /* What all best leaves have in common. */
    memcpy(s->there_low, s->low, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(s->there_high, s->high, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(s->there_allowed, s->allowed, sizeof(uint64_t) * (size_t)s->n_words);
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t leaf = s->best[t];
        for (uint32_t i = s->range_first[leaf]; i < s->range_first[leaf + 1]; i++) {
            const Range *r = &s->ranges[i];
            if (r->begin > s->there_low[r->number]) s->there_low[r->number] = r->begin;
            if (r->end < s->there_high[r->number]) s->there_high[r->number] = r->end;
        }
        for (uint32_t i = s->set_first[leaf]; i < s->set_first[leaf + 1]; i++) {
            int32_t c = s->sets[i].category;
            for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++)
                s->there_allowed[w] &= s->masks[s->sets[i].mask + w - s->word_first[c]];
        }
    }
}

static int split_anywhere(Search *s) {
    /* A part whose cheapest point was refused by the last digits of a sum, or by the number of changes; 2: one point. */
    int32_t widest = -1, width = 0;
    for (int32_t k = 0; k < s->n_numbers; k++)
        if (s->high[k] - s->low[k] > width) widest = k, width = s->high[k] - s->low[k];
    if (widest >= 0) return split_number(s, widest, s->low[widest] + width / 2);
    for (int32_t e = 0; e < s->n_entries; e++) {
        int32_t c = s->entry_owner[e], left = 0;
        if (!(s->allowed[s->entry_word[e]] & s->entry_bit[e])) continue;
        for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) left += bits_of(s->allowed[w]);
        if (left > 1) return split_entry(s, e);
    }
    return 2;
}

static int split_around(Search *s) {
    /* No point of the meeting is an answer, for all of them have the same scores: what is left around it, as boxes. Each is
       split off what comes next, so the meeting itself is the first part of the trail, and the last box its second. */
    size_t before = s->n_nodes;
    for (int32_t k = 0; k < s->n_numbers; k++) {
        if (s->there_low[k] > s->low[k]) {
            if (!note_cut(s, k, s->there_low[k] - 1, 1)) return 0;
            if (!push(s, 0.0, s->own, ~(uint64_t)0)) return 0;
            part_low(s, s->n_nodes - 1)[s->n_numbers + k] = s->there_low[k] - 1;
        }
        if (s->there_high[k] < s->high[k]) {
            if (!note_cut(s, k, s->there_high[k], 0)) return 0;
            if (!push(s, 0.0, s->own, ~(uint64_t)0)) return 0;
            part_low(s, s->n_nodes - 1)[k] = s->there_high[k] + 1;
        }
        s->low[k] = s->there_low[k], s->high[k] = s->there_high[k];
    }
    for (int32_t c = 0; c < s->n_categories; c++) {
        uint64_t others = 0;
        for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) others |= s->allowed[w] & ~s->there_allowed[w];
        if (others) {
            if (!note_levels(s, c, s->there_allowed)) return 0;
            if (!push(s, 0.0, s->own, ~(uint64_t)0)) return 0;
            uint64_t *allowed = part_allowed(s, s->n_nodes - 1);
            for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) allowed[w] &= ~s->there_allowed[w];
        }
        for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) s->allowed[w] &= s->there_allowed[w];
    }
    if (s->n_nodes == before) return 2;
    if (!note_leaf(s)) return 0;
    for (size_t at = before; at < s->n_nodes; at++) s->nodes[at].share = s->share / (double)(s->n_nodes - before);
    return 1;
}

static int split_beside(Search *s, int met) {
    /* The cheapest point of the meeting is known: cheaper points lie in the other child. 2: there are none. */
    int32_t n = s->n_numbers, at = -1;
    double most = 0.0;
    if (met == DEAD) return split_around(s);
    least(s, s->low, s->high, s->allowed, s->least_numbers, s->least_levels);
    for (int32_t k = 0; k < n; k++)
        if (s->there_numbers[k] - s->least_numbers[k] > most) at = k, most = s->there_numbers[k] - s->least_numbers[k];
    for (int32_t c = 0; c < s->n_categories; c++)
        if (s->there_levels[c] - s->least_levels[c] > most) at = n + c, most = s->there_levels[c] - s->least_levels[c];
    if (at < 0) return met ? 2 : split_anywhere(s);
    if (at < n) {
        int32_t cell = (int32_t)s->cheapest[at];
        if (cell < s->there_low[at]) cell = s->there_low[at];
        if (cell > s->there_high[at]) cell = s->there_high[at];
        return split_number(s, at, cell > s->cheapest[at] ? cell - 1 : cell);
    }
    int32_t c = at - n, begin = s->word_first[c], words = s->word_first[c + 1] - begin;
    uint64_t *later = s->there_allowed + s->n_words, *sooner = later + words;
    for (int32_t w = 0; w < words; w++) {
        later[w] = s->allowed[begin + w] & s->there_allowed[begin + w];
        sooner[w] = s->allowed[begin + w] & ~s->there_allowed[begin + w];
    }
    return split_levels(s, c, later, sooner);
}

/* -- the search ----------------------------------------------------------------------------------------------------- */
static int close_part(Search *s) {
    s->done += s->share;
    return note_leaf(s) ? PAUSED : FULL;
}

static int after_split(Search *s, int said) { return said == 0 ? FULL : said == 2 ? close_part(s) : PAUSED; }

static int next_part(Search *s) {
    size_t at = --s->n_nodes;
    s->n_parts++;
    s->work += (uint64_t)s->n_trees;
    s->share = s->nodes[at].share;
    s->list = s->nodes[at].list;
    const int32_t *low = part_low(s, at);
    memcpy(s->low, low, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(s->high, low + s->n_numbers, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(s->allowed, part_allowed(s, at), sizeof(uint64_t) * (size_t)s->n_words);
    if (!reduced(s)) return close_part(s);
    compare(s, low, part_allowed(s, at), s->nodes[at].split);
    int said = s->n_goals == 1 ? best_for_one_goal(s) : best_for_goals(s);
    if (said == PRUNED) return close_part(s);
    if (said < 0) return said == NO_ROOM ? FULL : BROKEN;
    int32_t k = 0, cell = 0, entry = 0;
    int32_t along = apart(s, &k, &cell), among = at_odds(s, &entry);
    if (along >= among && along > 0) return after_split(s, split_number(s, k, cell));
    if (among > 0) return after_split(s, split_entry(s, entry));
    meet(s);
    least(s, s->there_low, s->there_high, s->there_allowed, s->there_numbers, s->there_levels);
    double paid = total(s->there_numbers, (size_t)s->n_numbers) + total(s->there_levels, (size_t)s->n_categories);
    if (s->elsewhere + paid <= s->budget) return OFFER;
    return after_split(s, split_beside(s, 0));
}

static int search(Search *s, int met, int64_t most_parts, uint64_t most_work) {
    int64_t last = s->n_parts + most_parts;
    int said = PAUSED;
    s->work = 0;
    if (s->waiting) {
        s->waiting = 0;
        said = after_split(s, split_beside(s, met));
    }
    while (said == PAUSED) {
        if (!s->n_nodes) return CLOSED;
        if (s->n_parts >= last || s->work > most_work) return PAUSED;
        said = next_part(s);
    }
    s->waiting = said == OFFER;
    return said;
}

/* -- from and to Python --------------------------------------------------------------------------------------------- */
static void release(Search *s) {
    void *blocks[] = {
        s->first, s->size, s->cheapest, s->unchanged, s->up_first, s->down_first, s->cost, s->highest, s->dearest, s->up,
        s->down, s->entry_first, s->number_id, s->category_id, s->word_first, s->entry_word, s->entry_owner, s->entry_bit,
        s->home, s->open, s->level_cost, s->values, s->need, s->range_first, s->set_first, s->ranges, s->sets, s->masks, s->looks,
        s->nodes, s->parts, s->lists, s->low, s->high, s->there_low, s->there_high, s->allowed, s->there_allowed, s->best,
        s->ended, s->begun, s->total_ended, s->total_begun, s->hold, s->only, s->asked, s->least_numbers, s->least_levels,
        s->there_numbers, s->there_levels, s->tops, s->trail,
    };
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) free(blocks[i]);
    free(s);
}

static void forget(PyObject *capsule) {
    Search *s = (Search *)PyCapsule_GetPointer(capsule, NAME);
    if (s) release(s);
}

static void *copied(PyObject *tables, Py_ssize_t i, size_t item, size_t count) {
    /* A copy of one of the tables, which must have so many items. */
    PyObject *table = PySequence_GetItem(tables, i);
    Py_buffer view;
    if (!table) return NULL;
    int got = PyObject_GetBuffer(table, &view, PyBUF_SIMPLE);
    Py_DECREF(table);
    if (got < 0) return NULL;
    void *copy = NULL;
    if ((size_t)view.len != item * count)
        PyErr_Format(PyExc_ValueError, "table %zd has %zd bytes, not %zu", i, view.len, item * count);
    else if (!(copy = malloc(view.len ? (size_t)view.len : 1)))
        PyErr_NoMemory();
    else
        memcpy(copy, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return copy;
}

static int reserve(Search *s) {
    size_t n = (size_t)s->n_numbers + 1, c = (size_t)s->n_categories + 1, e = (size_t)s->n_entries + 1;
    size_t words = (size_t)s->n_words + 1, trees = (size_t)s->n_trees, cells = (size_t)s->n_cells + 1;
    s->part_bytes = (8 * (size_t)s->n_words + 8 * (size_t)s->n_numbers + 15) / 8 * 8;
    s->low = malloc(4 * n), s->high = malloc(4 * n), s->there_low = malloc(4 * n), s->there_high = malloc(4 * n);
    s->allowed = malloc(8 * words), s->there_allowed = malloc(3 * 8 * words);
    s->best = malloc(4 * trees), s->ended = calloc(cells, 4), s->begun = calloc(cells, 4);
    s->total_ended = malloc(4 * n), s->total_begun = malloc(4 * n);
    s->hold = malloc(4 * e), s->only = malloc(4 * e), s->asked = malloc(4 * c);
    s->least_numbers = malloc(8 * n), s->least_levels = malloc(8 * c);
    s->there_numbers = malloc(8 * n), s->there_levels = malloc(8 * c);
    s->tops = malloc(8 * trees * (size_t)s->n_goals);
    return s->low && s->high && s->there_low && s->there_high && s->allowed && s->there_allowed && s->best && s->ended &&
           s->begun && s->total_ended && s->total_begun && s->hold && s->only && s->asked && s->least_numbers &&
           s->least_levels && s->there_numbers && s->there_levels && s->tops;
}

static int tabulate_levels(Search *s, const unsigned char *home, const unsigned char *open) {
    /* Words and bits of the entries: each category begins with a word of its own. */
    size_t c = (size_t)s->n_categories, e = (size_t)s->n_entries;
    s->word_first = malloc(4 * (c + 1)), s->entry_word = malloc(4 * (e + 1)), s->entry_owner = malloc(4 * (e + 1));
    s->entry_bit = malloc(8 * (e + 1));
    if (!s->word_first || !s->entry_word || !s->entry_owner || !s->entry_bit) return 0;
    int32_t word = 0;
    for (int32_t i = 0; i < s->n_categories; i++) {
        int32_t begin = (int32_t)s->entry_first[i];
        int32_t end = i + 1 < s->n_categories ? (int32_t)s->entry_first[i + 1] : s->n_entries;
        s->word_first[i] = word;
        for (int32_t j = begin; j < end; j++) {
            s->entry_word[j] = word + (j - begin) / 64;
            s->entry_bit[j] = (uint64_t)1 << ((j - begin) % 64);
            s->entry_owner[j] = i;
        }
        word += (end - begin + 63) / 64;
    }
    s->word_first[c] = s->n_words = word;
    s->home = calloc((size_t)word + 1, 8), s->open = calloc((size_t)word + 1, 8);
    if (!s->home || !s->open) return 0;
    for (int32_t j = 0; j < s->n_entries; j++) {
        if (home[j]) s->home[s->entry_word[j]] |= s->entry_bit[j];
        if (open[j]) s->open[s->entry_word[j]] |= s->entry_bit[j];
    }
    return 1;
}

static int tabulate_leaves(Search *s, const int64_t *order, size_t all, const int32_t *begin, const int32_t *end,
                           const unsigned char *holds) {
    /* Ranges and sets of each leaf, without those that leave everything open. */
    size_t leaves = (size_t)s->n_leaves, n_ranges = 0, n_sets = 0, n_masks = 0;
    size_t room_ranges = 4 * leaves + 16, room_sets = leaves + 16, room_masks = leaves + 16;
    s->range_first = malloc(4 * (leaves + 1)), s->set_first = malloc(4 * (leaves + 1));
    s->ranges = malloc(sizeof(Range) * room_ranges), s->sets = malloc(sizeof(Set) * room_sets);
    s->masks = malloc(8 * room_masks), s->looks = calloc(leaves, 8);
    if (!s->looks || !s->range_first || !s->set_first || !s->ranges || !s->sets || !s->masks) return 0;
    for (size_t i = 0; i < leaves; i++) {
        size_t leaf = (size_t)order[i];
        s->range_first[i] = (uint32_t)n_ranges, s->set_first[i] = (uint32_t)n_sets;
        if (!grow((void **)&s->ranges, &room_ranges, n_ranges + (size_t)s->n_numbers, sizeof(Range), SIZE_MAX)) return 0;
        if (!grow((void **)&s->sets, &room_sets, n_sets + (size_t)s->n_categories, sizeof(Set), SIZE_MAX)) return 0;
        if (!grow((void **)&s->masks, &room_masks, n_masks + (size_t)s->n_words, 8, SIZE_MAX)) return 0;
        for (int32_t k = 0; k < s->n_numbers; k++) {
            int32_t b = begin[(size_t)k * all + leaf], e = end[(size_t)k * all + leaf];
            if (b <= 0 && e >= s->size[k] - 1) continue;
            s->ranges[n_ranges++] = (Range){k, b, e};
            s->looks[i] |= bit_of(k);
        }
        for (int32_t c = 0; c < s->n_categories; c++) {
            int32_t stop = c + 1 < s->n_categories ? (int32_t)s->entry_first[c + 1] : s->n_entries;
            int32_t words = s->word_first[c + 1] - s->word_first[c];
            uint64_t *mask = s->masks + n_masks, missing = 0;
            memset(mask, 0, 8 * (size_t)words);
            for (int32_t e = (int32_t)s->entry_first[c]; e < stop; e++)
                if (holds[(size_t)e * all + leaf]) mask[s->entry_word[e] - s->word_first[c]] |= s->entry_bit[e];
            for (int32_t w = 0; w < words; w++) missing |= s->open[s->word_first[c] + w] & ~mask[w];
            if (!missing) continue;
            s->sets[n_sets++] = (Set){c, (int32_t)n_masks};
            n_masks += (size_t)words;
            s->looks[i] |= bit_of(s->n_numbers + c);
        }
        if (n_ranges > UINT32_MAX / 2 || n_masks > INT32_MAX / 2) return 0;
    }
    s->range_first[leaves] = (uint32_t)n_ranges, s->set_first[leaves] = (uint32_t)n_sets;
    return 1;
}

static int begin_with_all(Search *s, const int64_t *tree) {
    /* The list of all leaves, and the whole as the only node. */
    size_t trees = (size_t)s->n_trees, leaves = (size_t)s->n_leaves;
    if (!grow((void **)&s->lists, &s->room_lists, trees + 1 + leaves, sizeof(int32_t), s->most_bytes)) return 0;
    if (!room_for_nodes(s, 64)) return 0;
    size_t t = 0;
    for (size_t i = 0; i < leaves; i++) {
        if (i == 0 || tree[i] != tree[i - 1]) s->lists[t++] = (int32_t)i;
        s->lists[trees + 1 + i] = (int32_t)i;
    }
    s->lists[trees] = (int32_t)leaves;
    for (int32_t k = 0; k < s->n_numbers; k++) s->low[k] = 0, s->high[k] = (int32_t)s->size[k] - 1;
    memcpy(s->allowed, s->open, 8 * (size_t)s->n_words);
    return push(s, 1.0, 0, ~(uint64_t)0);
}

static size_t count_of(PyObject *tables, Py_ssize_t i, size_t item, int *failed) {
    PyObject *table = PySequence_GetItem(tables, i);
    Py_buffer view;
    if (!table || PyObject_GetBuffer(table, &view, PyBUF_SIMPLE) < 0) {
        Py_XDECREF(table);
        *failed = 1;
        return 0;
    }
    size_t count = (size_t)view.len / item;
    PyBuffer_Release(&view);
    Py_DECREF(table);
    return count;
}

enum { FIRST, SIZE, CHEAPEST, UNCHANGED, UP_FIRST, DOWN_FIRST, COST, HIGHEST, DEAREST, UP, DOWN, NUMBER_ID, ENTRY_FIRST,
       CATEGORY_ID, HOME, OPEN, LEVEL_COST, BEGIN, END, HOLDS, ORDER, TREE, VALUES, NEED, N_TABLES };

static PyObject *opened(PyObject *self, PyObject *args) {
    PyObject *tables;
    double elsewhere, dust;
    long long changed_elsewhere, most, most_bytes;
    int keeps_trail, failed = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OddLLpL", &tables, &elsewhere, &dust, &changed_elsewhere, &most, &keeps_trail, &most_bytes))
        return NULL;
    if (PySequence_Size(tables) != N_TABLES) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "wrong number of tables");
        return NULL;
    }
    size_t n = count_of(tables, FIRST, 8, &failed), cells = count_of(tables, COST, 8, &failed);
    size_t c = count_of(tables, ENTRY_FIRST, 8, &failed), e = count_of(tables, LEVEL_COST, 8, &failed);
    size_t leaves = count_of(tables, ORDER, 8, &failed), goals = count_of(tables, NEED, 8, &failed);
    size_t ups = count_of(tables, UP, 8, &failed), downs = count_of(tables, DOWN, 8, &failed);
    size_t all = n ? count_of(tables, BEGIN, 4, &failed) / n : e ? count_of(tables, HOLDS, 1, &failed) / e : 0;
    if (failed) return NULL;
    size_t largest = (size_t)INT32_MAX / 4;
    if (!leaves || !goals || leaves > largest || cells > largest || e > largest || most_bytes <= 0) {
        PyErr_SetString(PyExc_ValueError, "no leaves, no goal, or too many leaves for the kernel");
        return NULL;
    }
    Search *s = calloc(1, sizeof(Search));
    if (!s) return PyErr_NoMemory();
    s->n_numbers = (int32_t)n, s->n_categories = (int32_t)c, s->n_entries = (int32_t)e, s->n_cells = (int32_t)cells;
    s->n_goals = (int32_t)goals, s->n_leaves = (int32_t)leaves;
    s->elsewhere = elsewhere, s->dust = dust, s->changed_elsewhere = changed_elsewhere, s->most = most;
    s->keeps_trail = keeps_trail, s->most_bytes = (size_t)most_bytes;
    unsigned char *home = NULL, *open = NULL, *holds = NULL;
    int32_t *begin = NULL, *end = NULL;
    int64_t *order = NULL, *tree = NULL;
    int fine = (s->first = copied(tables, FIRST, 8, n)) && (s->size = copied(tables, SIZE, 8, n)) &&
               (s->cheapest = copied(tables, CHEAPEST, 8, n)) && (s->unchanged = copied(tables, UNCHANGED, 8, n)) &&
               (s->up_first = copied(tables, UP_FIRST, 8, n + 1)) && (s->down_first = copied(tables, DOWN_FIRST, 8, n + 1)) &&
               (s->cost = copied(tables, COST, 8, cells)) && (s->highest = copied(tables, HIGHEST, 8, cells)) &&
               (s->dearest = copied(tables, DEAREST, 8, n)) && (s->up = copied(tables, UP, 8, ups)) &&
               (s->down = copied(tables, DOWN, 8, downs)) && (s->number_id = copied(tables, NUMBER_ID, 8, n)) &&
               (s->entry_first = copied(tables, ENTRY_FIRST, 8, c)) && (s->category_id = copied(tables, CATEGORY_ID, 8, c)) &&
               (home = copied(tables, HOME, 1, e)) && (open = copied(tables, OPEN, 1, e)) &&
               (s->level_cost = copied(tables, LEVEL_COST, 8, e)) && (begin = copied(tables, BEGIN, 4, n * all)) &&
               (end = copied(tables, END, 4, n * all)) && (holds = copied(tables, HOLDS, 1, e * all)) &&
               (order = copied(tables, ORDER, 8, leaves)) && (tree = copied(tables, TREE, 8, leaves)) &&
               (s->values = copied(tables, VALUES, 8, leaves * goals)) && (s->need = copied(tables, NEED, 8, goals));
    for (size_t i = 0; fine && i < leaves; i++) {
        s->n_trees += i == 0 || tree[i] != tree[i - 1];
        if (order[i] < 0 || ((n || e) && (size_t)order[i] >= all)) {
            PyErr_SetString(PyExc_ValueError, "a leaf that there is not");
            fine = 0;
        }
    }
    if (fine) {
        fine = tabulate_levels(s, home, open) && reserve(s) && tabulate_leaves(s, order, all, begin, end, holds) &&
               begin_with_all(s, tree);
        if (!fine) PyErr_NoMemory();
    }
    free(home), free(open), free(holds), free(begin), free(end), free(order), free(tree);
    PyObject *capsule = fine ? PyCapsule_New(s, NAME, forget) : NULL;
    if (!capsule) release(s);
    return capsule;
}

static PyObject *run(PyObject *self, PyObject *args) {
    PyObject *capsule;
    double budget;
    int met, said;
    long long most_parts, most_work;
    (void)self;
    if (!PyArg_ParseTuple(args, "OdiLL", &capsule, &budget, &met, &most_parts, &most_work)) return NULL;
    Search *s = (Search *)PyCapsule_GetPointer(capsule, NAME);
    if (!s) return NULL;
    if (s->busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread runs this search");
        return NULL;
    }
    s->budget = budget;
    s->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    said = search(s, met, most_parts, (uint64_t)most_work);
    Py_END_ALLOW_THREADS
    s->busy = 0;
    PyObject *trail = PyBytes_FromStringAndSize((const char *)s->trail, (Py_ssize_t)s->n_trail);
    s->n_trail = 0;
    return trail ? Py_BuildValue("(iLdN)", said, (long long)s->n_parts, s->done, trail) : NULL;
}

static PyObject *meeting(PyObject *self, PyObject *args) {
    /* The part that all best leaves have in common, written into three arrays: first cells, last cells, allowed entries. */
    PyObject *capsule;
    Py_buffer low, high, allowed;
    (void)self;
    if (!PyArg_ParseTuple(args, "Ow*w*w*", &capsule, &low, &high, &allowed)) return NULL;
    Search *s = (Search *)PyCapsule_GetPointer(capsule, NAME);
    int fits = s && low.len == 8 * (Py_ssize_t)s->n_numbers && high.len == low.len && allowed.len == s->n_entries;
    if (s && !(fits && s->waiting && !s->busy)) {
        PyErr_SetString(PyExc_ValueError, "no meeting, or arrays of other sizes");
        fits = 0;
    }
    for (int32_t k = 0; fits && k < s->n_numbers; k++) {
        ((int64_t *)low.buf)[k] = s->there_low[k];
        ((int64_t *)high.buf)[k] = s->there_high[k];
    }
    for (int32_t e = 0; fits && e < s->n_entries; e++)
        ((unsigned char *)allowed.buf)[e] = (s->there_allowed[s->entry_word[e]] & s->entry_bit[e]) != 0;
    PyBuffer_Release(&low), PyBuffer_Release(&high), PyBuffer_Release(&allowed);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"opened", opened, METH_VARARGS, "Return a search of the whole grid, from its tables."},
    {"run", run, METH_VARARGS, "Go on; return how that ended, the number of parts, the share that is closed, and the trail."},
    {"meeting", meeting, METH_VARARGS, "Write the part in which all best leaves meet into three arrays."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_kernel", "Compiled kernel of the cell search.", 0, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&MODULE); }
