/* Leaves and cells that are closed by their price. Included by _prices.h; improving.py is the twin of this file. */

static void close_leaves(Search *s, double spare) {
    /* Leaves in which a tree would be worth too little: all others at their best do not make up for it. */
    Prices *p = s->prices;
    int32_t *own = s->lists + s->own, *leaves = own + s->n_trees + 1, n = 0, begin = 0;
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t end = own[t + 1];
        for (int32_t i = begin; i < end; i++)
            if (!(s->tops[t] - p->leaf_worth[leaves[i]] > spare)) leaves[n++] = leaves[i];
        begin = end;
        own[t + 1] = n;
    }
}

static void close_cells(Search *s, double spare) {
    /* The same for the outer cells of each number. Where no more may change, a change takes the place of another one. */
    Prices *p = s->prices;
    for (int32_t k = 0; k < s->n_numbers; k++) {
        const double *worth = p->worth + s->first[k];
        double own = p->base[k] + p->taken[k];
        int stays = s->unchanged[k] >= s->low[k] && s->unchanged[k] <= s->high[k];
        double change = own + (stays && p->taken[k] == 0.0 ? p->room_gain : 0.0);
        double stay = own - (p->taken[k] > 0.0 ? p->next_gain : 0.0);
        int32_t low = s->low[k], high = s->high[k];
        while (low < high && (low == s->unchanged[k] ? stay : change) - worth[low] > spare) low++;
        while (high > low && (high == s->unchanged[k] ? stay : change) - worth[high] > spare) high--;
        if (low != s->low[k] || high != s->high[k]) s->smaller |= bit_of(k);
        s->low[k] = low, s->high[k] = high;
    }
}

static int within_leaves(Search *s) {
    /* Every point is in some open leaf of each tree, so in the hull of all of them; 0: that is empty. */
    const int32_t *own = s->lists + s->own, *leaves = own + s->n_trees + 1;
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t head = leaves[own[t]];
        for (uint32_t i = s->range_first[head]; i < s->range_first[head + 1]; i++) {
            int32_t k = s->ranges[i].number, begin = s->ranges[i].begin, end = s->ranges[i].end;
            for (int32_t at = own[t] + 1; at < own[t + 1] && (begin > s->low[k] || end < s->high[k]); at++) {
                int32_t leaf = leaves[at];
                uint32_t r = s->range_first[leaf], last = s->range_first[leaf + 1];
                while (r < last && s->ranges[r].number < k) r++;
                int asks = r < last && s->ranges[r].number == k;
                if (!asks || s->ranges[r].begin < begin) begin = asks ? s->ranges[r].begin : 0;
                if (!asks || s->ranges[r].end > end) end = asks ? s->ranges[r].end : s->high[k];
            }
            if (begin > s->low[k]) s->low[k] = begin, s->smaller |= bit_of(k);
            if (end < s->high[k]) s->high[k] = end, s->smaller |= bit_of(k);
            if (s->low[k] > s->high[k]) return 0;
        }
    }
    return 1;
}

static int keep_open(Search *s) {
    /* Keep the leaves that are open in what became of the part; 0: a tree has none. */
    int32_t *own = s->lists + s->own, *leaves = own + s->n_trees + 1, n = 0, begin = 0;
    for (int32_t t = 0; s->smaller && t < s->n_trees; t++) {
        int32_t end = own[t + 1], before = n;
        for (int32_t i = begin; i < end; i++)
            if (is_open(s, leaves[i])) leaves[n++] = leaves[i];
        if (n == before) return 0;
        begin = end;
        own[t + 1] = n;
    }
    return 1;
}
