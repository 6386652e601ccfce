/* Compiled kernel of the robust search of networks: branch and bound over centres of balls and over signs of units.
 *
 * A network's rows must not be negative anywhere in a ball around the answer; so they must not be negative at x + d, for any
 * one shift d of the ball. A node is a box of centres x and a list of splits, each of which keeps an affine function of x, the
 * sum of a unit, on one side of a value. In a node
 *
 *   - every unit lies between two ends, by what the budget buys and by the splits, and below a chord or a line that also counts
 *     the cost (_signs_bounds.h); so a row at x + d is bounded from above by a plane over the ways to spend;
 *   - the cheapest point at which all planes are at least 0 is a small linear program (_signs_lp.h). Planes are added where its
 *     point is below one: under the node's shifts, under their mean weighted by the program's multipliers (a shift of the ball
 *     as well, at which lines are lower than the mean of lines), and under the worst shift that is found for the point. The
 *     multipliers bound the node, whatever they are, and rounding is taken off;
 *   - a point that withstands all that is found is offered. Otherwise the node is split where its planes are most loose: at
 *     the value at which a unit changes its sign under the shift that binds, or along a feature.
 *
 * With few units in question, as where a budget is small, few splits are enough however many the features are.
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

#include "_signs.h"
#include "_signs_lp.h"
#include "_signs_nodes.h"
#include "_signs_bounds.h"
#include "_signs_points.h"
#include "_signs_round.h"
#include "_signs_look.h"

#define NAME "ifonly.models.forms._signs.Search"

/* -- branch and bound ------------------------------------------------------------------------------------------------- */
/* Remember in a node what its children begin with: the program's point, and the shifts that bind, then the last ones. */
static void hand_on(Search *s, Node *node) {
    Lp *p = &s->lp;
    memcpy(node->point, s->x, sizeof(double) * (size_t)(s->n + s->n_levels));
    for (int32_t i = 0; i < s->n_nets; i++) {
        Net *net = s->nets + i;
        int32_t *slots = node->slots + i * SLOTS, count = 0;
        double weight[OWN] = {0.0};
        for (int32_t r = 0; r < p->m; r++)
            if (s->planes[r].net == i) weight[s->planes[r].own] += p->y[r];
        for (int32_t slot = 0; slot < SLOTS; slot++) slots[slot] = -1;
        for (; count < SLOTS; count++) {
            int32_t best = -1;
            for (int32_t k = 0; k < net->n_own; k++)
                if (weight[k] > 0.0 && (best < 0 || weight[k] > weight[best])) best = k;
            if (best < 0) break;
            weight[best] = 0.0;
            slots[count] = net->own[best] >= 0 ? net->own[best] : keep_shift(net, net->own_shift + (size_t)best * net->n_in);
        }
        for (int32_t k = net->n_own; k-- && count < SLOTS;) {
            int known = net->own[k] < 0;
            for (int32_t slot = 0; slot < count; slot++) known |= slots[slot] == net->own[k];
            if (!known) slots[count++] = net->own[k];
        }
    }
}

/* Children on both sides of a value of a unit; the side of the program's point comes last, and is dived into. */
static int split_unit(Search *s, Node *node, const Choice *choice, Node *children[3]) {
    Net *net = s->nets + choice->net;
    int32_t u = choice->unit, row = 0, number = -1;
    Split *sides[2];
    const double *shift = recall(s, choice->net, choice->own, &row);
    double at = 0.0, value = net->sum[u];
    if (u < net->block[1]) {
        double low = net->lower[u], high = net->upper[u], wide = high - low;
        value -= net->delta[u];
        /* where the unit changes its sign; where that is next to an end, at the program's point, or in the middle */
        at = -net->delta[u];
        if (!(at > low + s->num.away * wide && at < high - s->num.away * wide)) at = value;
        if (!(at > low + s->num.away * wide && at < high - s->num.away * wide)) at = 0.5 * (low + high);
    } else if ((number = keep_shift(net, shift)) < 0) return 0;
    for (int side = 0; side < 2; side++) {
        children[side] = copied_node(s, node);
        sides[side] = new_split(s, node->splits, choice->net, u);
        if (!children[side] || !sides[side]) return 0;
        sides[side]->shift = number, children[side]->splits = sides[side];
        if ((side == 1) == (value > at)) sides[side]->low = at;
        else sides[side]->high = at;
    }
    return 2;
}

