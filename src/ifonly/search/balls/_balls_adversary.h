/* The adversary of the robust search: a flipping cell within a ball, grown into a no-good. See _balls.c. */
static double least_gap(const Search *s, int32_t first, int32_t home, int32_t a, int32_t b) {
    /* Least square of a gap over some cells: gaps rise to both sides of the centre's cell. */
    if (home >= a && home <= b) return 0.0;
    return home < a ? s->square_gap[first + a] : s->square_gap[first + b];
}

static int touches(const Search *s, const Constraint *g, int32_t leaf, double base) {
    double total = base;
    for (int32_t r = g->range_first[leaf]; r < g->range_first[leaf + 1]; r++) {
        const Range *q = g->ranges + r;
        int32_t k = q->number, a = s->a[k], b = s->b[k];
        if (q->begin > b || q->end < a) return 0;
        if (!g->hard[k] && (q->begin > a || q->end < b))
            total += least_gap(s, g->first[k], s->home_cell[k], q->begin > a ? q->begin : a, q->end < b ? q->end : b) - s->base_gap[k];
    }
    for (int32_t r = g->set_first[leaf]; r < g->set_first[leaf + 1]; r++)
        if (!(g->sets[r].levels & s->open_sets[g->sets[r].category])) return 0;
    return total <= s->limit * (1.0 + s->num.rounding);
}

/* The split that most worst leaves end before, while others begin behind: the number and the last cell before it. */
static int32_t apart(Search *s, const Constraint *g, int32_t n_trees, int32_t *cell) {
    int32_t best = 0, number = -1;
    for (int32_t k = 0; k < s->n; k++) s->meet_low[k] = s->a[k], s->meet_high[k] = s->b[k];
    for (int32_t t = 0; t < n_trees; t++) {
        int32_t leaf = s->worst[t];
        for (int32_t r = g->range_first[leaf]; r < g->range_first[leaf + 1]; r++) {
            const Range *q = g->ranges + r;
            if (q->begin > s->meet_low[q->number]) s->meet_low[q->number] = q->begin;
            if (q->end < s->meet_high[q->number]) s->meet_high[q->number] = q->end;
        }
    }
    for (int32_t k = 0; k < s->n; k++) {
        if (s->meet_low[k] <= s->meet_high[k]) continue;
        int32_t width = s->b[k] - s->a[k] + 1, behind = 0, before = 0;
        memset(s->ended, 0, sizeof(int32_t) * (size_t)width);
        memset(s->begun, 0, sizeof(int32_t) * (size_t)width);
        for (int32_t t = 0; t < n_trees; t++) {
            int32_t leaf = s->worst[t];
            for (int32_t r = g->range_first[leaf]; r < g->range_first[leaf + 1]; r++) {
                const Range *q = g->ranges + r;
                if (q->number != k) continue;
                if (q->end < s->b[k]) s->ended[q->end - s->a[k]]++;
                if (q->begin > s->a[k]) s->begun[q->begin - s->a[k]]++, behind++;
            }
        }
        for (int32_t i = 0; i < width - 1; i++) {
            before += s->ended[i], behind -= s->begun[i];
            int32_t both = before < behind ? before : behind;
            if (both > best) best = both, number = k, *cell = s->a[k] + i;
        }
    }
    return number;
}

