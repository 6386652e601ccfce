/* Prices of the splits inside the kernel: the Lagrangian bound of one relaxation, improved in every part.
 *
 * Included by _kernel.c; split_prices.py and improving.py are the twins and have the mathematics. A split is a cut of one
 * tree along one number. It has two prices: a leaf that lies below the cut pays `below` and the cells below it receive as
 * much, a leaf above it pays `above` and the cells above it receive that. So trees and features are priced apart:
 *
 *     mu (budget - elsewhere) + sum over trees max (value of a leaf - what it pays) + sum over features max (receipts - mu cost)
 *
 * is, for any prices, at least the score of any point of the part that costs no more than the budget. Steps of a subgradient
 * method make it smaller. What stays below the goal is closed: the part, or a leaf, or a cell.
 *
 * Sums are added up in the order of the twin. The active splits of a part are those inside its ranges, of trees that are not
 * decided; the prices of the others are 0. Parts on the stack refer to the record of their parent, as they do to its list.
 */

typedef struct {
    double mu;
    int64_t n;  /* active splits; behind this the weights of goals, the prices `below`, `above`, and the numbers of splits */
} Record;

typedef struct {
    uint16_t shared, own;  /* sums that a leaf shares with the one before on the walk, and payments of its own */
} Steps;

struct Prices {
    int32_t n_splits, steps, at_once, patience, round_every, tries, most_counted;
    int32_t *tree, *number, *cell;         /* of each split */
    int32_t *range_end, *range_begin;      /* the splits at which each range of a leaf ends and begins; -1: at none */
    double momentum, stretch, shorter, error;  /* of the method; of a sum, as a share of the size of its terms */
    double size_of_values, size_of_needs;  /* the largest values, added up; the largest need */
    const Costs *charged;                  /* the table of costs that the prices of the part at hand go with */
    char *records;
    size_t room_records, record;  /* of the parent of the part at hand */
    /* the part at hand: active splits, their prices, the best ones so far, directions */
    int32_t n, *id, fresh;  /* fresh: nothing had a price */
    double need, *weight, *best_weight, *push_weight, *slack, weight_unit;  /* of goals; need: the weighted sum of theirs */
    double mu, best_mu, push_mu, *below, *above, *best_below, *best_above, *push_below, *push_above, *square;
    double *pay_below, *pay_above;                     /* per split: running sums of prices; 0 unless active */
    double *cell_below, *cell_above, *worth;           /* per cell */
    double *leaf_worth;                                /* per leaf */
    uint32_t *paid_first;                              /* per leaf: where its payments begin, those of the ranges */
    int32_t *paid_at, *paid_number;                    /* per range: the splits at which it is paid; and its number */
    int32_t *walk, *share;                             /* per place of each list: a leaf, and how many sums it shares */
    size_t room_walk, room_share;
    double *sums;                                      /* of the payments of one leaf */
    double *row_value, *row_goals;                     /* the walk of the part at hand, in a row; values for each goal */
    Steps *row_steps;
    int32_t *row_paid;
    unsigned char *is_kept;                            /* per leaf, while a walk is made */
    char *met;                                         /* per split, while a record is read */
    double *base, *gain, *taken, *paid;                /* per feature */
    double room_gain, next_gain;                       /* the least gain taken where no more may be; the largest that is not */
    double rounding;                                   /* of the last value */
    double behind;                                     /* the least that a leaf off the lattice is worth less than the best */
    int32_t *chosen, *other;                           /* per feature: the cell or level that is worth most; among changes */
    int32_t *ended, *begun, counted;                   /* best leaves of the last steps, by where they end and begin */
    int32_t *point, *point_leaf, *found;               /* a point: cells and levels; the leaves that hold it; the cheapest */
    double *point_tops, found_cost;
    int32_t *of_number, *trees_of;                     /* the trees that look at each number */
    int32_t *moved_tree, *moved_leaf;                  /* of a cell that is tried: trees, and their leaves before */
    int32_t tries_left;  /* on the way home of the point at hand */
    double bound;    /* the least cost in the part at hand */
    /* for a proof: the unit in which prices are kept (0: they are not), the names of splits, the prices of the part around */
    double unit, *base_below, *base_above, *fine_below, *fine_above;
    int64_t *names;
};

