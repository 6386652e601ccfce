"""The leaf-big-M formulation of trees, as OptiCL and the paper's own code state it, on HiGHS with default options.

One binary ``z[l]`` per leaf, one leaf per tree, and one row per leaf and split on its path:

    x_j <= c + M (1 - z[l])      where the path goes left at ``x_j <= c``
    x_j >= c' - M (1 - z[l])     where it goes right, c' the least value beyond c

A bound-tight M per row replaces the constant of the original, which makes the formulation stronger than published.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.peers.encoding import Encoding, FloatArray
from ifonly.arrays import IntArray
from ifonly.extend import Affine, Mip, MipArrays

__all__ = ["LeafBigM", "Solved"]

# In units of a feature's range, and of a score: what strictness costs under the solver's tolerances.
_STEP = 1e-6
_MARGIN = 1e-6


@dataclass(frozen=True, eq=False)
class _Tree:
    """One tree on matrix columns; `gain` is what a leaf adds to the wanted class over the other."""

    feature: IntArray
    cut: FloatArray
    left: IntArray
    right: IntArray
    gain: FloatArray


@dataclass(frozen=True, eq=False)
class Solved:
    """The outcome: a matrix row if there is one, and what is proven."""

    row: FloatArray | None
    proven: bool
    bound: float
    status: str


@dataclass(frozen=True, eq=False)
class _Paths:
    """Every split on the path of every leaf: which leaf, which column, on which side, and where."""

    leaf: IntArray
    column: IntArray
    goes_left: npt.NDArray[np.bool_]
    cut: FloatArray
    tree_of_leaf: IntArray
    gain_of_leaf: FloatArray


class LeafBigM:
    """The formulation for one model, built anew for each factual."""

    def __init__(self, estimator: Any, encoding: Encoding, want: int, kind: str) -> None:
        self.encoding = encoding
        self.strict_left = kind == "xgboost"
        trees, base = _read(estimator, want, kind)
        self.paths = _paths(trees)
        # predict gives a tie to the first class, except for scikit-learn's boosting, which gives it to the second.
        ties_are_ours = want == (1 if kind == "boosting" else 0)
        self.needed = (0.0 if ties_are_ours else _MARGIN) - base

    def explain(self, row: FloatArray, seconds: float) -> Solved:
        """Build and solve for one factual."""
        mip, x = self._build(row)
        return _solve(mip.arrays(), x, self.encoding, seconds)

    def _build(self, row: FloatArray) -> tuple[Mip, IntArray]:
        mip = Mip()
        x = np.empty(self.encoding.width, dtype=np.int64)
        for field in self.encoding.fields:
            columns, hat = list(field.columns), row[list(field.columns)]
            if field.kind == "category":
                x[columns] = mip.columns(len(columns), integer=True, name=field.name)
                mip.row(Affine(x[columns], np.ones(len(columns))), 1.0, 1.0)
                kept = int(x[columns[int(hat.argmax())]])
                mip.minimise(Affine.of(kept, -1.0, 1.0))
                continue
            low, high = min(field.low, hat[0]), max(field.high, hat[0])
            x[columns] = mip.columns(1, low, high, integer=field.kind == "integer", name=field.name)
            value = Affine.of(int(x[columns[0]]))
            far = mip.column(0.0, high - low, name=f"{field.name} moves")
            mip.row(far - value, lower=-float(hat[0]))
            mip.row(far + value, lower=float(hat[0]))
            mip.minimise(far * (1.0 / field.span))
        self._add_trees(mip, x)
        return mip, x

    def _add_trees(self, mip: Mip, x: IntArray) -> None:
        p = self.paths
        z = mip.columns(len(p.tree_of_leaf), integer=True, name="leaf")
        ones = np.ones(len(z))
        mip.rows(p.tree_of_leaf, z, ones, 1.0, 1.0, int(p.tree_of_leaf.max()) + 1)
        mip.row(Affine(z, p.gain_of_leaf), lower=self.needed)
        lower, upper = mip.column_bounds(x[p.column])
        at_most, at_least = self._sides()
        rows = np.arange(len(p.leaf))
        big = np.where(p.goes_left, upper - at_most, at_least - lower)
        big = np.maximum(big, 0.0)
        # Left: x + M z <= at_most + M. Right: x - M z >= at_least - M.
        sign = np.where(p.goes_left, 1.0, -1.0)
        mip.rows(
            np.concatenate([rows, rows]),
            np.concatenate([x[p.column], z[p.leaf]]),
            np.concatenate([np.ones(len(rows)), sign * big]),
            np.where(p.goes_left, -np.inf, at_least - big),
            np.where(p.goes_left, at_most + big, np.inf),
            len(rows),
        )

    def _sides(self) -> tuple[FloatArray, FloatArray]:
        """Return the highest value on the left and the least on the right of each split."""
        p = self.paths
        at_most, at_least = p.cut.copy(), p.cut.copy()
        for field in self.encoding.fields:
            at = np.isin(p.column, field.columns)
            cut = p.cut[at]
            if field.kind == "number":
                step = _STEP * field.span
                at_most[at], at_least[at] = (cut - step, cut) if self.strict_left else (cut, cut + step)
            else:
                at_most[at] = np.ceil(cut) - 1 if self.strict_left else np.floor(cut)
                at_least[at] = at_most[at] + 1
        return at_most, at_least


# -- reading trees ---------------------------------------------------------------------------------------------------
def _read(estimator: Any, want: int, kind: str) -> tuple[list[_Tree], float]:
    """Return the trees and the score they start from, both as wanted minus other."""
    sign = 1.0 if want == 1 else -1.0
    if kind == "xgboost":
        return _read_xgboost(estimator, sign)
    if kind == "boosting":
        start = float(np.ravel(estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_))))[0])
        rate = sign * estimator.learning_rate
        return [
            _sklearn_tree(e.tree_, rate * e.tree_.value[:, 0, 0]) for e in estimator.estimators_[:, 0]
        ], sign * start
    members = [estimator] if kind == "tree" else estimator.estimators_
    trees = []
    for tree in (m.tree_ for m in members):
        share = tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True)
        trees.append(_sklearn_tree(tree, sign * (share[:, 1] - share[:, 0])))
    return trees, 0.0


def _sklearn_tree(tree: Any, gain: FloatArray) -> _Tree:
    return _Tree(
        tree.feature.astype(np.int64),
        tree.threshold.astype(np.float64),
        tree.children_left.astype(np.int64),
        tree.children_right.astype(np.int64),
        gain,
    )


def _read_xgboost(model: Any, sign: float) -> tuple[list[_Tree], float]:
    learner = json.loads(model.get_booster().save_raw("json"))["learner"]
    share = float(np.ravel(json.loads(str(learner["learner_model_param"]["base_score"])))[0])
    trees = []
    for tree in learner["gradient_booster"]["model"]["trees"]:
        left = np.array(tree["left_children"], dtype=np.int64)
        # The condition of a leaf is its value.
        condition = np.array(tree["split_conditions"], dtype=np.float64)
        right = np.array(tree["right_children"], dtype=np.int64)
        trees.append(_Tree(np.array(tree["split_indices"], dtype=np.int64), condition, left, right, sign * condition))
    return trees, sign * float(np.log(share / (1.0 - share)))


def _paths(trees: list[_Tree]) -> _Paths:
    leaf: list[int] = []
    splits: list[tuple[int, bool, float]] = []
    owner: list[int] = []
    gain: list[float] = []
    for t, tree in enumerate(trees):
        stack: list[tuple[int, tuple[tuple[int, bool, float], ...]]] = [(0, ())]
        while stack:
            node, path = stack.pop()
            if tree.left[node] < 0:
                leaf += [len(owner)] * len(path)
                splits += path
                owner.append(t)
                gain.append(float(tree.gain[node]))
                continue
            column, cut = int(tree.feature[node]), float(tree.cut[node])
            stack.append((int(tree.left[node]), (*path, (column, True, cut))))
            stack.append((int(tree.right[node]), (*path, (column, False, cut))))
    return _Paths(
        np.array(leaf, dtype=np.int64),
        np.array([s[0] for s in splits], dtype=np.int64),
        np.array([s[1] for s in splits], dtype=np.bool_),
        np.array([s[2] for s in splits], dtype=np.float64),
        np.array(owner, dtype=np.int64),
        np.array(gain),
    )


# -- solving ---------------------------------------------------------------------------------------------------------
def _solve(program: MipArrays, x: IntArray, encoding: Encoding, seconds: float) -> Solved:
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.n_columns, program.n_rows
    lp.col_cost_, lp.offset_ = program.cost, program.offset
    lp.col_lower_, lp.col_upper_ = program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = program.n_columns, program.n_rows
    lp.a_matrix_.start_ = program.matrix.indptr
    lp.a_matrix_.index_ = program.matrix.indices
    lp.a_matrix_.value_ = program.matrix.data
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[int(i)] for i in program.integer]
    highs: Any = highspy.Highs()
    for option, value in {"output_flag": False, "threads": 1, "time_limit": float(seconds)}.items():
        highs.setOptionValue(option, value)
    highs.passModel(lp)
    highs.run()
    status, info = highs.getModelStatus(), highs.getInfo()
    bound = float(info.mip_dual_bound)
    proven = status == highspy.HighsModelStatus.kOptimal
    if info.primal_solution_status != 2:
        infeasible = status == highspy.HighsModelStatus.kInfeasible
        return Solved(None, infeasible, bound, "infeasible" if infeasible else "out of time")
    row = np.array(highs.getSolution().col_value)[x]
    for field in encoding.fields:
        if field.kind != "number":
            row[list(field.columns)] = np.round(row[list(field.columns)])
    return Solved(row, proven, bound, "found")
