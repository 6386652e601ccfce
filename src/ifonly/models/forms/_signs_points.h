/* Worst shifts of points, and points that withstand: incumbents. No proof rests on what is here. See _signs.c. */

/* The shift of the ball at which a linear function is least, of those that fit the node (`x`: a point).
 *
 * In a box that is a corner. In an ellipsoid |d / reach| <= 1 it is -by reach^2 slope, each stopped at its end; where one is,
 * the others may go farther, so `by` grows until all of the ball is used, or all are stopped. */
static void least_shift(const Search *s, const Net *net, const double *x, const double *slopes, double *shift) {
    double by = 0.0;
    for (int32_t rounds = 0; net->round && rounds <= net->n_in; rounds++) {
        double rest = 1.0 - s->num.rounding, length = 0.0;
        for (int32_t j = 0; j < net->n_in; j++) {
            double reach = net->reach[j], own = reach * slopes[j], least, most;
            if (own == 0.0) continue;
            room_to_shift(s, net, x, j, &least, &most);
            double end = own > 0.0 ? -least : most, part = end / reach;
            if (reach * fabs(own) * by > end) rest -= part * part;
            else length += own * own;
        }
        double next = length > 0.0 && rest > 0.0 ? sqrt(rest / length) * (1.0 - s->num.rounding) : 0.0;
        if (!(next > by * (1.0 + s->num.dust))) break;
        by = next;
    }
    for (int32_t j = 0; j < net->n_in; j++) {
        double reach = net->reach[j];
        if (reach == 0.0 || slopes[j] == 0.0) shift[j] = 0.0;
        else if (!net->round) shift[j] = slopes[j] > 0.0 ? -reach : reach;
        else shift[j] = -reach * (reach * slopes[j]) * by;
    }
    fit(s, net, x, shift);
}

/* Keep a shift if the least row is lower there; its value. The sums at the point itself are in `there`. */
static double try_shift(Search *s, Net *net, const double *x, const double *shift, double *best) {
    int32_t row = 0;
    for (int32_t j = 0; j < net->n_in; j++) net->h[j] = x[j] + shift[j];
    memcpy(net->sum, net->there, sizeof(double) * (size_t)net->block[1]);
    add_shift(net, shift, net->sum);
    double value = carry(net, &row);
    if (value < *best) *best = value, memcpy(s->worst, shift, sizeof(double) * (size_t)net->n_in);
    s->work += (uint64_t)net->n_units * (uint64_t)net->n_in;
    return value;
}

/* The shift that the linear piece around a shifted point points to. */
static void downhill(Search *s, Net *net, const double *x, const double *shift, double *to) {
    int32_t row = 0;
    forward(net, x, shift, &row);
    row_piece(net, row, s->slopes);
    least_shift(s, net, x, s->slopes, to);
    s->work += 2 * (uint64_t)net->n_units * (uint64_t)net->n_in;
}

/* The worst shift between two, on the kink of a unit perhaps; sums of the first block change evenly on the way. */
static void between(Search *s, Net *net, const double *x, const double *from, const double *to, double *best) {
    int32_t row = 0, units = net->block[1];
    double low = 0.0, high = 1.0, at = -1.0;
    double *first = net->beside, *all = net->beside + units;
    memcpy(first, net->there, sizeof(double) * (size_t)units), memset(all, 0, sizeof(double) * (size_t)units);
    add_shift(net, from, first);
    for (int32_t j = 0; j < net->n_in; j++) s->step_shift[j] = to[j] - from[j];
    add_shift(net, s->step_shift, all);
    for (int cuts = 0; cuts < s->num.thirds; cuts++) {
        double thirds[2] = {low + (high - low) / 3.0, high - (high - low) / 3.0}, value[2];
        for (int i = 0; i < 2; i++) {
            for (int32_t j = 0; j < net->n_in; j++) net->h[j] = x[j] + from[j] + thirds[i] * s->step_shift[j];
            for (int32_t u = 0; u < units; u++) net->sum[u] = first[u] + thirds[i] * all[u];
            if ((value[i] = carry(net, &row)) < *best) *best = value[i], at = thirds[i];
        }
        if (value[0] < value[1]) high = thirds[1];
        else low = thirds[0];
    }
    s->work += 2 * (uint64_t)s->num.thirds * (uint64_t)(net->n_units + net->n_in);
    if (at >= 0.0)
        for (int32_t j = 0; j < net->n_in; j++) s->worst[j] = from[j] + at * s->step_shift[j];
}

/* A bad shift of a point, in `worst`, and the least row there: of known shifts and of those downhill, then between the two. */
static double worst_shift(Search *s, int32_t which, const double *x) {
    Net *net = s->nets + which;
    size_t bytes = sizeof(double) * (size_t)net->n_in;
    double best = INFINITY;
    int moves = 0;
    memcpy(net->there, net->constant, sizeof(double) * (size_t)net->block[1]);
    add_shift(net, x, net->there);
    memset(s->shift, 0, bytes), memset(s->worst, 0, bytes);
    try_shift(s, net, x, s->shift, &best);
    for (int32_t j = 0; j < net->n_in; j++) moves |= net->reach[j] > 0.0;
    if (!moves) return best;
    for (int32_t k = 0; k < net->n_own; k++) {
        memcpy(s->shift, net->own_shift + (size_t)k * net->n_in, bytes);
        fit(s, net, x, s->shift);
        try_shift(s, net, x, s->shift, &best);
    }
    for (int32_t k = net->n_shifts, last = k > s->num.tried ? k - s->num.tried : 0; k-- > last;) {
        memcpy(s->shift, net->shifts + (size_t)k * net->n_in, bytes);
        fit(s, net, x, s->shift);
        try_shift(s, net, x, s->shift, &best);
    }
    for (int from = 0; from < 2; from++) {  /* from the point itself, then from the worst so far */
        if (from) memcpy(s->shift, s->worst, bytes);
        else memset(s->shift, 0, bytes);
        for (int steps = 0; steps < s->num.descents; steps++) {
            double before = best;
            downhill(s, net, x, s->shift, s->trial);
            try_shift(s, net, x, s->trial, &best);
            memcpy(s->shift, s->trial, bytes);
            if (steps && !(best < before)) break;
        }
    }
    for (int32_t j = 0; j < net->n_in; j++)
        if (net->step[j] > 0.0 && net->reach[j] > 0.0) return best;  /* between two shifts on grids there may be none */
    for (int steps = 0; steps < s->num.betweens; steps++) {
        double before = best;
        downhill(s, net, x, s->worst, s->trial);
        memcpy(s->shift, s->worst, bytes);
        between(s, net, x, s->shift, s->trial, &best);
        if (!(best < before - s->num.broken_from * net->passes)) break;
    }
    return best;
}