static void release_prices(Prices *p) {
    void *blocks[] = {
        p->tree, p->number, p->cell, p->range_end, p->range_begin, p->records, p->id, p->below, p->above, p->best_below,
        p->best_above, p->push_below, p->push_above, p->square, p->pay_below, p->pay_above, p->cell_below, p->cell_above,
        p->worth, p->leaf_worth, p->base, p->gain, p->taken, p->paid, p->chosen, p->other, p->ended, p->begun, p->point,
        p->point_leaf, p->found, p->point_tops, p->of_number, p->trees_of, p->moved_tree, p->moved_leaf, p->base_below, p->base_above, p->fine_below, p->fine_above,
        p->names, p->paid_at, p->paid_number, p->walk, p->share, p->sums, p->is_kept, p->met,
        p->row_value, p->row_goals, p->row_steps, p->row_paid, p->weight, p->best_weight, p->push_weight, p->slack,
    };
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) free(blocks[i]);
}

/* -- records -------------------------------------------------------------------------------------------------------- */
static size_t record_bytes(const Search *s, int64_t n) {
    return sizeof(Record) + 8 * (size_t)s->n_goals + 16 * (size_t)n + (4 * (size_t)n + 7) / 8 * 8;
}
static Record *record_at(Prices *p, size_t at) { return (Record *)(p->records + at); }
static double *record_weights(Record *r) { return (double *)(r + 1); }
static double *record_below(const Search *s, Record *r) { return record_weights(r) + s->n_goals; }
static double *record_above(const Search *s, Record *r) { return record_below(s, r) + r->n; }
static int32_t *record_ids(const Search *s, Record *r) { return (int32_t *)(record_above(s, r) + r->n); }

static int write_record(const Search *s, Prices *p, size_t at) {
    if (!grow((void **)&p->records, &p->room_records, at + record_bytes(s, p->n), 1, s->most_bytes)) return 0;
    Record *r = record_at(p, at);
    r->mu = p->mu, r->n = p->n;
    memcpy(record_weights(r), p->weight, 8 * (size_t)s->n_goals);
    memcpy(record_below(s, r), p->below, 8 * (size_t)p->n);
    memcpy(record_above(s, r), p->above, 8 * (size_t)p->n);
    memcpy(record_ids(s, r), p->id, 4 * (size_t)p->n);
    return 1;
}

static void mark_met(const Search *s, Prices *p, char met) {
    /* The splits at which a leaf of the part at hand ends or begins. */
    const int32_t *own = s->lists + s->own, *leaves = own + s->n_trees + 1;
    for (int32_t t = 0; t < s->n_trees; t++)
        for (int32_t i = own[t]; own[t + 1] - own[t] > 1 && i < own[t + 1]; i++)
            for (uint32_t r = s->range_first[leaves[i]]; r < s->range_first[leaves[i] + 1]; r++) {
                if (p->range_end[r] >= 0) p->met[p->range_end[r]] = met;
                if (p->range_begin[r] >= 0) p->met[p->range_begin[r]] = met;
            }
}

static void read_record(Search *s, Prices *p, int all) {
    /* The prices of the parent, of splits that are still active; where no open leaf ends or begins, they move on to the next
       split below (above), unless all are asked for. */
    Record *r = record_at(p, p->record);
    const int32_t *ids = record_ids(s, r), *own = s->lists + s->own;
    const double *below = record_below(s, r), *above = record_above(s, r);
    double moved = 0.0;
    int32_t tree = -1, number = -1, behind = 0;  /* behind: the first active split of this tree and number */
    p->mu = r->mu, p->n = 0, p->fresh = r->mu == 0.0;
    memcpy(p->weight, record_weights(r), 8 * (size_t)s->n_goals);
    if (!all) mark_met(s, p, 1);
    for (int64_t i = 0; i < r->n; i++) {
        int32_t split = ids[i], k = p->number[split], t = p->tree[split];
        if (p->cell[split] < s->low[k] || p->cell[split] >= s->high[k] || own[t + 1] - own[t] < 2) continue;
        if (t != tree || k != number) tree = t, number = k, behind = p->n, moved = 0.0;
        if (all || p->met[split]) {
            p->id[p->n] = split;
            p->below[p->n] = below[i];
            p->above[p->n++] = moved + above[i];
            moved = 0.0;
        } else {
            if (p->n > behind) p->below[p->n - 1] += below[i];
            moved += above[i];
        }
    }
    for (int32_t i = 0; i < p->n; i++) p->fresh &= p->below[i] == 0.0 && p->above[i] == 0.0;
    if (!all) mark_met(s, p, 0);
}

