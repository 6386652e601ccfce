/* Bounds over an ellipsoid: planes above a row weighed against each other, without a program. See _signs.c.
 *
 * Over the ellipsoid around home, with slopes a in half-axes, a linear function a @ z + c is at most |a| + c. A row is below all of
 * its planes, so below every mean of them; and functions g that are not negative in the node may be added. So it is at most
 *
 *     D(w) = | sum_i w_i a_i | + sum_i w_i c_i,    w >= 0, those of planes of sum 1,
 *
 * a convex function that moves of weight between two planes, or onto one g, make smaller, each in closed form. Where the sum
 * of the functions touches the ellipsoid, the row's own plane is the next: Kelley's cutting planes, on the dual. */

/* Add a function of the numbers: slopes and value at home. */
static int add_function(Search *s, Mean *mean, const double *slopes, double at_home, int is_plane) {
    int32_t n = mean->n, m = mean->m;
    double *a = mean->a + (size_t)m * n;
    if (m == MOST_ROUND || at_home != at_home) return 0;
    for (int32_t k = 0; k < n; k++) a[k] = slopes[k] * s->axes[k];
    for (int32_t i = 0; i <= m; i++) {
        const double *other = mean->a + (size_t)i * n;
        double sum = 0.0;
        for (int32_t k = 0; k < n; k++) sum += a[k] * other[k];
        mean->gram[(size_t)m * MOST_ROUND + i] = mean->gram[(size_t)i * MOST_ROUND + m] = sum;
    }
    mean->c[m] = at_home, mean->is_plane[m] = (char)is_plane, mean->w[m] = 0.0, mean->q[m] = 0.0;
    for (int32_t i = 0; i < m; i++) mean->q[m] += mean->w[i] * mean->gram[(size_t)m * MOST_ROUND + i];
    mean->m = m + 1;
    s->work += (uint64_t)(m + 1) * (uint64_t)n;
    return 1;
}

/* The minimiser of sqrt(size + 2 along d + square d^2) + slope d between two ends. */
static double best_move(double size, double along, double square, double slope, double low, double high) {
    double rest = size * square - along * along, move;
    if (rest < 0.0) rest = 0.0;
    if (!(square > 0.0) || slope * slope >= square) move = slope > 0.0 ? low : slope < 0.0 ? high : 0.0;
    else move = (-slope * sqrt(rest / (square - slope * slope)) - along) / square;
    return move < low ? low : move > high ? high : move;
}

static void move_weight(Mean *mean, int32_t i, double by, double *size) {
    *size += 2.0 * by * mean->q[i] + by * by * mean->gram[(size_t)i * MOST_ROUND + i];
    if (*size < 0.0) *size = 0.0;
    mean->w[i] += by;
    for (int32_t j = 0; j < mean->m; j++) mean->q[j] += by * mean->gram[(size_t)i * MOST_ROUND + j];
}

/* Make the bound smaller by moves of weight, until it stays; one plane at least is there. */
static void weigh_functions(Search *s, Mean *mean) {
    int32_t first = 0, any = 0;
    double size = 0.0, before = INFINITY;
    for (int32_t i = mean->m; i--;)
        if (mean->is_plane[i]) first = i, any |= mean->w[i] > 0.0;
    if (!any) mean->w[first] = 1.0;
    for (int32_t i = 0; i < mean->m; i++) {
        mean->q[i] = 0.0;
        for (int32_t j = 0; j < mean->m; j++) mean->q[i] += mean->w[j] * mean->gram[(size_t)i * MOST_ROUND + j];
    }
    for (int32_t i = 0; i < mean->m; i++) size += mean->w[i] * mean->q[i];
    for (int sweeps = 0; sweeps < s->num.sweeps; sweeps++) {
        double value = sqrt(size > 0.0 ? size : 0.0), scale = value;
        for (int32_t i = 0; i < mean->m; i++) value += mean->w[i] * mean->c[i], scale += mean->w[i] * fabs(mean->c[i]);
        if (!(value < before - s->num.same_mean * scale) || value < -scale) break;
        before = value;
        for (int32_t i = 0; i < mean->m; i++) {
            double *gram = mean->gram + (size_t)i * MOST_ROUND;
            if (!mean->is_plane[i]) {
                double by = best_move(size, mean->q[i], gram[i], mean->c[i], -mean->w[i], s->num.most_weight + s->num.more_weight * mean->w[i]);
                if (by != 0.0) move_weight(mean, i, by, &size);
                continue;
            }
            for (int32_t j = 0; j < i; j++) {
                if (!mean->is_plane[j] || !(mean->w[i] + mean->w[j] > 0.0)) continue;
                double square = gram[i] + mean->gram[(size_t)j * MOST_ROUND + j] - 2.0 * gram[j];
                double by = best_move(size, mean->q[i] - mean->q[j], square, mean->c[i] - mean->c[j], -mean->w[i], mean->w[j]);
                if (by == 0.0) continue;
                move_weight(mean, i, by, &size), move_weight(mean, j, -by, &size);
                if (mean->w[j] < 0.0) mean->w[j] = 0.0;
                if (mean->w[i] < 0.0) mean->w[i] = 0.0;
            }
        }
        s->work += (uint64_t)mean->m * (uint64_t)mean->m * (uint64_t)(mean->m / 4 + 1);
    }
}

