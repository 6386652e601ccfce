"""Results: explanations as values, and their faces: text, HTML, JSON, plots and metrics."""

from ifonly.result.many import Explanations, Outcome
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation, Status

__all__ = ["Certificate", "Change", "Counterfactual", "Explanation", "Explanations", "Outcome", "Status"]