#include "_prices_walks.h"
#include "_prices_bound.h"
#include "_prices_steps.h"
#include "_prices_points.h"
#include "_prices_closing.h"
#include "_prices_keeping.h"

/* -- one part -------------------------------------------------------------------------------------------------------- */
enum { UNDECIDED = 0, FOUND = 1 };

static int improve(Search *s, int32_t steps) {
    /* Improve the prices of the part at hand; PRUNED: it is closed; FOUND: a point was found that is to be offered. */
    Prices *p = s->prices;
    double stretch = p->stretch, best = Py_HUGE_VAL;
    int32_t stall = 0, best_at = 0, said = UNDECIDED;
    memset(p->push_below, 0, 8 * (size_t)p->n);
    memset(p->push_above, 0, 8 * (size_t)p->n);
    memset(p->push_weight, 0, 8 * (size_t)s->n_goals);
    p->push_mu = 0.0, p->counted = 0, p->found_cost = Py_HUGE_VAL;
    for (int32_t k = 0; k < s->n_numbers; k++) {
        size_t at = (size_t)(s->first[k] + s->low[k]), width = sizeof(int32_t) * (size_t)(s->high[k] - s->low[k] + 1);
        memset(p->ended + at, 0, width);
        memset(p->begun + at, 0, width);
    }
    for (int32_t i = 0; i < steps && said == UNDECIDED; i++) {
        double value = evaluate(s, p, NULL);
        if (misses(s, p, value)) {
            if (i == 0 || !keeps_prices(s, p)) return PRUNED;  /* at first, by the prices of the part around */
            value = round_to_close(s, p);
            if (misses(s, p, value)) return note_rounded(s, p) ? PRUNED : NO_ROOM;
        }
        if (value < best) {
            best = value, stall = 0, best_at = i;
            keep_best(s, p);
        } else if (++stall == p->patience) {
            stretch *= p->shorter, stall = 0;
            if (best_at > 0 || !p->fresh) {  /* not to where nothing had a price: the way from there is bumpy */
                back_to_best(s, p);
                value = evaluate(s, p, NULL);
            }
        }
        if (2 * i >= steps && i >= steps - p->most_counted) count_ends(s, p);
        if ((i + 1) % p->round_every == 0) look_at_point(s, p);
        if (p->found_cost < Py_HUGE_VAL) said = FOUND;
        else if (i + 1 < steps && !step(s, p, stretch, value)) break;
    }
    back_to_best(s, p);
    return said;
}

static void forget_payments(Prices *p) {
    for (int32_t i = 0; i < p->n; i++) p->pay_below[p->id[i]] = p->pay_above[p->id[i]] = 0.0;
}

static void charge_most(Search *s, Prices *p) {
    /* The table by which the part costs most at least is the one that is likely to close it; the first of equals. */
    double most = -Py_HUGE_VAL;
    p->charged = s->costs;
    for (int32_t i = 0; s->n_costs > 1 && i < s->n_costs; i++) {
        least(s, &s->costs[i], s->low, s->high, s->allowed, s->least_numbers, s->least_levels);
        double paid = total(s->least_numbers, (size_t)s->n_numbers) + total(s->least_levels, (size_t)s->n_categories);
        if (s->costs[i].elsewhere + paid > most) most = s->costs[i].elsewhere + paid, p->charged = &s->costs[i];
    }
}

static int priced(Search *s, int32_t steps) {
    /* Improve the prices, close what they close, and keep them for the children; PRUNED, NO_ROOM, FOUND or UNDECIDED. */
    Prices *p = s->prices;
    if (!s->sure && !s->keeps_trail && !keep_reached(s)) return PRUNED;  /* the checker of proofs does not know this rule */
    if (!keep_walk(s, p, s->list, (size_t)s->lists[s->list + (size_t)s->n_trees])) return NO_ROOM;
    size_t walked = (size_t)s->lists[s->own + (size_t)s->n_trees];
    line_up(s, p);
    charge_most(s, p);
    read_record(s, p, keeps_prices(s, p));
    if (keeps_prices(s, p)) keep_base(p);
    int said = improve(s, steps);
    if (said >= 0 && keeps_prices(s, p)) {
        round_prices(p, p->best_below, p->best_above, p->best_mu, 1);
        if (!note_rounded(s, p)) said = NO_ROOM;
    }
    if (said >= 0) {
        double value = evaluate(s, p, p->leaf_worth), least = p->need - 2.0 * p->rounding, spare = value - least;
        if (misses(s, p, value)) said = PRUNED;
        if (p->mu > 0.0) {
            double bound = p->charged->elsewhere + (least - (value - p->mu * allowance(s))) / p->mu;
            if (bound > p->bound) p->bound = bound < s->budget ? bound : s->budget;
        }
        if (said != PRUNED) {
            s->smaller = 0;
            close_leaves(s, spare);
            close_cells(s, spare);
            if (!within_leaves(s) || !keep_open(s)) said = PRUNED;
            else if (!keep_walk(s, p, s->own, walked)) said = NO_ROOM;
        }
    }
    forget_payments(p);
    if (said < 0) return said;
    size_t at = p->record + record_bytes(s, record_at(p, p->record)->n);
    if (!write_record(s, p, at)) return NO_ROOM;
    p->record = at;
    return said;
}

