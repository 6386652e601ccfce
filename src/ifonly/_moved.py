"""Deprecated import paths: modules that moved are still found by their old names, with a warning that says the new one.

A finder at the end of `sys.meta_path` answers only for names that nothing else answers for. The old name then *is* the
module at the new place, so classes are the same objects, and pickles and skops files that name an old path still load. Where
single names went another way, or are called something else now, the old module is a stand-in that knows of each.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["GONE", "MOVED", "NAMES", "forwarding", "install"]


def _below(old: str, new: str, names: str) -> dict[str, str]:
    """Return old -> new for modules that kept their names and changed their folder."""
    return {f"{old}.{name}": f"{new}.{name}" for name in names.split()}


MOVED: Mapping[str, str] = {
    **_below("ifonly", "ifonly.data", "features schema tables"),
    **_below("ifonly", "ifonly.program", "box mip scaling shifted variables"),
    **_below("ifonly", "ifonly.question", "problem training"),
    **_below("ifonly", "ifonly.result", "html metrics plots serial text"),
    **_below("ifonly", "ifonly.criteria.robustness", "adversary nogo ranges"),
    **_below("ifonly", "ifonly.search", "blame incumbents reduce several"),
    **_below("ifonly", "ifonly.search.boxes", "affordable"),
    **_below("ifonly", "ifonly.search.cells", "grids splitting"),
    **_below("ifonly", "ifonly.search.linear", "knapsack"),
    **_below("ifonly.criteria", "ifonly.criteria.causality", "acting causes learning mechanism"),
    **_below("ifonly.criteria", "ifonly.question", "crossing feasible outside"),
    **_below("ifonly.models", "ifonly.models.forms", "additive around bends complete compose curves leaf_rows leaves"),
    **_below("ifonly.models", "ifonly.models.forms", "linear median network polynomials propagate scan steps trees"),
    **_below("ifonly.models", "ifonly.models.forms", "units votes"),
    **_below("ifonly.models", "ifonly.models.reading", "assemble codes columnwise graphs outcomes pullback source"),
    **_below("ifonly.models", "ifonly.models.reading", "stepwise transforms"),
    **_below("ifonly.search", "ifonly.search.balls", "cheapest_points moved_nodes"),
    **_below("ifonly.search", "ifonly.search.boxes", "affordable duals exactly neighbours programs"),
    **_below("ifonly.search", "ifonly.search.cells", "branching cost_tables grids improving inside keeping kernel"),
    **_below("ifonly.search", "ifonly.search.cells", "largest leaf_choices pacing single_tree split_prices splitting"),
    **_below("ifonly.search", "ifonly.search.cells", "trades"),
    **_below("ifonly.search", "ifonly.search.inputs", "best_first nearest networks places splits"),
    **_below("ifonly.search", "ifonly.search.linear", "ellipsoid knapsack moves multipliers shaving"),
    "ifonly.batch.fingerprints": "ifonly.record.fingerprints",
    "ifonly.boosters": "ifonly.adapters.boosters",
    "ifonly.deadline": "ifonly.runtime.deadline",
    "ifonly.engine": "ifonly.search.boxes.engine",
    "ifonly.fitted": "ifonly.models.opening",
    "ifonly.hull": "ifonly.criteria.manifold.hull",
    "ifonly.trained": "ifonly.adapters.estimator",
    "ifonly.criteria.demands": "ifonly.criteria.actionability.demands",
    "ifonly.criteria.distinct": "ifonly.criteria.diversity.distinct",
    "ifonly.criteria.hull_branches": "ifonly.criteria.manifold.branches",
    "ifonly.criteria.hull_points": "ifonly.criteria.manifold.points",
    "ifonly.criteria.hull_rows": "ifonly.criteria.manifold.rows",
    "ifonly.criteria.hulls": "ifonly.criteria.manifold.in_hull",
    "ifonly.criteria.isolation": "ifonly.criteria.manifold.isolation",
    "ifonly.criteria.lengths": "ifonly.program.euclidean",
    "ifonly.criteria.stays": "ifonly.criteria.robustness.keeps_lead",
    "ifonly.search.ball_tables": "ifonly.search.balls.tables",
    "ifonly.search.composites.search": "ifonly.search.composites.engine",
    "ifonly.search.linear_balls": "ifonly.search.balls.linear",
    "ifonly.search.network_balls": "ifonly.search.balls.networks",
    "ifonly.search.over_inputs": "ifonly.search.inputs.branching",
    "ifonly.search.spending": "ifonly.search.inputs.nodes",
    "ifonly.solvers.columns": "ifonly.solvers.priced_lp",
    "ifonly.solvers.pricing": "ifonly.solvers.branch_and_price",
}

# Names that are not where their module went, or not under the same name: module -> name -> "its module:its name of today".
NAMES: Mapping[str, Mapping[str, str]] = {
    "ifonly.criteria": {
        "Branch": "ifonly.extend:Branch",
        "Costs": "ifonly.extend:Costs",
        "Criterion": "ifonly.extend:Criterion",
        "Demand": "ifonly.extend:Demand",
        "Query": "ifonly.extend:Query",
        "Relaxation": "ifonly.errors:Relaxation",
        "number": "ifonly.question.words:number",
    },
    "ifonly.criteria.diversity": {"Clustered": "ifonly.question.further:Clustered"},
    "ifonly.criteria.mechanism": {"Follows": "ifonly.criteria.causality.mechanism:CausalEquation"},
    "ifonly.criteria.stays": {"Stays": "ifonly.criteria.robustness.keeps_lead:KeepsLead"},
    "ifonly.engine": {
        "Found": "ifonly.question.found:Found",
        "find": "ifonly.search.progress:find",
        "run": "ifonly.search.boxes.programs:solve_problem",
    },
    "ifonly.models.outcomes": {"shares": "ifonly.models.links:shares"},
    "ifonly.question": {"Question": "ifonly.search.answering:Question"},
    "ifonly.result": {"worst_status": "ifonly.result.values:worst_status"},
    "ifonly.search.cells": {"Splitting": "ifonly.search.cells.splitting:Splitting"},
    "ifonly.search.linear": {
        name: f"ifonly.search.linear.engine:{name}"
        for name in ("Mover", "Row", "goal_row", "jumps_of", "movers_of", "one_linear_row")
    },
    "ifonly.tolerances": {"relative_gap": "ifonly.result.values:relative_gap"},
    "ifonly.variables": {"grid_floor": "ifonly.program.cells:grid_floor"},
}

# Modules of which nothing is left to import, and what does their work.
GONE: Mapping[str, str] = {
    "ifonly.direct": "The searches without a solver are engines now: see Engine and find in ifonly.extend.",
    "ifonly.options": "The options of a call are checked by the methods of the Explainer that take them.",
}

# Where the advice is to import from: a catalogue where there is one, else the module itself.
_CATALOGUES: Mapping[str, str] = {
    "ifonly.adapters.boosters": "ifonly.adapters",
    "ifonly.data.schema": "ifonly.data.schema (Schema itself: ifonly)",
    "ifonly.models.reading.assemble": "ifonly.extend",
    "ifonly.models.reading.transforms": "ifonly.extend",
    "ifonly.program.box": "ifonly.extend",
    "ifonly.program.mip": "ifonly.extend",
    "ifonly.program.variables": "ifonly.extend",
}


class _Alias(Loader):
    """The loader of an old name: it puts the module at the new place into `sys.modules` under the old name, too."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave the placeholder to the import system; `exec_module` replaces it."""

    def exec_module(self, module: ModuleType) -> None:
        """Replace the placeholder by the module itself, and warn whoever asked for the old name.

        Where some of its names went another way, the placeholder stays, and asks for each at its place.
        """
        old = module.__name__
        if old in GONE:
            raise ModuleNotFoundError(f"{old} is gone. {GONE[old]}", name=old)
        new = MOVED[old]
        warnings.warn(
            f"{old} has moved: import from {_CATALOGUES.get(new, new)}. The old name will be removed in ifonly 1.0.",
            DeprecationWarning,
            stacklevel=2,
        )
        there = importlib.import_module(new)
        if old in NAMES:
            vars(module)["__getattr__"] = forwarding(old, there)
        else:
            sys.modules[old] = there


class _Finder(MetaPathFinder):
    """The finder of old names, asked after all others."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - part of the protocol
        target: ModuleType | None = None,  # noqa: ARG002 - part of the protocol
    ) -> ModuleSpec | None:
        """Return the spec of an alias, or None for a name that never moved."""
        return ModuleSpec(fullname, _Alias()) if fullname in MOVED or fullname in GONE else None


def install() -> None:
    """Let old names be found; a second call changes nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def forwarding(module: str, there: ModuleType | None = None) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module some of whose names moved (`NAMES`); the others are `there`, if anywhere."""
    moved = NAMES[module]

    def __getattr__(name: str) -> Any:  # noqa: N807 - a module's own
        if name not in moved and there is not None:
            return getattr(there, name)
        if name not in moved:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, _, new = moved[name].partition(":")
        warnings.warn(
            f"{module}.{name} has moved: import {'it' if new == name else new} from {place}. The old name will be removed "
            "in ifonly 1.0.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(place), new)

    return __getattr__
