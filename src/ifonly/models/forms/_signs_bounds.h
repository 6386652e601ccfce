/* Bounds of units in a node, and planes above the rows of a network under a shift. See _signs.c.
 *
 * A unit is a convex function of its sum: it lies above both of its pieces, and below any of three linear functions:
 *
 *   - the chord between its ends in the node;
 *   - the cone. With s at most s0 + rise t and at least s0 - fall t, where t is what is spent beyond the node's cheapest point,
 *     the plane through its values at (s0, 0) and at the first (s, t) at which each end is reached;
 *   - the corners. What a budget T buys is within the simplex of the points where all of it is spent in one way, and a convex
 *     function on a simplex lies below the linear function that has its values at the corners; so does a sum of them, at
 *     which no other linear function is lower. Splits cut the simplex, so the others may still be lower in places. */

static double rho(const Net *net, int32_t u, double s) { return s > 0.0 ? s : net->slope[u] * s; }

/* The room of an input down and up to the ends of its values, for all of the node (`x`: for one point). */
static void room_to_shift(const Search *s, const Net *net, const double *x, int32_t j, double *least, double *most) {
    double low = x ? x[j] : j < s->n ? s->low[j] : 0.0, high = x ? x[j] : j < s->n ? s->high[j] : 0.0;
    *least = net->end_low[j] - low, *most = net->end_high[j] - high;
    if (*least > 0.0) *least = 0.0;
    if (*most < 0.0) *most = 0.0;
}

/* Draw a shift in: whole steps of grids, and no farther than values go on for all of the node (`x`: for one point). */
static void fit(const Search *s, const Net *net, const double *x, double *shift) {
    for (int32_t j = 0; j < net->n_in; j++) {
        if (shift[j] == 0.0) continue;
        double least, most;
        room_to_shift(s, net, x, j, &least, &most);
        if (net->step[j] > 0.0) {  /* a computed value may lie beside its grid */
            double step = net->step[j], near = s->num.dust + (j < s->n ? 2.0 * s->room[j] / step : 0.0);
            double count = trunc(shift[j] / step + (shift[j] > 0.0 ? s->num.dust : -s->num.dust));
            double down = ceil(least / step - near), up = floor(most / step + near);
            shift[j] = (count < down ? down : count > up ? up : count) * step;
        } else {
            shift[j] = shift[j] < least ? least : shift[j] > most ? most : shift[j];
        }
    }
}

/* Bounds of the first block's units all over the node at hand, without a shift; 0: the splits leave nothing of it. */
static int find_ends(Search *s, int32_t which, const Split *splits) {
    Net *net = s->nets + which;
    int32_t units = net->block[1], inputs = s->n + s->n_levels;
    for (int32_t u = 0; u < units; u++) {
        const double *w = weights_of(net, u);
        double at = net->constant[u], *ways = net->ways + (size_t)u * (size_t)s->most_items;
        for (int32_t j = 0; j < inputs; j++) at += w[j] * s->at_base[j];
        for (int32_t e = 0; e < s->n_items; e++) ways[e] = gain_of(s->items + e, w);
        net->s0[u] = at, net->natural[u] = 1;
        net->upper[u] = at + most_gain(s, ways, 1.0, net->rise + u) + net->room[u];
        net->lower[u] = at - most_gain(s, ways, -1.0, net->fall + u) - net->room[u];
        if (s->axes) {  /* s @ axes around home, whatever the box is */
            double middle = net->constant[u], half = 0.0;
            for (int32_t k = 0; k < s->n; k++) middle += w[k] * s->home[k], half += w[k] * s->axes[k] * w[k] * s->axes[k];
            half = sqrt(half) * (1.0 + s->num.rounding) + net->room[u];
            if (middle + half < net->upper[u]) net->upper[u] = middle + half;
            if (middle - half > net->lower[u]) net->lower[u] = middle - half;
        }
    }
    s->work += (uint64_t)units * (uint64_t)(4 * s->n_items + inputs);
    for (const Split *split = splits; split; split = split->before) {
        if (split->net != which || split->unit >= units) continue;
        int32_t u = split->unit;
        if (split->low - net->room[u] > net->lower[u]) net->lower[u] = split->low - net->room[u], net->natural[u] = 0;
        if (split->high + net->room[u] < net->upper[u]) net->upper[u] = split->high + net->room[u], net->natural[u] = 0;
    }
    for (int32_t u = 0; u < units; u++)
        if (net->lower[u] > net->upper[u]) return 0;
    return 1;
}

