/* Dense dual simplex with bounded variables, for programs of a hundred columns whose rows come one by one. See _signs.c.
 *
 * All variables have two ends or cost nothing below zero, so the program without rows is solved at the lower ends, and adding a
 * row keeps it dual feasible. A dictionary is kept: basic variables as functions of the others,
 *
 *     x_B = beta + t @ (x_N - where they stand),    cost = objective + z @ (x_N - where they stand).
 *
 * Nothing is believed of it but multipliers: any multipliers y >= 0 of the rows bound the program by
 *
 *     y @ rhs + sum_j min(0, cost_j - (y @ rows)_j) cap_j,
 *
 * which `proven` adds up anew, less its own rounding. */

static void begin_program(Lp *p, int32_t n) {
    p->n = n, p->m = p->pivots = 0, p->objective = 0.0;
    for (int32_t k = 0; k < n; k++) p->column[k] = k, p->upper[k] = 0, p->value[k] = 0.0, p->z[k] = p->cost[k];
}

static double cap_of(const Lp *p, int32_t variable) { return variable < p->n ? p->cap[variable] : INFINITY; }

/* Values of the columns, where the program stands. */
static void read_values(Lp *p) {
    for (int32_t k = 0; k < p->n; k++)
        if (p->column[k] < p->n) p->value[p->column[k]] = p->upper[k] ? p->cap[p->column[k]] : 0.0;
    for (int32_t i = 0; i < p->m; i++)
        if (p->basic[i] < p->n) p->value[p->basic[i]] = p->beta[i];
}

/* Add the row that was written behind the others: row @ v >= rhs. */
static void add_row(Lp *p, double rhs) {
    int32_t n = p->n, m = p->m;
    const double *row = p->rows + (size_t)m * n;
    double *t = p->t + (size_t)m * n, beta = -rhs;
    for (int32_t k = 0; k < n; k++) {
        int32_t j = p->column[k];
        t[k] = j < n ? row[j] : 0.0;
        if (j < n && p->upper[k]) beta += row[j] * p->cap[j];
    }
    for (int32_t i = 0; i < m; i++) {
        int32_t j = p->basic[i];
        if (j >= n || row[j] == 0.0) continue;
        const double *other = p->t + (size_t)i * n;
        double by = row[j];
        beta += by * p->beta[i];
        for (int32_t k = 0; k < n; k++) t[k] += by * other[k];
    }
    p->rhs[m] = rhs, p->beta[m] = beta, p->basic[m] = n + m;
    p->m = m + 1;
}

static void pivot(Lp *p, int32_t i, int32_t k, double bound, int at_upper) {
    int32_t n = p->n;
    double *row = p->t + (size_t)i * n, by = row[k], step = (bound - p->beta[i]) / by, z = p->z[k];
    double stood = p->upper[k] ? cap_of(p, p->column[k]) : 0.0;
    for (int32_t r = 0; r < p->m; r++) p->beta[r] += p->t[(size_t)r * n + k] * step;
    p->objective += z * step;
    for (int32_t j = 0; j < n; j++) row[j] = j == k ? 1.0 / by : -row[j] / by;
    for (int32_t r = 0; r < p->m; r++) {
        double *other = p->t + (size_t)r * n, times = other[k];
        if (r == i || times == 0.0) continue;
        other[k] = 0.0;
        for (int32_t j = 0; j < n; j++) other[j] += times * row[j];
    }
    p->z[k] = 0.0;
    for (int32_t j = 0; j < n; j++) p->z[j] += z * row[j];
    int32_t leaves = p->basic[i];
    p->basic[i] = p->column[k], p->beta[i] = stood + step;
    p->column[k] = leaves, p->upper[k] = (char)at_upper;
    p->pivots++;
}

/* Choose the column that enters for a basic variable that must rise (dir 1) or fall (-1) by `need`; columns whose whole range is
 * not enough change their ends instead. -1: all of them together are not enough, so there is no point. */
