"""Category columns as boosters receive them: codes, and ranges of values that count as missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.errors import UnsupportedModel
from ifonly.models.reading.assemble import Below, RawTree
from ifonly.models.reading.source import Column, Source

__all__ = ["coded", "with_hole"]


def coded(source: Source, known: Mapping[int, Sequence[Any]], *, unknown_is_missing: bool = True) -> Source:
    """Return a source whose category columns hold codes: the position of a level in the booster's own list.

    Parameters
    ----------
    source
        What the booster is given: a frame, in which some columns may be of pandas' category type.
    known
        Column -> its categories in the booster's order; a column that is not named keeps the order of its own type.
    unknown_is_missing
        Whether a level that the booster does not know counts as missing; if not, it is an error.
    """
    first = source.evaluate(source.base[None, :])
    if not hasattr(first, "iloc"):
        return source
    categories = {
        c: list(known.get(c, first.dtypes.iloc[c].categories))
        for c in range(first.shape[1])
        if isinstance(first.dtypes.iloc[c], pd.CategoricalDtype)
    }
    columns = [_as_code(c) if k in categories else c for k, c in enumerate(source.columns)]
    places = {c: {level: float(i) for i, level in enumerate(levels)} for c, levels in categories.items()}

    def evaluate(U: FloatArray) -> FloatArray:
        frame = source.evaluate(U)
        out = np.empty(frame.shape)
        for c in range(frame.shape[1]):
            column = frame.iloc[:, c]
            if c in places:
                out[:, c] = [places[c].get(level, np.nan) for level in column]
            else:
                out[:, c] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return out

    inner = replace(source, columns=tuple(columns), evaluate=evaluate)
    if not unknown_is_missing:
        for c in categories:
            _all_known(inner, c)
    return inner


def _as_code(column: Column) -> Column:
    return replace(column, weights=None, why="a category code", labels=False, identity=False, branch=None)


def _all_known(source: Source, c: int) -> None:
    (j,) = source.columns[c].features
    codes = source.at_levels(j, c)
    if np.isnan(codes).any():
        feature = source.schema.features[j]
        level = feature.levels[int(np.argmax(np.isnan(codes)))]  # type: ignore[union-attr]
        raise UnsupportedModel(
            f"{source.where}the model does not know the level {level!r} of {feature.name!r} and would refuse it. Pass "
            "the data with the categories it was trained on."
        )


def with_hole(tree: RawTree, first: float, last: float, before: float, through: float, below: Below) -> RawTree:
    """Return the tree with all values in ``[first, last]`` sent where missing values go.

    ``below(z, before)`` must hold exactly below the hole, ``below(z, through)`` up to and including it. Children are
    shared between nodes, so the result is a tree of paths, not of nodes.
    """
    column, threshold = list(tree.column), list(tree.threshold)
    left, right, missing = list(tree.left), list(tree.right), list(_missing(tree))

    def add(c: int, t: float, yes: int, no: int) -> int:
        for values, value in ((column, c), (threshold, t), (left, yes), (right, no), (missing, False)):
            values.append(value)
        return len(column) - 1

    for i in range(len(tree.column)):
        c, yes, no = int(tree.column[i]), int(tree.left[i]), int(tree.right[i])
        if c < 0 or i in tree.categories:
            continue
        at = below(np.array([first, last]), np.full(2, tree.threshold[i]))
        away = yes if missing[i] else no
        if bool(at[0]) != bool(at[1]):
            threshold[i], right[i] = before, add(c, through, away, no)
        elif bool(at[0]) and not missing[i]:
            left[i] = add(c, before, yes, add(c, through, away, yes))
        elif not bool(at[0]) and missing[i]:
            right[i] = add(c, before, no, add(c, through, away, no))
    extra = np.zeros((len(column) - len(tree.column), tree.value.shape[1]))
    return RawTree(
        np.array(column, dtype=np.int64),
        np.array(threshold, dtype=np.float64),
        np.array(left, dtype=np.int64),
        np.array(right, dtype=np.int64),
        np.concatenate([tree.value, extra]),
        np.array(missing, dtype=np.bool_),
        tree.categories,
    )


def _missing(tree: RawTree) -> Any:
    return np.zeros(len(tree.column), dtype=np.bool_) if tree.missing_left is None else tree.missing_left
