"""Portions of parameters: the plain run asks some of many of a kind, and `-m slow` the rest."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["diagonals", "one_in"]


def one_in(every: int, values: Iterable[Any]) -> list[Any]:
    """Return parameters of which the first of every so many is asked in the plain run; the others are marked slow."""
    return [v if i % every == 0 else pytest.param(v, marks=pytest.mark.slow) for i, v in enumerate(values)]


def diagonals(every: int, *lists: Iterable[Any]) -> list[Any]:
    """Return all combinations of values, of which those on one in so many diagonals are asked in the plain run.

    The plain run thus asks values of every list, in few of their combinations; the others are marked slow.
    """
    return [
        pytest.param(*(v for _, v in numbered), marks=pytest.mark.slow if sum(i for i, _ in numbered) % every else ())
        for numbered in itertools.product(*(enumerate(values) for values in lists))
    ]
