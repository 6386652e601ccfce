"""The conformance kit for extensions: known answers for a solver, twins for a criterion, a form and a reader.

Each check raises `AssertionError` with a sentence on what differs; none needs pytest.
"""

from __future__ import annotations

from ifonly.testing.criteria import check_criterion
from ifonly.testing.forms import check_form
from ifonly.testing.readers import check_reader
from ifonly.testing.solvers import check_solver

__all__ = ["check_criterion", "check_form", "check_reader", "check_solver"]
