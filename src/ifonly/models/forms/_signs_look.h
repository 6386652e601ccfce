/* A look at a node: its program, row by row, the bound that follows, and where it is split. See _signs.c. */

/* Scale the row that was written behind the others and add it. */
enum { KNOWN = -1 };  /* rows that are no planes: of splits and categories */

static int add_scaled(Search *s, int32_t net, int32_t row, int32_t own, double rhs) {
    Lp *p = &s->lp;
    double *at = p->rows + (size_t)p->m * p->n, most = 0.0;
    int power = 0;
    if (s->slack > 0.0) at[s->n_items] = net >= 0 && row < s->nets[net].n_rows ? 1.0 : 0.0;
    for (int32_t e = 0; e < p->n; e++)
        if (fabs(at[e]) > most) most = fabs(at[e]);
    if (!(most < INFINITY) || rhs != rhs) return 0;
    if (most > 0.0) frexp(most, &power);
    for (int32_t e = 0; e < p->n; e++) at[e] = ldexp(at[e], -power);
    s->planes[p->m] = (Plane){net, row, own};
    add_row(p, ldexp(rhs, -power));
    return 1;
}

/* Rows of categories, whose levels share one whole, and of splits. */
static void add_known(Search *s, const Node *node) {
    Lp *p = &s->lp;
    for (int32_t c = 0; c < s->n_categories && p->m < MOST_ROWS / 2; c++) {
        double *row = p->rows + (size_t)p->m * p->n;
        int32_t count = 0;
        for (int32_t e = 0; e < s->n_items; e++) {
            row[e] = s->items[e].group == c ? -1.0 / s->items[e].cap : 0.0;
            count += s->items[e].group == c;
        }
        if (count > 1) add_scaled(s, KNOWN, 0, 0, -1.0);
    }
    for (const Split *split = node->splits; split && p->m < MOST_ROWS / 2; split = split->before) {
        const Net *net = s->nets + split->net;
        int32_t u = split->unit;
        if (split->shift >= 0) continue;
        const double *ways = net->ways + (size_t)u * (size_t)s->most_items;
        for (int side = 0; side < 2; side++) {
            double *row = p->rows + (size_t)p->m * p->n, room = net->room[u];
            /* only the tightest ends count */
            if (side ? split->high + room > net->upper[u] : split->low - room < net->lower[u]) continue;
            for (int32_t e = 0; e < s->n_items; e++) row[e] = side ? -ways[e] : ways[e];
            /* low <= sum, or -high <= -sum */
            add_scaled(s, KNOWN, 0, 0, side ? net->s0[u] - split->high - room : split->low - net->s0[u] - room);
        }
    }
}

/* Bound the node under one more shift, in `shift`; its place, or -1 where there is no room for it. */
static int32_t take_shift(Search *s, int32_t which, const Node *node, int32_t number) {
    Net *net = s->nets + which;
    fit(s, net, NULL, s->shift);
    for (int32_t k = 0; k < net->n_own; k++)
        if (!memcmp(net->own_shift + (size_t)k * net->n_in, s->shift, sizeof(double) * (size_t)net->n_in)) return k;
    if (net->n_own == OWN) return -1;
    int32_t k = net->n_own;
    if (!shifted_ends(s, which, s->shift, node->splits)) return -2;
    keep_ends(net, s->shift, number);
    return k;
}

/* Take one of the node's shifts in hand again: the ends of units under it, and their values at the program's point. */
static const double *recall(Search *s, int32_t which, int32_t k, int32_t *row) {
    Net *net = s->nets + which;
    const double *shift = net->own_shift + (size_t)k * net->n_in;
    memcpy(net->from, net->own_from + (size_t)k * net->n_units, sizeof(double) * (size_t)net->n_units);
    memcpy(net->to, net->own_to + (size_t)k * net->n_units, sizeof(double) * (size_t)net->n_units);
    memcpy(net->delta, net->own_delta + (size_t)k * net->n_units, sizeof(double) * (size_t)net->block[1]);
    forward(net, s->x, shift, row);
    return shift;
}

