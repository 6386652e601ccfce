/* Leaves that are out of reach by themselves: a point in one would cost too much, or change too many features.
 *
 * Included by _kernel.c; grids.py is the twin.
 */

static int keep_reached(Search *s) {
    /* Keep the open leaves that some point of the part lies in which costs no more than the budget and changes few enough
       features; 0: a tree has none. */
    const Costs *c = s->costs;
    int64_t room = s->most - s->changed_elsewhere;
    if (!(s->budget < Py_HUGE_VAL) && room >= s->n_numbers + s->n_categories) return 1;
    least(s, c, s->low, s->high, s->allowed, s->least_numbers, s->least_levels);
    double paid = (c->elsewhere + total(s->least_numbers, (size_t)s->n_numbers)) + total(s->least_levels, (size_t)s->n_categories);
    double spare = (s->budget - paid) + s->dust * (fabs(s->budget) + fabs(paid));
    for (int32_t k = 0; k < s->n_numbers; k++) room -= s->unchanged[k] < s->low[k] || s->unchanged[k] > s->high[k];
    for (int32_t f = 0; f < s->n_categories; f++) {
        int stays = 0;
        for (int32_t w = s->word_first[f]; w < s->word_first[f + 1]; w++) stays |= (s->allowed[w] & s->home[w]) != 0;
        room -= !stays;
    }
    int32_t *own = s->lists + s->own, *leaves = own + s->n_trees + 1, n = 0, begin = 0;
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t end = own[t + 1], before = n;
        for (int32_t i = begin; i < end; i++) {
            int32_t leaf = leaves[i];
            double more = 0.0;
            int64_t changes = 0;
            for (uint32_t r = s->range_first[leaf]; r < s->range_first[leaf + 1]; r++) {
                const Range *range = &s->ranges[r];
                int32_t k = range->number, low = range->begin > s->low[k] ? range->begin : s->low[k];
                int32_t high = range->end < s->high[k] ? range->end : s->high[k];
                int64_t at = c->cheapest[k] > low ? c->cheapest[k] : low;
                if (at > high) at = high;
                more += c->cost[s->first[k] + at] - s->least_numbers[k];
                int64_t home = s->unchanged[k];
                changes += home >= s->low[k] && home <= s->high[k] && !(home >= low && home <= high);
            }
            if (more <= spare && changes <= room) leaves[n++] = leaf;
        }
        if (n == before) return 0;
        s->work += (uint64_t)(end - begin);
        begin = end;
        own[t + 1] = n;
    }
    return 1;
}
