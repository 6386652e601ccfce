/* One step of the subgradient method on the prices of a part. Included by _prices.h; improving.py is the twin of this file. */

static void keep_best(const Search *s, Prices *p) {
    p->best_mu = p->mu;
    memcpy(p->best_weight, p->weight, 8 * (size_t)s->n_goals);
    memcpy(p->best_below, p->below, 8 * (size_t)p->n);
    memcpy(p->best_above, p->above, 8 * (size_t)p->n);
}

static void back_to_best(const Search *s, Prices *p) {
    p->mu = p->best_mu, p->push_mu = 0.0;
    memcpy(p->weight, p->best_weight, 8 * (size_t)s->n_goals);
    memset(p->push_weight, 0, 8 * (size_t)s->n_goals);
    memcpy(p->below, p->best_below, 8 * (size_t)p->n);
    memcpy(p->above, p->best_above, 8 * (size_t)p->n);
    memset(p->push_below, 0, 8 * (size_t)p->n);
    memset(p->push_above, 0, 8 * (size_t)p->n);
}

static double pushed(double price, int32_t way, double before, double momentum) {
    /* The direction of a price: its subgradient, and a part of the direction before; not below 0. */
    double push = (double)(price == 0.0 && way < 0 ? 0 : way) + momentum * before;
    return price == 0.0 && push < 0.0 ? 0.0 : push;
}

static double paid_by(Search *s, Prices *p) {
    /* The cost of the cells and levels that are worth most, without the features elsewhere. */
    for (int32_t k = 0; k < s->n_numbers; k++) p->paid[k] = p->charged->cost[s->first[k] + p->chosen[k]];
    for (int32_t c = 0; c < s->n_categories; c++)
        p->paid[s->n_numbers + c] = p->charged->level_cost[p->chosen[s->n_numbers + c]];
    return total(p->paid, (size_t)(s->n_numbers + s->n_categories));
}

static double push_weights(Search *s, Prices *p) {
    /* The direction of the weights: away from goals that the best leaves clear by more than the mean of those that count. */
    size_t goals = (size_t)s->n_goals;
    double unit = (double)s->n_trees * p->weight_unit, mean = 0.0, length = 0.0;
    int32_t counted = 0;
    for (size_t g = 0; g < goals; g++) {
        double sum = 0.0;
        for (int32_t t = 0; t < s->n_trees; t++) sum += s->values[(size_t)s->best[t] * goals + g];
        p->slack[g] = sum - s->need[g];
        if (p->weight[g] > 0.0) mean += p->slack[g], counted++;
    }
    mean /= (double)counted;
    for (size_t g = 0; g < goals; g++) {
        double push = (mean - p->slack[g]) * unit + p->momentum * p->push_weight[g];
        p->push_weight[g] = p->weight[g] == 0.0 && push < 0.0 ? 0.0 : push;
        length += p->push_weight[g] * p->push_weight[g] / unit;
    }
    return length;
}

static void move_weights(Search *s, Prices *p, double by) {
    /* Go on, not below 0, and so that they add up to 1 again; where none would be left, they stay. */
    double sum = 0.0;
    for (int32_t g = 0; g < s->n_goals; g++) {
        double weight = p->weight[g] + by * p->push_weight[g];
        p->slack[g] = weight > 0.0 ? weight : 0.0;
        sum += p->slack[g];
    }
    for (int32_t g = 0; sum > 0.0 && g < s->n_goals; g++) p->weight[g] = p->slack[g] / sum;
}

static int step(Search *s, Prices *p, double stretch, double value) {
    /* Go against a subgradient, as far as would reach the goal if the bound were linear (Polyak); 0: there is no way. */
    for (int32_t i = 0; i < p->n;) {
        int32_t tree = p->tree[p->id[i]], leaf = s->best[tree];
        uint32_t r = s->range_first[leaf], end = s->range_first[leaf + 1];
        for (; i < p->n && p->tree[p->id[i]] == tree; i++) {
            int32_t k = p->number[p->id[i]], cell = p->cell[p->id[i]], here = p->chosen[k];
            while (r < end && s->ranges[r].number < k) r++;
            int asks = r < end && s->ranges[r].number == k;
            int32_t is_below = asks && s->ranges[r].end <= cell, is_above = asks && s->ranges[r].begin > cell;
            p->push_below[i] = pushed(p->below[i], is_below - (here <= cell), p->push_below[i], p->momentum);
            p->push_above[i] = pushed(p->above[i], is_above - (here > cell), p->push_above[i], p->momentum);
            p->square[i] = p->push_below[i] * p->push_below[i] + p->push_above[i] * p->push_above[i];
        }
    }
    double length = total(p->square, (size_t)p->n), unit = 0.0;
    if (allowance(s) > 0.0) {  /* a budget in units in which it weighs about as much as all trees together */
        unit = (double)s->n_trees / (allowance(s) * allowance(s));
        p->push_mu = (paid_by(s, p) - allowance(s)) * unit + p->momentum * p->push_mu;
        if (p->mu == 0.0 && p->push_mu < 0.0) p->push_mu = 0.0;
        length += p->push_mu * p->push_mu / unit;
    }
    if (s->n_goals > 1) length += push_weights(s, p);
    if (!(length > 0.0)) return 0;
    double by = stretch * ((value - p->need) + s->beyond) / length;
    for (int32_t i = 0; i < p->n; i++) {
        double below = p->below[i] + by * p->push_below[i], above = p->above[i] + by * p->push_above[i];
        p->below[i] = below > 0.0 ? below : 0.0;
        p->above[i] = above > 0.0 ? above : 0.0;
    }
    if (unit > 0.0) {
        double mu = p->mu + by * p->push_mu;
        p->mu = mu > 0.0 ? mu : 0.0;
    }
    if (s->n_goals > 1) move_weights(s, p, by);
    return 1;
}

static void count_ends(Search *s, Prices *p) {
    /* Ends and beginnings of the best leaves inside the part: the average of some steps tells where they are apart. */
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t leaf = s->best[t];
        for (uint32_t i = s->range_first[leaf]; i < s->range_first[leaf + 1]; i++) {
            const Range *r = &s->ranges[i];
            if (r->end < s->high[r->number]) p->ended[s->first[r->number] + r->end]++;
            if (r->begin > s->low[r->number]) p->begun[s->first[r->number] + r->begin]++;
        }
    }
    p->counted++;
}