/* Add the plane of a row under a shift that was recalled, if the program's point is below it. */
static int cut_row(Search *s, int32_t which, int32_t row, int32_t k, const double *shift, double t) {
    Net *net = s->nets + which;
    Lp *p = &s->lp;
    double *gains = p->rows + (size_t)p->m * p->n, constant, value, slack = row < net->n_rows ? s->slack : 0.0;
    if (p->m == MOST_ROWS) return 0;
    value = constant = plane(s, which, row, shift, t, gains) - 0.5 * slack;
    for (int32_t e = 0; e < s->n_items; e++) value += gains[e] * p->value[e];
    if (slack > 0.0) value += p->value[s->n_items];
    if (!(value < -s->num.cut_from * net->passes - s->num.dust * fabs(constant) * (s->slack > 0.0))) return 0;
    return add_scaled(s, which, row, k, -constant);
}

/* Add the planes of a shift that the program's point is below; how many. */
static int cut(Search *s, const Node *node, int32_t which, int32_t k, double t) {
    Net *net = s->nets + which;
    int32_t least = 0, added = 0;
    const double *shift = recall(s, which, k, &least);
    for (int32_t row = 0; row < net->n_rows; row++)
        if (net->n_rows <= s->num.all_rows || row == least) added += cut_row(s, which, row, k, shift, t);
    for (const Split *split = node->splits; split; split = split->before)
        if (split->net == which && split->shift >= 0 && is_under(net, split, split->unit, shift))
            added += cut_row(s, which, split_row(net, split), k, shift, t);
    return added;
}

/* Shifts that may cut off the program's point: the mean of those that bind it, what the plane under that points to, and the
 * worst one that is found. */
static int further(Search *s, int32_t which, const Node *node, double t) {
    Net *net = s->nets + which;
    Lp *p = &s->lp;
    double total = 0.0;
    int32_t row = 0, count = 0, k = -1;
    read_multipliers(p);
    memset(s->shift, 0, sizeof(double) * (size_t)net->n_in);
    for (int32_t r = 0; r < p->m; r++) {
        if (s->planes[r].net != which || s->planes[r].row >= net->n_rows || !(p->y[r] > 0.0)) continue;
        const double *shift = net->own_shift + (size_t)s->planes[r].own * net->n_in;
        for (int32_t j = 0; j < net->n_in; j++) s->shift[j] += p->y[r] * shift[j];
        total += p->y[r], count++;
    }
    if (count) {
        for (int32_t j = 0; j < net->n_in; j++) s->shift[j] *= (1.0 - s->num.rounding) / total;
        if (count > 1 && (k = take_shift(s, which, node, -1)) >= 0 && cut(s, node, which, k, t)) return 1;
        if (count == 1)
            for (int32_t r = 0; r < p->m; r++)
                if (s->planes[r].net == which && s->planes[r].row < net->n_rows && p->y[r] > 0.0) k = s->planes[r].own;
        if (k >= 0) {
            const double *shift = recall(s, which, k, &row);
            plane(s, which, row, shift, t, s->gains);
            least_shift(s, net, NULL, net->coef, s->shift);
            if ((k = take_shift(s, which, node, -1)) >= 0 && cut(s, node, which, k, t)) return 1;
        }
    }
    if (worst_shift(s, which, s->x) < -s->num.broken_from * net->passes) {
        memcpy(s->shift, s->worst, sizeof(double) * (size_t)net->n_in);
        int32_t number = keep_shift(net, s->worst);
        if ((k = take_shift(s, which, node, number)) >= 0 && cut(s, node, which, k, t)) return 1;
    }
    return 0;
}

/* Read the point of the program: what is spent, the ways that are used, the inputs. */
static double read_point(Search *s) {
    Lp *p = &s->lp;
    double t = 0.0;
    read_values(p);
    s->n_used = 0;
    for (int32_t e = 0; e < s->n_items; e++) {
        if (!(p->value[e] > 0.0)) continue;
        s->used[s->n_used++] = e, t += p->cost[e] * p->value[e];
    }
    spent_at(s, p->value, s->x);
    return t;
}

