"""Ways out of a box: the number of features that leave it, as an expression of a program."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine

__all__ = ["apart", "ends", "leaving"]


def ends(box: Box, numbers: Collection[int]) -> Mapping[int, FloatArray]:
    """Return numeric feature -> the cuts below and at which a point leaves a box by it."""
    return {j: np.array([np.nextafter(box.lower[j], -np.inf), box.upper[j]]) for j in numbers}


def leaving(x: Inputs, box: Box, numbers: Collection[int], levels: Collection[int]) -> Affine:
    """Return ``sum_j [x_j < low_j] + [x_j > high_j] + sum_j [level of j not held]``, over some features of a box."""
    terms = []
    for j in numbers:
        terms.append(x.at_most(j, float(np.nextafter(box.lower[j], -np.inf))))
        terms.append(1.0 - x.at_most(j, float(box.upper[j])))
    terms += [x.level_in(j, ~box.allowed[box.schema.slice(j)]) for j in levels]
    return Affine.total(terms)


def apart(box: Box, features: Collection[int]) -> tuple[list[int], list[int]]:
    """Return which of some features are numbers and which have levels, in order; none that is missing in the box."""
    there = [j for j in sorted(features) if not box.missing[j]]
    numbers = [j for j in there if isinstance(box.schema.features[j], Numeric)]
    return numbers, [j for j in there if j not in numbers]
