/* Tables of the search over centres and signs, copied from Python. See _signs.c. */
enum { T_HOME, T_ORIGIN, T_RATE, T_SQUARE, T_PRICE, T_STEP, T_ROOM, T_LOW, T_HIGH, T_LEVEL_COST, T_LEVEL_HOME, T_ALLOWED, T_FIRST, T_AXES, N_TABLES };
enum {
    N_BLOCK, N_WEIGHTS, N_CONSTANT, N_SLOPE, N_UNIT_ROOM, N_ROWS, N_ROW_CONSTANT, N_ROW_ROOM, N_REACH, N_END_LOW, N_END_HIGH, N_GRID, N_PARTS
};

#include "_copied.h"
#include "_numbers.h"

static const Number NUMBERS[] = {
    DOUBLE(Numbers, rounding), DOUBLE(Numbers, dust), DOUBLE(Numbers, float_room), DOUBLE(Numbers, tiny), DOUBLE(Numbers, smallest_pivot),
    DOUBLE(Numbers, same_ratio), DOUBLE(Numbers, kept_row), DOUBLE(Numbers, beyond_budget), DOUBLE(Numbers, same_mean),
    DOUBLE(Numbers, same_plane), DOUBLE(Numbers, away), DOUBLE(Numbers, early), DOUBLE(Numbers, cut_from), DOUBLE(Numbers, broken_from),
    DOUBLE(Numbers, first_ray), DOUBLE(Numbers, longer_ray), DOUBLE(Numbers, lifted), DOUBLE(Numbers, most_weight), DOUBLE(Numbers, more_weight),
    COUNT(Numbers, programs), COUNT(Numbers, most_pivots), COUNT(Numbers, most_tries), COUNT(Numbers, recent), COUNT(Numbers, shift_memory),
    COUNT(Numbers, all_rows), COUNT(Numbers, rays), COUNT(Numbers, dives), COUNT(Numbers, first_proposals), COUNT(Numbers, propose_every),
    COUNT(Numbers, cuts), COUNT(Numbers, lifted_from), COUNT(Numbers, tried), COUNT(Numbers, descents), COUNT(Numbers, betweens),
    COUNT(Numbers, thirds), COUNT(Numbers, sweeps),
};

static int read_all_numbers(Search *s, PyObject *given) {
    Numbers *num = &s->num;
    if (!read_numbers(given, NUMBERS, sizeof NUMBERS / sizeof *NUMBERS, num)) return 0;
    /* a node has one program at least, and what is divided by is not 0 */
    if (num->programs < 1) num->programs = 1;
    if (num->shift_memory < 1) num->shift_memory = 1;
    if (num->propose_every < 1) num->propose_every = 1;
    s->lp.num = s->pieces.num = num;
    return 1;
}