static int split_feature(Search *s, Node *node, const Choice *choice, Node *children[3]) {
    double ends[3][2];
    int32_t k = choice->feature, count = 2;
    if (k < s->n) count = split_number(s, k, s->low[k], s->high[k], choice->at, ends);
    for (int32_t i = 0; i < count; i++)
        if (!(children[i] = copied_node(s, node))) return 0;
    if (k < s->n) {
        for (int32_t i = 0; i < count; i++) children[i]->low[k] = ends[i][0], children[i]->high[k] = ends[i][1];
        return count;
    }
    int32_t c = k - s->n, best = s->cheapest[c], alike = 1;
    for (int32_t e = s->first[c]; e < s->first[c + 1]; e++) alike &= !s->allowed[e] || s->level_cost[e] <= s->level_cost[best];
    for (int32_t e = s->first[c]; alike && e < s->first[c + 1]; e++)
        if (s->allowed[e] && s->x[s->n + e] > s->x[s->n + best]) best = e;
    for (int32_t e = s->first[c]; e < s->first[c + 1]; e++) {
        int cheap = alike ? e == best : s->level_cost[e] <= s->level_cost[best];
        children[0]->allowed[e] = s->allowed[e] && !cheap, children[1]->allowed[e] = s->allowed[e] && cheap;
    }
    return 2;
}

/* Split a node, which is forgotten; one of its children is next while dives take no more than half of the looks. */
static int branch(Search *s, Node *node, double t) {
    Node *children[3] = {NULL, NULL, NULL};
    Choice choice = choose(s, node, t);
    int count = 0;
    if (!(choice.score > 0.0)) {  /* a single point that was refused */
        if (node->bound < s->open_bound) s->open_bound = node->bound;
        drop(s, node);
        return PAUSED;
    }
    memcpy(node->low, s->low, sizeof(double) * (size_t)s->n);
    memcpy(node->high, s->high, sizeof(double) * (size_t)s->n);
    memcpy(node->allowed, s->allowed, (size_t)s->n_levels);
    hand_on(s, node);
    count = choice.unit >= 0 ? split_unit(s, node, &choice, children) : split_feature(s, node, &choice, children);
    if (!count) {
        for (int i = 0; i < 3; i++) drop(s, children[i]);
        if (!push(s, node)) s->open_bound = node->bound < s->open_bound ? node->bound : s->open_bound;
        return FULL;
    }
    drop(s, node);
    for (int i = 0; i < count; i++) {
        if (i == count - 1 && (uint64_t)s->num.dives * s->dived < s->looked) s->diving = children[i], s->dived++;
        else if (!push(s, children[i])) {
            if (children[i]->bound < s->open_bound) s->open_bound = children[i]->bound;
            drop(s, children[i]);
            s->full = 1;
        }
    }
    return s->full ? FULL : PAUSED;
}

/* Look at a node: close it, offer a point of it, or split it. */
static int look(Search *s, Node *node) {
    double bound, t = 0.0;
    s->looked++;
    if (!reduced(s, node)) return drop(s, node), PAUSED;
    find_items(s);
    for (int32_t i = 0; i < s->n_nets; i++)
        if (!find_ends(s, i, node->splits)) return drop(s, node), PAUSED;
    bound = s->axes ? -row_bound(s, node, &s->mean) : bounded(s, node);
    if (bound > node->bound) node->bound = bound;
    if (node->bound > s->budget || node->bound == INFINITY) return drop(s, node), PAUSED;
    for (int32_t i = 0; i < s->n_used; i++) t += s->lp.cost[s->used[i]] * s->lp.value[s->used[i]];
    if (node->tries < s->num.most_tries) {
        double value, *x = s->score;
        memcpy(x, s->x, sizeof(double) * (size_t)s->most_inputs);
        double cost = round_point(s, x, s->trial_level);
        int fine = cost <= s->budget && changes(s, x, s->trial_level) <= s->most && broken_by(s, x, 0, &value) < 0;
        if (fine) {
            /* within rounding of a tie nothing can be said about a point: better one that has a little more */
            if (!propose(s, s->x)) {
                memcpy(x, s->x, sizeof(double) * (size_t)s->most_inputs);
                round_point(s, x, s->trial_level);
                offer(s, x, s->trial_level);
            }
            node->tries++;
            hand_on(s, node);
            s->waiting = node;
            return OFFER;
        }
    }
    int looks = s->looked < (uint64_t)s->num.first_proposals || s->looked % (uint64_t)s->num.propose_every == 0;
    int found = looks && propose(s, s->x), said = branch(s, node, t);
    return said == FULL ? FULL : found ? OFFER : PAUSED;
}