/* The bound, added up anew, rounding accounted for; in `at` where the sum touches the ellipsoid. */
static double highest(const Search *s, const Mean *mean, double *at) {
    double total = 0.0, length = 0.0, sizes = 0.0, planes = 0.0;
    for (int32_t i = 0; i < mean->m; i++) planes += mean->is_plane[i] ? mean->w[i] : 0.0;
    memset(at, 0, sizeof(double) * (size_t)mean->n);
    for (int32_t i = 0; i < mean->m; i++) {
        const double *a = mean->a + (size_t)i * mean->n;
        double w = mean->w[i] / planes;
        if (w == 0.0) continue;
        total += w * mean->c[i];
        sizes += w * (fabs(mean->c[i]) + sqrt(mean->gram[(size_t)i * MOST_ROUND + i]));
        for (int32_t k = 0; k < mean->n; k++) at[k] += w * a[k];
    }
    for (int32_t k = 0; k < mean->n; k++) length += at[k] * at[k];
    length = sqrt(length);
    for (int32_t k = 0; k < mean->n; k++) at[k] = s->home[k] + (length > 0.0 ? s->axes[k] * (at[k] / length) : 0.0);
    total += length + s->num.rounding * sizes;
    return total == total ? total : INFINITY;
}

/* Value at home of a function whose slopes are those of the inputs in hand, from its value at the cheapest point. */
static double at_home(const Search *s, const double *slopes, double at_near) {
    for (int32_t k = 0; k < s->n; k++) at_near += slopes[k] * (s->home[k] - s->near[k]);
    return at_near;
}

/* Add the plane of a row at the point where the sum touches, if it is lower there than what is known of it. */
static int add_row_plane(Search *s, Mean *mean, int32_t row, double known) {
    Net *net = s->nets;
    int32_t least = 0;
    double value, beside = 0.0;
    forward(net, s->x, s->shift, &least);
    value = plane(s, 0, row, s->shift, 0.0, s->gains);
    for (int32_t k = 0; k < s->n; k++) beside += net->coef[k] * (s->x[k] - s->near[k]);
    if (known < INFINITY && !(value + beside < known - s->num.same_plane * (fabs(known) + fabs(value)))) return 0;
    return add_function(s, mean, net->coef, at_home(s, net->coef, value), row < net->n_rows);
}

/* Bound the row of one network over the ellipsoid and the splits; -infinity: it is negative all over. In `x`: where to go on. */
static double row_bound(Search *s, Node *node, Mean *mean) {
    Net *net = s->nets;
    double best = INFINITY;
    mean->n = s->n, mean->m = 0, net->n_own = 0;
    memset(s->shift, 0, sizeof(double) * (size_t)net->n_in);
    if (!shifted_ends(s, 0, s->shift, node->splits)) return -INFINITY;
    keep_ends(net, s->shift, -1);
    for (const Split *split = node->splits; split; split = split->before) {
        double sign = split->low > -INFINITY ? 1.0 : -1.0, end = sign > 0.0 ? split->low : split->high;
        if (split->shift >= 0) continue;
        for (int32_t k = 0; k < s->n; k++) net->coef[k] = sign * weights_of(net, split->unit)[k];
        add_function(s, mean, net->coef, at_home(s, net->coef, sign * (net->s0[split->unit] - end) + net->room[split->unit]), 0);
    }
    memcpy(s->x, s->at_base, sizeof(double) * (size_t)s->most_inputs);
    s->n_used = 0;
    for (int rounds = 0; rounds < s->num.programs; rounds++) {
        int added = add_row_plane(s, mean, 0, rounds ? best : INFINITY);
        for (const Split *split = node->splits; split; split = split->before)
            if (split->shift >= 0) added += add_row_plane(s, mean, split_row(net, split), 0.0);
        for (int32_t k = 0; k < s->n; k++) {  /* ends of values are functions as well */
            double end = s->x[k] < s->low[k] ? s->low[k] : s->high[k], sign = s->x[k] < s->low[k] ? 1.0 : -1.0;
            if (sign * (s->x[k] - end) >= -s->num.dust * s->axes[k]) continue;
            memset(s->slopes, 0, sizeof(double) * (size_t)s->n);
            s->slopes[k] = sign;
            added += add_function(s, mean, s->slopes, sign * (s->home[k] - end) + s->num.dust * s->axes[k], 0);
        }
        if (!added) break;
        weigh_functions(s, mean);
        double value = highest(s, mean, s->x);
        if (value < best) best = value;
        if (best < 0.0) break;
    }
    for (int32_t k = 0; k < s->n; k++) s->x[k] = s->x[k] < s->low[k] ? s->low[k] : s->x[k] > s->high[k] ? s->high[k] : s->x[k];
    return best;
}
