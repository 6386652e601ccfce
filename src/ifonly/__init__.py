"""Counterfactual explanations by exact optimisation: the least change for which a model decides otherwise, and its proof.

>>> from ifonly import Explainer, Target
>>> Target("good", probability=0.7).probability
0.7
"""

from __future__ import annotations

import logging

from ifonly import _moved
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
from ifonly.result.many import Explanations
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation
from ifonly.version import __version__

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

_moved.install()
logging.getLogger("ifonly").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    if name == "verify":  # loaded when it is asked for: most programs never check a record
        from ifonly.record import verify  # noqa: PLC0415

        return verify
    raise AttributeError(f"module 'ifonly' has no attribute {name!r}")