static void release_program(Lp *p) {
    void *blocks[] = {p->rows, p->rhs, p->cap, p->cost, p->t, p->beta, p->z, p->value, p->y, p->ray, p->basic, p->column, p->upper, p->flipped};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

static void release_net(Net *net) {
    void *blocks[] = {net->block, net->of, net->weights, net->constant, net->slope, net->room, net->rows, net->row_constant, net->row_room,
                      net->reach, net->end_low, net->end_high, net->step, net->shifts, net->s0, net->own_shift, net->across, net->ways, net->natural};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

static void release(Search *s) {
    if (!s) return;
    for (int32_t i = 0; s->nets && i < s->n_nets; i++) release_net(s->nets + i);
    while (s->n_heap) free(s->heap[--s->n_heap]);
    free(s->diving), free(s->waiting);
    while (s->made) {
        Split *split = s->made;
        s->made = split->made_before;
        free(split);
    }
    release_program(&s->lp), release_program(&s->pieces);
    free(s->mean.a), free(s->mean.is_plane);
    void *blocks[] = {s->home, s->origin, s->rate, s->square, s->price, s->step, s->room, s->level_cost, s->first, s->level_home, s->nets,
                      s->heap, s->low, s->allowed, s->cheapest, s->items, s->planes, s->gains, s->score, s->by, s->taken, s->offer, s->offer_level, s->axes, s->used};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
    free(s);
}

static void forget(PyObject *capsule) { release((Search *)PyCapsule_GetPointer(capsule, NAME)); }

/* Read a network; its shifts may take a part of the memory. */
static int read_net(const Search *s, Net *net, PyObject *parts) {
    size_t inputs = 0, units = 0, rows = 0, blocks = 0;
    if (PySequence_Size(parts) != N_PARTS) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "wrong number of parts of a network");
        return 0;
    }
    if (!(net->reach = copied(parts, N_REACH, 8, -1, &inputs)) || !(net->constant = copied(parts, N_CONSTANT, 8, -1, &units)) ||
        !(net->row_constant = copied(parts, N_ROW_CONSTANT, 8, -1, &rows)) || !(net->block = copied(parts, N_BLOCK, 4, -1, &blocks)))
        return 0;
    long long width = (long long)(inputs + units);
    int fine = (net->weights = copied(parts, N_WEIGHTS, 8, (long long)units * width, NULL)) && (net->slope = copied(parts, N_SLOPE, 8, (long long)units, NULL)) &&
               (net->room = copied(parts, N_UNIT_ROOM, 8, (long long)units, NULL)) && (net->rows = copied(parts, N_ROWS, 8, (long long)rows * width, NULL)) &&
               (net->row_room = copied(parts, N_ROW_ROOM, 8, (long long)rows, NULL)) && (net->end_low = copied(parts, N_END_LOW, 8, (long long)inputs, NULL)) &&
               (net->end_high = copied(parts, N_END_HIGH, 8, (long long)inputs, NULL)) && (net->step = copied(parts, N_GRID, 8, (long long)inputs, NULL));
    if (!fine) return 0;
    net->num = &s->num;
    net->shift_bytes = s->most_bytes / (size_t)s->num.shift_memory;
    net->n_in = (int32_t)inputs, net->n_units = (int32_t)units, net->n_rows = (int32_t)rows, net->n_blocks = (int32_t)blocks - 1;
    fine = units > 0 && rows > 0 && blocks > 1 && inputs >= (size_t)(s->n + s->n_levels) && net->block[0] == 0 && net->block[blocks - 1] == (int32_t)units;
    for (size_t b = 0; fine && b + 1 < blocks; b++) fine = net->block[b] < net->block[b + 1];
    if (!fine) return PyErr_SetString(PyExc_ValueError, "blocks of units that are not one after the other"), 0;
    size_t first = (size_t)net->block[1], items = 2 * (size_t)s->n + (size_t)s->n_levels + 1;
    if (!(net->of = calloc(units, 4)) || !(net->s0 = calloc(13 * units + 2 * (inputs + units), 8)) || !(net->own_shift = calloc((inputs + 3 * units) * OWN, 8)) ||
        !(net->across = calloc(inputs * first, 8)) || !(net->ways = calloc(first * items, 8)) || !(net->natural = calloc(units, 1)))
        return PyErr_NoMemory(), 0;
    double *at = net->s0;
    double **of_units[] = {&net->s0,   &net->lower, &net->upper, &net->rise,  &net->fall, &net->sum,
                           &net->from, &net->to,    &net->delta, &net->loose, &net->there};
    for (size_t i = 0; i < sizeof of_units / sizeof *of_units; i++) *of_units[i] = at, at += units;
    net->beside = at, net->h = at + 2 * units, net->coef = net->h + inputs + units;
    net->own_from = net->own_shift + inputs * OWN, net->own_to = net->own_from + units * OWN, net->own_delta = net->own_to + units * OWN;
    for (size_t u = 0; u < first; u++)
        for (size_t j = 0; j < inputs; j++) net->across[j * first + u] = weights_of(net, (int32_t)u)[j];
    for (size_t b = 0; b + 1 < blocks; b++)
        for (int32_t u = net->block[b]; u < net->block[b + 1]; u++) net->of[u] = (int32_t)b;
    return 1;
}

