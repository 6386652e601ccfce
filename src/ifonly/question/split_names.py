"""Names of the splits of trees: a number for each cut of a tree along a number, the same for whoever reads the model.

A split is a tree, a feature and a place among all cuts of that feature, at which some leaf of the tree begins or ends. They
are counted in the order of tree, feature and place. A trail names splits by these numbers where it has prices of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ifonly.arrays import IntArray
from ifonly.models.forms.leaves import Leaves

__all__ = ["SplitNames", "split_names"]


class SplitNames(NamedTuple):
    """Per split, in the order of their names: the tree, the feature, and the place of its cut."""

    tree: IntArray
    feature: IntArray
    place: IntArray


def split_names(leaves: Leaves) -> SplitNames:
    """Return the splits of all trees."""
    found = [np.empty((3, 0), dtype=np.int64)]
    for j in leaves.features:
        if j not in leaves.cuts:
            continue
        n = len(leaves.cuts[j])
        for ends in (leaves.low_of[j], leaves.high_of[j]):
            inside = np.flatnonzero((ends >= 0) & (ends < n))
            place = ends[inside].astype(np.int64)
            found.append(np.stack([leaves.tree[inside].astype(np.int64), np.full(len(inside), j), place]))
    all_of = np.unique(np.concatenate(found, axis=1), axis=1)
    return SplitNames(*all_of)
