/* The box of a node: what a budget leaves of it, ways to spend, and children along a feature. See _signs.c.
 *
 * The rules are those of search/inputs/nodes.py: in a node every number has a cheapest value, and going on from there costs at least
 * `onward` per unit; every category has a cheapest level, and another one costs so much more. */

static double cost_at(const Search *s, int32_t k, double distance) {
    return s->rate[k] * distance + s->square[k] * distance * distance + (distance > 0.0 ? s->price[k] : 0.0);
}

/* The distance from home that a number may have for so much, rounded up. */
static double reach_for(const Search *s, int32_t k, double spare) {
    double left = spare - s->price[k] > 0.0 ? spare - s->price[k] : 0.0;
    if (!(s->rate[k] + s->square[k] > 0.0)) return spare >= s->price[k] ? INFINITY : 0.0;
    double far = 2.0 * left / (s->rate[k] + sqrt(s->rate[k] * s->rate[k] + 4.0 * s->square[k] * left));
    if (far != far) return spare >= s->price[k] ? INFINITY : 0.0;
    return far * (1.0 + s->num.rounding) + s->num.float_room * fabs(s->origin[k] + s->home[k]);
}

/* From grid point to grid point, a little wider. */
static void snap(const Search *s, int32_t k) {
    double step = s->step[k], room = s->room[k];
    if (!(step > 0.0) || !(s->high[k] > s->low[k])) return;
    double from = ceil((s->low[k] + s->origin[k] - 2.0 * room) / step) * step - s->origin[k] - room;
    double to = floor((s->high[k] + s->origin[k] + 2.0 * room) / step) * step - s->origin[k] + room;
    if (from > s->low[k]) s->low[k] = from;
    if (to < s->high[k]) s->high[k] = to;
}

/* The cheapest point of the box at hand and what it costs; 0: the box is empty. */
static int cheapest(Search *s) {
    s->base = s->elsewhere;
    for (int32_t k = 0; k < s->n; k++) {
        double home = s->home[k];
        if (!(s->low[k] <= s->high[k])) return 0;
        s->near[k] = home < s->low[k] ? s->low[k] : home > s->high[k] ? s->high[k] : home;
        s->least[k] = cost_at(s, k, fabs(s->near[k] - home));
        s->base += s->least[k];
    }
    for (int32_t c = 0; c < s->n_categories; c++) {
        int32_t best = -1;
        for (int32_t e = s->first[c]; e < s->first[c + 1]; e++)
            if (s->allowed[e] && (best < 0 || s->level_cost[e] < s->level_cost[best])) best = e;
        if (best < 0) return 0;
        s->cheapest[c] = best, s->least[s->n + c] = s->level_cost[best];
        s->base += s->level_cost[best];
    }
    return 1;
}

/* The others stay where as many features must change as may; 0: more must. */
static int counted(Search *s) {
    if (s->most >= s->n + s->n_categories) return 1;
    int32_t changed = 0;
    for (int32_t k = 0; k < s->n; k++) changed += s->near[k] != s->home[k];
    for (int32_t c = 0; c < s->n_categories; c++) {
        int stays = 0;
        for (int32_t e = s->first[c]; e < s->first[c + 1]; e++) stays |= s->allowed[e] && s->level_home[e];
        changed += !stays;
    }
    if (changed != s->most) return changed < s->most;
    for (int32_t k = 0; k < s->n; k++)
        if (s->near[k] == s->home[k]) s->low[k] = s->high[k] = s->home[k];
    for (int32_t c = 0; c < s->n_categories; c++) {
        int stays = 0;
        for (int32_t e = s->first[c]; e < s->first[c + 1]; e++) stays |= s->allowed[e] && s->level_home[e];
        for (int32_t e = s->first[c]; stays && e < s->first[c + 1]; e++) s->allowed[e] &= s->level_home[e];
    }
    return 1;
}

