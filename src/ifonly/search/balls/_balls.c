/* Compiled kernel of the robust search: branch and bound over centres of balls, cut down by no-goods, for sums of trees.
 *
 * A constraint is one row of a goal, a sum over trees that must reach `least` all over a ball around the answer. Where the
 * sum stays below that in a whole box R of cells, no ball may touch R: R is a no-good. A node is a box of centres. Its
 * cheapest centre is looked at:
 *
 *   - a known no-good that its ball touches bounds the node: what it costs at least to get away from R within the node;
 *   - if it touches none, the adversary looks for a flipping cell in the ball, by branch and bound over cells, the
 *     worst leaf of each tree as bound. One that is found is grown into a new no-good, cell by cell, always where it is
 *     cheapest to get away from it;
 *   - if there is none, the centre is robust and the node is closed: nothing in it is cheaper.
 *
 * Nodes are split where the cheapest way out of a no-good leads, and looked at in the order of their bounds.
 *
 * A feature is *hard* for a constraint if the ball reaches as far in it whatever the others do (linf, or not at all): tables
 * say which centres are beyond a cell. It is *soft* in an l2 ball: the squares of the gaps, in units of the reach, add up,
 * and R is touched while they are at most `need`, one and a little more.
 *
 * It knows no clock and no models. It returns to Python with points to be offered as incumbents, and after a given amount of
 * work. It holds no reference to any Python object while it runs, so the interpreter lock is released.
 *
 * Limited API of Python 3.11: one binary serves every later version.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include "_balls.h"
#include "_balls_nogoods.h"
#include "_balls_adversary.h"
#include "_balls_incumbents.h"

#define NAME "ifonly.search.balls._balls.Search"

/* -- branch and bound ----------------------------------------------------------------------------------------------- */
/* Move a centre that touches no-goods by a hair away from them; 1: the point, in `trial`, withstands. */
static int hair_away(Search *s, const double *near, const int32_t *level, char *box) {
    memcpy(s->trial, near, sizeof(double) * (size_t)s->n);
    memcpy(s->trial_level, level, sizeof(int32_t) * (size_t)s->nc);
    for (size_t i = s->n_pool; i--;) {
        const Constraint *g = s->constraints + s->owner[i];
        const double *ends = s->ends + 2 * i * s->n;
        if (!(touching(s, i, near, level) <= s->need)) continue;
        for (int32_t k = 0; k < s->n; k++) {
            if (g->hard[k] || s->kind[k] == WHOLE || near[k] == s->hat[k] || (near[k] >= ends[2 * k] && near[k] <= ends[2 * k + 1])) continue;
            double to = near[k] + (near[k] > ends[2 * k + 1] ? 2.0 : -2.0) * s->hair * g->reach[k];
            s->trial[k] = clipped(rounded_at(s, k, to, to > near[k]), s->root_low[k], s->root_high[k]);
        }
    }
    if (touched_by(s, s->trial, s->trial_level) != SIZE_MAX) return 0;
    return withstands(s, s->trial, s->trial_level, box) == SAFE;
}

/* Squares of gaps that a no-good may be touched by at a depth, and not be looked at yet. Nodes just short of a way out repeat
 * all that is beyond it; so a node is looked at roughly first, and then more and more closely. */
static double slack_at(const Search *s, int depth) {
    double slack = s->num.first_slack;
    for (int i = 0; i < depth; i++) slack *= s->num.next_slack;
    return s->soft && slack > 2.0 * s->hair ? slack : 2.0 * s->hair;
}

/* Close a node whose cheapest centre touches no-goods by a hair at most, and withstands otherwise: offer it, or leave it open. */
static int close_node(Search *s, Node node, double base, int touched) {
    int found = touched ? UNKNOWN : withstands(s, s->near, s->near_level, node.box);
    if (found == SAFE) offer(s, s->near, s->near_level, base, 1);
    else if (hair_away(s, s->near, s->near_level, node.box)) offer(s, s->trial, s->trial_level, base, 1);
    else if (base < s->open_bound) s->open_bound = base;
    drop_box(s, node.box);
    return s->offered ? OFFER : PAUSED;
}

