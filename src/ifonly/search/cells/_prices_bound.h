/* The Lagrangian bound of a part at given prices. Included by _prices.h; split_prices.py is the twin of this file. */

static void pay(Prices *p) {
    /* Running sums along each number of each tree: a leaf that ends at a cut lies below all later cuts, too. */
    for (int32_t i = 0, j; i < p->n; i = j) {
        int32_t tree = p->tree[p->id[i]], number = p->number[p->id[i]];
        double sum = 0.0;
        for (j = i; j < p->n && p->tree[p->id[j]] == tree && p->number[p->id[j]] == number; j++)
            p->pay_above[p->id[j]] = sum += p->above[j];
        sum = 0.0;
        for (int32_t at = j - 1; at >= i; at--) p->pay_below[p->id[at]] = sum += p->below[at];
    }
}

static void receive(Search *s, Prices *p) {
    /* The worth of each cell, and the best of each feature: as it is, and changed. */
    for (int32_t k = 0; k < s->n_numbers; k++) {
        size_t at = (size_t)(s->first[k] + s->low[k]), width = sizeof(double) * (size_t)(s->high[k] - s->low[k] + 1);
        memset(p->cell_below + at, 0, width);
        memset(p->cell_above + at, 0, width);
    }
    for (int32_t i = 0; i < p->n; i++) {
        int64_t at = s->first[p->number[p->id[i]]] + p->cell[p->id[i]];
        p->cell_below[at] += p->below[i];
        p->cell_above[at] += p->above[i];
    }
    for (int32_t k = 0; k < s->n_numbers; k++) {
        double *worth = p->worth + s->first[k], sum = 0.0, best = -Py_HUGE_VAL;
        const double *below = p->cell_below + s->first[k], *above = p->cell_above + s->first[k];
        const double *cost = p->charged->cost + s->first[k];
        int32_t low = s->low[k], high = s->high[k], home = (int32_t)s->unchanged[k], other = -1;
        for (int32_t c = high; c >= low; c--) worth[c] = (sum += below[c]) - p->mu * cost[c];
        sum = 0.0;
        for (int32_t c = low; c <= high; c++) {
            worth[c] += sum;
            sum += above[c];
            if (c != home && worth[c] > best) best = worth[c], other = c;
        }
        int stays = home >= low && home <= high;
        p->other[k] = other;
        p->chosen[k] = stays ? home : other;
        p->base[k] = stays ? worth[home] : best;
        p->gain[k] = stays && best > worth[home] ? best - worth[home] : 0.0;
    }
    for (int32_t c = 0; c < s->n_categories; c++) {  /* no prices: a level is worth what it does not cost */
        int32_t end = c + 1 < s->n_categories ? (int32_t)s->entry_first[c + 1] : s->n_entries, f = s->n_numbers + c;
        double best = -Py_HUGE_VAL, own = -Py_HUGE_VAL;
        p->other[f] = p->chosen[f] = -1;
        for (int32_t e = (int32_t)s->entry_first[c]; e < end; e++) {
            if (!(s->allowed[s->entry_word[e]] & s->entry_bit[e])) continue;
            double worth = -(p->mu * p->charged->level_cost[e]);
            if (s->home[s->entry_word[e]] & s->entry_bit[e]) own = worth, p->chosen[f] = e;
            else if (worth > best) best = worth, p->other[f] = e;
        }
        int stays = p->chosen[f] >= 0;
        if (!stays) p->chosen[f] = p->other[f];
        p->base[f] = stays ? own : best;
        p->gain[f] = stays && best > own ? best - own : 0.0;
    }
}

static void take_gains(Search *s, Prices *p) {
    /* The largest gains, as many as there may be further changes; of equals the first. */
    int32_t n = s->n_numbers + s->n_categories;
    int64_t room = s->most - s->changed_elsewhere, wanted = 0;
    for (int32_t f = 0; f < n; f++) {
        int stays = f < s->n_numbers ? s->unchanged[f] >= s->low[f] && s->unchanged[f] <= s->high[f] : p->chosen[f] != p->other[f];
        room -= !stays;
        wanted += p->gain[f] > 0.0;
        p->taken[f] = 0.0;
    }
    p->room_gain = p->next_gain = 0.0;
    if (wanted <= room) {
        for (int32_t f = 0; f < n; f++)
            if (p->gain[f] > 0.0) p->taken[f] = p->gain[f], p->chosen[f] = p->other[f];
        return;
    }
    for (int64_t i = 0; i < room; i++) {
        int32_t most = -1;
        for (int32_t f = 0; f < n; f++)
            if (p->gain[f] > 0.0 && p->taken[f] == 0.0 && (most < 0 || p->gain[f] > p->gain[most])) most = f;
        p->taken[most] = p->room_gain = p->gain[most];
        p->chosen[most] = p->other[most];
    }
    for (int32_t f = 0; f < n; f++)
        if (p->taken[f] == 0.0 && p->gain[f] > p->next_gain) p->next_gain = p->gain[f];
}