static int32_t priced_apart(Search *s, int32_t *at_number, int32_t *at_cell) {
    /* The most best leaves of the last steps that end at or before a cell, while no fewer begin behind it; the first of equals. */
    Prices *p = s->prices;
    int32_t most = 0;
    for (int32_t k = 0; k < s->n_numbers; k++) {
        const int32_t *ended = p->ended + s->first[k], *begun = p->begun + s->first[k];
        int32_t before = 0, behind = 0;
        for (int32_t c = s->low[k] + 1; c <= s->high[k]; c++) behind += begun[c];
        for (int32_t c = s->low[k]; c < s->high[k]; c++) {
            before += ended[c];
            if (c > s->low[k]) behind -= begun[c];
            int32_t score = before < behind ? before : behind;
            if (score > most) most = score, *at_number = k, *at_cell = c;
        }
    }
    return most;
}

static void note_prices(const Search *s, Node *node) {
    /* A child goes on with the prices of the part at hand. */
    node->bound = s->prices->bound, node->record = s->prices->record, node->steps = s->prices->steps;
}

static double least_bound(const Search *s) {
    double least = s->waiting && s->prices ? s->prices->bound : Py_HUGE_VAL;
    for (size_t i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].bound < least) least = s->nodes[i].bound;
    return least;
}

/* -- tables ---------------------------------------------------------------------------------------------------------- */
static int tabulate_splits(Search *s, Prices *p, const int32_t *first_leaf) {
    /* The cuts of each tree along each number, in the order of tree, number and cell, and those of each range. */
    size_t cells = (size_t)s->n_cells, n_ranges = s->range_first[s->n_leaves], n = 0, room[3] = {0, 0, 0};
    int32_t *mark = calloc(cells + 1, 4);
    p->range_end = malloc(4 * (n_ranges + 1)), p->range_begin = malloc(4 * (n_ranges + 1));
    int fine = mark && p->range_end && p->range_begin;
    for (int32_t t = 0; fine && t < s->n_trees; t++) {
        uint32_t from = s->range_first[first_leaf[t]], to = s->range_first[first_leaf[t + 1]];
        for (uint32_t i = from; i < to; i++) {
            const Range *r = &s->ranges[i];
            if (r->end < s->size[r->number] - 1) mark[s->first[r->number] + r->end] = 1;
            if (r->begin > 0) mark[s->first[r->number] + r->begin - 1] = 1;
        }
        for (int32_t k = 0; fine && k < s->n_numbers; k++)
            for (int32_t c = 0; fine && c < s->size[k]; c++) {
                if (!mark[s->first[k] + c]) continue;
                fine = grow((void **)&p->tree, &room[0], n + 1, 4, s->most_bytes) &&
                       grow((void **)&p->number, &room[1], n + 1, 4, s->most_bytes) &&
                       grow((void **)&p->cell, &room[2], n + 1, 4, s->most_bytes);
                if (!fine) break;
                p->tree[n] = t, p->number[n] = k, p->cell[n] = c;
                mark[s->first[k] + c] = (int32_t)++n;
            }
        for (uint32_t i = from; fine && i < to; i++) {
            const Range *r = &s->ranges[i];
            p->range_end[i] = r->end < s->size[r->number] - 1 ? mark[s->first[r->number] + r->end] - 1 : -1;
            p->range_begin[i] = r->begin > 0 ? mark[s->first[r->number] + r->begin - 1] - 1 : -1;
        }
        if (fine) memset(mark, 0, 4 * cells);
    }
    free(mark);
    p->n_splits = (int32_t)n;
    return fine;
}

