"""What would have had to be different for a model to decide otherwise, and the proof of it.

>>> from ifonly import Explainer, Target
>>> Target("good", probability=0.7).probability
0.7
"""

from __future__ import annotations

import logging

from ifonly.criteria.actionability import Actionability, Implies, LinearRow
from ifonly.criteria.causality import Causality, Cause
from ifonly.criteria.diversity import Diversity
from ifonly.criteria.manifold import Manifold
from ifonly.criteria.proximity import Proximity
from ifonly.criteria.robustness import Robustness
from ifonly.criteria.sparsity import Sparsity
from ifonly.criteria.validity import Target
from ifonly.errors import (
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
    SchemaError,
    SolverError,
    SolverFailed,
    SolverMissing,
    UnsupportedModel,
)
from ifonly.explain import Explainer
from ifonly.result import Certificate, Change, Counterfactual, Explanation, Explanations
from ifonly.schema import Schema

__version__ = "0.1.0"

__all__ = [
    "Actionability",
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
]

logging.getLogger("ifonly").addHandler(logging.NullHandler())