/* Search the cells from `a` to `b` for the least sum, among those below `least`; the leaves of the box around are in a list. */
static void attack_in(Search *s, const Constraint *g, size_t list, size_t count) {
    if (s->lost || s->full) return;
    if (s->flip_sum < g->least && s->flip_looks >= s->most_looks) return;
    s->flip_looks++;
    s->spent += count;
    if (s->spent > s->patience) {
        s->lost = 1;
        return;
    }
    double base = 0.0;
    for (int32_t k = 0; k < s->n; k++) {
        if (g->hard[k]) continue;
        s->base_gap[k] = least_gap(s, g->first[k], s->home_cell[k], s->a[k], s->b[k]);
        base += s->base_gap[k];
    }
    if (base > s->limit * (1.0 + s->num.rounding)) return;
    size_t own = list + count;
    if (!room_for(s, (void **)&s->lists, &s->room_lists, own + count, sizeof(int32_t))) {
        s->full = 1;
        return;
    }
    size_t kept = 0;
    int32_t trees = 0, last = -1;
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        int32_t leaf = s->lists[list + i];
        if (!touches(s, g, leaf, base)) continue;
        s->lists[own + kept++] = leaf;
        if (g->tree[leaf] != last) last = g->tree[leaf], s->worst[trees++] = leaf, sum += g->values[leaf];
    }
    if (trees < g->n_trees) return;  /* no cell of the box is in the ball */
    if (sum >= (s->flip_sum < g->least ? s->flip_sum : g->least)) return;
    int32_t cell = 0, number = apart(s, g, trees, &cell);
    int high_first = 0;
    if (number < 0) {
        double gaps = 0.0, most = -1.0;
        int32_t far = -1;
        for (int32_t k = 0; k < s->n; k++) {
            if (g->hard[k]) continue;
            double gap = least_gap(s, g->first[k], s->home_cell[k], s->meet_low[k], s->meet_high[k]);
            gaps += gap;
            if (gap - s->base_gap[k] > most) most = gap - s->base_gap[k], far = k;
        }
        if (gaps > s->limit && most > 0.0) {
            number = far;
            high_first = s->meet_low[far] > s->home_cell[far];
            cell = high_first ? s->meet_low[far] - 1 : s->meet_high[far];
        } else if (gaps > s->limit) {
            return;
        } else {
            s->flip_sum = sum;
            for (int32_t k = 0; k < s->n; k++)
                s->flip[k] = s->home_cell[k] < s->meet_low[k] ? s->meet_low[k] : s->home_cell[k] > s->meet_high[k] ? s->meet_high[k] : s->home_cell[k];
            return;
        }
    } else {
        int32_t below = 0, above = 0;
        for (int32_t t = 0; t < trees; t++) {
            int32_t leaf = s->worst[t];
            for (int32_t r = g->range_first[leaf]; r < g->range_first[leaf + 1]; r++)
                if (g->ranges[r].number == number) below += g->ranges[r].end <= cell, above += g->ranges[r].begin > cell;
        }
        high_first = above > below;
    }
    int32_t a = s->a[number], b = s->b[number];
    for (int side = 0; side < 2; side++) {
        if (side == high_first) s->a[number] = a, s->b[number] = cell;
        else s->a[number] = cell + 1, s->b[number] = b;
        attack_in(s, g, own, kept);
    }
    s->a[number] = a, s->b[number] = b;
}

static int32_t first_not(const double *table, int32_t size, double x) {
    /* First cell that a centre is not beyond, from a table that rises: the first of which ``x < table``. */
    int32_t low = 0, high = size - 1;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (x < table[middle]) high = middle;
        else low = middle + 1;
    }
    return low;
}

static int32_t last_not(const double *table, int32_t size, double x) {
    int32_t low = 0, high = size - 1;
    while (low < high) {
        int32_t middle = (low + high + 1) / 2;
        if (x > table[middle]) low = middle;
        else high = middle - 1;
    }
    return low;
}