/* Take a node in hand: what the budget and the number of changes leave of its box; 0: nothing. */
static int reduced(Search *s, const Node *node) {
    memcpy(s->low, node->low, sizeof(double) * (size_t)s->n);
    memcpy(s->high, node->high, sizeof(double) * (size_t)s->n);
    memcpy(s->allowed, node->allowed, (size_t)s->n_levels);
    if (!cheapest(s) || !counted(s) || !cheapest(s)) return 0;
    if (!isfinite(s->budget)) return s->spare = INFINITY, 1;
    if (s->base > s->budget * (1.0 + s->num.dust)) return 0;
    for (int32_t k = 0; k < s->n; k++) {
        double far = reach_for(s, k, s->budget - s->base + s->least[k] + s->num.dust * fabs(s->budget));
        if (s->home[k] - far > s->low[k]) s->low[k] = s->home[k] - far;
        if (s->home[k] + far < s->high[k]) s->high[k] = s->home[k] + far;
        snap(s, k);
    }
    for (int32_t c = 0; c < s->n_categories; c++)
        for (int32_t e = s->first[c]; e < s->first[c + 1]; e++)
            s->allowed[e] &= s->level_cost[e] <= s->budget - s->base + s->least[s->n + c] + s->num.dust * fabs(s->budget);
    if (!cheapest(s)) return 0;
    s->spare = s->budget - s->base + s->num.dust * fabs(s->budget);
    return 1;
}

/* The least rate at which going on from the cheapest value costs; at home a price is part of it. */
static double onward_of(const Search *s, int32_t k) {
    double away = fabs(s->near[k] - s->home[k]), up = s->high[k] - s->near[k], down = s->near[k] - s->low[k];
    double on = s->rate[k] + 2.0 * s->square[k] * away, width = up > down ? up : down;
    if (away > 0.0 || !(s->price[k] > 0.0)) return on;
    double best = sqrt(s->price[k] / (s->square[k] > s->num.tiny ? s->square[k] : s->num.tiny));
    if (width < best) best = width;
    return best > 0.0 ? on + s->price[k] / best + s->square[k] * best : on;
}

static void add_item(Search *s, int32_t input, int32_t base, int32_t group, double sign, double rate, double width) {
    Item *item = s->items + s->n_items++;
    item->input = input, item->base = base, item->group = group;
    /* in units of cost; what costs next to nothing counts as free, in units of its width */
    if (rate * width > s->num.dust * (isfinite(s->spare) ? s->spare : 1.0)) {
        item->unit = sign / rate, item->cost = 1.0, item->cap = rate * width;
    } else {
        item->unit = sign * width, item->cost = 0.0, item->cap = 1.0;
    }
}

/* Ways to spend in the box at hand. */
static void find_items(Search *s) {
    s->n_items = 0;
    for (int32_t k = 0; k < s->n; k++) {
        s->onward[k] = onward_of(s, k);
        if (s->high[k] > s->near[k]) add_item(s, k, -1, -1, 1.0, s->onward[k], s->high[k] - s->near[k]);
        if (s->low[k] < s->near[k]) add_item(s, k, -1, -1, -1.0, s->onward[k], s->near[k] - s->low[k]);
    }
    for (int32_t c = 0; c < s->n_categories; c++)
        for (int32_t e = s->first[c]; e < s->first[c + 1]; e++)
            if (s->allowed[e] && e != s->cheapest[c])
                add_item(s, s->n + e, s->n + s->cheapest[c], c, 1.0, s->level_cost[e] - s->level_cost[s->cheapest[c]], 1.0);
    memset(s->at_base, 0, sizeof(double) * (size_t)s->most_inputs);
    memcpy(s->at_base, s->near, sizeof(double) * (size_t)s->n);
    for (int32_t c = 0; c < s->n_categories; c++) s->at_base[s->n + s->cheapest[c]] = 1.0;
}

static double gain_of(const Item *item, const double *slopes) {
    return (slopes[item->input] - (item->base >= 0 ? slopes[item->base] : 0.0)) * item->unit;
}

/* The inputs where ways are gone so far. */
static void spent_at(const Search *s, const double *v, double *x) {
    memcpy(x, s->at_base, sizeof(double) * (size_t)s->most_inputs);
    for (int32_t e = 0; e < s->n_items; e++) {
        x[s->items[e].input] += s->items[e].unit * v[e];
        if (s->items[e].base >= 0) x[s->items[e].base] -= s->items[e].unit * v[e];
    }
    for (int32_t k = 0; k < s->n; k++) x[k] = x[k] < s->low[k] ? s->low[k] : x[k] > s->high[k] ? s->high[k] : x[k];
}

/* The most that a function of the ways gains within the budget: a fractional knapsack, dearest gains first. Of a category the
 * best level counts, at the best rate of any. In `rate`: the most per unit of cost; infinity: something gains at no cost. */