/* Solve the node's program with all rows that are found; the bound of the node. */
static double bounded(Search *s, Node *node) {
    Lp *p = &s->lp;
    double bound = s->base - s->num.rounding * fabs(s->base), all = 0.0;
    for (int32_t e = 0; e < s->n_items; e++) {
        p->cost[e] = s->items[e].cost, p->cap[e] = s->items[e].cap;
        all += s->items[e].cost * s->items[e].cap;
    }
    if (s->slack > 0.0) p->cost[s->n_items] = 1.0, p->cap[s->n_items] = s->slack, all += s->slack;
    all = all * (1.0 + s->num.dust) + s->num.dust;  /* no point of the program costs more */
    begin_program(p, s->n_items + (s->slack > 0.0));
    add_known(s, node);
    for (int32_t i = 0; i < s->n_nets; i++) {
        Net *net = s->nets + i;
        net->n_own = 0;
        for (int32_t slot = 0; slot < SLOTS; slot++) {
            int32_t number = node->slots[i * SLOTS + slot];
            if (number < 0) continue;
            memcpy(s->shift, net->shifts + (size_t)number * net->n_in, sizeof(double) * (size_t)net->n_in);
            if (take_shift(s, i, node, number) == -2) return INFINITY;
        }
    }
    for (int rounds = 0; rounds < s->num.programs; rounds++) {
        double most = s->budget - s->base < all ? s->budget - s->base : all;
        /* beyond the budget by more than rounding takes off the bound again */
        int ended = solve(p, most + s->num.beyond_budget * (fabs(most) + s->slack)), added = 0;
        double t;
        s->programs++;
        s->work += (uint64_t)(p->m + 4) * (uint64_t)(p->n + 4) * (uint64_t)(p->pivots + 1), p->pivots = 0;
        if (ended != OPTIMAL) {
            double beyond = bound_of(p, ended, most), known = s->base + beyond - s->num.rounding * fabs(s->base);
            read_point(s);
            if (beyond > all) return INFINITY;
            return known > bound ? known : bound;
        }
        t = read_point(s);
        for (int32_t i = 0; i < s->n_nets; i++)
            for (int32_t k = 0; k < s->nets[i].n_own; k++) added += cut(s, node, i, k, t);
        for (int32_t i = 0; !added && i < s->n_nets; i++) added += further(s, i, node, t);
        if (!added || p->m >= MOST_ROWS) break;
    }
    read_multipliers(p);
    double known = s->base + proven(p, p->y) - s->num.rounding * fabs(s->base);
    return known > bound ? known : bound;
}

/* -- branching ------------------------------------------------------------------------------------------------------- */
typedef struct {
    double score, at;
    int32_t net, unit, feature, own;  /* a unit of a network; or a feature, numbers first */
} Choice;

/* Looseness of a plane's lines, unit by unit, as a cost. */
static void weigh(Search *s, int32_t which, int32_t row, int32_t k, double y, double t, Choice *best) {
    Net *net = s->nets + which;
    int32_t least = 0;
    const double *shift = recall(s, which, k, &least);
    plane(s, which, row, shift, t, s->gains);
    for (int32_t u = 0; u < net->n_units; u++) {
        size_t at = (size_t)which * (size_t)s->most_units + (size_t)u;
        double part = y * net->loose[u];
        if (part <= 0.0) continue;
        s->score[at] += part;
        if (part > s->place[at]) s->place[at] = part, s->by[at] = k;
        if (s->score[at] > best->score) *best = (Choice){s->score[at], 0.0, which, u, -1, s->by[at]};
    }
    if (net->round) least_shift(s, net, s->x, net->coef, s->trial);
    for (int32_t j = 0; j < s->n; j++) {
        /* where values end within reach of some of the node, a shift that fits all of it may be less than one for the point */
        double reach = net->reach[j], up = net->coef[j] < 0.0 ? 1.0 : -1.0, point = s->x[j], most, own;
        if (reach == 0.0 || !is_open(s, j)) continue;
        if (net->round) reach = up * s->trial[j];
        own = up > 0.0 ? net->end_high[j] - s->high[j] : s->low[j] - net->end_low[j];
        most = up > 0.0 ? net->end_high[j] - point : point - net->end_low[j];
        if (most > reach) most = reach;
        if (own < 0.0) own = 0.0;
        if (own < reach && up * shift[j] >= own * (1.0 - s->num.dust) && y * fabs(net->coef[j]) * (most - own) > best->score)
            *best = (Choice){y * fabs(net->coef[j]) * (most - own), point, -1, -1, j, -1};
    }
}

/* Lines of later units are loose where those of earlier ones are: of units that are about as loose, an early one is chosen. */
static void prefer_early(const Search *s, Choice *best) {
    const Net *net;
    if (best->unit < 0) return;
    net = s->nets + best->net;
    const double *score = s->score + (size_t)best->net * (size_t)s->most_units;
    for (int32_t b = 0; b < net->of[best->unit]; b++) {
        int32_t top = net->block[b];
        for (int32_t u = top; u < net->block[b + 1]; u++)
            if (score[u] > score[top]) top = u;
        if (score[top] < s->num.early * best->score) continue;
        *best = (Choice){score[top], 0.0, best->net, top, -1, s->by[(size_t)best->net * (size_t)s->most_units + (size_t)top]};
        return;
    }
}

