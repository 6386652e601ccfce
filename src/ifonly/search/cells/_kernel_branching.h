/* Branching of one part: where its best leaves lie apart, its children, and what lies beside the meeting of all leaves.
 *
 * Included by _kernel.c; branching.py is the twin of this file.
 */

/* -- one part: best leaves that lie apart --------------------------------------------------------------------------- */
static int32_t apart(Search *s, int32_t *at_number, int32_t *at_cell) {
    /* The most best leaves that end at or before a cell, while no fewer begin behind it, and that cell: the first of equals. */
    memset(s->total_ended, 0, sizeof(int32_t) * (size_t)s->n_numbers);
    memset(s->total_begun, 0, sizeof(int32_t) * (size_t)s->n_numbers);
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t leaf = s->best[t];
        for (uint32_t i = s->range_first[leaf]; i < s->range_first[leaf + 1]; i++) {
            const Range *r = &s->ranges[i];
            int32_t k = r->number;
            if (r->end < s->high[k]) s->ended[s->first[k] + r->end]++, s->total_ended[k]++;
            if (r->begin > s->low[k]) s->begun[s->first[k] + r->begin]++, s->total_begun[k]++;
        }
        s->work += s->range_first[leaf + 1] - s->range_first[leaf];
    }
    int32_t most = 0;
    for (int32_t k = 0; k < s->n_numbers; k++) {
        if (!s->total_ended[k] && !s->total_begun[k]) continue;
        int32_t *ended = s->ended + s->first[k], *begun = s->begun + s->first[k];
        int32_t before = 0, behind = s->total_begun[k];
        if (s->total_ended[k] > most && behind > most)
            for (int32_t cell = s->low[k]; cell < s->high[k]; cell++) {
                before += ended[cell];
                behind -= begun[cell];
                int32_t score = before < behind ? before : behind;
                if (score > most) most = score, *at_number = k, *at_cell = cell;
            }
        size_t width = sizeof(int32_t) * (size_t)(s->high[k] - s->low[k] + 1);
        memset(ended + s->low[k], 0, width);
        memset(begun + s->low[k], 0, width);
        s->work += (uint64_t)(s->high[k] - s->low[k] + 1);
    }
    return most;
}

static int32_t most_at_odds(const Search *s, const int32_t *want, const int32_t *is_apart, int32_t *at_entry) {
    int32_t most = 0;
    *at_entry = 0;
    for (int32_t e = 0; e < s->n_entries; e++) {
        if (!(s->allowed[s->entry_word[e]] & s->entry_bit[e]) || (is_apart && !is_apart[s->entry_owner[e]])) continue;
        int32_t out = s->n_trees - s->hold[e], score = want[e] < out ? want[e] : out;
        if (score > most) most = score, *at_entry = e;
    }
    return most;
}

static int32_t at_odds(Search *s, int32_t *at_entry) {
    /* The most best leaves that want a level and no other one, while no fewer rule it out, and that level. */
    if (!s->n_categories) return 0;
    memset(s->hold, 0, sizeof(int32_t) * (size_t)s->n_entries);
    memset(s->only, 0, sizeof(int32_t) * (size_t)s->n_entries);
    memset(s->asked, 0, sizeof(int32_t) * (size_t)s->n_categories);
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t leaf = s->best[t];
        for (uint32_t i = s->set_first[leaf]; i < s->set_first[leaf + 1]; i++) {
            int32_t c = s->sets[i].category, width = 0, last = 0;
            const uint64_t *mask = s->masks + s->sets[i].mask, *allowed = s->allowed + s->word_first[c];
            int32_t end = c + 1 < s->n_categories ? (int32_t)s->entry_first[c + 1] : s->n_entries;
            s->asked[c]++;
            for (int32_t e = (int32_t)s->entry_first[c]; e < end; e++) {
                int32_t w = s->entry_word[e] - s->word_first[c];
                if (mask[w] & allowed[w] & s->entry_bit[e]) s->hold[e]++, width++, last = e;
            }
            if (width == 1) s->only[last]++;
            s->work += (uint64_t)(end - s->entry_first[c]);
        }
    }
    for (int32_t c = 0; c < s->n_categories; c++) {  /* leaves that do not look at a category hold all that is allowed */
        int32_t end = c + 1 < s->n_categories ? (int32_t)s->entry_first[c + 1] : s->n_entries, width = 0;
        for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) width += bits_of(s->allowed[w]);
        for (int32_t e = (int32_t)s->entry_first[c]; e < end; e++)
            if (s->allowed[s->entry_word[e]] & s->entry_bit[e]) {
                s->hold[e] += s->n_trees - s->asked[c];
                if (width == 1) s->only[e] += s->n_trees - s->asked[c];
            }
    }
    int32_t most = most_at_odds(s, s->only, NULL, at_entry);
    if (most) return most;
    /* Sets can meet two by two and still have nothing in common. */
    int some = 0;
    for (int32_t c = 0; c < s->n_categories; c++) s->asked[c] = 1;
    for (int32_t e = 0; e < s->n_entries; e++)
        if (s->hold[e] == s->n_trees) s->asked[s->entry_owner[e]] = 0;
    for (int32_t c = 0; c < s->n_categories; c++) some |= s->asked[c];
    return some ? most_at_odds(s, s->hold, s->asked, at_entry) : 0;
}

