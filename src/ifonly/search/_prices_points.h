/* Incumbents that prices lead to: a point, and its way home. Included by _prices.h; improving.py is the twin of this file. */

static int holds_point(const Search *s, const Prices *p, int32_t leaf) {
    for (uint32_t i = s->range_first[leaf]; i < s->range_first[leaf + 1]; i++) {
        const Range *r = &s->ranges[i];
        if (p->point[r->number] < r->begin || p->point[r->number] > r->end) return 0;
    }
    for (uint32_t i = s->set_first[leaf]; i < s->set_first[leaf + 1]; i++) {
        int32_t c = s->sets[i].category, e = p->point[s->n_numbers + c];
        if (!(s->masks[s->sets[i].mask + s->entry_word[e] - s->word_first[c]] & s->entry_bit[e])) return 0;
    }
    return 1;
}

static int reaches(Search *s, Prices *p, int all) {
    /* Whether the point at hand reaches the goal, by leaves that are open; those that held the last one are tried first. */
    const int32_t *own = s->lists + s->own, *leaves = own + s->n_trees + 1;
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t leaf = p->point_leaf[t];
        if (all || !holds_point(s, p, leaf)) {
            int32_t i = own[t];
            while (i < own[t + 1] && !holds_point(s, p, leaves[i])) i++;
            s->work += (uint64_t)(i - own[t]);
            if (i == own[t + 1]) return 0;
            leaf = leaves[i];
        }
        p->trial_leaf[t] = leaf;
        p->trial_tops[t] = s->values[leaf];
    }
    s->work += (uint64_t)s->n_trees;
    if (total(p->trial_tops, (size_t)s->n_trees) < s->need[0]) return 0;
    return 1;
}

static void accept_trial(Search *s, Prices *p) { memcpy(p->point_leaf, p->trial_leaf, 4 * (size_t)s->n_trees); }

static int bring_home(Search *s, Prices *p, int partly) {
    /* The number whose way home (or, partly, the longest part of it) saves most while the goal is kept; 0: none does. */
    double most = 0.0;
    int32_t at = -1, to = 0;
    for (int32_t k = 0; k < s->n_numbers; k++) {
        int32_t here = p->point[k], home = (int32_t)s->cheapest[k];
        if (home < s->low[k]) home = s->low[k];
        if (home > s->high[k]) home = s->high[k];
        int32_t way = here > home ? 1 : -1;
        const double *cost = s->cost + s->first[k];
        for (int32_t c = home; c != here; c += way) {
            if (!(cost[here] - cost[c] > most) || p->tries_left <= 0) break;
            p->tries_left--;
            p->point[k] = c;
            int fine = reaches(s, p, 0);
            p->point[k] = here;
            if (fine) most = cost[here] - cost[c], at = k, to = c;
            if (fine || !partly) break;
        }
    }
    if (at < 0) return 0;
    p->point[at] = to;
    if (reaches(s, p, 0)) accept_trial(s, p);
    return 1;
}

static void look_at_point(Search *s, Prices *p) {
    /* The cells and levels that are worth most, brought home as far as the goal is kept: a point to be offered? */
    size_t features = (size_t)(s->n_numbers + s->n_categories);
    memcpy(p->point, p->chosen, 4 * features);
    if (!reaches(s, p, 1)) return;
    accept_trial(s, p);
    p->tries_left = p->tries;
    while (bring_home(s, p, 0)) {}
    while (bring_home(s, p, 1)) {}
    for (int32_t k = 0; k < s->n_numbers; k++) p->paid[k] = s->cost[s->first[k] + p->point[k]];
    for (int32_t c = 0; c < s->n_categories; c++) p->paid[s->n_numbers + c] = s->level_cost[p->point[s->n_numbers + c]];
    double cost = s->elsewhere + total(p->paid, features);
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