static double most_gain(const Search *s, const double *gains, double sign, double *rate) {
    double total = 0.0, left = s->spare, first = 0.0, caps = 0.0, all = 0.0;
    int32_t best = -1;
    for (int32_t e = 0; e < s->n_items; e++) {
        double gain = sign * gains[e], cap = s->items[e].cap;
        s->taken[e] = 1;
        if (gain <= 0.0) continue;
        if (s->items[e].cost == 0.0) {
            total += gain * cap, first = INFINITY;
            continue;
        }
        s->taken[e] = 0, caps += cap, all += gain * cap;
        if (best < 0 || gain > sign * gains[best]) best = e;
    }
    if (best >= 0 && sign * gains[best] > first) first = sign * gains[best];
    if (rate) *rate = first * (1.0 + s->num.rounding);
    if (caps <= left) return (total + all) * (1.0 + s->num.rounding);
    while (best >= 0 && left > 0.0) {
        double gain = sign * gains[best], cap = s->items[best].cap;
        s->taken[best] = 1;
        if (s->items[best].group >= 0) {
            double most = gain * cap;
            for (int32_t e = 0; e < s->n_items; e++) {
                if (s->items[e].group != s->items[best].group || s->taken[e]) continue;
                if (sign * gains[e] * s->items[e].cap > most) most = sign * gains[e] * s->items[e].cap;
                s->taken[e] = 1;
            }
            cap = most / gain;
        }
        if (cap > left) cap = left;
        total += gain * cap, left -= cap;
        if (!(left > 0.0)) break;
        best = -1;
        for (int32_t e = 0; e < s->n_items; e++)
            if (!s->taken[e] && (best < 0 || sign * gains[e] > sign * gains[best])) best = e;
    }
    return total * (1.0 + s->num.rounding);
}

/* The first and the last point of a number's grid between two ends, counted in steps. */
static void grid_ends(const Search *s, int32_t k, double low, double high, double *first, double *last) {
    *first = ceil((low + s->origin[k] - 2.0 * s->room[k]) / s->step[k]);
    *last = floor((high + s->origin[k] + 2.0 * s->room[k]) / s->step[k]);
}

/* Whether a number has more than one value left. */
static int is_open(const Search *s, int32_t k) {
    double first, last;
    if (!(s->step[k] > 0.0)) return s->high[k] > s->low[k];
    grid_ends(s, k, s->low[k], s->high[k], &first, &last);
    return last > first;
}

/* Write children of a node along a number: what it is now, less and more, where that makes a difference to the cost; else two. */
static int split_number(const Search *s, int32_t k, double low, double high, double at, double ends[3][2]) {
    double home = s->home[k], step = s->step[k], origin = s->origin[k], room = s->room[k];
    int counts = s->price[k] > 0.0 || s->most < s->n + s->n_categories;
    if (low <= home && home <= high && (counts || (low < home && home < high))) {
        if (!counts) {
            ends[0][0] = low, ends[0][1] = ends[1][0] = home, ends[1][1] = high;
            return 2;
        }
        double below = nextafter(home, -INFINITY), above = nextafter(home, INFINITY);
        if (step > 0.0) {
            below = (ceil((home + origin - 2.0 * room) / step) - 1.0) * step - origin + room;
            above = (floor((home + origin + 2.0 * room) / step) + 1.0) * step - origin - room;
        }
        ends[0][0] = ends[0][1] = home;
        ends[1][0] = low, ends[1][1] = below, ends[2][0] = above, ends[2][1] = high;
        return 3;
    }
    double wide = high - low, middle = at;
    if (!(at > low + s->num.away * wide)) middle = low + s->num.away * wide;
    if (!(at < high - s->num.away * wide)) middle = high - s->num.away * wide;
    if (!(low < middle && middle < high)) middle = 0.5 * (low + high);  /* by rounding, where next to nothing is between */
    if (step > 0.0) {
        double first, last, cell = floor((at + origin + 2.0 * room) / step);
        grid_ends(s, k, low, high, &first, &last);
        cell = (cell < first ? first : cell > last - 1.0 ? last - 1.0 : cell) * step - origin;
        ends[0][0] = low, ends[0][1] = cell + room, ends[1][0] = cell + step - room, ends[1][1] = high;
    } else if (!(low < middle && middle < high)) {
        ends[0][0] = ends[0][1] = low, ends[1][0] = ends[1][1] = high;
    } else {
        ends[0][0] = low, ends[0][1] = ends[1][0] = middle, ends[1][1] = high;
    }
    return 2;
}
