"""Models of the hard regime, beside those of the speed benchmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "calibrated_forest",
    "catboost",
    "default_forest",
    "extra_trees",
    "histgb",
    "lightgbm",
    "soft_voting",
    "wide_logistic",
    "xgboost",
]


def default_forest(trees: int = 100) -> Callable[[], Any]:
    """A random forest without a limit of depth."""

    def make() -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(trees, random_state=0)

    return make


def extra_trees(trees: int, depth: int) -> Callable[[], Any]:
    """Extremely randomised trees."""

    def make() -> Any:
        from sklearn.ensemble import ExtraTreesClassifier

        return ExtraTreesClassifier(trees, max_depth=depth, random_state=0)

    return make


def xgboost(trees: int, depth: int) -> Callable[[], Any]:
    """XGBoost on one thread."""

    def make() -> Any:
        import xgboost

        return xgboost.XGBClassifier(n_estimators=trees, max_depth=depth, random_state=0, n_jobs=1)

    return make


def histgb(rounds: int) -> Callable[[], Any]:
    """Boosting over histograms, as scikit-learn does it, without early stopping."""

    def make() -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False, random_state=0)

    return make


def catboost() -> Any:
    """CatBoost as it comes: 1,000 symmetric trees of depth 6."""
    from catboost import CatBoostClassifier

    return CatBoostClassifier(random_seed=0, verbose=False, allow_writing_files=False, thread_count=1)


def lightgbm() -> Any:
    """LightGBM as it comes, on one thread."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=0, n_jobs=1, verbose=-1)


def soft_voting() -> Any:
    """The mean probability of a logistic regression and a forest of 20 trees of depth 4."""
    from sklearn.ensemble import RandomForestClassifier, VotingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    forest = RandomForestClassifier(20, max_depth=4, random_state=0)
    return VotingClassifier([("logistic", logistic), ("forest", forest)], voting="soft")


def calibrated_forest() -> Any:
    """A forest of 20 trees of depth 4 whose probabilities are calibrated by sigmoids, on three folds."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier

    return CalibratedClassifierCV(RandomForestClassifier(20, max_depth=4, random_state=0), cv=3)


def wide_logistic() -> Any:
    """A logistic regression for many more features than rows."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=0.01, max_iter=200)