static int tabulate_trees(Search *s, Prices *p) {
    /* The trees that look at each number: those with a split along it. */
    size_t n = (size_t)s->n_numbers;
    int32_t *last = malloc(4 * (n + 1));
    p->of_number = calloc(n + 2, 4), p->trees_of = malloc(4 * ((size_t)p->n_splits + 1));
    if (!last || !p->of_number || !p->trees_of) {
        free(last);
        return 0;
    }
    for (int pass = 0; pass < 2; pass++) {  /* count them, then list them */
        memset(last, 0xff, 4 * (n + 1));
        for (int32_t i = 0; i < p->n_splits; i++) {
            int32_t k = p->number[i], t = p->tree[i];
            if (last[k] == t) continue;
            last[k] = t;
            if (pass) p->trees_of[p->of_number[k + 1]] = t;
            p->of_number[pass ? k + 1 : k + 2]++;
        }
        for (size_t k = 0; !pass && k < n; k++) p->of_number[k + 2] += p->of_number[k + 1];
    }
    free(last);
    return 1;
}

static int reserve_prices(Search *s, Prices *p) {
    size_t n = (size_t)p->n_splits + 1, cells = (size_t)s->n_cells + 1, trees = (size_t)s->n_trees;
    size_t features = (size_t)(s->n_numbers + s->n_categories) + 1;
    double **of_splits[] = {&p->below, &p->above, &p->best_below, &p->best_above, &p->push_below, &p->push_above, &p->square,
                            &p->pay_below, &p->pay_above, &p->base_below, &p->base_above, &p->fine_below, &p->fine_above};
    double **of_cells[] = {&p->cell_below, &p->cell_above, &p->worth};
    double **of_features[] = {&p->base, &p->gain, &p->taken, &p->paid};
    int32_t **whole[] = {&p->chosen, &p->other, &p->point, &p->found};
    int fine = (p->id = malloc(4 * n)) && (p->met = calloc(n, 1)) && (p->ended = calloc(cells, 4)) && (p->begun = calloc(cells, 4)) &&
               (p->point_leaf = malloc(4 * trees)) && (p->point_tops = malloc(8 * trees * (size_t)s->n_goals)) &&
               (p->moved_tree = malloc(4 * trees)) && (p->moved_leaf = malloc(4 * trees)) && (p->leaf_worth = calloc((size_t)s->n_leaves, 8));
    for (size_t i = 0; fine && i < sizeof(of_splits) / sizeof(of_splits[0]); i++) fine = (*of_splits[i] = calloc(n, 8)) != NULL;
    for (size_t i = 0; fine && i < sizeof(of_cells) / sizeof(of_cells[0]); i++) fine = (*of_cells[i] = calloc(cells, 8)) != NULL;
    for (size_t i = 0; fine && i < sizeof(of_features) / sizeof(of_features[0]); i++)
        fine = (*of_features[i] = calloc(features, 8)) != NULL;
    double **of_goals[] = {&p->weight, &p->best_weight, &p->push_weight, &p->slack};
    for (size_t i = 0; fine && i < sizeof(of_goals) / sizeof(of_goals[0]); i++)
        fine = (*of_goals[i] = calloc((size_t)s->n_goals, 8)) != NULL;
    for (size_t i = 0; fine && i < sizeof(whole) / sizeof(whole[0]); i++) fine = (*whole[i] = calloc(features, 4)) != NULL;
    return fine;
}

static int open_prices(Search *s, Prices *p) {
    /* All splits, at a price of 0, as the record of the whole. */
    if (!tabulate_splits(s, p, s->lists) || !tabulate_trees(s, p) || !reserve_prices(s, p) || !open_walks(s, p)) return 0;
    const int32_t *leaf = s->lists;
    size_t goals = (size_t)s->n_goals;
    for (int32_t t = 0; t < s->n_trees; t++) {
        double most = 0.0;
        for (size_t i = goals * (size_t)leaf[t]; i < goals * (size_t)leaf[t + 1]; i++)
            if (fabs(s->values[i]) > most) most = fabs(s->values[i]);
        s->tops[t] = most;
    }
    for (size_t g = 0; goals > 1 && g < goals; g++)
        if (fabs(s->need[g]) > p->size_of_needs) p->size_of_needs = fabs(s->need[g]);
    for (size_t g = 0; g < goals; g++) p->weight[g] = 1.0 / (double)goals;
    p->size_of_values = total(s->tops, (size_t)s->n_trees);
    p->n = p->n_splits;
    for (int32_t i = 0; i < p->n; i++) p->id[i] = i;
    return write_record(s, p, 0);
}