/* -- one part: its children ----------------------------------------------------------------------------------------- */
static int split_number(Search *s, int32_t k, int32_t cell) {
    /* Behind a cell; the side of the cheapest value is searched first. */
    int below_first = s->costs->cheapest[k] <= cell;
    for (int second = 0; second < 2; second++) {
        if (!push(s, 0.5 * s->share, s->own, bit_of(k))) return 0;
        int32_t *low = part_low(s, s->n_nodes - 1);
        if (second == below_first) low[s->n_numbers + k] = cell;
        else low[k] = cell + 1;
    }
    return note_cut(s, k, cell, !below_first);
}

static int split_levels(Search *s, int32_t c, const uint64_t *later, const uint64_t *sooner) {
    /* Two sets of levels of a category, as its words. */
    size_t bytes = sizeof(uint64_t) * (size_t)(s->word_first[c + 1] - s->word_first[c]);
    for (int second = 0; second < 2; second++) {
        if (!push(s, 0.5 * s->share, s->own, bit_of(s->n_numbers + c))) return 0;
        memcpy(part_allowed(s, s->n_nodes - 1) + s->word_first[c], second ? sooner : later, bytes);
    }
    return note_levels(s, c, part_allowed(s, s->n_nodes - 1));
}

static int split_entry(Search *s, int32_t entry) {
    /* One level and the others; the side of the level of the factual is searched first. */
    int32_t c = s->entry_owner[entry], begin = s->word_first[c], n = s->word_first[c + 1] - begin;
    uint64_t *only = s->there_allowed, *rest = only + n;  /* room for two sets: see `reserve` */
    for (int32_t w = 0; w < n; w++) only[w] = 0, rest[w] = s->allowed[begin + w];
    only[s->entry_word[entry] - begin] = s->allowed[s->entry_word[entry]] & s->entry_bit[entry];
    rest[s->entry_word[entry] - begin] &= ~s->entry_bit[entry];
    int at_home = (s->home[s->entry_word[entry]] & s->entry_bit[entry]) != 0;
    return at_home ? split_levels(s, c, rest, only) : split_levels(s, c, only, rest);
}

static void meet_everywhere(Search *s) {
    /* All of the part is offered. */
    memcpy(s->there_low, s->low, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(s->there_high, s->high, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(s->there_allowed, s->allowed, sizeof(uint64_t) * (size_t)s->n_words);
}

static void meet(Search *s) {
    /* The part that all best leaves have in common. */
    meet_everywhere(s);
    for (int32_t t = 0; t < s->n_trees; t++) {
        int32_t leaf = s->best[t];
        for (uint32_t i = s->range_first[leaf]; i < s->range_first[leaf + 1]; i++) {
            const Range *r = &s->ranges[i];
            if (r->begin > s->there_low[r->number]) s->there_low[r->number] = r->begin;
            if (r->end < s->there_high[r->number]) s->there_high[r->number] = r->end;
        }
        for (uint32_t i = s->set_first[leaf]; i < s->set_first[leaf + 1]; i++) {
            int32_t c = s->sets[i].category;
            for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++)
                s->there_allowed[w] &= s->masks[s->sets[i].mask + w - s->word_first[c]];
        }
    }
}

static int split_anywhere(Search *s) {
    /* A part whose cheapest point was refused by the last digits of a sum, or by the number of changes; 2: one point. */
    int32_t widest = -1, width = 0;
    for (int32_t k = 0; k < s->n_numbers; k++)
        if (s->high[k] - s->low[k] > width) widest = k, width = s->high[k] - s->low[k];
    if (widest >= 0) return split_number(s, widest, s->low[widest] + width / 2);
    for (int32_t e = 0; e < s->n_entries; e++) {
        int32_t c = s->entry_owner[e], left = 0;
        if (!(s->allowed[s->entry_word[e]] & s->entry_bit[e])) continue;
        for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) left += bits_of(s->allowed[w]);
        if (left > 1) return split_entry(s, e);
    }
    return 2;
}

