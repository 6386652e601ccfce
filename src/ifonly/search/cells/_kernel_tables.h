/* Tables of a search: copied from what Python hands over, and turned into lists of what each leaf asks for.
 *
 * Included by _kernel.c; kernel.py hands them over.
 */

#define NAME "ifonly.search.cells._kernel.Search"

static void release(Search *s) {
    for (int32_t i = 0; s->costs && i < s->n_costs; i++) {
        Costs *c = &s->costs[i];
        void *tables[] = {c->cheapest, c->up_first, c->down_first, c->cost, c->dearest, c->up, c->down, c->level_cost};
        for (size_t j = 0; j < sizeof(tables) / sizeof(tables[0]); j++) free(tables[j]);
    }
    void *blocks[] = {
        s->first, s->size, s->unchanged, s->highest, s->entry_first, s->number_id, s->category_id, s->word_first, s->entry_word,
        s->entry_owner, s->entry_bit, s->home, s->open, s->values, s->need, s->on_grid, s->sure, s->costs, s->range_first, s->set_first,
        s->ranges, s->sets, s->masks, s->looks,
        s->nodes, s->parts, s->lists, s->low, s->high, s->there_low, s->there_high, s->allowed, s->there_allowed, s->best,
        s->ended, s->begun, s->total_ended, s->total_begun, s->hold, s->only, s->asked, s->least_numbers, s->least_levels,
        s->there_numbers, s->there_levels, s->tops, s->trail,
    };
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) free(blocks[i]);
    if (s->prices) release_prices(s->prices);
    free(s->prices);
    free(s);
}

static void forget(PyObject *capsule) {
    Search *s = (Search *)PyCapsule_GetPointer(capsule, NAME);
    if (s) release(s);
}

