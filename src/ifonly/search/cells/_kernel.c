/* Compiled kernel of the cell search: branch and bound over boxes of cells, by the rules of splitting.py and grids.py.
 *
 * The NumPy search is the twin of this file and the specification of it: from the same tables both visit the same parts in
 * the same order (tests/search/cells/test_kernel.py compares their trails byte by byte). So sums are added up in the order of
 * NumPy's pairwise summation, and the compiler is told not to fuse or reorder operations.
 *
 * A part is a range of cells per number and a set of levels per category, here as bits. A leaf is kept as a list of the
 * ranges and sets that it asks for: most leaves look at few features. Along the path from the root to the part at hand,
 * each part has a list of the leaves that are open in it, tree by tree, the best ones first. The search goes depth first,
 * so parts and lists are two stacks, and memory is bounded by the depth of the search, and by a limit.
 *
 * It knows no clock and no models. It returns to Python whenever a point is to be offered as incumbent, and after a given
 * number of parts or amount of work: there the deadline and Ctrl-C are looked at. It holds no reference to any
 * Python object while it runs, so the interpreter lock is released.
 *
 * Limited API of Python 3.11: one binary serves every later version.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include "_kernel.h"
#include "_kernel_trail.h"
#include "_kernel_parts.h"
#include "_kernel_reach.h"
#include "_kernel_branching.h"
#include "_prices.h"

/* -- the search ----------------------------------------------------------------------------------------------------- */
static int close_part(Search *s) {
    s->done += s->share;
    return note_leaf(s) ? PAUSED : FULL;
}

static int after_split(Search *s, int said) { return said == 0 ? FULL : said == 2 ? close_part(s) : PAUSED; }

static int divide(Search *s) {
    /* A split where the best leaves are apart; or else beside where they meet. */
    int32_t k = 0, cell = 0, entry = 0;
    int32_t along = apart(s, &k, &cell), among = at_odds(s, &entry);
    if (along >= among && along > 0) return after_split(s, split_number(s, k, cell));
    if (among > 0) return after_split(s, split_entry(s, entry));
    meet(s);
    for (int32_t i = 0; i < s->n_costs; i++)
        if (!(cost_of_meeting(s, &s->costs[i]) <= s->budget)) return after_split(s, split_beside(s, &s->costs[i], REFUSED));
    return OFFER;
}

static int go_on(Search *s, int met) {
    /* After the prices of a part were improved: look at it again, with the steps that are left, or divide it. */
    int32_t left = s->steps - s->prices->at_once;
    if (met == TAKEN || left > 0) {
        if (!push(s, s->share, s->own, 0)) return FULL;
        s->nodes[s->n_nodes - 1].steps = met == TAKEN ? s->steps : left;
        return PAUSED;
    }
    int32_t k = 0, cell = 0, entry = 0;
    int32_t along = priced_apart(s, &k, &cell), among = at_odds(s, &entry) * s->prices->counted;
    if (along >= among && along > 0) return after_split(s, split_number(s, k, cell));
    if (among > 0) return after_split(s, split_entry(s, entry));
    const int32_t *own = s->lists + s->own;
    for (int32_t t = 0; t < s->n_trees; t++) s->best[t] = own[s->n_trees + 1 + own[t]];
    return divide(s);
}

static int next_priced(Search *s) {
    int said = priced(s, s->steps < s->prices->at_once ? s->steps : s->prices->at_once);
    if (said == PRUNED) return close_part(s);
    if (said == NO_ROOM) return FULL;
    if (said != FOUND) return go_on(s, REFUSED);
    meet_at_point(s, s->prices);
    return POINT;
}

