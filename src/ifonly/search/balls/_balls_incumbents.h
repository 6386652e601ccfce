/* Incumbents of the robust search: centres pulled back to the factual, dives and probes. See _balls.c. */
/* Move each moved number a little on, so that the ball keeps its distance whoever computes it; not where that flips. */
static void offer(Search *s, const double *x, const int32_t *level, double bound, int closes) {
    int moved = 0;
    memcpy(s->offer, x, sizeof(double) * (size_t)s->n);
    memcpy(s->offer_level, level, sizeof(int32_t) * (size_t)s->nc);
    for (int32_t k = 0; k < s->n; k++) {
        if (x[k] == s->hat[k] || s->kind[k] != REAL || s->push[k] == 0.0) continue;
        double to = x[k] + (x[k] > s->hat[k] ? 2.0 : -2.0) * s->push[k];
        if (to < s->root_low[k] || to > s->root_high[k]) continue;
        s->offer[k] = to, moved = 1;
    }
    s->limit = s->need;
    for (int32_t i = 0; moved && i < s->n_constraints; i++)
        if (attack(s, i, s->offer, level, 1) != SAFE) moved = 0;
    if (!moved) memcpy(s->offer, x, sizeof(double) * (size_t)s->n);
    s->offered = 1, s->offer_bound = bound, s->offer_closes = closes;
}

static size_t touched_by(const Search *s, const double *x, const int32_t *level) {
    for (size_t i = s->n_pool; i--;)
        if (touching(s, i, x, level) <= s->need) return i;
    return SIZE_MAX;
}

/* Squares of the gaps of all features but one number; infinity where they are away. */
static double touching_but(const Search *s, size_t i, int32_t but, const double *x, const int32_t *level) {
    const Constraint *g = s->constraints + s->owner[i];
    const double *ends = s->ends + 2 * i * s->n;
    double total = 0.0;
    for (int32_t k = 0; k < s->n; k++) {
        if (k == but) continue;
        if (g->hard[k]) {
            if (x[k] <= ends[2 * k] || x[k] >= ends[2 * k + 1]) return INFINITY;
        } else {
            total += square_gap(x[k], ends[2 * k], ends[2 * k + 1], g->reach[k]);
            if (total > s->need) return INFINITY;
        }
    }
    for (int32_t c = 0; c < s->nc; c++)
        if (!(s->sets[i * (size_t)s->nc + (size_t)c] >> level[c] & 1)) return INFINITY;
    return total;
}

/* Nearest value of a number to the factual, on the way from there to where it is, that touches no known no-good. */
static double pulled_to(const Search *s, int32_t k, double *x, const int32_t *level) {
    double now = x[k], t = clipped(s->hat[k], s->root_low[k], s->root_high[k]);
    int up = now > t;
    for (int round = 0; round < s->num.pull_rounds; round++) {
        int moved = 0;
        for (size_t i = s->n_pool; i--;) {
            const Constraint *g = s->constraints + s->owner[i];
            const double *end = s->ends + 2 * (i * (size_t)s->n + (size_t)k);
            if (g->hard[k] ? t <= end[0] || t >= end[1] : up ? t > end[1] + g->reach[k] * s->beyond : t < end[0] - g->reach[k] * s->beyond) continue;
            double others = touching_but(s, i, k, x, level);
            if (others > s->need) continue;
            double to;
            if (g->hard[k]) {
                to = up ? end[1] : end[0];
            } else {
                double way = sqrt(s->beyond - others) * g->reach[k];
                if (square_gap(t, end[0], end[1], g->reach[k]) > s->need - others) continue;
                to = rounded_at(s, k, up ? end[1] + way : end[0] - way, up);
            }
            if (up ? to <= t : to >= t) continue;
            t = to, moved = 1;
            if (up ? t >= now : t <= now) return now;
        }
        if (!moved) return t;
    }
    return now;
}

