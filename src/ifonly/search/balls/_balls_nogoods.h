/* No-goods of the robust search: which centres touch one, and what it costs at least to get away. See _balls.c. */
static double square_gap(double x, double low, double high, double reach) {
    double gap = x < low ? low - x : x > high ? x - high : 0.0;
    gap /= reach;
    return gap * gap;
}

/* Squares of the gaps between a centre and a no-good; infinity where a hard feature or a level is away from it. */
static double touching(const Search *s, size_t i, const double *x, const int32_t *level) {
    const Constraint *g = s->constraints + s->owner[i];
    const double *ends = s->ends + 2 * i * s->n;
    const uint64_t *sets = s->sets + i * s->nc;
    double total = 0.0;
    for (int32_t k = 0; k < s->n; k++) {
        double low = ends[2 * k], high = ends[2 * k + 1];
        if (g->hard[k]) {
            if (x[k] <= low || x[k] >= high) return INFINITY;
        } else if (x[k] < low || x[k] > high) {
            total += square_gap(x[k], low, high, g->reach[k]);
            if (total > s->need) return INFINITY;
        }
    }
    for (int32_t c = 0; c < s->nc; c++)
        if (!(sets[c] >> level[c] & 1)) return INFINITY;
    return total;
}

static double ratio_of(const Search *s, const Item *i) { return i->gain / (i->cost > s->num.tiny ? i->cost : s->num.tiny); }

/* Least cost of a unit of way, over all ways up to a length: price / d + rate + square d is convex in d. */
static double unit_cost(const Search *s, int32_t k, double near, double length) {
    double moved = fabs(near - s->hat[k]), price = moved == 0.0 ? s->price[k] : 0.0;
    double rate = s->rate[k] + 2.0 * s->square[k] * moved, square = s->square[k];
    double way = length;
    if (square > 0.0 && sqrt(price / square) < length) way = sqrt(price / square);
    return (way > 0.0 ? price / way : 0.0) + rate + square * way;
}

/* Ways of one number out of a no-good: one upwards, one downwards; returns how many. */
static int ways_out(const Search *s, const Constraint *g, const double *ends, int32_t k, double low, double high, double near,
                    double need, Item *out) {
    int count = 0;
    double a = ends[2 * k], b = ends[2 * k + 1];
    for (int up = 0; up < 2; up++) {
        Item i = {0};
        i.number = k, i.category = -1, i.up = up;
        if (g->hard[k]) {
            double end = up ? b : a;
            if (up ? !(end <= high) : !(end >= low)) continue;  /* infinite, or beyond the node */
            if (up ? end < near : end > near) end = near;
            i.end = end, i.gain = need, i.whole = 1;
            i.cost = cost_of(s, k, end) - cost_of(s, k, near);
        } else {
            if (up ? b == INFINITY : a == -INFINITY) continue;
            double own = square_gap(near, a, b, g->reach[k]), way = sqrt(own + need) * g->reach[k];
            double end = up ? b + way : a - way;
            i.whole = up ? end <= high : end >= low;
            if (!i.whole) end = up ? high : low;
            if (up ? end <= near : end >= near) continue;
            i.end = end, i.length = fabs(end - near);
            i.gain = i.whole ? need : square_gap(end, a, b, g->reach[k]) * (1.0 + s->num.squared_gap) - own;
            if (i.gain <= 0.0) continue;
            i.cost = unit_cost(s, k, near, i.length) * i.length;
        }
        if (i.cost < 0.0) i.cost = 0.0;
        out[count++] = i;
    }
    return count;
}

/* Concave envelope of the two ways of one feature: items of which the second is worth taking after the first only. */
static int envelope(const Search *s, Item *i, int count) {
    if (count < 2) return count;
    if (i[0].cost > i[1].cost) {
        Item other = i[0];
        i[0] = i[1], i[1] = other;
    }
    if (i[0].gain >= i[1].gain) return 1;
    if (ratio_of(s, i + 1) >= ratio_of(s, i)) {
        i[0] = i[1];
        return 1;
    }
    i[1].gain -= i[0].gain, i[1].cost -= i[0].cost, i[1].whole = 0;
    return 2;
}

static double rounded_at(const Search *s, int32_t k, double at, int up) {
    if (s->kind[k] == WHOLE) return up ? ceil(at - s->num.on_grid) : floor(at + s->num.on_grid);
    if (s->kind[k] == REAL) return at;
    float single = (float)at;
    if (up ? single < at : single > at) single = nextafterf(single, up ? INFINITY : -INFINITY);
    return (double)single;
}

/* Value of a soft number at which the squares of the gaps have grown by so much. */
static double far_end(const Constraint *g, const double *ends, int32_t k, double near, double need, int up) {
    double way = sqrt(square_gap(near, ends[2 * k], ends[2 * k + 1], g->reach[k]) + need) * g->reach[k];
    return up ? ends[2 * k + 1] + way : ends[2 * k] - way;
}