/* Look at a node: close it, split it, look at it again more closely, or offer its cheapest centre. */
static int look(Search *s, Node node) {
    double *near = s->near, slack = slack_at(s, node.depth), bound = node.bound;
    int32_t *level = s->near_level;
    char *box = node.box;
    s->looked++;
    if (!nearest(s, box, near, level)) return drop_box(s, box), PAUSED;
    double base = total_cost(s, near, level);
    base -= s->num.rounding * fabs(base);
    Way best = {-INFINITY, -1, -1, 0, 0.0};
    size_t by = SIZE_MAX;
    int touched = 0;
    if (base > bound) bound = base;
    s->work += s->n_pool;
    for (size_t i = s->n_pool; i-- && bound <= s->budget;) {
        if (s->wild[i]) continue;
        double gaps = touching(s, i, near, level);
        if (!(gaps <= s->need)) continue;
        Way way = way_out(s, i, box, near, level, base, gaps, slack);
        s->work += (uint64_t)(s->n + s->nc);
        touched = 1;
        if (way.cost > bound) bound = way.cost;
        if (s->need - gaps > slack && way.cost > best.cost) best = way, by = i;
    }
    if (bound > s->budget) return drop_box(s, box), PAUSED;
    if (by == SIZE_MAX) {
        int found = withstands_within(s, s->need - slack, near, level, box);
        if (found == UNKNOWN) {
            /* an attack that takes much longer than a look at the clock may wait is none that hundreds can be made of */
            if (!push(s, bound, box, node.depth) || s->full || s->patience >= (uint64_t)s->num.most_patience * s->first_patience) return FULL;
            s->patience *= 2;
            s->looked--;
            return PAUSED;
        }
        if (found == SAFE) {
            if (!s->soft || slack <= 2.0 * s->hair) return close_node(s, node, base, touched);
            if (!push(s, bound, box, node.depth + 1)) return FULL;
            return probe(s, box) ? OFFER : PAUSED;
        }
        by = s->n_pool - 1;
        best = way_out(s, by, box, near, level, base, touching(s, by, near, level), slack);
        if (best.cost > bound) bound = best.cost;
        if (bound > s->budget) return drop_box(s, box), PAUSED;
    }
    if (best.number < 0 && best.category < 0) {  /* too small to be split */
        if (s->soft && slack > 2.0 * s->hair) return push(s, bound, box, node.depth + 1) ? PAUSED : FULL;
        if (bound < s->open_bound) s->open_bound = bound;
        return drop_box(s, box), PAUSED;
    }
    char *other = new_box(s);
    if (!other) {
        if (!push(s, bound, box, node.depth)) s->open_bound = bound < s->open_bound ? bound : s->open_bound;
        return FULL;
    }
    memcpy(other, box, s->box_bytes);
    take(s, by, box, &best, 1);
    take(s, by, other, &best, 0);
    if (!push(s, bound, box, node.depth) || !push(s, bound, other, node.depth)) {
        s->open_bound = bound < s->open_bound ? bound : s->open_bound;
        return FULL;
    }
    if ((s->looked & (s->looked - 1)) == 0) {
        s->on_the_way = 1;
        int found = dive(s, box);
        s->on_the_way = 0;
        if (found) return OFFER;
    }
    return PAUSED;
}

static int search(Search *s, int met, uint64_t most_work) {
    if (s->offered) {
        if (met == REFUSED && s->offer_closes && s->offer_bound < s->open_bound) s->open_bound = s->offer_bound;
        s->offered = 0;
    }
    uint64_t end = s->work + most_work;
    s->stop = end;
    while (s->n_heap) {
        if (s->heap[0].bound > s->budget) break;
        Node node = pop(s);
        double known = node.bound;
        int said = look(s, node);
        if (said == FULL && known < s->open_bound) s->open_bound = known;  /* it may be lost: nothing more is known of it */
        if (said == OFFER || said == FULL) return said;
        if (s->work >= end) return PAUSED;
    }
    return CLOSED;
}