static void *copied_from(PyObject *table, Py_ssize_t i, size_t item, size_t count) {
    /* A copy of a table, the i-th, which must have so many items. */
    Py_buffer view;
    if (PyObject_GetBuffer(table, &view, PyBUF_SIMPLE) < 0) return NULL;
    void *copy = NULL;
    if ((size_t)view.len != item * count)
        PyErr_Format(PyExc_ValueError, "table %zd has %zd bytes, not %zu", i, view.len, item * count);
    else if (!(copy = malloc(view.len ? (size_t)view.len : 1)))
        PyErr_NoMemory();
    else
        memcpy(copy, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return copy;
}

static void *copied(PyObject *tables, Py_ssize_t i, size_t item, size_t count) {
    PyObject *table = PySequence_GetItem(tables, i);
    if (!table) return NULL;
    void *copy = copied_from(table, i, item, count);
    Py_DECREF(table);
    return copy;
}

static int reserve(Search *s) {
    size_t n = (size_t)s->n_numbers + 1, c = (size_t)s->n_categories + 1, e = (size_t)s->n_entries + 1;
    size_t words = (size_t)s->n_words + 1, trees = (size_t)s->n_trees, cells = (size_t)s->n_cells + 1;
    s->part_bytes = (8 * (size_t)s->n_words + 8 * (size_t)s->n_numbers + 15) / 8 * 8;
    s->low = malloc(4 * n), s->high = malloc(4 * n), s->there_low = malloc(4 * n), s->there_high = malloc(4 * n);
    s->allowed = malloc(8 * words), s->there_allowed = malloc(3 * 8 * words);
    s->best = malloc(4 * trees), s->ended = calloc(cells, 4), s->begun = calloc(cells, 4);
    s->total_ended = malloc(4 * n), s->total_begun = malloc(4 * n);
    s->hold = malloc(4 * e), s->only = malloc(4 * e), s->asked = malloc(4 * c);
    s->least_numbers = malloc(8 * n), s->least_levels = malloc(8 * c);
    s->there_numbers = malloc(8 * n), s->there_levels = malloc(8 * c);
    s->tops = malloc(8 * trees * (size_t)s->n_goals);
    return s->low && s->high && s->there_low && s->there_high && s->allowed && s->there_allowed && s->best && s->ended &&
           s->begun && s->total_ended && s->total_begun && s->hold && s->only && s->asked && s->least_numbers &&
           s->least_levels && s->there_numbers && s->there_levels && s->tops;
}

static int tabulate_levels(Search *s, const unsigned char *home, const unsigned char *open) {
    /* Words and bits of the entries: each category begins with a word of its own. */
    size_t c = (size_t)s->n_categories, e = (size_t)s->n_entries;
    s->word_first = malloc(4 * (c + 1)), s->entry_word = malloc(4 * (e + 1)), s->entry_owner = malloc(4 * (e + 1));
    s->entry_bit = malloc(8 * (e + 1));
    if (!s->word_first || !s->entry_word || !s->entry_owner || !s->entry_bit) return 0;
    int32_t word = 0;
    for (int32_t i = 0; i < s->n_categories; i++) {
        int32_t begin = (int32_t)s->entry_first[i];
        int32_t end = i + 1 < s->n_categories ? (int32_t)s->entry_first[i + 1] : s->n_entries;
        s->word_first[i] = word;
        for (int32_t j = begin; j < end; j++) {
            s->entry_word[j] = word + (j - begin) / 64;
            s->entry_bit[j] = (uint64_t)1 << ((j - begin) % 64);
            s->entry_owner[j] = i;
        }
        word += (end - begin + 63) / 64;
    }
    s->word_first[c] = s->n_words = word;
    s->home = calloc((size_t)word + 1, 8), s->open = calloc((size_t)word + 1, 8);
    if (!s->home || !s->open) return 0;
    for (int32_t j = 0; j < s->n_entries; j++) {
        if (home[j]) s->home[s->entry_word[j]] |= s->entry_bit[j];
        if (open[j]) s->open[s->entry_word[j]] |= s->entry_bit[j];
    }
    return 1;
}

static int tabulate_leaves(Search *s, const int64_t *order, size_t all, const int32_t *begin, const int32_t *end,
                           const unsigned char *holds) {
    /* Ranges and sets of each leaf, without those that leave everything open. */
    size_t leaves = (size_t)s->n_leaves, n_ranges = 0, n_sets = 0, n_masks = 0;
    size_t room_ranges = 4 * leaves + 16, room_sets = leaves + 16, room_masks = leaves + 16;
    s->range_first = malloc(4 * (leaves + 1)), s->set_first = malloc(4 * (leaves + 1));
    s->ranges = malloc(sizeof(Range) * room_ranges), s->sets = malloc(sizeof(Set) * room_sets);
    s->masks = malloc(8 * room_masks), s->looks = calloc(leaves, 8);
    if (!s->looks || !s->range_first || !s->set_first || !s->ranges || !s->sets || !s->masks) return 0;
    for (size_t i = 0; i < leaves; i++) {
        size_t leaf = (size_t)order[i];
        s->range_first[i] = (uint32_t)n_ranges, s->set_first[i] = (uint32_t)n_sets;
        if (!grow((void **)&s->ranges, &room_ranges, n_ranges + (size_t)s->n_numbers, sizeof(Range), SIZE_MAX)) return 0;
        if (!grow((void **)&s->sets, &room_sets, n_sets + (size_t)s->n_categories, sizeof(Set), SIZE_MAX)) return 0;
        if (!grow((void **)&s->masks, &room_masks, n_masks + (size_t)s->n_words, 8, SIZE_MAX)) return 0;
        for (int32_t k = 0; k < s->n_numbers; k++) {
            int32_t b = begin[(size_t)k * all + leaf], e = end[(size_t)k * all + leaf];
            if (b <= 0 && e >= s->size[k] - 1) continue;
            s->ranges[n_ranges++] = (Range){k, b, e};
            s->looks[i] |= bit_of(k);
        }
        for (int32_t c = 0; c < s->n_categories; c++) {
            int32_t stop = c + 1 < s->n_categories ? (int32_t)s->entry_first[c + 1] : s->n_entries;
            int32_t words = s->word_first[c + 1] - s->word_first[c];
            uint64_t *mask = s->masks + n_masks, missing = 0;
            memset(mask, 0, 8 * (size_t)words);
            for (int32_t e = (int32_t)s->entry_first[c]; e < stop; e++)
                if (holds[(size_t)e * all + leaf]) mask[s->entry_word[e] - s->word_first[c]] |= s->entry_bit[e];
            for (int32_t w = 0; w < words; w++) missing |= s->open[s->word_first[c] + w] & ~mask[w];
            if (!missing) continue;
            s->sets[n_sets++] = (Set){c, (int32_t)n_masks};
            n_masks += (size_t)words;
            s->looks[i] |= bit_of(s->n_numbers + c);
        }
        if (n_ranges > UINT32_MAX / 2 || n_masks > INT32_MAX / 2) return 0;
    }
    s->range_first[leaves] = (uint32_t)n_ranges, s->set_first[leaves] = (uint32_t)n_sets;
    return 1;
}

static int list_all(Search *s, const int64_t *tree) {
    /* The list of all leaves. */
    size_t trees = (size_t)s->n_trees, leaves = (size_t)s->n_leaves;
    if (!grow((void **)&s->lists, &s->room_lists, trees + 1 + leaves, sizeof(int32_t), s->most_bytes)) return 0;
    size_t t = 0;
    for (size_t i = 0; i < leaves; i++) {
        if (i == 0 || tree[i] != tree[i - 1]) s->lists[t++] = (int32_t)i;
        s->lists[trees + 1 + i] = (int32_t)i;
    }
    s->lists[trees] = (int32_t)leaves;
    return 1;
}

static int begin_with_all(Search *s) {
    /* The whole as the only node. */
    if (!room_for_nodes(s, 64)) return 0;
    for (int32_t k = 0; k < s->n_numbers; k++) s->low[k] = 0, s->high[k] = (int32_t)s->size[k] - 1;
    memcpy(s->allowed, s->open, 8 * (size_t)s->n_words);
    return push(s, 1.0, 0, ~(uint64_t)0);
}

static size_t count_of(PyObject *tables, Py_ssize_t i, size_t item, int *failed) {
    PyObject *table = PySequence_GetItem(tables, i);
    Py_buffer view;
    if (!table || PyObject_GetBuffer(table, &view, PyBUF_SIMPLE) < 0) {
        Py_XDECREF(table);
        *failed = 1;
        return 0;
    }
    size_t count = (size_t)view.len / item;
    PyBuffer_Release(&view);
    Py_DECREF(table);
    return count;
}

enum { FIRST, SIZE, UNCHANGED, HIGHEST, NUMBER_ID, ENTRY_FIRST, CATEGORY_ID, HOME, OPEN, BEGIN, END, HOLDS, ORDER, TREE,
       VALUES, NEED, N_TABLES };
enum { CHEAPEST, UP_FIRST, DOWN_FIRST, COST, DEAREST, UP, DOWN, LEVEL_COST, ELSEWHERE, N_OF_COSTS };

static int copy_costs(Search *s, PyObject *tables, Costs *to) {
    /* One table of costs. */
    size_t n = (size_t)s->n_numbers, e = (size_t)s->n_entries;
    int failed = 0;
    if (PySequence_Size(tables) != N_OF_COSTS) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "wrong number of tables of costs");
        return 0;
    }
    size_t ups = count_of(tables, UP, 8, &failed), downs = count_of(tables, DOWN, 8, &failed);
    double *elsewhere = NULL;
    int fine = !failed && (to->cheapest = copied(tables, CHEAPEST, 8, n)) && (to->up_first = copied(tables, UP_FIRST, 8, n + 1)) &&
               (to->down_first = copied(tables, DOWN_FIRST, 8, n + 1)) &&
               (to->cost = copied(tables, COST, 8, (size_t)s->n_cells)) && (to->dearest = copied(tables, DEAREST, 8, n)) &&
               (to->up = copied(tables, UP, 8, ups)) && (to->down = copied(tables, DOWN, 8, downs)) &&
               (to->level_cost = copied(tables, LEVEL_COST, 8, e)) && (elsewhere = copied(tables, ELSEWHERE, 8, 1));
    if (fine) {
        to->elsewhere = *elsewhere;
        for (size_t k = 0; k < n; k++) to->size += to->dearest[k];
        for (size_t i = 0; i < e; i++) to->size += to->level_cost[i];
    }
    free(elsewhere);
    return fine;
}