/* Whether some centre of a box does not touch a no-good: its farthest corner, gaps added up as `touching` does. */
static int can_leave(const Search *s, size_t i, char *box) {
    const Constraint *g = s->constraints + s->owner[i];
    const double *ends = s->ends + 2 * i * s->n, *low = lows(s, box), *high = highs(s, box);
    double total = 0.0;
    for (int32_t k = 0; k < s->n; k++) {
        if (g->hard[k]) {
            if (low[k] <= ends[2 * k] || high[k] >= ends[2 * k + 1]) return 1;
            continue;
        }
        double down = square_gap(low[k], ends[2 * k], ends[2 * k + 1], g->reach[k]);
        double up = square_gap(high[k], ends[2 * k], ends[2 * k + 1], g->reach[k]);
        total += down > up ? down : up;
        if (total > s->need) return 1;
    }
    for (int32_t c = 0; c < s->nc; c++)
        if (levels_of(s, box)[c] & ~s->sets[i * (size_t)s->nc + (size_t)c]) return 1;
    return 0;
}

/* Bound of a node by one no-good that its cheapest centre touches (a fractional knapsack of ways out), and where to split. */
static Way way_out(const Search *s, size_t pool, char *box, const double *near, const int32_t *level, double base, double touched, double slack) {
    const Constraint *g = s->constraints + s->owner[pool];
    const double *ends = s->ends + 2 * pool * s->n, *low = lows(s, box), *high = highs(s, box);
    const uint64_t *sets = s->sets + pool * s->nc, *open = levels_of(s, box);
    Way best = {INFINITY, -1, -1, 0, 0.0};
    if (!can_leave(s, pool, box)) return best;
    double need = s->need - touched, left = need, cost = base;
    Item *items = s->items;
    int n = 0;
    for (int32_t k = 0; k < s->n; k++)
        n += envelope(s, items + n, ways_out(s, g, ends, k, low[k], high[k], near[k], need, items + n));
    for (int32_t c = 0; c < s->nc; c++) {
        uint64_t away = open[c] & ~sets[c];
        if (!away) continue;
        Item i = {0};
        int32_t first = s->entry_first[c], e = cheapest_level(s, c, away);
        i.gain = need, i.whole = 1, i.number = -1, i.category = c;
        i.cost = s->level_cost[first + e] - s->level_cost[first + level[c]];
        if (i.cost < 0.0) i.cost = 0.0;
        items[n++] = i;
    }
    double most = -1.0;
    while (left > 0.0) {  /* few are taken: looking for the best each time is as good as sorting */
        int at = -1;
        double ratio = -1.0;
        for (int i = 0; i < n; i++)
            if (items[i].gain > 0.0 && ratio_of(s, items + i) > ratio) ratio = ratio_of(s, items + i), at = i;
        if (at < 0) break;  /* all of it, and no more: what is missing is rounding */
        Item *i = items + at;
        double gain = i->gain, share = gain <= left ? 1.0 : left / gain;
        cost += share * i->cost;
        left -= share * gain;
        i->gain = 0.0;
        /* split along the item whose gain is overrated most: a step that is taken in part, or a chord above its square */
        int32_t k = i->number;
        if (k < 0 || g->hard[k]) {
            double over = share < 1.0 ? share * gain : 0.0;
                if (over > most) most = over, best.number = k, best.category = i->category, best.up = i->up, best.at = i->end;
            continue;
        }
        double x = near[k] + share * (i->end - near[k]), a = ends[2 * k], b = ends[2 * k + 1];
        double over = share < 1.0 ? share * gain - square_gap(x, a, b, g->reach[k]) + square_gap(near[k], a, b, g->reach[k]) : 0.0;
        if (over <= most) continue;
        if (i->whole && share == 1.0 && need > slack) {
            x = far_end(g, ends, k, near[k], need - 0.5 * slack, i->up);
            if (i->up ? x > i->end : x < i->end) x = i->end;
        } else {
            double least = s->num.least_part, f = share < least ? least : share == 1.0 ? 0.5 : share > 1.0 - least ? 1.0 - least : share;
            x = near[k] + f * (i->end - near[k]);
        }
        /* from a common grid, so that no-goods with nearly the same ends do not leave slivers between them */
        double unit = s->num.unit * slack * g->reach[k];
        if (s->kind[k] != WHOLE && unit > 0.0) x = s->hat[k] + nearbyint((x - s->hat[k]) / unit) * unit;
        x = rounded_at(s, k, x, i->up);
        int inside = i->up ? x > near[k] && x <= high[k] && (s->kind[k] == WHOLE || x < high[k])
                           : x < near[k] && x >= low[k] && (s->kind[k] == WHOLE || x > low[k]);
        if (inside) most = over, best.number = k, best.category = -1, best.up = i->up, best.at = x;
    }
    best.cost = cost - s->num.rounding * fabs(cost);
    return best;
}