#include "_balls_tables.h"

/* -- Python --------------------------------------------------------------------------------------------------------- */
static PyObject *opened(PyObject *self, PyObject *args) {
    PyObject *tables, *constraints, *numbers;
    double elsewhere;
    long long most, most_looks, patience, most_bytes;
    size_t n = 0, nc = 0, levels = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOdLLLL", &tables, &constraints, &numbers, &elsewhere, &most, &most_looks, &patience, &most_bytes)) return NULL;
    Py_ssize_t count = PySequence_Size(constraints);
    if (PySequence_Size(tables) != N_TABLES || count < 1 || most_bytes <= 0 || patience <= 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "wrong number of tables, or no constraint");
        return NULL;
    }
    Search *s = calloc(1, sizeof(Search));
    if (!s) return PyErr_NoMemory();
    s->elsewhere = elsewhere, s->most = most, s->most_looks = most_looks, s->patience = s->first_patience = (uint64_t)patience;
    s->most_bytes = (size_t)most_bytes, s->open_bound = INFINITY, s->budget = INFINITY;
    int fine = read_all_numbers(s, numbers) && (s->hat = copied(tables, HAT, 8, -1, &n)) && (s->rate = copied(tables, RATE, 8, (long long)n, NULL)) &&
               (s->square = copied(tables, SQUARE, 8, (long long)n, NULL)) && (s->price = copied(tables, PRICE, 8, (long long)n, NULL)) &&
               (s->root_low = copied(tables, LOW, 8, (long long)n, NULL)) && (s->root_high = copied(tables, HIGH, 8, (long long)n, NULL)) &&
               (s->push = copied(tables, PUSH, 8, (long long)n, NULL)) && (s->kind = copied(tables, KIND, 4, (long long)n, NULL)) &&
               (s->entry_first = copied(tables, ENTRY_FIRST, 4, -1, &nc)) && (s->n_entries = copied(tables, N_ENTRIES, 4, (long long)nc, NULL)) &&
               (s->home = copied(tables, HOME, 4, (long long)nc, NULL)) && (s->level_cost = copied(tables, LEVEL_COST, 8, -1, &levels)) &&
               (s->root_levels = copied(tables, LEVELS, 8, (long long)nc, NULL));
    s->n = (int32_t)n, s->nc = (int32_t)nc, s->n_levels = (int32_t)levels;
    for (int32_t c = 0; fine && c < s->nc; c++)
        if (s->n_entries[c] < 1 || s->n_entries[c] > 64 || s->home[c] >= s->n_entries[c] || s->entry_first[c] + s->n_entries[c] > s->n_levels) {
            PyErr_SetString(PyExc_ValueError, "a category with no levels, or more than 64");
            fine = 0;
        }
    if (fine && !(s->constraints = calloc((size_t)count, sizeof(Constraint)))) fine = 0, PyErr_NoMemory();
    for (Py_ssize_t i = 0; fine && i < count; i++) {
        PyObject *parts = PySequence_GetItem(constraints, i);
        s->n_constraints = (int32_t)i + 1;
        fine = parts && read_constraint(s, s->constraints + i, parts);
        Py_XDECREF(parts);
    }
    for (int32_t i = 0; fine && i < s->n_constraints; i++)
        for (int32_t k = 0; k < s->n; k++) s->soft |= !s->constraints[i].hard[k];
    if (fine && !(reserve(s) && begin_with_all(s))) fine = 0, PyErr_NoMemory();
    PyObject *capsule = fine ? PyCapsule_New(s, NAME, forget) : NULL;
    if (!capsule) release(s);
    return capsule;
}

static Search *idle(PyObject *capsule) {
    Search *s = (Search *)PyCapsule_GetPointer(capsule, NAME);
    if (s && s->busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread runs this search");
        return NULL;
    }
    return s;
}

