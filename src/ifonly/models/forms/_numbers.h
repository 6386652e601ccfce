/* Numbers of the compiled kernels of balls, handed over by name: tolerances and tuned numbers have one home, in Python.
 * See _signs.c, and _balls.c in search. */
#include <stddef.h>

typedef struct {
    const char *name;
    size_t at;  /* where it is in a struct of them */
    int whole;  /* an int32_t; else a double */
} Number;

#define DOUBLE(type, name) {#name, offsetof(type, name), 0}
#define COUNT(type, name) {#name, offsetof(type, name), 1}

/* Fill a struct from a mapping; 0, with an error, where a number is missing, or one has no place. */
static int read_numbers(PyObject *given, const Number *numbers, size_t count, void *out) {
    if (PyMapping_Size(given) != (Py_ssize_t)count) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "numbers that the kernel does not know");
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        PyObject *value = PyMapping_GetItemString(given, numbers[i].name);
        char *to = (char *)out + numbers[i].at;
        if (!value) return 0;
        if (numbers[i].whole) {  /* as many times as an int32_t can count is as good as always */
            long long number = PyLong_AsLongLong(value);
            *(int32_t *)to = number > INT32_MAX ? INT32_MAX : (int32_t)number;
        } else {
            *(double *)to = PyFloat_AsDouble(value);
        }
        Py_DECREF(value);
        if (PyErr_Occurred()) return 0;
    }
    return 1;
}