static int search(Search *s, uint64_t most_work) {
    uint64_t end = s->work + most_work;
    if (s->waiting) {
        Node *node = s->waiting;
        s->waiting = NULL;
        if (!push(s, node)) return s->waiting = node, FULL;
    }
    while (s->n_heap || s->diving) {
        Node *node = s->diving;
        s->diving = NULL;
        if (!node) {
            if (s->heap[0]->bound > s->budget) break;
            node = pop(s);
        } else if (node->bound > s->budget) {
            drop(s, node);
            continue;
        }
        int said = look(s, node);
        if (said == OFFER || said == FULL) return said;
        if (s->work >= end) return PAUSED;
    }
    return CLOSED;
}

static double least_bound(const Search *s) {
    double bound = s->n_heap ? s->heap[0]->bound : INFINITY;
    if (s->diving && s->diving->bound < bound) bound = s->diving->bound;
    if (s->waiting && s->waiting->bound < bound) bound = s->waiting->bound;
    return s->open_bound < bound ? s->open_bound : bound;
}

#include "_signs_tables.h"

/* -- Python ----------------------------------------------------------------------------------------------------------- */
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
    int said;
    long long most_work;
    (void)self;
    if (!PyArg_ParseTuple(args, "OdL", &capsule, &budget, &most_work)) return NULL;
    Search *s = idle(capsule);
    if (!s) return NULL;
    s->budget = budget, s->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    said = search(s, (uint64_t)most_work);
    Py_END_ALLOW_THREADS
    s->busy = 0;
    return Py_BuildValue("(idLL)", said, said == CLOSED ? s->open_bound : least_bound(s), (long long)s->looked, (long long)s->programs);
}

static PyObject *offered(PyObject *self, PyObject *args) {
    PyObject *capsule;
    Py_buffer x, level;
    (void)self;
    if (!PyArg_ParseTuple(args, "Ow*w*", &capsule, &x, &level)) return NULL;
    Search *s = idle(capsule);
    int fine = s && x.len == 8 * (Py_ssize_t)s->n && level.len == 4 * (Py_ssize_t)s->n_categories;
    if (fine) memcpy(x.buf, s->offer, (size_t)x.len), memcpy(level.buf, s->offer_level, (size_t)level.len);
    else if (s) PyErr_SetString(PyExc_ValueError, "arrays of other sizes");
    PyBuffer_Release(&x), PyBuffer_Release(&level);
    if (!fine) return NULL;
    Py_RETURN_NONE;
}

/* Learn a shift that broke a point; the node that waits for what becomes of its point is bounded under it next. */
static PyObject *learned(PyObject *self, PyObject *args) {
    PyObject *capsule;
    Py_buffer shift;
    int which;
    (void)self;
    if (!PyArg_ParseTuple(args, "Oiy*", &capsule, &which, &shift)) return NULL;
    Search *s = idle(capsule);
    int fine = s && which >= 0 && which < s->n_nets && shift.len == 8 * (Py_ssize_t)s->nets[which].n_in;
    if (fine) {
        int32_t number = keep_shift(s->nets + which, shift.buf);
        if (s->waiting && number >= 0) s->waiting->slots[which * SLOTS + SLOTS - 1] = number;
    } else if (s) PyErr_SetString(PyExc_ValueError, "a shift of another size");
    PyBuffer_Release(&shift);
    if (!fine) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"opened", opened, METH_VARARGS, "Return a search of all centres, from the tables of features and networks."},
    {"run", run, METH_VARARGS, "Go on; return how that ended, the bound, the number of nodes, and that of programs."},
    {"offered", offered, METH_VARARGS, "Write the point that is offered into two arrays."},
    {"learned", learned, METH_VARARGS, "Learn a shift of a network that broke a point."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_signs", "Compiled kernel of the robust search of networks.", 0, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__signs(void) { return PyModuleDef_Init(&MODULE); }