/* The chord of a unit between its ends, which are on both sides of 0. */
static void chord(const Net *net, int32_t u, double *slope, double *constant) {
    double low = net->from[u], high = net->to[u];
    *slope = (high - net->slope[u] * low) / (high - low);
    *constant = (1.0 - *slope) * high;
}

/* The cone of a unit of the first block: a (s - s0) + b t + c. 0: there is none. */
static int cone(const Net *net, int32_t u, double *a, double *b, double *c) {
    double s0 = net->s0[u] + net->delta[u], low = net->from[u], high = net->to[u], rise = net->rise[u], fall = net->fall[u];
    if (!(low < s0 && s0 < high) || !(rise > 0.0 && fall > 0.0) || !isfinite(rise) || !isfinite(fall)) return 0;
    double first = (high - s0) / rise, second = (s0 - low) / fall, at = rho(net, u, s0);
    if (!(first > 0.0 && second > 0.0) || !isfinite(first) || !isfinite(second)) return 0;
    double up = (rho(net, u, high) - at) / first, down = (rho(net, u, low) - at) / second;
    *a = (up - down) / (rise + fall), *b = (up * fall + down * rise) / (rise + fall);
    *c = at + net->room[u];
    return *b >= 0.0;
}

/* Whether a unit of the first block has corners: all that moves it costs something, and there is a budget. */
static int has_corners(const Search *s, const Net *net, int32_t u) {
    return isfinite(net->rise[u]) && isfinite(net->fall[u]) && isfinite(s->spare) && s->spare > 0.0;
}

/* Adds the values at the corners per way, with a factor, to the item space; returns the constant. */
static double add_corners(const Search *s, const Net *net, int32_t u, double by, double *gains) {
    double s0 = net->s0[u] + net->delta[u], at = rho(net, u, s0), slope = net->slope[u];
    const double *ways = net->ways + (size_t)u * (size_t)s->most_items;
    for (int32_t e = 0; e < s->n_items; e++) {
        double there = s0 + ways[e] * s->spare;
        gains[e] += by * (((there > 0.0 ? there : slope * there) - at) / s->spare);
    }
    return by * (at + net->room[u]);
}

/* Put a unit's line in its place, in a function of inputs and units; returns what that adds to the constant. */
static double substitute(const Net *net, int32_t u, double *coef, double slope) {
    int32_t width = net->n_in + net->block[net->of[u]];
    const double *w = weights_of(net, u);
    double by = coef[net->n_in + u] * slope;
    coef[net->n_in + u] = 0.0;
    if (by == 0.0) return 0.0;
    for (int32_t j = 0; j < width; j++) coef[j] += by * w[j];
    return by * net->constant[u];
}

/* A function of inputs over the ways to spend, added to what is there; returns its value at the cheapest point, shifted. */
static double over_ways(const Search *s, const Net *net, const double *coef, const double *shift, double *gains) {
    double at = 0.0;
    for (int32_t j = 0; j < net->n_in; j++) at += coef[j] * (s->at_base[j] + shift[j]);
    for (int32_t e = 0; e < s->n_items; e++) gains[e] += gain_of(s->items + e, coef);
    return at;
}

/* Bound sign times the sum of a later unit from above by a function of the ways, in `extra`; its value without spending. */
static double deep_line(Search *s, Net *net, int32_t u, double sign, const double *shift) {
    int32_t before = net->block[net->of[u]], width = net->n_in + before;
    const double *w = weights_of(net, u);
    double *coef = net->coef, constant = sign * net->constant[u] + net->room[u];
    memset(s->extra, 0, sizeof(double) * (size_t)s->n_items);
    for (int32_t j = 0; j < width; j++) coef[j] = sign * w[j];
    for (int32_t v = before; v--;) {
        double by = coef[net->n_in + v], slope, more = 0.0;
        if (by == 0.0) continue;
        if (net->from[v] >= 0.0) slope = 1.0;
        else if (net->to[v] <= 0.0) slope = net->slope[v];
        else if (by < 0.0) slope = net->to[v] > -net->from[v] ? 1.0 : net->slope[v];
        else if (v < net->block[1] && net->natural[v] && has_corners(s, net, v)) {
            constant += add_corners(s, net, v, by, s->extra);
            coef[net->n_in + v] = 0.0;
            continue;
        } else chord(net, v, &slope, &more);
        constant += by * more + substitute(net, v, coef, slope);
    }
    s->work += (uint64_t)(before + 2) * (uint64_t)width;
    return constant + over_ways(s, net, coef, shift, s->extra);
}