static int reserve_program(Lp *p, int32_t n) {
    size_t columns = (size_t)n + 1, rows = MOST_ROWS + 1;
    return (p->rows = calloc(rows * columns, 8)) && (p->rhs = calloc(rows, 8)) && (p->cap = calloc(columns, 8)) && (p->cost = calloc(columns, 8)) &&
           (p->t = calloc(rows * columns, 8)) && (p->beta = calloc(rows, 8)) && (p->z = calloc(columns, 8)) && (p->value = calloc(columns, 8)) &&
           (p->y = calloc(rows, 8)) && (p->ray = calloc(rows, 8)) && (p->basic = calloc(rows, 4)) && (p->column = calloc(columns, 4)) &&
           (p->upper = calloc(columns, 1)) && (p->flipped = calloc(columns, 1));
}

static int reserve(Search *s) {
    size_t n = (size_t)s->n, nc = (size_t)s->n_categories, inputs, scores;
    s->most_items = 2 * s->n + s->n_levels + 1, /* and one for what planes are missed by */ s->most_inputs = s->n + s->n_levels, s->most_units = 0;
    for (int32_t i = 0; i < s->n_nets; i++) {
        if (s->nets[i].n_in > s->most_inputs) s->most_inputs = s->nets[i].n_in;
        if (s->nets[i].n_units > s->most_units) s->most_units = s->nets[i].n_units;
    }
    inputs = (size_t)s->most_inputs, scores = (size_t)s->n_nets * (size_t)s->most_units + inputs;
    if (!(s->low = calloc(5 * (n + nc) + 8, 8)) || !(s->allowed = calloc((size_t)s->n_levels + 1, 1)) || !(s->cheapest = calloc(nc + 1, 4)) ||
        !(s->items = calloc((size_t)s->most_items + 1, sizeof(Item))) || !(s->planes = calloc(MOST_ROWS + 1, sizeof(Plane))) ||
        !(s->gains = calloc(2 * (size_t)s->most_items + 8 * inputs + 8, 8)) || !(s->used = calloc((size_t)s->most_items + 1, 4)) || !(s->score = calloc(2 * scores, 8)) || !(s->by = calloc(scores + nc + 1, 4)) ||
        !(s->taken = calloc((size_t)s->most_items + 1, 1)) || !(s->offer = calloc(n + 1, 8)) || !(s->offer_level = calloc(nc + 1, 4)) ||
        !reserve_program(&s->lp, s->most_items) || !reserve_program(&s->pieces, s->most_items))
        return 0;
    if (s->axes) {
        if (!(s->mean.a = calloc(MOST_ROUND * (n + 3 + MOST_ROUND), 8)) || !(s->mean.is_plane = calloc(MOST_ROUND, 1))) return 0;
        s->mean.c = s->mean.a + MOST_ROUND * n, s->mean.w = s->mean.c + MOST_ROUND, s->mean.q = s->mean.w + MOST_ROUND;
        s->mean.gram = s->mean.q + MOST_ROUND;
    }
    s->high = s->low + n, s->near = s->high + n, s->least = s->near + n, s->onward = s->least + n + nc;
    s->extra = s->gains + s->most_items;
    double **of_inputs[] = {&s->at_base, &s->x, &s->slopes, &s->shift, &s->worst, &s->step_shift, &s->trial};
    for (size_t i = 0; i < sizeof of_inputs / sizeof *of_inputs; i++) *of_inputs[i] = s->extra + (size_t)s->most_items + i * inputs;
    s->place = s->score + scores, s->trial_level = s->by + scores;
    return 1;
}

/* The whole of the box as the first node, without a shift. */
static int begin(Search *s, PyObject *tables) {
    double *low = copied(tables, T_LOW, 8, s->n, NULL), *high = copied(tables, T_HIGH, 8, s->n, NULL);
    char *allowed = copied(tables, T_ALLOWED, 1, s->n_levels, NULL);
    Node *node = low && high && allowed ? new_node(s) : NULL;
    if (node) {
        node->bound = s->elsewhere, node->splits = NULL, node->tries = node->depth = 0;
        memcpy(node->low, low, sizeof(double) * (size_t)s->n);
        memcpy(node->high, high, sizeof(double) * (size_t)s->n);
        memset(node->point, 0, sizeof(double) * (size_t)(s->n + s->n_levels));
        memcpy(node->allowed, allowed, (size_t)s->n_levels);
        for (int32_t i = 0; i < s->n_nets * SLOTS; i++) node->slots[i] = -1;
        for (int32_t i = 0; i < s->n_nets; i++) {
            memset(s->shift, 0, sizeof(double) * (size_t)s->most_inputs);
            node->slots[i * SLOTS] = keep_shift(s->nets + i, s->shift);
        }
    } else if (!PyErr_Occurred()) PyErr_NoMemory();
    free(low), free(high), free(allowed);
    return node && push(s, node);
}