static double weighted(const Search *s, const Prices *p, const double *of_goals) {
    double sum = 0.0;
    for (int32_t g = 0; g < s->n_goals; g++) sum += p->weight[g] * of_goals[g];
    return sum;
}

static void weigh(Search *s, Prices *p) {
    /* The goals as one: with weights that are not negative, who meets all of them meets their sum. */
    int32_t n = s->lists[s->own + (size_t)s->n_trees];
    double *value = p->row_value;
    p->need = s->n_goals == 1 ? s->need[0] : weighted(s, p, s->need);
    if (s->n_goals == 1) return;
    memset(value, 0, 8 * (size_t)n);
    for (int32_t g = 0; g < s->n_goals; g++) {
        double weight = p->weight[g];
        if (weight == 0.0) continue;
        const double *of_goal = p->row_goals + (size_t)g * (size_t)s->n_leaves;
        for (int32_t i = 0; i < n; i++) value[i] += weight * of_goal[i];
        s->work += (uint64_t)n / 4;
    }
}

static double value_of(const Search *s, const Prices *p, int32_t leaf) {
    return s->n_goals == 1 ? s->values[leaf] : weighted(s, p, s->values + (size_t)s->n_goals * (size_t)leaf);
}

static void pick_leaves(Search *s, Prices *p, double *worth_of) {
    /* The open leaf of each tree that is worth most; the first of equals. Leaves of a tree are numbered in their order. */
    const int32_t *own = s->lists + s->own, *leaves = own + s->n_trees + 1, *walk = p->walk + s->own, *paid = p->row_paid;
    const double *below = p->pay_below, *above = p->pay_above;
    double *sums = p->sums;
    p->behind = Py_HUGE_VAL;
    for (int32_t t = 0; t < s->n_trees; t++) {
        double best = -Py_HUGE_VAL, off = -Py_HUGE_VAL;  /* of all leaves, of those off the lattice */
        int32_t at = leaves[own[t]];
        if (own[t + 1] - own[t] == 1) {  /* its splits have no prices */
            best = value_of(s, p, at);
            if (s->on_grid && !s->on_grid[at]) off = best;
            if (worth_of) worth_of[at] = best;
        } else
            for (int32_t i = own[t]; i < own[t + 1]; i++) {
                double *sum = sums + p->row_steps[i].shared, last = *sum;
                for (int32_t n = p->row_steps[i].own; n > 0; n--, paid += 2) *++sum = last = last + below[paid[0]] + above[paid[1]];
                double worth = p->row_value[i] - last;
                if (worth_of) worth_of[walk[i]] = worth;
                if (s->on_grid && worth > off && !s->on_grid[walk[i]]) off = worth;
                if (worth > best || (worth == best && walk[i] < at)) best = worth, at = walk[i];
            }
        s->best[t] = at;
        s->tops[t] = best;
        if (best - off < p->behind) p->behind = best - off;
    }
    s->work += (uint64_t)(own[s->n_trees] + s->n_cells / 8 + p->n);
}

static double allowance(const Search *s) {
    return s->budget < Py_HUGE_VAL ? s->budget - s->prices->charged->elsewhere : 0.0;
}

static double evaluate(Search *s, Prices *p, double *worth_of) {
    /* The bound of the score, and how far it may be off: by so many roundings of the sizes of all terms; also what each open
       leaf is worth, if that is asked for. */
    size_t features = (size_t)(s->n_numbers + s->n_categories);
    weigh(s, p);
    pay(p);
    receive(s, p);
    take_gains(s, p);
    pick_leaves(s, p, worth_of);
    double prices = total(p->below, (size_t)p->n) + total(p->above, (size_t)p->n);
    p->rounding = p->error * ((p->size_of_values + p->size_of_needs) + 4.0 * prices + 2.0 * (p->mu * (p->charged->size + fabs(allowance(s)))));
    double sum = total(p->base, features) + total(p->taken, features);
    return (sum + total(s->tops, (size_t)s->n_trees)) + p->mu * allowance(s);
}

static int misses(const Search *s, const Prices *p, double value) {
    return is_missed(s, value, p->behind, p->need, p->rounding);
}
