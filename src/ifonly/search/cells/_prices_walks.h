/* Payments of leaves with shared beginnings: the ranges of each leaf in an order in which leaves of a tree begin alike.
 *
 * Included by _prices.h. A leaf pays at the cuts where its ranges end and begin, and these payments are added up one after
 * the other: first those of the numbers that most leaves of its tree ask for. In a walk through the leaves of a tree in the
 * order of these lists, each leaf has the first so many sums in common with the one before. Every list of open leaves has
 * its walk, and is as long.
 */

static int walks_before(const Prices *p, int32_t a, int32_t b) {
    const int32_t *x = p->paid_at + 2 * (size_t)p->paid_first[a], *y = p->paid_at + 2 * (size_t)p->paid_first[b];
    const int32_t *x_end = p->paid_at + 2 * (size_t)p->paid_first[a + 1], *y_end = p->paid_at + 2 * (size_t)p->paid_first[b + 1];
    for (; x < x_end && y < y_end; x++, y++)
        if (*x != *y) return *x < *y;
    return x_end - x < y_end - y;
}

static void sort_walk(const Prices *p, int32_t *walk, int32_t *spare, int32_t n) {
    /* Merge sort. */
    if (n < 2) return;
    int32_t half = n / 2, i = 0, j = half, at = 0;
    sort_walk(p, walk, spare, half);
    sort_walk(p, walk + half, spare, n - half);
    while (i < half || j < n) spare[at++] = i < half && (j == n || !walks_before(p, walk[j], walk[i])) ? walk[i++] : walk[j++];
    memcpy(walk, spare, 4 * (size_t)n);
}

static int32_t shared_by(const Prices *p, int32_t a, int32_t b) {
    /* Number of ranges that the lists of two leaves have in common from their beginnings on. */
    int32_t n = 0, most_a = (int32_t)(p->paid_first[a + 1] - p->paid_first[a]), most_b = (int32_t)(p->paid_first[b + 1] - p->paid_first[b]);
    const int32_t *x = p->paid_at + 2 * (size_t)p->paid_first[a], *y = p->paid_at + 2 * (size_t)p->paid_first[b];
    while (n < most_a && n < most_b && x[2 * n] == y[2 * n] && x[2 * n + 1] == y[2 * n + 1]) n++;
    return n;
}

static void list_payments(Search *s, Prices *p, int32_t t, const int32_t *first_leaf, int32_t *asked) {
    /* The ranges in which the leaves of a tree pay: the numbers that most of its leaves ask for first, of equals the first. */
    memset(asked, 0, 4 * (size_t)s->n_numbers);
    for (uint32_t i = s->range_first[first_leaf[t]]; i < s->range_first[first_leaf[t + 1]]; i++) asked[s->ranges[i].number]++;
    for (int32_t leaf = first_leaf[t]; leaf < first_leaf[t + 1]; leaf++) {
        uint32_t begin = s->range_first[leaf], end = s->range_first[leaf + 1];
        for (uint32_t i = begin; i < end; i++) {
            uint32_t at = i;
            for (; at > begin && asked[p->paid_number[at - 1]] < asked[s->ranges[i].number]; at--) {
                p->paid_number[at] = p->paid_number[at - 1];
                p->paid_at[2 * (size_t)at] = p->paid_at[2 * (size_t)at - 2];
                p->paid_at[2 * (size_t)at + 1] = p->paid_at[2 * (size_t)at - 1];
            }
            p->paid_number[at] = s->ranges[i].number;
            p->paid_at[2 * (size_t)at] = p->range_end[i] >= 0 ? p->range_end[i] : p->n_splits;
            p->paid_at[2 * (size_t)at + 1] = p->range_begin[i] >= 0 ? p->range_begin[i] : p->n_splits;
        }
    }
}

