"""The conformance kit for extensions: known answers for a solver, twins for a criterion, a form and a reader.

Each `check_...` raises `AssertionError` with the name of the check that failed and a sentence on what differs; each
`..._checks` yields the named checks one by one, for parametrised tests. None needs pytest.
"""

from __future__ import annotations

from ifonly.testing.criteria import check_criterion, criterion_checks
from ifonly.testing.forms import check_form, form_checks
from ifonly.testing.readers import check_reader, reader_checks
from ifonly.testing.solvers import check_solver, solver_checks

__all__ = [
    "check_criterion",
    "check_form",
    "check_reader",
    "check_solver",
    "criterion_checks",
    "form_checks",
    "reader_checks",
    "solver_checks",
]