static int next_part(Search *s) {
    size_t at = --s->n_nodes;
    s->n_parts++;
    s->work += (uint64_t)s->n_trees;
    s->share = s->nodes[at].share;
    s->list = s->nodes[at].list;
    s->steps = s->nodes[at].steps;
    if (s->prices) s->prices->bound = s->nodes[at].bound, s->prices->record = s->nodes[at].record;
    const int32_t *low = part_low(s, at);
    memcpy(s->low, low, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(s->high, low + s->n_numbers, sizeof(int32_t) * (size_t)s->n_numbers);
    memcpy(s->allowed, part_allowed(s, at), sizeof(uint64_t) * (size_t)s->n_words);
    if (!reduced(s)) return close_part(s);
    compare(s, low, part_allowed(s, at), s->nodes[at].split);
    int said = s->n_goals == 1 ? best_for_one_goal(s) : best_for_goals(s);
    if (said == PRUNED || (said == NO_LEAF && s->prices)) return close_part(s);
    if (said < 0) return said == NO_ROOM ? FULL : BROKEN;
    if (s->sure && reaches_all_over(s)) {
        meet_everywhere(s);
        return OFFER;
    }
    return s->prices ? next_priced(s) : divide(s);
}

static int search(Search *s, int met, int64_t most_parts, uint64_t most_work) {
    int64_t last = s->n_parts + most_parts;
    int said = PAUSED;
    s->work = 0;
    if (s->waiting) {
        said = s->waiting == POINT ? go_on(s, met) : after_split(s, split_after(s, met));
        s->waiting = 0;
    }
    while (said == PAUSED) {
        if (!s->n_nodes) return CLOSED;
        if (s->n_parts >= last || s->work > most_work) return PAUSED;
        said = next_part(s);
    }
    s->waiting = said == OFFER || said == POINT ? said : 0;
    return said == POINT ? OFFER : said;
}

#include "_kernel_tables.h"

/* -- from and to Python --------------------------------------------------------------------------------------------- */
static PyObject *run(PyObject *self, PyObject *args) {
    PyObject *capsule;
    double budget;
    int met, said;
    long long most_parts, most_work;
    (void)self;
    if (!PyArg_ParseTuple(args, "OdiLL", &capsule, &budget, &met, &most_parts, &most_work)) return NULL;
    Search *s = (Search *)PyCapsule_GetPointer(capsule, NAME);
    if (!s) return NULL;
    if (s->busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread runs this search");
        return NULL;
    }
    s->budget = budget;
    s->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    said = search(s, met, most_parts, (uint64_t)most_work);
    Py_END_ALLOW_THREADS
    s->busy = 0;
    PyObject *trail = PyBytes_FromStringAndSize((const char *)s->trail, (Py_ssize_t)s->n_trail);
    s->n_trail = 0;
    /* Out of memory, the part at hand is on no stack any more: nothing is known of it. */
    double bound = s->prices && said != FULL && said != BROKEN ? least_bound(s) : -Py_HUGE_VAL;
    return trail ? Py_BuildValue("(iLddN)", said, (long long)s->n_parts, s->done, bound, trail) : NULL;
}

static PyObject *meeting(PyObject *self, PyObject *args) {
    /* The part that all best leaves have in common, written into three arrays: first cells, last cells, allowed entries. */
    PyObject *capsule;
    Py_buffer low, high, allowed;
    (void)self;
    if (!PyArg_ParseTuple(args, "Ow*w*w*", &capsule, &low, &high, &allowed)) return NULL;
    Search *s = (Search *)PyCapsule_GetPointer(capsule, NAME);
    int fits = s && low.len == 8 * (Py_ssize_t)s->n_numbers && high.len == low.len && allowed.len == s->n_entries;
    if (s && !(fits && s->waiting && !s->busy)) {
        PyErr_SetString(PyExc_ValueError, "no meeting, or arrays of other sizes");
        fits = 0;
    }
    for (int32_t k = 0; fits && k < s->n_numbers; k++) {
        ((int64_t *)low.buf)[k] = s->there_low[k];
        ((int64_t *)high.buf)[k] = s->there_high[k];
    }
    for (int32_t e = 0; fits && e < s->n_entries; e++)
        ((unsigned char *)allowed.buf)[e] = (s->there_allowed[s->entry_word[e]] & s->entry_bit[e]) != 0;
    PyBuffer_Release(&low), PyBuffer_Release(&high), PyBuffer_Release(&allowed);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"opened", opened, METH_VARARGS, "Return a search of the whole grid, from its tables."},
    {"run", run, METH_VARARGS, "Go on; return how that ended, the number of parts, the share that is closed, and the trail."},
    {"meeting", meeting, METH_VARARGS, "Write the part in which all best leaves meet into three arrays."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_kernel", "Compiled kernel of the cell search.", 0, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&MODULE); }