/* Move one feature of a robust centre as far back as it stays robust; 0: an attack had no end. */
static int pull_one(Search *s, int32_t which, double *x, int32_t *level, int *moved) {
    int32_t c = which - s->n;
    for (int trial = 0; trial < s->num.pull_attacks; trial++) {
        if (s->work > s->stop) return 0;
        double was = which < s->n ? x[which] : 0.0;
        int32_t was_level = which < s->n ? -1 : level[c];
        if (which < s->n) {
            x[which] = pulled_to(s, which, x, level);
            if (x[which] == was) return 1;
        } else {
            if (s->home[c] < 0 || was_level == s->home[c] || !(s->root_levels[c] >> s->home[c] & 1)) return 1;
            level[c] = s->home[c];
        }
        int known = touched_by(s, x, level) != SIZE_MAX, found = known ? FLIPS : withstands(s, x, level, s->root);
        if (found == SAFE) {
            *moved = 1;
            return 1;
        }
        if (which < s->n) x[which] = was;
        else level[c] = was_level;
        if (found == UNKNOWN) return 0;
        if (known || which >= s->n) return 1;
    }
    return 1;
}

/* Pull a robust centre back to the factual, feature by feature, the dearest first, as long as it stays robust. */
static void pull_back(Search *s, double *x, int32_t *level) {
    for (int sweep = 0, moved = 1; sweep < s->num.pull_sweeps && moved; sweep++) {
        moved = 0;
        memset(s->seen, 0, (size_t)(s->n + s->nc) + 1);
        for (;;) {
            int32_t which = -1;
            double most = 0.0;
            for (int32_t f = 0; f < s->n + s->nc; f++) {
                if (s->seen[f]) continue;
                double cost = f < s->n ? cost_of(s, f, x[f]) : s->level_cost[s->entry_first[f - s->n] + level[f - s->n]];
                if (cost > most) most = cost, which = f;
            }
            if (which < 0) break;
            s->seen[which] = 1;
            if (!pull_one(s, which, x, level, &moved)) return;
        }
    }
}

static double below(const Search *s, int32_t k, double x) {
    return s->kind[k] == WHOLE ? x - 1.0 : s->kind[k] == SINGLE ? (double)nextafterf((float)x, -INFINITY) : nextafter(x, -INFINITY);
}

static double above(const Search *s, int32_t k, double x) {
    return s->kind[k] == WHOLE ? x + 1.0 : s->kind[k] == SINGLE ? (double)nextafterf((float)x, INFINITY) : nextafter(x, INFINITY);
}

/* Narrow a box to one side of a split: the one that gets away from a no-good, or the other one. */
static void take(const Search *s, size_t pool, char *box, const Way *way, int away) {
    int32_t k = way->number;
    if (k < 0) {
        uint64_t set = s->sets[pool * (size_t)s->nc + (size_t)way->category];
        levels_of(s, box)[way->category] &= away ? ~set : set;
        return;
    }
    double *low = lows(s, box) + k, *high = highs(s, box) + k;
    int exact = s->constraints[s->owner[pool]].hard[k] || s->kind[k] == WHOLE;  /* elsewhere both sides keep the end */
    if (way->up) {
        if (away) *low = way->at > *low ? way->at : *low;
        else *high = exact ? below(s, k, way->at) : way->at;
    } else {
        if (away) *high = way->at < *high ? way->at : *high;
        else *low = exact ? above(s, k, way->at) : way->at;
    }
}