static PyObject *run(PyObject *self, PyObject *args) {
    PyObject *capsule;
    double budget;
    int met, said;
    long long most_work;
    (void)self;
    if (!PyArg_ParseTuple(args, "OdiL", &capsule, &budget, &met, &most_work)) return NULL;
    Search *s = idle(capsule);
    if (!s) return NULL;
    s->budget = budget, s->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    said = search(s, met, (uint64_t)most_work);
    Py_END_ALLOW_THREADS
    s->busy = 0;
    double bound = s->n_heap && said != CLOSED ? s->heap[0].bound : INFINITY;
    /* A node that is closed by an offer is in no heap any more, and open again if the offer is refused. */
    if (said == OFFER && s->offer_closes && s->offer_bound < bound) bound = s->offer_bound;
    if (s->open_bound < bound) bound = s->open_bound;
    return Py_BuildValue("(idLn)", said, bound, (long long)s->looked, (Py_ssize_t)s->n_pool);
}

/* Read a point of the caller's, or write the one that is offered, as numbers and levels. */
static int points(Search *s, Py_buffer *x, Py_buffer *level) {
    if (x->len == 8 * (Py_ssize_t)s->n && level->len == 4 * (Py_ssize_t)s->nc) return 1;
    PyErr_SetString(PyExc_ValueError, "arrays of other sizes");
    return 0;
}

static PyObject *offered(PyObject *self, PyObject *args) {
    PyObject *capsule;
    Py_buffer x, level;
    (void)self;
    if (!PyArg_ParseTuple(args, "Ow*w*", &capsule, &x, &level)) return NULL;
    Search *s = idle(capsule);
    int fine = s && points(s, &x, &level);
    if (fine) {
        memcpy(x.buf, s->offer, (size_t)x.len);
        memcpy(level.buf, s->offer_level, (size_t)level.len);
        if (!s->offer_closes) s->offered = 0;  /* nothing depends on what becomes of it */
    }
    PyBuffer_Release(&x), PyBuffer_Release(&level);
    return fine ? Py_BuildValue("(di)", s->offer_bound, s->offer_closes) : NULL;
}

/* Try a point as a first incumbent: if it is robust, pull it back and offer it. */
static PyObject *tried(PyObject *self, PyObject *args) {
    PyObject *capsule;
    Py_buffer x, level;
    double budget;
    int said = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "Ody*y*", &capsule, &budget, &x, &level)) return NULL;
    Search *s = idle(capsule);
    int fine = s && points(s, &x, &level) && !s->offered;
    if (fine) {
        s->budget = budget, s->busy = 1;
        memcpy(s->trial, x.buf, (size_t)x.len);
        memcpy(s->trial_level, level.buf, (size_t)level.len);
        s->on_the_way = 1, s->stop = s->work + (uint64_t)s->num.first_patience * s->patience;
        Py_BEGIN_ALLOW_THREADS
        if (touched_by(s, s->trial, s->trial_level) == SIZE_MAX && withstands(s, s->trial, s->trial_level, s->root) == SAFE) {
            pull_back(s, s->trial, s->trial_level);
            double cost = total_cost(s, s->trial, s->trial_level);
            if (cost <= s->budget && changes(s, s->trial, s->trial_level) <= s->most) offer(s, s->trial, s->trial_level, cost, 0), said = 1;
        }
        Py_END_ALLOW_THREADS
        s->busy = s->on_the_way = 0;
    }
    PyBuffer_Release(&x), PyBuffer_Release(&level);
    return fine ? PyBool_FromLong(said) : NULL;
}

static PyMethodDef METHODS[] = {
    {"opened", opened, METH_VARARGS, "Return a search of all centres, from the tables of features and constraints, and numbers."},
    {"run", run, METH_VARARGS, "Go on; return how that ended, the bound, the number of nodes, and the number of no-goods."},
    {"offered", offered, METH_VARARGS, "Write the point that is offered into two arrays; return its bound, and whether it closes a node."},
    {"tried", tried, METH_VARARGS, "Offer a point, pulled back, if it is robust; return whether it is."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_balls", "Compiled kernel of the robust search.", 0, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__balls(void) { return PyModuleDef_Init(&MODULE); }