static int32_t cell_of(const Constraint *g, int32_t k, double x) {
    int32_t low = 0, high = g->size[k] - 1, first = g->first[k];
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (g->high[first + middle] >= x) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* Attack one centre by one constraint; `wide` lets the ball reach a little farther. */
static int attack(Search *s, int32_t which, const double *x, const int32_t *level, int wide) {
    const Constraint *g = s->constraints + which;
    for (int32_t k = 0; k < s->n; k++) {
        int32_t first = g->first[k], home = cell_of(g, k, x[k]);
        s->home_cell[k] = home;
        if (g->hard[k]) {
            double more = wide ? s->push[k] : 0.0;
            s->a[k] = first_not(g->up + first, g->size[k], x[k] - more);
            s->b[k] = last_not(g->down + first, g->size[k], x[k] + more);
            continue;
        }
        int32_t a = home, b = home;
        s->square_gap[first + home] = 0.0;
        while (a > 0) {
            double gap = square_gap(x[k], g->low[first + a - 1], g->high[first + a - 1], g->reach[k]);
            s->square_gap[first + a - 1] = gap;
            if (gap > s->limit) break;
            a--;
        }
        while (b < g->size[k] - 1) {
            double gap = square_gap(x[k], g->low[first + b + 1], g->high[first + b + 1], g->reach[k]);
            s->square_gap[first + b + 1] = gap;
            if (gap > s->limit) break;
            b++;
        }
        s->a[k] = a, s->b[k] = b;
    }
    for (int32_t c = 0; c < s->nc; c++) s->open_sets[c] = (uint64_t)1 << level[c];
    if (!room_for(s, (void **)&s->lists, &s->room_lists, (size_t)g->n_leaves, sizeof(int32_t))) {
        s->full = 1;
        return UNKNOWN;
    }
    for (int32_t i = 0; i < g->n_leaves; i++) s->lists[i] = i;
    s->flip_sum = INFINITY, s->flip_looks = 0, s->lost = 0, s->spent = 0;
    attack_in(s, g, 0, (size_t)g->n_leaves);
    s->work += s->spent;
    if (s->flip_sum < g->least) {
        s->lost = 0;
        return FLIPS;
    }
    return s->lost || s->full ? UNKNOWN : SAFE;
}

/* -- growing a no-good ---------------------------------------------------------------------------------------------- */
/* Cost of getting away from the no-good at hand by one side of a number alone; beyond the node and the budget it counts as more. */
static double alone(const Search *s, const Constraint *g, int32_t k, int up, char *box, const double *near, double need, double spare) {
    int32_t first = g->first[k], cell = up ? s->grown_high[k] : s->grown_low[k];
    if (up ? cell == g->size[k] - 1 : cell == 0) return INFINITY;
    double end;
    if (g->hard[k]) {
        end = up ? g->up[first + cell] : g->down[first + cell];
    } else {
        double low = g->low[first + s->grown_low[k]], high = g->high[first + s->grown_high[k]];
        double way = sqrt(square_gap(near[k], low, high, g->reach[k]) + need) * g->reach[k];
        end = up ? high + way : low - way;
    }
    if (up ? end < near[k] : end > near[k]) end = near[k];
    double cost = cost_of(s, k, end) - cost_of(s, k, near[k]);
    if (up ? end > highs(s, box)[k] : end < lows(s, box)[k]) return NOT_IN_NODE + cost;
    return cost > spare ? NOT_IN_BUDGET + cost : cost;
}

static double gap_of(const Search *s, const Constraint *g, int32_t k, double x) {
    if (g->hard[k]) return 0.0;
    double low = s->grown_low[k] == 0 ? -INFINITY : g->low[g->first[k] + s->grown_low[k]];
    double high = s->grown_high[k] == g->size[k] - 1 ? INFINITY : g->high[g->first[k] + s->grown_high[k]];
    return square_gap(x, low, high, g->reach[k]);
}

/* Open leaves that a larger box lets in; 0, and nothing changed, where the sum could then reach what is enough. */
static int let_in(Search *s, const Constraint *g, const int32_t *leaf, int32_t count, double *sum) {
    double more = *sum;
    int32_t n = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t l = leaf[i], t = g->tree[l];
        if (s->excluded[l] != 1 || g->values[l] <= s->top[t]) continue;
        s->touched[n] = t, s->old_top[n++] = s->top[t];
        more += g->values[l] - s->top[t];
        s->top[t] = g->values[l];
    }
    double exact = 0.0;  /* the running sum may drift: what decides is added up anew */
    int fits = more < g->least;
    if (fits) {
        for (int32_t t = 0; t < g->n_trees; t++) exact += s->top[t];
        fits = exact < g->least;
    }
    if (!fits) {
        while (n--) s->top[s->touched[n]] = s->old_top[n];
        return 0;
    }
    *sum = exact;
    for (int32_t i = 0; i < count; i++) s->excluded[leaf[i]]--;
    s->work += (uint64_t)count + (uint64_t)g->n_trees / 4;
    return 1;
}

static void price_numbers(Search *s, const Constraint *g, int32_t only, char *box, const double *near, double spare) {
    double touched = 0.0;
    for (int32_t k = 0; k < s->n; k++) touched += gap_of(s, g, k, near[k]);
    double need = s->need - touched > s->num.rounding ? s->need - touched : s->num.rounding;
    for (int32_t k = 0; k < s->n; k++) {
        if (only >= 0 && k != only) continue;
        for (int up = 0; up < 2; up++) s->priority[2 * k + up] = alone(s, g, k, up, box, near, need, spare);
    }
}