/* The change of the sums of the first block by a shift. */
static void add_shift(const Net *net, const double *shift, double *sums) {
    int32_t units = net->block[1];
    for (int32_t j = 0; j < net->n_in; j++) {
        const double *w = net->across + (size_t)j * (size_t)units;
        double by = shift[j];
        if (by == 0.0) continue;
        for (int32_t u = 0; u < units; u++) sums[u] += by * w[u];
    }
}

/* Whether a split is on the sign of a later unit, under this very shift. */
static int is_under(const Net *net, const Split *split, int32_t u, const double *shift) {
    return split->unit == u && split->shift >= 0 &&
           !memcmp(net->shifts + (size_t)split->shift * net->n_in, shift, sizeof(double) * (size_t)net->n_in);
}

/* Ends of all units under a shift that fits the node; 0: the splits leave nothing. */
static int shifted_ends(Search *s, int32_t which, const double *shift, const Split *splits) {
    Net *net = s->nets + which;
    memset(net->delta, 0, sizeof(double) * (size_t)net->block[1]);
    add_shift(net, shift, net->delta);
    for (int32_t u = 0; u < net->block[1]; u++)
        net->from[u] = net->lower[u] + net->delta[u] - net->room[u], net->to[u] = net->upper[u] + net->delta[u] + net->room[u];
    s->work += (uint64_t)net->block[1] * (uint64_t)net->n_in;
    for (int32_t u = net->block[1]; u < net->n_units; u++) {
        double above = deep_line(s, net, u, 1.0, shift);
        net->to[u] = above + most_gain(s, s->extra, 1.0, NULL);
        above = deep_line(s, net, u, -1.0, shift);
        net->from[u] = -(above + most_gain(s, s->extra, 1.0, NULL));
        for (const Split *split = splits; split; split = split->before) {
            if (split->net != which || !is_under(net, split, u, shift)) continue;
            if (split->low > net->from[u]) net->from[u] = split->low;
            if (split->high < net->to[u]) net->to[u] = split->high;
        }
        if (net->from[u] > net->to[u]) return 0;
    }
    return 1;
}

/* Keep a shift that the node is bounded under, and the ends of all units under it. */
static void keep_ends(Net *net, const double *shift, int32_t number) {
    size_t k = (size_t)net->n_own, units = (size_t)net->n_units;
    memcpy(net->own_shift + k * (size_t)net->n_in, shift, sizeof(double) * (size_t)net->n_in);
    memcpy(net->own_from + k * units, net->from, sizeof(double) * units);
    memcpy(net->own_to + k * units, net->to, sizeof(double) * units);
    memcpy(net->own_delta + k * units, net->delta, sizeof(double) * (size_t)net->block[1]);
    net->own[net->n_own++] = number;
}

/* Carry the sums of the first block, in `sum`, and the inputs, in `h`, forward through all units; the least row. */
static double carry(const Net *net, int32_t *row) {
    double least = INFINITY;
    int32_t first = net->block[1];
    for (int32_t u = 0; u < first; u++) net->h[net->n_in + u] = rho(net, u, net->sum[u]);
    for (int32_t u = first; u < net->n_units; u++) {
        const double *w = weights_of(net, u);
        double sum = net->constant[u];
        int32_t width = net->n_in + net->block[net->of[u]];
        for (int32_t j = 0; j < width; j++) sum += w[j] * net->h[j];
        net->sum[u] = sum, net->h[net->n_in + u] = rho(net, u, sum);
    }
    for (int32_t r = 0; r < net->n_rows; r++) {
        const double *w = net->rows + (size_t)r * (size_t)(net->n_in + net->n_units);
        double sum = net->row_constant[r];
        for (int32_t j = 0; j < net->n_in + net->n_units; j++) sum += w[j] * net->h[j];
        if (sum < least) least = sum, *row = r;
    }
    return least;
}

/* Values of all units at a point under a shift, and the least row there. */
static double forward(const Net *net, const double *x, const double *shift, int32_t *row) {
    for (int32_t j = 0; j < net->n_in; j++) net->h[j] = x[j] + shift[j];
    memcpy(net->sum, net->constant, sizeof(double) * (size_t)net->block[1]);
    add_shift(net, net->h, net->sum);
    return carry(net, row);
}

