"""Catalogue for people who extend `ifonly`: every name that a criterion, reader, form, engine or solver of your own needs.

Import from here; the places inside the package may change. ``docs/architecture.md`` has an example of each.

>>> from ifonly.extend import Affine, Criterion, Demand, check_criterion
>>> Criterion.__module__
'ifonly.question.criterion'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ifonly.data.schema import Schema
from ifonly.models.form import Form
from ifonly.models.links import Link
from ifonly.models.read import Model, Read
from ifonly.models.registry import known_readers, reads
from ifonly.models.rules import Rule
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip, MipArrays
from ifonly.program.variables import Variables
from ifonly.question.abilities import Counts, Loosens, Refines, Remains, Shrinks, Tightens, Verifies
from ifonly.question.costs import Costs
from ifonly.question.criterion import ChecksTogether, Couples, Criterion, HasConsequences, Remarks
from ifonly.question.demand import BoxDemand, Demand
from ifonly.question.found import Ended, Found
from ifonly.question.further import Diversifies, Further, Way
from ifonly.question.guidance import Branch, Branches, Proposes, Squeezes, UnionOfBoxes
from ifonly.question.problem import Problem
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.runtime.tuning import Tuning
from ifonly.search.engine import Engine
from ifonly.search.progress import Progress
from ifonly.solvers.backend import Backend, Capability, Limits, Solution, Status

if TYPE_CHECKING:
    from ifonly.models.reading.assemble import RawTree, assemble, float32_at_most, float32_below, float64_at_most
    from ifonly.models.reading.columnwise import column_wise
    from ifonly.models.reading.source import Column, Source
    from ifonly.models.reading.transforms import transforms
    from ifonly.testing import (
        check_criterion,
        check_form,
        check_reader,
        check_solver,
        criterion_checks,
        form_checks,
        reader_checks,
        solver_checks,
    )

__all__ = [
    "Affine",
    "Backend",
    "Box",
    "BoxDemand",
    "Branch",
    "Branches",
    "Capability",
    "Cells",
    "ChecksTogether",
    "Column",
    "Costs",
    "Counts",
    "Couples",
    "Criterion",
    "Demand",
    "Diversifies",
    "Ended",
    "Engine",
    "Form",
    "Found",
    "Further",
    "HasConsequences",
    "Inputs",
    "Limits",
    "Link",
    "Loosens",
    "Mip",
    "MipArrays",
    "Model",
    "Problem",
    "Program",
    "Progress",
    "Proposes",
    "Query",
    "RawTree",
    "Read",
    "Refines",
    "Remains",
    "Remarks",
    "Rule",
    "Schema",
    "Shrinks",
    "Solution",
    "Source",
    "Squeezes",
    "Status",
    "Tightens",
    "Tuning",
    "UnionOfBoxes",
    "Variables",
    "Verifies",
    "Way",
    "assemble",
    "check_criterion",
    "check_form",
    "check_reader",
    "check_solver",
    "column_wise",
    "criterion_checks",
    "float32_at_most",
    "float32_below",
    "float64_at_most",
    "form_checks",
    "known_readers",
    "reader_checks",
    "reads",
    "solver_checks",
    "transforms",
]

# Loaded when they are asked for: `import ifonly` itself needs none of them.
_LATE = {
    "Column": "ifonly.models.reading.source",
    "RawTree": "ifonly.models.reading.assemble",
    "Source": "ifonly.models.reading.source",
    "assemble": "ifonly.models.reading.assemble",
    "check_criterion": "ifonly.testing",
    "check_form": "ifonly.testing",
    "check_reader": "ifonly.testing",
    "check_solver": "ifonly.testing",
    "criterion_checks": "ifonly.testing",
    "column_wise": "ifonly.models.reading.columnwise",
    "form_checks": "ifonly.testing",
    "reader_checks": "ifonly.testing",
    "solver_checks": "ifonly.testing",
    "float32_at_most": "ifonly.models.reading.assemble",
    "float32_below": "ifonly.models.reading.assemble",
    "float64_at_most": "ifonly.models.reading.assemble",
    "transforms": "ifonly.models.reading.transforms",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