/* The point of a program as one that can be returned: levels that are chosen, numbers on their grids, in place; its cost. */
static double round_point(const Search *s, double *x, int32_t *level) {
    double cost = s->elsewhere, length = 0.0;
    for (int32_t k = 0; s->axes && k < s->n; k++) length += (x[k] - s->home[k]) / s->axes[k] * ((x[k] - s->home[k]) / s->axes[k]);
    if (length > 1.0)
        for (int32_t k = 0; k < s->n; k++) x[k] = s->home[k] + (x[k] - s->home[k]) / (sqrt(length) * (1.0 + s->num.rounding));
    for (int32_t k = 0; k < s->n; k++) {
        double step = s->step[k], raw = x[k] + s->origin[k];
        if (step > 0.0) {
            double to = x[k] > s->near[k] ? ceil((raw - 2.0 * s->room[k]) / step) : floor((raw + 2.0 * s->room[k]) / step);
            x[k] = to * step - s->origin[k];
        }
        cost += cost_at(s, k, fabs(x[k] - s->home[k]));
    }
    for (int32_t c = 0; c < s->n_categories; c++) {
        int32_t best = s->cheapest[c];
        for (int32_t e = s->first[c]; e < s->first[c + 1]; e++)
            if (s->allowed[e] && x[s->n + e] > x[s->n + best] + s->num.dust) best = e;
        for (int32_t e = s->first[c]; e < s->first[c + 1]; e++) x[s->n + e] = e == best;
        level[c] = best, cost += s->level_cost[best];
    }
    return cost;
}

static int32_t changes(const Search *s, const double *x, const int32_t *level) {
    int32_t out = 0;
    for (int32_t k = 0; k < s->n; k++) out += x[k] != s->home[k];
    for (int32_t c = 0; c < s->n_categories; c++) out += !s->level_home[level[c]];
    return out;
}

static void offer(Search *s, const double *x, const int32_t *level) {
    memcpy(s->offer, x, sizeof(double) * (size_t)s->n);
    memcpy(s->offer_level, level, 4 * (size_t)s->n_categories);
}

/* The network of a shift that breaks a rounded point, or leaves it less than is asked for; in `worst` then; -1: none is found. */
static int32_t broken_by(Search *s, const double *x, int asks, double *value) {
    for (int32_t i = 0; i < s->n_nets; i++)
        if ((*value = worst_shift(s, i, x)) < (asks ? s->nets[i].asked : -s->nets[i].passes)) return i;
    return -1;
}

/* Look for an incumbent from a point of the node at hand: the cheapest point at which all linear pieces so far are met, around
 * the worst shifts of the points before it (the cutting-set method on linear pieces); then with as much more lead as is missing. */
static int propose(Search *s, const double *from) {
    Lp *p = &s->pieces;
    double *x = s->score, more = 0.0, value;  /* scores are not needed while points are looked for */
    memcpy(x, from, sizeof(double) * (size_t)s->most_inputs);
    double cost = round_point(s, x, s->trial_level);
    for (int32_t e = 0; e < s->n_items; e++) p->cost[e] = s->items[e].cost, p->cap[e] = s->items[e].group < 0 ? s->items[e].cap : 0.0;
    begin_program(p, s->n_items);
    for (int tries = 0; tries < s->num.cuts; tries++) {
        int32_t which = broken_by(s, x, 1, &value), row = 0;
        if (which < 0) {
            if (cost > s->budget || changes(s, x, s->trial_level) > s->most) return 0;
            offer(s, x, s->trial_level);
            return 1;
        }
        Net *net = s->nets + which;
        keep_shift(net, s->worst);
        forward(net, x, s->worst, &row);
        double constant = row_piece(net, row, s->slopes), *gains = p->rows + (size_t)p->m * p->n;
        for (int32_t j = 0; j < net->n_in; j++)
            constant += s->slopes[j] * ((j < s->n ? s->near[j] : x[j]) + s->worst[j]);
        for (int32_t e = 0; e < s->n_items; e++) gains[e] = gain_of(s->items + e, s->slopes);
        if (tries >= s->num.lifted_from) more += s->num.lifted * (net->asked - value);
        add_row(p, 0.5 * net->passes + 2.0 * net->asked + more - constant);
        if (solve(p, INFINITY) != OPTIMAL) return 0;
        read_values(p);
        for (int32_t k = 0; k < s->n; k++) x[k] = s->near[k];
        for (int32_t e = 0; e < s->n_items; e++)
            if (s->items[e].group < 0) x[s->items[e].input] += s->items[e].unit * p->value[e];
        cost = round_point(s, x, s->trial_level);
        if (cost > s->budget) return 0;
    }
    return 0;
}