static PyObject *opened(PyObject *self, PyObject *args) {
    PyObject *tables, *nets, *numbers, *passes, *asked, *rounds;
    double elsewhere, slack;
    long long most, most_bytes;
    size_t n = 0, levels = 0, categories = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOddLL", &tables, &nets, &numbers, &passes, &asked, &rounds, &elsewhere, &slack, &most, &most_bytes)) return NULL;
    Py_ssize_t count = PySequence_Size(nets);
    if (PySequence_Size(tables) != N_TABLES || count < 1 || PySequence_Size(passes) != count || PySequence_Size(asked) != count || PySequence_Size(rounds) != count || most_bytes <= 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "wrong number of tables, or no network");
        return NULL;
    }
    Search *s = calloc(1, sizeof(Search));
    if (!s) return PyErr_NoMemory();
    s->elsewhere = elsewhere, s->slack = slack, s->most_bytes = (size_t)most_bytes, s->open_bound = INFINITY, s->budget = INFINITY;
    int fine = read_all_numbers(s, numbers) && (s->home = copied(tables, T_HOME, 8, -1, &n)) && (s->origin = copied(tables, T_ORIGIN, 8, (long long)n, NULL)) &&
               (s->rate = copied(tables, T_RATE, 8, (long long)n, NULL)) && (s->square = copied(tables, T_SQUARE, 8, (long long)n, NULL)) &&
               (s->price = copied(tables, T_PRICE, 8, (long long)n, NULL)) && (s->step = copied(tables, T_STEP, 8, (long long)n, NULL)) &&
               (s->room = copied(tables, T_ROOM, 8, (long long)n, NULL)) && (s->level_cost = copied(tables, T_LEVEL_COST, 8, -1, &levels)) &&
               (s->level_home = copied(tables, T_LEVEL_HOME, 1, (long long)levels, NULL)) && (s->first = copied(tables, T_FIRST, 4, -1, &categories));
    size_t axes = 0;
    fine = fine && (s->axes = copied(tables, T_AXES, 8, -1, &axes));
    if (fine && (axes != n || !n)) free(s->axes), s->axes = NULL;
    s->n = (int32_t)n, s->n_levels = (int32_t)levels, s->n_categories = (int32_t)categories - 1;
    s->most = (int32_t)(most < (long long)n + (long long)categories ? most : (long long)n + (long long)categories);
    if (fine && (categories < 1 || s->first[0] != 0 || s->first[categories - 1] != (int32_t)levels)) {
        PyErr_SetString(PyExc_ValueError, "levels that belong to no category");
        fine = 0;
    }
    if (fine && !(s->nets = calloc((size_t)count, sizeof(Net)))) fine = 0, PyErr_NoMemory();
    for (Py_ssize_t i = 0; fine && i < count; i++) {
        PyObject *parts = PySequence_GetItem(nets, i), *pass = PySequence_GetItem(passes, i);
        PyObject *ask = PySequence_GetItem(asked, i), *round = PySequence_GetItem(rounds, i);
        s->n_nets = (int32_t)i + 1;
        fine = parts && pass && ask && round && read_net(s, s->nets + i, parts);
        if (fine) s->nets[i].passes = PyFloat_AsDouble(pass), s->nets[i].asked = PyFloat_AsDouble(ask), s->nets[i].round = (int)PyLong_AsLong(round), fine = !PyErr_Occurred();
        Py_XDECREF(parts), Py_XDECREF(pass), Py_XDECREF(ask), Py_XDECREF(round);
    }
    if (fine && !reserve(s)) fine = 0, PyErr_NoMemory();
    fine = fine && begin(s, tables);
    PyObject *capsule = fine ? PyCapsule_New(s, NAME, forget) : NULL;
    if (!capsule) release(s);
    return capsule;
}
