"""Checks of the options of a call: each slip is refused at once, with one sentence that says what to write instead."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from ifonly.errors import CriterionError

__all__ = ["FOREVER", "check_options", "check_surrogate", "check_workers"]

FOREVER = 1e9  # seconds that stand for no time limit: SCIP refuses infinity


def _is_number(value: Any, kind: type[Real | Integral]) -> bool:
    return isinstance(value, kind) and not isinstance(value, (bool, np.bool_))


def check_options(n: Any, time_limit: Any, gap: Any, proof: Any = False) -> None:
    """Refuse a slip in the options that every call has."""
    check_count(n)
    check_seconds(time_limit)
    check_gap(gap)
    check_proof(proof)


def check_proof(proof: Any) -> None:
    """Refuse a wish for a proof that there is not."""
    if isinstance(proof, bool):
        return
    if proof != "exact":
        raise CriterionError(f"'proof' must be True, False or 'exact', got {proof!r}. Write e.g. proof=True.")
    from ifonly.solvers.exact import need_exact  # noqa: PLC0415 - loaded when it is asked for

    need_exact()


def check_count(n: Any) -> None:
    """Refuse a number of answers that is not a whole number of at least 1."""
    if not _is_number(n, Integral) or n < 1:
        raise CriterionError(f"'n' must be a whole number of at least 1, got {n!r}. Write e.g. n=3 for three answers.")


def check_seconds(time_limit: Any) -> None:
    """Refuse a time limit that is not a positive number."""
    if not _is_number(time_limit, Real) or not time_limit > 0:
        raise CriterionError(
            f"'time_limit' must be a positive number of seconds, got {time_limit!r}. Write e.g. time_limit=30, or "
            "float('inf') for no limit."
        )


def check_gap(gap: Any) -> None:
    """Refuse a gap that is not a share."""
    if not _is_number(gap, Real) or not 0 <= gap < 1:
        raise CriterionError(
            f"'gap' must be a share of the cost, at least 0 and below 1, got {gap!r}. Write e.g. gap=0.05 to stop within "
            "5% of the best."
        )


def check_workers(n_jobs: Any) -> None:
    """Refuse a number of workers that is neither a whole number other than 0 nor None."""
    if n_jobs is not None and (not _is_number(n_jobs, Integral) or n_jobs == 0):
        raise CriterionError(
            f"'n_jobs' must be a whole number of workers other than 0, got {n_jobs!r}. Write e.g. n_jobs=2, or -1 for one "
            "per core."
        )


def check_surrogate(surrogate: Any) -> None:
    """Refuse a surrogate that is neither None nor "auto"."""
    if surrogate is not None and not (isinstance(surrogate, str) and surrogate == "auto"):
        raise CriterionError(
            f"'surrogate' must be None or 'auto', got {surrogate!r}. With 'auto', a model that cannot be read is observed."
        )