static int open_walks(Search *s, Prices *p) {
    /* The lists of all leaves, and the walk through them. */
    const int32_t *first_leaf = s->lists;
    size_t leaves = (size_t)s->n_leaves, n_ranges = s->range_first[s->n_leaves];
    int32_t *asked = malloc(4 * ((size_t)s->n_numbers + 1)), *spare = malloc(4 * leaves);
    p->paid_first = s->range_first;
    p->paid_number = malloc(4 * (n_ranges + 1)), p->paid_at = malloc(8 * (n_ranges + 1));
    p->sums = calloc((size_t)s->n_numbers + 1, 8), p->is_kept = calloc(leaves, 1);
    p->row_value = malloc(8 * leaves), p->row_steps = malloc(sizeof(Steps) * leaves), p->row_paid = malloc(8 * (n_ranges + 1));
    p->row_goals = calloc(1, s->n_goals > 1 ? 8 * leaves * (size_t)s->n_goals : 1);
    int fine = s->n_numbers <= UINT16_MAX && p->row_goals && p->row_value && p->row_steps && p->row_paid && asked && spare && p->paid_number && p->paid_at && p->sums && p->is_kept &&
               grow((void **)&p->walk, &p->room_walk, leaves, sizeof(int32_t), s->most_bytes) &&
               grow((void **)&p->share, &p->room_share, leaves, sizeof(int32_t), s->most_bytes);
    for (int32_t t = 0; fine && t < s->n_trees; t++) {
        int32_t begin = first_leaf[t], end = first_leaf[t + 1];
        list_payments(s, p, t, first_leaf, asked);
        for (int32_t i = begin; i < end; i++) p->walk[i] = i;
        sort_walk(p, p->walk + begin, spare, end - begin);
        for (int32_t i = begin; i < end; i++) p->share[i] = i > begin ? shared_by(p, p->walk[i - 1], p->walk[i]) : 0;
    }
    free(asked), free(spare), free(p->paid_number);
    p->paid_number = NULL;
    return fine;
}

static int keep_walk(Search *s, Prices *p, size_t from, size_t count) {
    /* The walk through the own list of open leaves, from a walk through more of them; 0: there is no room.
       Between two leaves that are kept, as much is shared as between any two neighbours on the way. */
    const int32_t *own = s->lists + s->own, *leaves = own + s->n_trees + 1;
    size_t to = s->own, kept = (size_t)own[s->n_trees];
    if (!grow((void **)&p->walk, &p->room_walk, to + kept, sizeof(int32_t), s->most_bytes)) return 0;
    if (!grow((void **)&p->share, &p->room_share, to + kept, sizeof(int32_t), s->most_bytes)) return 0;
    for (size_t i = 0; i < kept; i++) p->is_kept[leaves[i]] = 1;
    int32_t least = INT32_MAX;
    for (size_t i = from; i < from + count; i++) {
        if (p->share[i] < least) least = p->share[i];
        if (!p->is_kept[p->walk[i]]) continue;
        p->is_kept[p->walk[i]] = 0;
        p->walk[to] = p->walk[i], p->share[to++] = least;
        least = INT32_MAX;
    }
    return 1;
}

static void line_up(Search *s, Prices *p) {
    /* The walk of the part at hand in a row, as it is added up again and again: values, and payments that are not shared. */
    const int32_t *own = s->lists + s->own, *walk = p->walk + s->own, *share = p->share + s->own;
    size_t goals = (size_t)s->n_goals;
    int32_t *next = p->row_paid;
    for (int32_t t = 0; t < s->n_trees; t++) {
        if (own[t + 1] - own[t] == 1) continue;
        for (int32_t i = own[t]; i < own[t + 1]; i++) {
            int32_t leaf = walk[i], n = (int32_t)(p->paid_first[leaf + 1] - p->paid_first[leaf]) - share[i];
            if (goals == 1) p->row_value[i] = s->values[leaf];
            for (size_t g = 0; goals > 1 && g < goals; g++)
                p->row_goals[g * (size_t)s->n_leaves + (size_t)i] = s->values[goals * (size_t)leaf + g];
            p->row_steps[i] = (Steps){(uint16_t)share[i], (uint16_t)n};
            memcpy(next, p->paid_at + 2 * ((size_t)p->paid_first[leaf] + (size_t)share[i]), 8 * (size_t)n);
            next += 2 * n;
        }
    }
}
