"""Counterfactual explanations by exact optimisation: the least change for which a model decides otherwise, and its proof.

>>> from ifonly import Explainer, Target
>>> Target("good", probability=0.7).probability
0.7
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from ifonly import _moved
from ifonly.version import __version__

if TYPE_CHECKING:
    from ifonly.criteria.actionability.criterion import Actionability, Implies, LinearRow
    from ifonly.criteria.causality.criterion import Causality, Cause
    from ifonly.criteria.diversity.criterion import Diversity
    from ifonly.criteria.manifold.criterion import Manifold
    from ifonly.criteria.proximity import Proximity
    from ifonly.criteria.robustness.criterion import Robustness
    from ifonly.criteria.sparsity import Sparsity
    from ifonly.criteria.validity import Target
    from ifonly.data.schema import Schema
    from ifonly.errors import (
        BatchFailed,
        CriterionError,
        FactualViolatesDemand,
        IfOnlyError,
        IfOnlyWarning,
        Infeasible,
        NoCounterfactual,
        NotProvenOptimal,
        NotVerified,
        OutOfTime,
        OutsideTrainingRange,
        PlanError,
        SchemaError,
        SolverError,
        SolverFailed,
        SolverMissing,
        UnsupportedModel,
    )
    from ifonly.explain import Explainer
    from ifonly.record import verify
    from ifonly.result.many import Explanations
    from ifonly.result.values import Certificate, Change, Counterfactual, Explanation

__all__ = [
    "Actionability",
    "BatchFailed",
    "Causality",
    "Cause",
    "Certificate",
    "Change",
    "Counterfactual",
    "CriterionError",
    "Diversity",
    "Explainer",
    "Explanation",
    "Explanations",
    "FactualViolatesDemand",
    "IfOnlyError",
    "IfOnlyWarning",
    "Implies",
    "Infeasible",
    "LinearRow",
    "Manifold",
    "NoCounterfactual",
    "NotProvenOptimal",
    "NotVerified",
    "OutOfTime",
    "OutsideTrainingRange",
    "PlanError",
    "Proximity",
    "Robustness",
    "Schema",
    "SchemaError",
    "SolverError",
    "SolverFailed",
    "SolverMissing",
    "Sparsity",
    "Target",
    "UnsupportedModel",
    "__version__",
    "verify",
]

# Where a name lives. Loaded when it is asked for, so that `ifonly --help` does not wait for NumPy and pandas.
_PLACES = {
    "ifonly.criteria.actionability.criterion": "Actionability Implies LinearRow",
    "ifonly.criteria.causality.criterion": "Causality Cause",
    "ifonly.criteria.diversity.criterion": "Diversity",
    "ifonly.criteria.manifold.criterion": "Manifold",
    "ifonly.criteria.proximity": "Proximity",
    "ifonly.criteria.robustness.criterion": "Robustness",
    "ifonly.criteria.sparsity": "Sparsity",
    "ifonly.criteria.validity": "Target",
    "ifonly.data.schema": "Schema",
    "ifonly.errors": (
        "BatchFailed CriterionError FactualViolatesDemand IfOnlyError IfOnlyWarning Infeasible "
        "NoCounterfactual NotProvenOptimal NotVerified OutOfTime OutsideTrainingRange PlanError "
        "SchemaError SolverError SolverFailed SolverMissing UnsupportedModel "
    ),
    "ifonly.explain": "Explainer",
    "ifonly.result.many": "Explanations",
    "ifonly.result.values": "Certificate Change Counterfactual Explanation",
    "ifonly.record": "verify",
}
_HOME = {name: place for place, names in _PLACES.items() for name in names.split()}
# Packages that were attributes of this one from the start.
_PACKAGES = (
    *("criteria", "data", "errors", "events", "explain", "models", "program", "question", "result"),
    *("runtime", "search", "solvers", "tolerances"),
)

_moved.install()
logging.getLogger("ifonly").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
        return value
    if name in _PACKAGES:
        return importlib.import_module(f"ifonly.{name}")
    raise AttributeError(f"module 'ifonly' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
