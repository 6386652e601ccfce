"""Criteria of a good counterfactual, one file or folder each; this is the catalogue of those that users write."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if not TYPE_CHECKING:  # to type checkers, what is not above is not there
    __getattr__ = forwarding(__name__)
