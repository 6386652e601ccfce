"""Results: explanations as values, and their faces: text, HTML, JSON, plots and metrics."""

from typing import TYPE_CHECKING

from ifonly._moved import forwarding
from ifonly.result.many import Explanations, Outcome
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation, Status

__all__ = ["Certificate", "Change", "Counterfactual", "Explanation", "Explanations", "Outcome", "Status"]

if not TYPE_CHECKING:  # to type checkers, what is not above is not there
    __getattr__ = forwarding(__name__)