/* The linear piece of a row, or of a unit's sum, around the point that was carried forward: slopes and constant. */
static double piece(const Net *net, const double *weights, int32_t units, double constant, double *slopes) {
    double *coef = net->coef;
    memset(coef, 0, sizeof(double) * (size_t)(net->n_in + net->n_units));
    memcpy(coef, weights, sizeof(double) * (size_t)(net->n_in + units));
    for (int32_t u = units; u--;) constant += substitute(net, u, coef, net->sum[u] > 0.0 ? 1.0 : net->slope[u]);
    memcpy(slopes, coef, sizeof(double) * (size_t)net->n_in);
    return constant;
}

static double row_piece(const Net *net, int32_t row, double *slopes) {
    return piece(net, net->rows + (size_t)row * (size_t)(net->n_in + net->n_units), net->n_units, net->row_constant[row], slopes);
}

/* A function that must not be negative: a row of the network, by its number; or, by numbers beyond these, the sum of a unit
 * (even) or that with its sign changed (odd), where a split says so. */
typedef struct {
    const double *weights;
    int32_t units;
    double sign, constant, room;
} Row;

static Row row_of(const Net *net, int32_t row) {
    int32_t u = (row - net->n_rows) / 2;
    double sign = (row - net->n_rows) % 2 ? -1.0 : 1.0;
    if (row >= net->n_rows) return (Row){weights_of(net, u), net->block[net->of[u]], sign, net->constant[u], net->room[u]};
    return (Row){net->rows + (size_t)row * (size_t)(net->n_in + net->n_units), net->n_units, 1.0, net->row_constant[row], net->row_room[row]};
}

static int32_t split_row(const Net *net, const Split *split) { return net->n_rows + 2 * split->unit + (split->low > -INFINITY ? 0 : 1); }

/* Its value at the point that was carried forward. */
static double row_value(const Net *net, int32_t row) {
    Row r = row_of(net, row);
    double sum = r.constant;
    if (row >= net->n_rows) return r.sign * net->sum[(row - net->n_rows) / 2];
    for (int32_t j = 0; j < net->n_in + r.units; j++) sum += r.weights[j] * net->h[j];
    return sum;
}

/* Write the plane above a row under a shift over the ways to spend, every line the lowest one at the program's point, which was
 * carried forward. Returns its value without spending; `loose` has what each line is off at the point. */
static double plane(Search *s, int32_t which, int32_t row, const double *shift, double t, double *gains) {
    Net *net = s->nets + which;
    Row r = row_of(net, row);
    double *coef = net->coef, constant = r.sign * r.constant + r.room, on_cost = 0.0;
    for (int32_t j = 0; j < net->n_in + r.units; j++) coef[j] = r.sign * r.weights[j];
    memset(gains, 0, sizeof(double) * (size_t)s->n_items);
    memset(net->loose, 0, sizeof(double) * (size_t)net->n_units);
    for (int32_t u = r.units; u--;) {
        double by = coef[net->n_in + u], slope, more = 0.0, on = 0.0, value = net->sum[u], best;
        if (by == 0.0) continue;
        if (net->from[u] >= 0.0) slope = 1.0;
        else if (net->to[u] <= 0.0) slope = net->slope[u];
        else if (by < 0.0) slope = value > 0.0 ? 1.0 : net->slope[u];
        else {
            chord(net, u, &slope, &more);
            best = slope * value + more;
            if (u < net->block[1]) {
                double a, b, c, s0 = net->s0[u] + net->delta[u];
                if (!net->natural[u] && cone(net, u, &a, &b, &c) && a * (value - s0) + b * t + c < best)
                    best = a * (value - s0) + b * t + c, slope = a, on = b, more = c - a * s0;
                if (has_corners(s, net, u)) {
                    const double *ways = net->ways + (size_t)u * (size_t)s->most_items;
                    double at = rho(net, u, s0), corners = at;
                    for (int32_t i = 0; i < s->n_used; i++) {
                        int32_t e = s->used[i];
                        corners += s->lp.value[e] * (rho(net, u, s0 + ways[e] * s->spare) - at) / s->spare;
                    }
                    if (corners < best) {
                        net->loose[u] = by * (corners - rho(net, u, value));
                        constant += add_corners(s, net, u, by, gains);
                        coef[net->n_in + u] = 0.0;
                        continue;
                    }
                }
            }
        }
        net->loose[u] = by * (slope * value + on * t + more - rho(net, u, value));
        constant += by * more + substitute(net, u, coef, slope);
        on_cost += by * on;
    }
    constant += over_ways(s, net, coef, shift, gains);
    for (int32_t e = 0; e < s->n_items; e++) gains[e] += on_cost * s->items[e].cost;
    s->work += (uint64_t)net->n_units * (uint64_t)net->n_in;
    return constant;
}
