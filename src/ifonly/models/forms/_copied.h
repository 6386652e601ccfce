/* Tables of the compiled kernels of balls, copied from Python. See _signs.c, and _balls.c in search. */
/* Copy one table of a list; NULL, with an error, where its size is not what it should be (any size: -1). */
static void *copied(PyObject *tables, Py_ssize_t which, size_t item, long long count, size_t *found) {
    PyObject *table = PySequence_GetItem(tables, which);
    Py_buffer view;
    void *out = NULL;
    if (!table) return NULL;
    if (PyObject_GetBuffer(table, &view, PyBUF_C_CONTIGUOUS) == 0) {
        size_t n = (size_t)view.len / item;
        if ((count >= 0 && n != (size_t)count) || n > (size_t)INT32_MAX / 4) PyErr_SetString(PyExc_ValueError, "a table of another size");
        else if (!(out = calloc(n + 1, item))) PyErr_NoMemory();
        else memcpy(out, view.buf, n * item);
        if (found) *found = n;
        PyBuffer_Release(&view);
    }
    Py_DECREF(table);
    return out;
}