/* Cheapest way out of a no-good by one feature alone; a number of -1 and a category of -1: there is none. */
static Way whole_way(const Search *s, size_t pool, char *box, const double *near, const int32_t *level, double touched) {
    const Constraint *g = s->constraints + s->owner[pool];
    const double *ends = s->ends + 2 * pool * s->n;
    Way best = {INFINITY, -1, -1, 0, 0.0};
    Item two[2];
    for (int32_t k = 0; k < s->n; k++) {
        int count = ways_out(s, g, ends, k, lows(s, box)[k], highs(s, box)[k], near[k], s->need - touched, two);
        for (int i = 0; i < count; i++) {
            if (!two[i].whole) continue;
            double at = two[i].end;
            if (!g->hard[k]) at = rounded_at(s, k, far_end(g, ends, k, near[k], s->beyond - touched, two[i].up), two[i].up);
            if (two[i].up ? at > highs(s, box)[k] : at < lows(s, box)[k]) continue;
            double cost = cost_of(s, k, at) - cost_of(s, k, near[k]);
            if (cost < best.cost) best = (Way){cost, k, -1, two[i].up, at};
        }
    }
    for (int32_t c = 0; c < s->nc; c++) {
        uint64_t away = levels_of(s, box)[c] & ~s->sets[pool * (size_t)s->nc + (size_t)c];
        if (!away) continue;
        double cost = s->level_cost[s->entry_first[c] + cheapest_level(s, c, away)] - s->level_cost[s->entry_first[c] + level[c]];
        if (cost < best.cost) best = (Way){cost, -1, c, 0, 0.0};
    }
    return best;
}

/* Dive from a box: get away from one no-good after the other by the cheapest way, then pull back; 1: a point is offered. */
static int dive(Search *s, const char *from) {
    char *box = s->own;
    memcpy(box, from, s->box_bytes);
    for (int step = 0; step < s->num.dive_steps && s->work <= s->stop; step++) {
        if (!nearest(s, box, s->trial, s->trial_level)) return 0;
        if (total_cost(s, s->trial, s->trial_level) > s->num.dive_cost * s->budget) return 0;
        size_t pool = touched_by(s, s->trial, s->trial_level);
        s->work += s->n_pool;
        if (pool == SIZE_MAX) {
            int found = withstands(s, s->trial, s->trial_level, box);
            if (found == UNKNOWN) return 0;
            if (found == SAFE) {
                pull_back(s, s->trial, s->trial_level);
                double cost = total_cost(s, s->trial, s->trial_level);
                if (cost > s->budget || changes(s, s->trial, s->trial_level) > s->most) return 0;
                offer(s, s->trial, s->trial_level, cost, 0);
                return 1;
            }
            pool = s->n_pool - 1;
        }
        double gaps = touching(s, pool, s->trial, s->trial_level);
        Way way = whole_way(s, pool, box, s->trial, s->trial_level, gaps);
        if (way.cost == INFINITY) {
            way = way_out(s, pool, box, s->trial, s->trial_level, 0.0, gaps, 0.0);
            if (way.cost == INFINITY || (way.number < 0 && way.category < 0)) return 0;
        }
        take(s, pool, box, &way, 1);
    }
    return 0;
}

/* Probe a node beyond the no-good that bounds it: a point that touches no known one is robust, or shows a new one; 1: offered. */
static int probe(Search *s, char *from) {
    char *box = s->own;
    memcpy(box, from, s->box_bytes);
    for (int step = 0; step < s->num.probes; step++) {
        if (!nearest(s, box, s->trial, s->trial_level)) return 0;
        if (total_cost(s, s->trial, s->trial_level) > s->budget) return 0;
        size_t pool = touched_by(s, s->trial, s->trial_level);
        s->work += s->n_pool;
        if (pool == SIZE_MAX) {
            if (withstands(s, s->trial, s->trial_level, from) != SAFE) return 0;
            s->on_the_way = 1;
            pull_back(s, s->trial, s->trial_level);
            s->on_the_way = 0;
            double cost = total_cost(s, s->trial, s->trial_level);
            if (cost > s->budget || changes(s, s->trial, s->trial_level) > s->most) return 0;
            offer(s, s->trial, s->trial_level, cost, 0);
            return 1;
        }
        Way way = whole_way(s, pool, box, s->trial, s->trial_level, touching(s, pool, s->trial, s->trial_level));
        if (way.cost == INFINITY) return 0;
        take(s, pool, box, &way, 1);
    }
    return 0;
}
