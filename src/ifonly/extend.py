"""Catalogue for people who extend `ifonly`: every name that a criterion, reader, form, engine or solver of your own needs.

Import from here; the places inside the package may change. ``docs/architecture.md`` has an example of each.

>>> from ifonly.extend import Affine, Criterion, Demand, check_criterion
>>> Criterion.__module__
'ifonly.question.criterion'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ifonly.data.features import Binary, Categorical, Feature, Integer, Numeric, Ordinal
from ifonly.data.schema import Schema
from ifonly.errors import CriterionError, Relaxation, UnsupportedModel
from ifonly.events import Built, Finished, Incumbent, OnEvent
from ifonly.models.abilities import (
    AddsExactly,
    AddsInFloats,
    Bounded,
    BoundsInside,
    BoundsScores,
    Composite,
    Ensemble,
    HardVote,
    HasNodes,
    HasPlateaus,
    HasSchema,
    KeepsFromTies,
    Layered,
    LinearScores,
    NearestRows,
    Relaxed,
    Resolves,
    Spaced,
    SumsLeaves,
    SumsTerms,
    WeightedSum,
)
from ifonly.models.form import Form
from ifonly.models.forms.leaves import Leaves
from ifonly.models.forms.nodes import Addition, Nodes
from ifonly.models.forms.propagate import Block, Budget
from ifonly.models.links import Link
from ifonly.models.read import Model, Read
from ifonly.models.registry import known_readers, reads
from ifonly.models.rules import Decision, Rule
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Convex, Mip, MipArrays, Square
from ifonly.program.variables import Variables
from ifonly.question.abilities import Counts, Loosens, Refines, Remains, Shrinks, Tightens, Verifies
from ifonly.question.costs import Costs, CostTable
from ifonly.question.criterion import ChecksTogether, Couples, Criterion, HasConsequences, Remarks, Tabulates
from ifonly.question.curves import CostCurve
from ifonly.question.demand import BoxDemand, Demand
from ifonly.question.found import Ended, Found
from ifonly.question.further import Clustered, Diversifies, Further, Way
from ifonly.question.goal import Goal, Row
from ifonly.question.guidance import Branch, Branches, KeepsDistance, Proposes, Squeezes, UnionOfBoxes
from ifonly.question.problem import Problem
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.separation import Separation
from ifonly.question.statement import Statement
from ifonly.question.training import Training
from ifonly.question.wrapping import Embeds, Enclosed, Encloses, Ranges, Search, Sought, Wraps
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import Tuning
from ifonly.search.engine import OnlyWith
from ifonly.search.progress import Engine, Progress, find
from ifonly.solvers.backend import Backend, Capability, Limits, Solution, Status

if TYPE_CHECKING:
    from ifonly.models.forms.linear import Linear
    from ifonly.models.forms.network import Graph, Network, Signal
    from ifonly.models.forms.steps import Lift, linear_form
    from ifonly.models.reading.assemble import RawTree, assemble, float32_at_most, float32_below, float64_at_most
    from ifonly.models.reading.columnwise import column_wise
    from ifonly.models.reading.on_grids import on_grids
    from ifonly.models.reading.source import Column, Source
    from ifonly.models.reading.transforms import transforms
    from ifonly.search.engines import ENGINES
    from ifonly.solvers.registry import find_solver
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
    "ENGINES",
    "Addition",
    "AddsExactly",
    "AddsInFloats",
    "Affine",
    "Backend",
    "Binary",
    "Block",
    "Bounded",
    "BoundsInside",
    "BoundsScores",
    "Box",
    "BoxDemand",
    "Branch",
    "Branches",
    "Budget",
    "Built",
    "Capability",
    "Categorical",
    "Cells",
    "ChecksTogether",
    "Clustered",
    "Column",
    "Composite",
    "Convex",
    "CostCurve",
    "CostTable",
    "Costs",
    "Counts",
    "Couples",
    "Criterion",
    "CriterionError",
    "Deadline",
    "Decision",
    "Demand",
    "Diversifies",
    "Embeds",
    "Enclosed",
    "Encloses",
    "Ended",
    "Engine",
    "Ensemble",
    "Feature",
    "Finished",
    "Form",
    "Found",
    "Further",
    "Goal",
    "Graph",
    "HardVote",
    "HasConsequences",
    "HasNodes",
    "HasPlateaus",
    "HasSchema",
    "Incumbent",
    "Inputs",
    "Integer",
    "KeepsDistance",
    "KeepsFromTies",
    "Layered",
    "Leaves",
    "Lift",
    "Limits",
    "Linear",
    "LinearScores",
    "Link",
    "Loosens",
    "Mip",
    "MipArrays",
    "Model",
    "NearestRows",
    "Network",
    "Nodes",
    "Numeric",
    "OnEvent",
    "OnlyWith",
    "Ordinal",
    "Problem",
    "Program",
    "Progress",
    "Proposes",
    "Query",
    "Ranges",
    "RawTree",
    "Read",
    "Refines",
    "Relaxation",
    "Relaxed",
    "Remains",
    "Remarks",
    "Resolves",
    "Row",
    "Rule",
    "Schema",
    "Search",
    "Separation",
    "Shrinks",
    "Signal",
    "Solution",
    "Sought",
    "Source",
    "Spaced",
    "Square",
    "Squeezes",
    "Statement",
    "Status",
    "SumsLeaves",
    "SumsTerms",
    "Tabulates",
    "Tightens",
    "Training",
    "Tuning",
    "UnionOfBoxes",
    "UnsupportedModel",
    "Variables",
    "Verifies",
    "Way",
    "WeightedSum",
    "Wraps",
    "assemble",
    "check_criterion",
    "check_form",
    "check_reader",
    "check_solver",
    "column_wise",
    "criterion_checks",
    "find",
    "find_solver",
    "float32_at_most",
    "float32_below",
    "float64_at_most",
    "form_checks",
    "known_readers",
    "linear_form",
    "on_grids",
    "reader_checks",
    "reads",
    "solver_checks",
    "transforms",
]

# Loaded when they are asked for: `import ifonly` itself needs none of them.
_LATE = {
    "ENGINES": "ifonly.search.engines",
    "Column": "ifonly.models.reading.source",
    "Graph": "ifonly.models.forms.network",
    "Lift": "ifonly.models.forms.steps",
    "Linear": "ifonly.models.forms.linear",
    "Network": "ifonly.models.forms.network",
    "RawTree": "ifonly.models.reading.assemble",
    "Signal": "ifonly.models.forms.network",
    "Source": "ifonly.models.reading.source",
    "assemble": "ifonly.models.reading.assemble",
    "check_criterion": "ifonly.testing",
    "check_form": "ifonly.testing",
    "check_reader": "ifonly.testing",
    "check_solver": "ifonly.testing",
    "criterion_checks": "ifonly.testing",
    "column_wise": "ifonly.models.reading.columnwise",
    "find_solver": "ifonly.solvers.registry",
    "form_checks": "ifonly.testing",
    "linear_form": "ifonly.models.forms.steps",
    "on_grids": "ifonly.models.reading.on_grids",
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
