/* The trail of a search, for proofs: its events, as in question/trail.py. Included by _kernel.c. */

static void put(Search *s, const void *bytes, size_t n) {
    memcpy(s->trail + s->n_trail, bytes, n);
    s->n_trail += n;
}

static void put_number(Search *s, uint64_t value, int n_bytes) {
    for (int i = 0; i < n_bytes; i++) s->trail[s->n_trail++] = (unsigned char)(value >> (8 * i));
}

static int room_for_event(Search *s, size_t bytes) {
    return grow((void **)&s->trail, &s->room_trail, s->n_trail + bytes, 1, s->most_bytes);
}

static int note_leaf(Search *s) {
    if (!s->keeps_trail) return 1;
    if (!room_for_event(s, 1)) return 0;
    put_number(s, LEAF_EVENT, 1);
    return 1;
}

static int note_cut(Search *s, int32_t k, int32_t cell, int above_first) {
    if (!s->keeps_trail) return 1;
    if (!room_for_event(s, 13)) return 0;
    uint64_t value;
    memcpy(&value, &s->highest[s->first[k] + cell], 8);
    put_number(s, CUT_EVENT + (uint64_t)above_first, 1);
    put_number(s, (uint64_t)s->number_id[k], 4);
    put_number(s, value, 8);
    return 1;
}

static int note_levels(Search *s, int32_t c, const uint64_t *sooner) {
    if (!s->keeps_trail) return 1;
    int32_t begin = (int32_t)s->entry_first[c], end = c + 1 < s->n_categories ? (int32_t)s->entry_first[c + 1] : s->n_entries;
    if (!room_for_event(s, 7 + (size_t)(end - begin + 7) / 8)) return 0;
    put_number(s, LEVELS_EVENT, 1);
    put_number(s, (uint64_t)s->category_id[c], 4);
    put_number(s, (uint64_t)(end - begin), 2);
    for (int32_t e = begin; e < end; e += 8) {
        unsigned char packed = 0;
        for (int32_t i = e; i < e + 8 && i < end; i++)
            if (sooner[s->entry_word[i]] & s->entry_bit[i]) packed |= (unsigned char)(0x80 >> (i - e));
        put(s, &packed, 1);
    }
    return 1;
}
