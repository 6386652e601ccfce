/* The relaxation of one part: what budget and number of changes leave of it, its open leaves, and the best of them.
 *
 * Included by _kernel.c; grids.py is the twin of the first half, splitting.py of the second.
 */

/* -- one part: what is left of it ----------------------------------------------------------------------------------- */
static void least(const Search *s, const Costs *costs, const int32_t *low, const int32_t *high, const uint64_t *allowed,
                  double *numbers, double *levels) {
    for (int32_t k = 0; k < s->n_numbers; k++) {
        int64_t at = costs->cheapest[k] > low[k] ? costs->cheapest[k] : low[k];
        if (at > high[k]) at = high[k];
        numbers[k] = costs->cost[s->first[k] + at];
    }
    for (int32_t c = 0; c < s->n_categories; c++) levels[c] = Py_HUGE_VAL;
    for (int32_t e = 0; e < s->n_entries; e++)
        if (allowed[s->entry_word[e]] & s->entry_bit[e] && costs->level_cost[e] < levels[s->entry_owner[e]])
            levels[s->entry_owner[e]] = costs->level_cost[e];
}

static int32_t affordable(const double *steps, int64_t begin, int64_t end, double most) {
    /* Number of the rising costs that are at most this. */
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

static int within_budget(Search *s, const Costs *costs) {
    /* Keep what the budget leaves of the part by one table of costs; 0: nothing. */
    least(s, costs, s->low, s->high, s->allowed, s->least_numbers, s->least_levels);
    double paid = total(s->least_numbers, (size_t)s->n_numbers) + total(s->least_levels, (size_t)s->n_categories);
    double spare = s->budget - costs->elsewhere - paid;
    if (!(spare >= 0.0)) return 0;
    if (spare == Py_HUGE_VAL) return 1;
    for (int32_t k = 0; k < s->n_numbers; k++) {
        double share = (s->least_numbers[k] + spare) / costs->dearest[k] + s->dust;
        double most = 2.0 * k + (share < 1.5 ? share : 1.5);
        int32_t up = affordable(costs->up, costs->up_first[k], costs->up_first[k + 1], most);
        int32_t down = affordable(costs->down, costs->down_first[k], costs->down_first[k + 1], most);
        int32_t low = (int32_t)costs->cheapest[k] - down + 1, high = (int32_t)costs->cheapest[k] + up - 1;
        if (low > s->low[k]) s->low[k] = low;
        if (high < s->high[k]) s->high[k] = high;
    }
    for (int32_t c = 0; c < s->n_categories; c++) {
        double left = s->least_levels[c] + spare;
        double enough = left + s->dust * (left > 0.0 ? left : -left);
        int32_t end = c + 1 < s->n_categories ? (int32_t)s->entry_first[c + 1] : s->n_entries;
        for (int32_t e = (int32_t)s->entry_first[c]; e < end; e++)
            if (!(costs->level_cost[e] <= enough)) s->allowed[s->entry_word[e]] &= ~s->entry_bit[e];
    }
    return 1;
}

static int reduced(Search *s) {
    /* Keep what the budget, by every table, and the number of changes leave of the part; 0: nothing. */
    if (!stays_within_changes(s)) return 0;
    for (int32_t i = 0; i < s->n_costs; i++)
        if (!within_budget(s, &s->costs[i])) return 0;
    return 1;
}

/* -- one part: its leaves ------------------------------------------------------------------------------------------- */
static void compare(Search *s, const int32_t *low, const uint64_t *allowed, uint64_t split) {
    /* The features that are smaller than in the parent: by the split, or by the reduction after it. */
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

static int is_missed(const Search *s, double value, double behind, double need, double rounding) {
    /* Whether no sum reaches the goal, where all are at most `value`, and those off the lattice at most `behind` below it. */
    if (value < need - rounding) return 1;
    return s->on_grid && value < s->grid_need - rounding && value - behind < need - rounding;
}

static double behind_best(Search *s) {
    /* The least that an open leaf off the lattice falls short of the best one of its tree. */
    const int32_t *from = s->lists + s->list, *leaves = from + s->n_trees + 1;
    double behind = Py_HUGE_VAL;
    for (int32_t t = 0; t < s->n_trees; t++)
        for (int32_t i = from[t] + s->best[t]; i < from[t + 1] && s->tops[t] - s->values[leaves[i]] < behind; i++) {
            s->work++;
            if (!s->on_grid[leaves[i]] && is_open(s, leaves[i])) behind = s->tops[t] - s->values[leaves[i]];
        }
    return behind;
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
    double sum = total(s->tops, (size_t)s->n_trees);
    double behind = s->on_grid && sum < s->grid_need ? behind_best(s) : 0.0;
    if (is_missed(s, sum, behind, s->need[0], 0.0)) return PRUNED;
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
    for (int32_t t = 0; t < s->n_trees; t++) {
        double *tops = s->tops + (size_t)t * goals;
        memcpy(tops, s->values + (size_t)leaves[own[t]] * goals, 8 * goals);
        for (int32_t i = own[t] + 1; i < own[t + 1]; i++) {
            const double *value = s->values + (size_t)leaves[i] * goals;
            for (size_t g = 0; g < goals; g++) tops[g] = value[g] > tops[g] ? value[g] : tops[g];
        }
    }
    for (size_t g = 0; g < goals; g++) {
        double sum = 0.0;
        for (int32_t t = 0; t < s->n_trees; t++) sum += s->tops[(size_t)t * goals + g];
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

static int worst_reach(Search *s, size_t list) {
    /* Whether even the worst leaves of a list that are open in the part reach the goal together. */
    const int32_t *own = s->lists + list, *leaves = own + s->n_trees + 1;
    size_t goals = (size_t)s->n_goals;
    for (size_t g = 0; g < goals; g++) {
        for (int32_t t = 0; t < s->n_trees; t++) {
            double worst = Py_HUGE_VAL;
            for (int32_t i = own[t]; i < own[t + 1]; i++) {
                double value = s->values[(size_t)leaves[i] * goals + g];
                if (value < worst && is_open(s, leaves[i])) worst = value;
            }
            s->tops[t] = worst;
        }
        if (!(total(s->tops, (size_t)s->n_trees) >= s->sure[g])) return 0;
    }
    return 1;
}

static int reaches_all_over(Search *s) {
    /* Whether every point of the part reaches the goal; prices close leaves that lie in it, so all leaves are then looked at. */
    if (!worst_reach(s, s->own)) return 0;
    if (!s->prices) return 1;
    uint64_t smaller = s->smaller;
    s->smaller = ~(uint64_t)0;
    s->work += (uint64_t)s->n_leaves;
    int said = worst_reach(s, 0);
    s->smaller = smaller;
    return said;
}