/* The split of a node: the unit whose line is most loose at the program's point, or the feature that costs most beyond its line. */
static Choice choose(Search *s, const Node *node, double t) {
    Lp *p = &s->lp;
    if (s->axes) p->m = 0;  /* there is no program; the network's one shift is none, and all that is loose counts */
    Choice best = {0.0, 0.0, -1, -1, -1, -1};
    size_t n = (size_t)s->n_nets * (size_t)s->most_units;
    double total = 0.0;
    memset(s->score, 0, sizeof(double) * n), memset(s->place, 0, sizeof(double) * n);
    for (int32_t r = 0; r < p->m; r++)
        if (s->planes[r].net >= 0 && p->y[r] > 0.0) {
            weigh(s, s->planes[r].net, s->planes[r].row, s->planes[r].own, p->y[r], t, &best);
            total += p->y[r];
        }
    /* rows that the point breaks, and whose planes are too loose to say so */
    if (!(total > 0.0)) total = 1.0;
    for (int32_t i = 0; i < s->n_nets; i++)
        for (int32_t k = 0; k < s->nets[i].n_own; k++) {
            Net *net = s->nets + i;
            int32_t row = 0;
            const double *shift = recall(s, i, k, &row);
            if (row_value(net, row) < -s->num.broken_from * net->passes) weigh(s, i, row, k, total, t, &best);
            for (const Split *split = node->splits; split; split = split->before) {
                if (split->net != i || split->shift < 0 || !is_under(net, split, split->unit, shift)) continue;
                recall(s, i, k, &row);
                if (row_value(net, split_row(net, split)) < 0.0) weigh(s, i, split_row(net, split), k, total, t, &best);
            }
        }
    prefer_early(s, &best);
    for (int32_t k = 0; k < s->n; k++) {
        double move = fabs(s->x[k] - s->near[k]), away = fabs(s->x[k] - s->home[k]), raw = s->x[k] + s->origin[k];
        double part = cost_at(s, k, away) - s->least[k] - s->onward[k] * move;
        if (s->step[k] > 0.0) part += fabs(raw / s->step[k] - rint(raw / s->step[k])) * s->step[k] * s->onward[k];
        if (is_open(s, k) && part > best.score && part > s->num.dust * s->onward[k] * (s->high[k] - s->low[k]))
            best = (Choice){part, s->x[k], -1, -1, k, -1};
    }
    for (int32_t c = 0; c < s->n_categories; c++) {
        double most = 0.0, second = 0.0, weight = 0.0;
        int32_t open = 0;
        for (int32_t e = s->first[c]; e < s->first[c + 1]; e++) {
            double w = s->x[s->n + e];
            open += s->allowed[e] != 0;
            if (w > most) second = most, most = w;
            else if (w > second) second = w;
            if (w > 0.0) weight += w * (s->level_cost[e] - s->least[s->n + c]);
        }
        if (open > 1 && second > s->num.dust && weight + s->num.dust > best.score) best = (Choice){weight + s->num.dust, 0.0, -1, -1, s->n + c, -1};
    }
    /* where costs are values of a row, what is loose may be its rounding: then only points between those of grids are left */
    int by_row = s->slack > 0.0 || s->axes;
    if (best.score > (by_row ? s->nets[0].row_room[0] : 0.0)) return best;
    double widest = 0.0;
    best = (Choice){0.0, 0.0, -1, -1, -1, -1};
    for (int32_t k = 0; k < s->n; k++) {
        double wide = s->onward[k] * (s->high[k] - s->low[k]) + s->num.tiny;
        if (is_open(s, k) && wide > widest && (s->step[k] > 0.0 || !by_row))
            widest = wide, best = (Choice){wide, s->x[k], -1, -1, k, -1};
    }
    for (int32_t c = 0; best.score == 0.0 && c < s->n_categories; c++) {
        int32_t open = 0;
        for (int32_t e = s->first[c]; e < s->first[c + 1]; e++) open += s->allowed[e] != 0;
        if (open > 1) best = (Choice){s->num.tiny, 0.0, -1, -1, s->n + c, -1};
    }
    return best;
}