static int split_around(Search *s) {
    /* No point of the meeting is an answer, for all of them have the same scores: what is left around it, as boxes. Each is
       split off what comes next, so the meeting itself is the first part of the trail, and the last box its second. */
    size_t before = s->n_nodes;
    for (int32_t k = 0; k < s->n_numbers; k++) {
        if (s->there_low[k] > s->low[k]) {
            if (!note_cut(s, k, s->there_low[k] - 1, 1)) return 0;
            if (!push(s, 0.0, s->own, ~(uint64_t)0)) return 0;
            part_low(s, s->n_nodes - 1)[s->n_numbers + k] = s->there_low[k] - 1;
        }
        if (s->there_high[k] < s->high[k]) {
            if (!note_cut(s, k, s->there_high[k], 0)) return 0;
            if (!push(s, 0.0, s->own, ~(uint64_t)0)) return 0;
            part_low(s, s->n_nodes - 1)[k] = s->there_high[k] + 1;
        }
        s->low[k] = s->there_low[k], s->high[k] = s->there_high[k];
    }
    for (int32_t c = 0; c < s->n_categories; c++) {
        uint64_t others = 0;
        for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) others |= s->allowed[w] & ~s->there_allowed[w];
        if (others) {
            if (!note_levels(s, c, s->there_allowed)) return 0;
            if (!push(s, 0.0, s->own, ~(uint64_t)0)) return 0;
            uint64_t *allowed = part_allowed(s, s->n_nodes - 1);
            for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) allowed[w] &= ~s->there_allowed[w];
        }
        for (int32_t w = s->word_first[c]; w < s->word_first[c + 1]; w++) s->allowed[w] &= s->there_allowed[w];
    }
    if (s->n_nodes == before) return 2;
    if (!note_leaf(s)) return 0;
    for (size_t at = before; at < s->n_nodes; at++) s->nodes[at].share = s->share / (double)(s->n_nodes - before);
    return 1;
}

static double cost_of_meeting(Search *s, const Costs *costs) {
    least(s, costs, s->there_low, s->there_high, s->there_allowed, s->there_numbers, s->there_levels);
    return costs->elsewhere +
           (total(s->there_numbers, (size_t)s->n_numbers) + total(s->there_levels, (size_t)s->n_categories));
}

static int split_beside(Search *s, const Costs *costs, int met) {
    /* The cheapest point of the meeting is known: cheaper points lie in the other child. 2: there are none. */
    int32_t n = s->n_numbers, at = -1;
    double most = 0.0;
    least(s, costs, s->low, s->high, s->allowed, s->least_numbers, s->least_levels);
    for (int32_t k = 0; k < n; k++)
        if (s->there_numbers[k] - s->least_numbers[k] > most) at = k, most = s->there_numbers[k] - s->least_numbers[k];
    for (int32_t c = 0; c < s->n_categories; c++)
        if (s->there_levels[c] - s->least_levels[c] > most) at = n + c, most = s->there_levels[c] - s->least_levels[c];
    if (at < 0) return met ? 2 : split_anywhere(s);
    if (at < n) {
        int32_t cell = (int32_t)costs->cheapest[at];
        if (cell < s->there_low[at]) cell = s->there_low[at];
        if (cell > s->there_high[at]) cell = s->there_high[at];
        return split_number(s, at, cell > costs->cheapest[at] ? cell - 1 : cell);
    }
    int32_t c = at - n, begin = s->word_first[c], words = s->word_first[c + 1] - begin;
    uint64_t *later = s->there_allowed + s->n_words, *sooner = later + words;
    for (int32_t w = 0; w < words; w++) {
        later[w] = s->allowed[begin + w] & s->there_allowed[begin + w];
        sooner[w] = s->allowed[begin + w] & ~s->there_allowed[begin + w];
    }
    return split_levels(s, c, later, sooner);
}

static int split_after(Search *s, int met) {
    /* After an offer: nothing else in the meeting is an answer, or none that is better; or its cheapest point is known. */
    if (met == DEAD || s->sure) return split_around(s);
    cost_of_meeting(s, s->costs);
    return split_beside(s, s->costs, met);
}