/* Grow the flipping cell into a no-good, cell by cell, always where it is cheapest to get away from; append it to the pool. */
static int grow(Search *s, int32_t which, char *box, const double *near, const int32_t *level) {
    const Constraint *g = s->constraints + which;
    double base = total_cost(s, near, level), spare = s->budget - base, sum = 0.0;
    for (int32_t k = 0; k < s->n; k++) s->grown_low[k] = s->grown_high[k] = s->flip[k];
    for (int32_t c = 0; c < s->nc; c++) s->grown_sets[c] = (uint64_t)1 << level[c];
    for (int32_t l = 0; l < g->n_leaves; l++) {
        int out = 0;
        for (int32_t r = g->range_first[l]; r < g->range_first[l + 1]; r++)
            out += g->ranges[r].begin > s->flip[g->ranges[r].number] || g->ranges[r].end < s->flip[g->ranges[r].number];
        for (int32_t r = g->set_first[l]; r < g->set_first[l + 1]; r++)
            out += !(g->sets[r].levels >> level[g->sets[r].category] & 1);
        s->excluded[l] = out;
        if (!out) s->top[g->tree[l]] = g->values[l];
    }
    for (int32_t t = 0; t < g->n_trees; t++) sum += s->top[t];
    s->work += (uint64_t)g->n_leaves;
    memset(s->done, 0, (size_t)(2 * s->n) + 1);
    memset(s->level_done, 0, (size_t)s->n_levels + 1);
    price_numbers(s, g, -1, box, near, spare);
    for (int32_t c = 0; c < s->nc; c++)
        for (int32_t e = 0; e < s->n_entries[c]; e++) {
            int32_t at = s->entry_first[c] + e;
            double cost = s->level_cost[at] - s->level_cost[s->entry_first[c] + level[c]];
            s->level_done[at] = e == level[c];
            s->level_priority[at] = !(levels_of(s, box)[c] >> e & 1) ? NOT_IN_NODE + cost : cost > spare ? NOT_IN_BUDGET + cost : cost;
        }
    for (;;) {
        int32_t number = -1, entry = -1;
        int up = 0;
        double first = INFINITY;
        for (int32_t i = 0; i < 2 * s->n; i++)
            if (!s->done[i] && s->priority[i] < first) first = s->priority[i], number = i / 2, up = i % 2;
        for (int32_t i = 0; i < s->n_levels; i++)
            if (!s->level_done[i] && s->level_priority[i] < first) first = s->level_priority[i], entry = i;
        if (entry >= 0) {
            int32_t c = 0;
            while (c + 1 < s->nc && s->entry_first[c + 1] <= entry) c++;
            s->level_done[entry] = 1;
            /* only leaves that no level of the box so far lets in */
            int32_t count = 0, *fresh = s->ended;
            for (int32_t i = g->level_first[entry]; i < g->level_first[entry + 1]; i++) {
                int32_t l = g->level_leaf[i];
                for (int32_t r = g->set_first[l]; r < g->set_first[l + 1]; r++)
                    if (g->sets[r].category == c && !(g->sets[r].levels & s->grown_sets[c])) fresh[count++] = l;
            }
            if (let_in(s, g, fresh, count, &sum)) s->grown_sets[c] |= (uint64_t)1 << (entry - s->entry_first[c]);
            continue;
        }
        if (number < 0) break;
        int32_t cell = up ? s->grown_high[number] + 1 : s->grown_low[number] - 1, at = g->first[number] + cell;
        const int32_t *from = up ? g->begin_first : g->end_first, *leaf = up ? g->begin_leaf : g->end_leaf;
        if (!let_in(s, g, leaf + from[at], from[at + 1] - from[at], &sum)) {
            s->done[2 * number + up] = 1;
            continue;
        }
        double before = gap_of(s, g, number, near[number]);
        if (up) s->grown_high[number] = cell;
        else s->grown_low[number] = cell;
        int moved = gap_of(s, g, number, near[number]) != before;
        price_numbers(s, g, moved ? -1 : number, box, near, spare);
    }
    size_t i = s->n_pool, room = s->room_pool;
    if (i == room) {
        size_t more = room ? 2 * room : 256, item = 1 + sizeof(int32_t) + 16 * (size_t)s->n + 8 * (size_t)s->nc;
        if (s->bytes + (more - room) * item > s->most_bytes) return 0;
        int32_t *owner = realloc(s->owner, more * sizeof(int32_t));
        if (owner) s->owner = owner;
        double *ends = realloc(s->ends, (more * 2 * (size_t)s->n + 1) * sizeof(double));
        if (ends) s->ends = ends;
        uint64_t *sets = realloc(s->sets, (more * (size_t)s->nc + 1) * sizeof(uint64_t));
        if (sets) s->sets = sets;
        unsigned char *wild = realloc(s->wild, more);
        if (wild) s->wild = wild;
        if (!owner || !ends || !sets || !wild) return 0;
        s->bytes += (more - room) * item;
        s->room_pool = more;
    }
    s->owner[i] = which, s->wild[i] = (unsigned char)s->on_the_way;
    for (int32_t k = 0; k < s->n; k++) {
        int32_t f = g->first[k], a = s->grown_low[k], b = s->grown_high[k];
        int no_low = a == 0, no_high = b == g->size[k] - 1;
        double *end = s->ends + 2 * (i * (size_t)s->n + (size_t)k);
        end[0] = no_low ? -INFINITY : g->hard[k] ? g->down[f + a] : g->low[f + a];
        end[1] = no_high ? INFINITY : g->hard[k] ? g->up[f + b] : g->high[f + b];
    }
    for (int32_t c = 0; c < s->nc; c++) s->sets[i * (size_t)s->nc + (size_t)c] = s->grown_sets[c];
    s->n_pool++;
    return 1;
}

/* Attack a centre by every constraint; a flipping cell becomes a no-good of the pool, grown within a box. */
static int withstands_within(Search *s, double limit, const double *x, const int32_t *level, char *box) {
    s->limit = limit;
    for (int32_t i = 0; i < s->n_constraints; i++) {
        int found = attack(s, i, x, level, 0);
        if (found == FLIPS) return grow(s, i, box, x, level) ? FLIPS : (s->full = 1, UNKNOWN);
        if (found == UNKNOWN) return UNKNOWN;
    }
    return SAFE;
}

static int withstands(Search *s, const double *x, const int32_t *level, char *box) {
    return withstands_within(s, s->need, x, level, box);
}