static int copy_all_costs(Search *s, PyObject *costs) {
    Py_ssize_t count = PySequence_Size(costs);
    if (count < 1) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no table of costs");
        return 0;
    }
    if (!(s->costs = calloc((size_t)count, sizeof(Costs)))) return 0;
    s->n_costs = (int32_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *tables = PySequence_GetItem(costs, i);
        int fine = tables && copy_costs(s, tables, &s->costs[i]);
        Py_XDECREF(tables);
        if (!fine) return 0;
    }
    return 1;
}

static PyObject *opened(PyObject *self, PyObject *args) {
    PyObject *tables, *costs, *sure, *on_grid, *names = NULL;
    double grid_need, dust, momentum = 0.0, stretch = 0.0, shorter = 0.0, error = 0.0, beyond = 0.0, unit = 0.0, weight_unit = 0.0;
    long long changed_elsewhere, most, most_bytes;
    int keeps_trail, failed = 0, first_steps = 0, steps = 0, at_once = 0, patience = 0, round_every = 1, tries = 0, counted = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOddLLpL|(iiiiiiiddddddd)O", &tables, &costs, &sure, &on_grid, &grid_need, &dust, &changed_elsewhere, &most,
                          &keeps_trail, &most_bytes, &first_steps, &steps, &at_once, &patience, &round_every, &tries, &counted,
                          &momentum, &stretch, &shorter, &error, &beyond, &unit, &weight_unit, &names))
        return NULL;
    if (PySequence_Size(tables) != N_TABLES) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "wrong number of tables");
        return NULL;
    }
    size_t n = count_of(tables, FIRST, 8, &failed), cells = count_of(tables, HIGHEST, 8, &failed);
    size_t c = count_of(tables, ENTRY_FIRST, 8, &failed), e = count_of(tables, HOME, 1, &failed);
    size_t leaves = count_of(tables, ORDER, 8, &failed), goals = count_of(tables, NEED, 8, &failed);
    size_t all = n ? count_of(tables, BEGIN, 4, &failed) / n : e ? count_of(tables, HOLDS, 1, &failed) / e : 0;
    if (failed) return NULL;
    size_t largest = (size_t)INT32_MAX / 4;
    if (!leaves || !goals || leaves > largest || cells > largest || e > largest || most_bytes <= 0) {
        PyErr_SetString(PyExc_ValueError, "no leaves, no goal, or too many leaves for the kernel");
        return NULL;
    }
    Search *s = calloc(1, sizeof(Search));
    if (!s) return PyErr_NoMemory();
    s->n_numbers = (int32_t)n, s->n_categories = (int32_t)c, s->n_entries = (int32_t)e, s->n_cells = (int32_t)cells;
    s->n_goals = (int32_t)goals, s->n_leaves = (int32_t)leaves;
    s->dust = dust, s->grid_need = grid_need, s->changed_elsewhere = changed_elsewhere, s->most = most;
    s->keeps_trail = keeps_trail, s->most_bytes = (size_t)most_bytes;
    unsigned char *home = NULL, *open = NULL, *holds = NULL;
    int32_t *begin = NULL, *end = NULL;
    int64_t *order = NULL, *tree = NULL;
    int fine = (s->first = copied(tables, FIRST, 8, n)) && (s->size = copied(tables, SIZE, 8, n)) &&
               (s->unchanged = copied(tables, UNCHANGED, 8, n)) && (s->highest = copied(tables, HIGHEST, 8, cells)) &&
               (s->number_id = copied(tables, NUMBER_ID, 8, n)) && (s->entry_first = copied(tables, ENTRY_FIRST, 8, c)) &&
               (s->category_id = copied(tables, CATEGORY_ID, 8, c)) && (home = copied(tables, HOME, 1, e)) &&
               (open = copied(tables, OPEN, 1, e)) && (begin = copied(tables, BEGIN, 4, n * all)) &&
               (end = copied(tables, END, 4, n * all)) && (holds = copied(tables, HOLDS, 1, e * all)) &&
               (order = copied(tables, ORDER, 8, leaves)) && (tree = copied(tables, TREE, 8, leaves)) &&
               (s->values = copied(tables, VALUES, 8, leaves * goals)) && (s->need = copied(tables, NEED, 8, goals)) &&
               copy_all_costs(s, costs) && (sure == Py_None || (s->sure = copied_from(sure, N_TABLES, 8, goals))) &&
               (on_grid == Py_None || (s->on_grid = copied_from(on_grid, N_TABLES, 1, leaves)));
    for (size_t i = 0; fine && i < leaves; i++) {
        s->n_trees += i == 0 || tree[i] != tree[i - 1];
        if (order[i] < 0 || ((n || e) && (size_t)order[i] >= all)) {
            PyErr_SetString(PyExc_ValueError, "a leaf that there is not");
            fine = 0;
        }
    }
    if (fine) {
        fine = tabulate_levels(s, home, open) && reserve(s) && tabulate_leaves(s, order, all, begin, end, holds) &&
               list_all(s, tree);
        if (fine && first_steps > 0 && (fine = (s->prices = calloc(1, sizeof(Prices))) != NULL)) {
            Prices *p = s->prices;
            p->steps = first_steps, p->at_once = at_once, p->patience = patience, p->round_every = round_every, p->tries = tries;
            p->most_counted = counted;
            p->momentum = momentum, p->stretch = stretch, p->shorter = shorter, p->error = error, p->weight_unit = weight_unit;
            p->bound = -Py_HUGE_VAL, s->beyond = beyond;
            fine = open_prices(s, p);
            if (fine && names) {  /* prices are kept for a proof */
                p->unit = unit;
                fine = (p->names = copied_from(names, N_TABLES, 8, (size_t)p->n_splits)) != NULL;
            }
        }
        fine = fine && begin_with_all(s);
        if (fine && s->prices) s->prices->steps = steps;
        if (!fine && !PyErr_Occurred()) PyErr_NoMemory();
    }
    free(home), free(open), free(holds), free(begin), free(end), free(order), free(tree);
    PyObject *capsule = fine ? PyCapsule_New(s, NAME, forget) : NULL;
    if (!capsule) release(s);
    return capsule;
}
