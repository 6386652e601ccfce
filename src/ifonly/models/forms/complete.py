"""The form of a model for rows without a missing value, which may be simpler than the one for all rows."""

from __future__ import annotations

from dataclasses import replace

from ifonly.models.form import Form
from ifonly.models.forms.compose import Combination, Mean, Stack, combine, mean, stack
from ifonly.models.forms.curves import Curve, Softmax
from ifonly.models.forms.median import Median
from ifonly.models.forms.steps import Stepped
from ifonly.models.forms.votes import Votes

__all__ = ["complete"]


def complete(form: Form) -> Form:
    """Return the same function of rows without a missing value; linear models that fill gaps are linear again."""
    if isinstance(form, Stepped):
        return form.complete()
    if isinstance(form, Stack):
        return stack(map(complete, form.parts))
    if isinstance(form, Mean):
        return mean([complete(part) for part in form.inner.parts], form.weights)
    if isinstance(form, Combination):
        return combine(complete(form.inner), form.weights, form.constant)
    if isinstance(form, Curve | Softmax | Median):
        return replace(form, inner=complete(form.inner))
    if isinstance(form, Votes):
        return replace(form, read=replace(form.read, form=complete(form.read.form)))
    return form
