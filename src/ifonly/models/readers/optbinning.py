"""Readers of optbinning: binned columns as tables over cells and levels, scorecards as sums of such tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ifonly.errors import UnsupportedModel
from ifonly.models.forms.steps import linear_form
from ifonly.models.read import Read
from ifonly.models.reading.source import Column, Source
from ifonly.models.reading.stepwise import Jumps, table_columns
from ifonly.models.reading.transforms import transforms
from ifonly.models.registry import read_estimator, reads

__all__: list[str] = []

_BINNINGS = frozenset({"OptimalBinning", "ContinuousOptimalBinning", "MulticlassOptimalBinning"})


@transforms("optbinning", "BinningProcess")
def binning_process(transformer: Any, source: Source) -> Sequence[Column]:
    """One column per selected variable: its weight of evidence, event rate, mean or bin number."""
    return _binned(transformer, source, transformer.transform)


@reads("optbinning", "Scorecard")
def read_scorecard(scorecard: Any, source: Source) -> Read:
    """The estimator inside, over the binned columns; gaps and special codes by the metrics it was fitted with."""

    def transform(X: Any) -> Any:
        return scorecard._transform(
            X=X, metric=None, metric_special=scorecard._metric_special, metric_missing=scorecard._metric_missing
        )

    columns = _binned(scorecard.binning_process_, source, transform)
    inner = replace(source, columns=tuple(columns), evaluate=lambda U: transform(source.evaluate(U)))
    return read_estimator(scorecard.estimator_, inner.within("estimator"))


@reads("ifonly", "ScorecardPoints")
def read_points(adapter: Any, source: Source) -> Read:
    """The sum of the points of each variable's bin, and the intercept."""
    card = adapter.scorecard
    columns = _binned(card.binning_process_, source, adapter.points)
    inner = replace(source, columns=tuple(columns), evaluate=lambda U: adapter.points(source.evaluate(U)))
    form = linear_form(inner, np.ones((1, len(columns))), float(card.intercept_), "ScorecardPoints")
    return Read(form, piecewise_constant=True, accepts_missing=inner.may_miss(False))


def _binned(process: Any, source: Source, transform: Callable[[Any], Any]) -> list[Column]:
    received = source.evaluate(source.base[None, :])
    place = {name: i for i, name in enumerate(getattr(received, "columns", process.variable_names))}
    names = [str(name) for name in process.get_support(names=True)]
    jumps = {place[name]: _jumps(process.get_binned_variable(name), name, source) for name in names}
    return table_columns(process, source, jumps, names=names, transform=transform)


def _jumps(binned: Any, name: str, source: Source) -> Jumps:
    """Return the edges of the bins, which belong to the bin above, and the special codes, which are points."""
    kind = type(binned).__name__
    if kind not in _BINNINGS:
        raise UnsupportedModel(
            f"{source.where}{kind} of {name!r} is a curve within its bins. Bin it with OptimalBinning or "
            "ContinuousOptimalBinning, which are constant there."
        )
    special = binned.special_codes or ()
    if isinstance(special, dict):
        special = [code for codes in special.values() for code in np.atleast_1d(codes)]
    points = [float(code) for code in special if isinstance(code, (int, float, np.number))]
    if getattr(binned, "dtype", "numerical") == "numerical":
        return Jumps(at=[float(s) for s in binned.splits], points=points)
    known = [level for group in binned.splits for level in np.atleast_1d(group)]
    return Jumps(points=[*points, *(float(level) for level in known if isinstance(level, (int, float, np.number)))])
