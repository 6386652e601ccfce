/* Incumbents that prices lead to: a point, and its way home. Included by _prices.h; improving.py is the twin of this file. */

static int holds_levels(const Search *s, const Prices *p, int32_t leaf) {
    for (uint32_t i = s->set_first[leaf]; i < s->set_first[leaf + 1]; i++) {
        int32_t c = s->sets[i].category, e = p->point[s->n_numbers + c];
        if (!(s->masks[s->sets[i].mask + s->entry_word[e] - s->word_first[c]] & s->entry_bit[e])) return 0;
    }
    return 1;
}

static int holds_point(const Search *s, const Prices *p, int32_t leaf) {
    for (uint32_t i = s->range_first[leaf]; i < s->range_first[leaf + 1]; i++) {
        const Range *r = &s->ranges[i];
        if (p->point[r->number] < r->begin || p->point[r->number] > r->end) return 0;
    }
    return holds_levels(s, p, leaf);
}

static int32_t leaf_of_point(Search *s, const Prices *p, int32_t t) {
    /* The open leaf of a tree that holds the point at hand; -1: none does. Leaves that share a range with one that the point
       is outside of are passed over. */
    const int32_t *own = s->lists + s->own, *walk = p->walk + s->own, *share = p->share + s->own;
    int32_t outside = INT32_MAX;  /* the first range of the leaf before that does not hold the point */
    s->work += (uint64_t)(own[t + 1] - own[t]);
    for (int32_t i = own[t]; i < own[t + 1]; i++) {
        if (share[i] > outside) continue;
        int32_t leaf = walk[i], n = share[i], end = (int32_t)(p->paid_first[leaf + 1] - p->paid_first[leaf]);
        const int32_t *paid = p->paid_at + 2 * (size_t)p->paid_first[leaf];
        for (; n < end; n++) {
            int32_t last = paid[2 * n], before = paid[2 * n + 1];
            if (last < p->n_splits && p->point[p->number[last]] > p->cell[last]) break;
            if (before < p->n_splits && p->point[p->number[before]] <= p->cell[before]) break;
        }
        outside = n;
        if (n == end && holds_levels(s, p, leaf)) return leaf;
    }
    return -1;
}

static void put_leaf(const Search *s, Prices *p, int32_t t, int32_t leaf) {
    p->point_leaf[t] = leaf;
    for (int32_t g = 0; g < s->n_goals; g++)
        p->point_tops[(size_t)g * (size_t)s->n_trees + (size_t)t] = s->values[(size_t)leaf * (size_t)s->n_goals + (size_t)g];
}

static int meets_goals(const Search *s, const Prices *p) {
    for (int32_t g = 0; g < s->n_goals; g++)
        if (total(p->point_tops + (size_t)g * (size_t)s->n_trees, (size_t)s->n_trees) < s->need[g]) return 0;
    return 1;
}

static int reaches(Search *s, Prices *p) {
    /* Whether the point at hand reaches the goal, by leaves that are open; those that are best are tried first. */
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t leaf = holds_point(s, p, s->best[t]) ? s->best[t] : leaf_of_point(s, p, t);
        if (leaf < 0) return 0;
        put_leaf(s, p, t, leaf);
    }
    s->work += (uint64_t)s->n_trees;
    return meets_goals(s, p);
}

static int holds_cell(const Search *s, int32_t leaf, int32_t k, int32_t cell) {
    for (uint32_t i = s->range_first[leaf]; i < s->range_first[leaf + 1]; i++)
        if (s->ranges[i].number == k) return cell >= s->ranges[i].begin && cell <= s->ranges[i].end;
    return 1;
}

static int reaches_with(Search *s, Prices *p, int32_t k, int32_t cell, int keep) {
    /* The same with another cell of a number: only trees that look at it can change their leaf. Keep it, or put all back. */
    int32_t here = p->point[k], n = 0, fine = 1;
    p->point[k] = cell;
    for (int32_t i = p->of_number[k]; fine && i < p->of_number[k + 1]; i++) {
        int32_t t = p->trees_of[i], leaf = p->point_leaf[t];
        if (holds_cell(s, leaf, k, cell)) continue;
        p->moved_tree[n] = t, p->moved_leaf[n++] = leaf;
        leaf = leaf_of_point(s, p, t);
        if (leaf < 0) fine = 0;
        else put_leaf(s, p, t, leaf);
    }
    s->work += (uint64_t)(p->of_number[k + 1] - p->of_number[k]);
    fine = fine && meets_goals(s, p);
    if (fine && keep) return 1;
    p->point[k] = here;
    for (int32_t i = 0; i < n; i++) put_leaf(s, p, p->moved_tree[i], p->moved_leaf[i]);
    return fine;
}

static void bring_home(Search *s, Prices *p, int partly) {
    /* Move numbers home (or, partly, as far as that goes) while the goal is kept, the dearest first; of equals the first. */
    for (int32_t k = 0; k < s->n_numbers; k++) p->paid[k] = s->costs->cost[s->first[k] + p->point[k]];
    for (int32_t i = 0; i < s->n_numbers; i++) {
        int32_t k = 0;
        for (int32_t j = 1; j < s->n_numbers; j++)
            if (p->paid[j] > p->paid[k]) k = j;
        if (!(p->paid[k] > 0.0)) return;
        p->paid[k] = 0.0;
        int32_t here = p->point[k], home = (int32_t)s->costs->cheapest[k];
        if (home < s->low[k]) home = s->low[k];
        if (home > s->high[k]) home = s->high[k];
        int32_t way = here > home ? 1 : -1;
        const double *cost = s->costs->cost + s->first[k];
        for (int32_t c = home; c != here && cost[c] < cost[here]; c += way) {
            if (p->tries_left-- <= 0) return;
            if (reaches_with(s, p, k, c, 1) || !partly) break;
        }
    }
}

static double cost_of_point(Search *s, Prices *p, const Costs *costs) {
    for (int32_t k = 0; k < s->n_numbers; k++) p->paid[k] = costs->cost[s->first[k] + p->point[k]];
    for (int32_t c = 0; c < s->n_categories; c++) p->paid[s->n_numbers + c] = costs->level_cost[p->point[s->n_numbers + c]];
    return costs->elsewhere + total(p->paid, (size_t)(s->n_numbers + s->n_categories));
}

static void look_at_point(Search *s, Prices *p) {
    /* The cells and levels that are worth most, brought home as far as the goal is kept: a point to be offered? */
    size_t features = (size_t)(s->n_numbers + s->n_categories);
    memcpy(p->point, p->chosen, 4 * features);
    if (!reaches(s, p)) return;
    p->tries_left = p->tries;
    bring_home(s, p, 0);
    bring_home(s, p, 1);
    for (int32_t i = 1; i < s->n_costs; i++)
        if (!(cost_of_point(s, p, &s->costs[i]) <= s->budget)) return;
    double cost = cost_of_point(s, p, s->costs);
    if (cost <= s->budget && cost < p->found_cost) {
        p->found_cost = cost;
        memcpy(p->found, p->point, 4 * features);
    }
}

static void meet_at_point(Search *s, Prices *p) {
    /* The point that was found, as the part that is offered. */
    memcpy(s->there_low, p->found, 4 * (size_t)s->n_numbers);
    memcpy(s->there_high, p->found, 4 * (size_t)s->n_numbers);
    memset(s->there_allowed, 0, 8 * (size_t)s->n_words);
    for (int32_t c = 0; c < s->n_categories; c++) {
        int32_t e = p->found[s->n_numbers + c];
        s->there_allowed[s->entry_word[e]] |= s->entry_bit[e];
    }
}
