"""Families and questions that came last: links, composites of networks and lines, thresholds on attained values, wide gaps.

They are drawn for questions from number `LATEST` on, in worlds of their own, so that those before stay what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import ensemble, linear_model, neighbors
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.battery.families import FAMILIES, Family, Rng, either, members, seed_of, single_network

if TYPE_CHECKING:
    from benchmarks.battery.ask import Question

__all__ = ["ALL", "LATEST", "with_latest"]

LATEST = 2_400_000
_GAPS = (0.5, 0.2, 0.05, 1e-3)


def with_latest(rng: Rng, q: Question) -> Question:
    """Return the question, stopped at a wide gap, or as it is."""
    return replace(q, gap=float(rng.choice(_GAPS))) if rng.random() < 0.2 else q


# -- links ---------------------------------------------------------------------------------------------------------------
def _link(rng: Rng, k: int) -> Any:
    del k
    makers: list[Callable[[], Any]] = [
        lambda: linear_model.PoissonRegressor(alpha=0.01, max_iter=500),
        lambda: linear_model.GammaRegressor(alpha=0.01, max_iter=500),
        lambda: linear_model.TweedieRegressor(power=1.5, alpha=0.01, max_iter=500),
    ]
    return either(rng, *makers)()


def _logarithm(rng: Rng, k: int) -> Any:
    del k
    base = either(rng, linear_model.Ridge, lambda: members(rng, 0)[0][1])()
    pair = either(rng, (np.log, np.exp), (np.log1p, np.expm1))
    return TransformedTargetRegressor(base, func=pair[0], inverse_func=pair[1])


# -- composites of continuous members --------------------------------------------------------------------------------
def _calibrated_network(rng: Rng, k: int) -> Any:
    method = either(rng, "sigmoid", "isotonic")
    return CalibratedClassifierCV(single_network(rng, k), method=method, ensemble=bool(rng.random() < 0.4), cv=3)


def _votes_of_networks(rng: Rng, k: int) -> Any:
    parts = [("net", single_network(rng, k)), *members(rng, k)]
    if not k:
        return ensemble.VotingRegressor(parts[:2])
    return ensemble.VotingClassifier(parts[:2], voting=either(rng, "hard", "soft"))


def _bagged_lines(rng: Rng, k: int) -> Any:
    n = int(rng.integers(2, 5))
    if not k:
        return ensemble.BaggingRegressor(linear_model.Ridge(), n_estimators=n, random_state=seed_of(rng))
    base = linear_model.LogisticRegression(max_iter=2000)
    return ensemble.BaggingClassifier(base, n_estimators=n, random_state=seed_of(rng))


def _each_against_the_rest(rng: Rng, k: int) -> Any:
    return OneVsRestClassifier(members(rng, k)[0][1] if rng.random() < 0.5 else single_network(rng, k))


def _boosted_lines(rng: Rng, k: int) -> Any:
    n = int(rng.integers(2, 4))
    if not k:
        return ensemble.AdaBoostRegressor(linear_model.Ridge(), n_estimators=n, random_state=seed_of(rng))
    base = linear_model.LogisticRegression(max_iter=2000)
    return ensemble.AdaBoostClassifier(base, n_estimators=n, random_state=seed_of(rng))


def _neighbours(rng: Rng, k: int) -> Any:
    kind = neighbors.KNeighborsClassifier if k else neighbors.KNeighborsRegressor
    return kind(int(rng.integers(1, 6)), algorithm=either(rng, "auto", "brute", "kd_tree"))


ALL: dict[str, Family] = FAMILIES | {
    f.name: f
    for f in (
        Family("link of a line", _link, (0,), share=1.5, positive=True),
        Family("logarithm of the target", _logarithm, (0,), positive=True),
        Family("calibrated network", _calibrated_network, (2, 3), share=1.5),
        Family("voting network", _votes_of_networks, (0, 2, 3), share=1.5),
        Family("bagged lines", _bagged_lines, (0, 2, 3), share=1.5),
        Family("one against the rest", _each_against_the_rest, (2, 3)),
        Family("boosted lines", _boosted_lines, (0, 2, 3)),
        Family("nearest neighbours", _neighbours, (0, 2, 3)),
    )
}