static int32_t entering(Lp *p, int32_t i, double dir, double need) {
    int32_t n = p->n;
    const double *row = p->t + (size_t)i * n;
    memset(p->flipped, 0, (size_t)n);
    for (;;) {
        int32_t best = -1;
        double least = INFINITY, size = 0.0;
        for (int32_t k = 0; k < n; k++) {
            double by = p->upper[k] ? -dir * row[k] : dir * row[k];
            if (p->flipped[k] || by <= p->num->smallest_pivot) continue;
            double ratio = fabs(p->z[k]) / by;
            if (ratio < least - p->num->same_ratio || (ratio <= least + p->num->same_ratio && by > size)) best = k, least = ratio, size = by;
        }
        if (best < 0) return -1;
        double range = cap_of(p, p->column[best]);
        if (!(size * range < need)) return best;
        p->flipped[best] = 1, need -= size * range;
    }
}

static void flip(Lp *p) {
    for (int32_t k = 0; k < p->n; k++) {
        if (!p->flipped[k]) continue;
        double by = (p->upper[k] ? -1.0 : 1.0) * cap_of(p, p->column[k]);
        for (int32_t r = 0; r < p->m; r++) p->beta[r] += p->t[(size_t)r * p->n + k] * by;
        p->objective += p->z[k] * by;
        p->upper[k] = !p->upper[k];
    }
}

/* Solve; NONE leaves in `ray` the multipliers that show it. */
static int solve(Lp *p, double above) {
    int32_t n = p->n, end = p->pivots + p->num->most_pivots;
    for (;;) {
        int32_t i = -1;
        double most = p->num->kept_row, dir = 0.0, bound = 0.0;
        if (p->objective > above || p->pivots >= end) return ABOVE;
        for (int32_t r = 0; r < p->m; r++) {
            double cap = cap_of(p, p->basic[r]);
            if (-p->beta[r] > most) i = r, most = -p->beta[r], dir = 1.0, bound = 0.0;
            if (p->beta[r] - cap > most) i = r, most = p->beta[r] - cap, dir = -1.0, bound = cap;
        }
        if (i < 0) return OPTIMAL;
        int32_t k = entering(p, i, dir, most);
        if (k < 0) {
            memset(p->ray, 0, sizeof(double) * (size_t)p->m);
            if (p->basic[i] >= n && dir > 0.0) p->ray[p->basic[i] - n] = 1.0;
            for (int32_t j = 0; j < n; j++) {
                double by = -dir * p->t[(size_t)i * n + j];
                if (p->column[j] >= n && by > 0.0) p->ray[p->column[j] - n] = by;
            }
            return NONE;
        }
        flip(p);
        pivot(p, i, k, bound, dir < 0.0);
    }
}

/* Multipliers of the rows, where the program stands. */
static void read_multipliers(Lp *p) {
    memset(p->y, 0, sizeof(double) * (size_t)p->m);
    for (int32_t k = 0; k < p->n; k++)
        if (p->column[k] >= p->n && p->z[k] > 0.0) p->y[p->column[k] - p->n] = p->z[k];
}

/* The bound that multipliers give, rounding accounted for. */
static double proven(const Lp *p, const double *y) {
    double total = 0.0, size = 0.0;
    for (int32_t r = 0; r < p->m; r++) total += y[r] * p->rhs[r], size += fabs(y[r] * p->rhs[r]);
    for (int32_t j = 0; j < p->n; j++) {
        double left = p->cost[j], all = p->cost[j];
        for (int32_t r = 0; r < p->m; r++) {
            if (y[r] == 0.0) continue;
            double by = y[r] * p->rows[(size_t)r * p->n + j];
            left -= by, all += fabs(by);
        }
        if (left < 0.0) total += left * p->cap[j];
        size += all * p->cap[j];
    }
    total -= p->num->rounding * size;
    return total == total ? total : -INFINITY;
}

/* The best bound that is known of a program that ended somehow. */
static double bound_of(Lp *p, int ended, double above) {
    read_multipliers(p);
    double best = proven(p, p->y);
    if (ended != NONE) return best;
    double times = p->num->first_ray;
    for (int tries = 0; tries < p->num->rays && best <= above; tries++, times *= p->num->longer_ray) {
        for (int32_t r = 0; r < p->m; r++) p->y[r] += times * p->ray[r];
        double more = proven(p, p->y);
        if (more > best) best = more;
    }
    return best;
}
