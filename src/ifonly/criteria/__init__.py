"""Criteria of a good counterfactual, one file or folder each; this is the catalogue of those that users write."""

from __future__ import annotations

from ifonly._moved import forwarding
from ifonly.criteria.actionability.criterion import Actionability, Implies, LinearRow
from ifonly.criteria.causality.criterion import Causality, Cause
from ifonly.criteria.diversity.criterion import Diversity
from ifonly.criteria.manifold.criterion import Manifold
from ifonly.criteria.proximity import Proximity
from ifonly.criteria.robustness.criterion import Robustness
from ifonly.criteria.sparsity import Sparsity
from ifonly.criteria.validity import Target

__all__ = [
    "Actionability",
    "Causality",
    "Cause",
    "Diversity",
    "Implies",
    "LinearRow",
    "Manifold",
    "Proximity",
    "Robustness",
    "Sparsity",
    "Target",
]

__getattr__ = forwarding(
    __name__,
    {
        "Branch": "ifonly.question.demand",
        "Costs": "ifonly.extend",
        "Criterion": "ifonly.extend",
        "Demand": "ifonly.extend",
        "Query": "ifonly.extend",
        "Relaxation": "ifonly.errors",
        "number": "ifonly.question.words",
    },
)
