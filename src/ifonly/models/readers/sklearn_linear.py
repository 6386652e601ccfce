"""Readers of scikit-learn's linear models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import UnsupportedModel
from ifonly.models.form import Form
from ifonly.models.forms.bends import EXP
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.steps import Stepped, linear_form
from ifonly.models.links import LinkName
from ifonly.models.read import Read
from ifonly.models.reading.outcomes import Bent
from ifonly.models.reading.source import Source
from ifonly.models.registry import reads
from ifonly.models.rules import RuleName

__all__ = ["labels_of", "linear_classifier"]


def labels_of(estimator: Any) -> tuple[Any, ...]:
    """Return the classes as plain Python values."""
    return tuple(c.item() if isinstance(c, np.generic) else c for c in estimator.classes_)


def linear_classifier(estimator: Any, source: Source, link: LinkName) -> Read:
    """Return the decision function of a linear classifier: one score for two classes, else one per class."""
    form = linear_form(source, estimator.coef_, estimator.intercept_, type(estimator).__name__)
    rule: RuleName = "sign" if len(estimator.classes_) == 2 else "argmax"
    missing = source.may_miss(False)
    return Read(form, labels_of(estimator), rule, link, accepts_missing=missing)


@reads("sklearn", "LogisticRegression", "LogisticRegressionCV")
def read_logistic(estimator: Any, source: Source) -> Read:
    """Two classes: a sigmoid; more: a softmax, unless the solver fits one against the rest."""
    if len(estimator.classes_) == 2:
        return linear_classifier(estimator, source, "sigmoid")
    one_vs_rest = getattr(estimator, "multi_class", None) == "ovr" or estimator.solver == "liblinear"
    return linear_classifier(estimator, source, "normalised" if one_vs_rest else "softmax")


@reads("sklearn", "LinearSVC", "RidgeClassifier", "RidgeClassifierCV", "Perceptron", "PassiveAggressiveClassifier")
def read_margin_classifier(estimator: Any, source: Source) -> Read:
    """A linear score and no probability."""
    return linear_classifier(estimator, source, "none")


@reads("sklearn", "SGDClassifier")
def read_sgd(estimator: Any, source: Source) -> Read:
    """One score per class; probabilities by the loss it was fitted with."""
    links: dict[str, LinkName] = {"log_loss": "sigmoid", "modified_huber": "clip"}
    link = links.get(estimator.loss, "none")
    if len(estimator.classes_) > 2 and link != "none":
        link = "normalised" if link == "sigmoid" else "none"
    return linear_classifier(estimator, source, link)


@reads("sklearn", "LinearDiscriminantAnalysis")
def read_lda(estimator: Any, source: Source) -> Read:
    """Linear scores whose sigmoid or softmax are the posterior probabilities."""
    return linear_classifier(estimator, source, "sigmoid" if len(estimator.classes_) == 2 else "softmax")


def _dense(coefficients: Any) -> FloatArray:
    """Return coefficients as an array: those of a support vector machine that was fitted on a sparse matrix are one, too."""
    return np.asarray(coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients, dtype=np.float64)


def _refuse_curved_kernel(estimator: Any, source: Source) -> None:
    """Refuse a support vector machine whose kernel is not linear; its class may be a subclass of the user's."""
    if estimator.kernel != "linear":
        name = "SVC" if hasattr(estimator, "classes_") else "SVR"
        raise UnsupportedModel(
            f"{source.where}{name} with kernel={estimator.kernel!r} has no exact mixed-integer form. The nearest things "
            f"that have one: {name}(kernel='linear'), Linear{name}, or a gradient boosting model."
        )


def _of_support_vectors(form: Form, estimator: Any, source: Source) -> Form:
    """Return the form of a support vector machine with the sums that it is computed by.

    libsvm adds up ``alpha_i * (x_i @ x)`` over its support vectors. These may cancel to a weight that is much smaller, and
    their rounding does not cancel.
    """
    sums = np.abs(_dense(estimator.dual_coef_)) @ np.abs(_dense(estimator.support_vectors_))
    of = linear_form(source, sums, np.zeros(len(sums)), type(estimator).__name__)
    if isinstance(form, Linear) and isinstance(of, Linear):
        return replace(form, sums=of.terms)
    if isinstance(form, Stepped) and isinstance(of, Stepped):
        inner, within = form.inner, of.inner
        if isinstance(inner, Linear) and isinstance(within, Linear):
            return replace(form, inner=replace(inner, sums=within.terms))
    return form


@reads("sklearn", "SVC")
def read_svc(estimator: Any, source: Source) -> Read:
    """A linear-kernel SVC of two classes is one linear score; with more, its pairwise votes are not linear.

    A score of 0 is a vote for the second class, other than in the linear models: the first needs more than 0.
    """
    _refuse_curved_kernel(estimator, source)
    if len(estimator.classes_) > 2:
        raise UnsupportedModel(
            f"{source.where}SVC with {len(estimator.classes_)} classes decides by votes between pairs. Use LinearSVC "
            "or LogisticRegression, which have one score per class."
        )
    coefficients = _dense(estimator.coef_)
    form = _of_support_vectors(linear_form(source, coefficients, estimator.intercept_, "SVC"), estimator, source)
    return Read(form, labels_of(estimator), "sign", "none", strict=False, accepts_missing=source.may_miss(False))


@reads(
    "sklearn",
    *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "Lars", "LarsCV"),
    *("LassoLars", "LassoLarsCV", "LassoLarsIC", "BayesianRidge", "ARDRegression", "HuberRegressor", "LinearSVR"),
    *("SGDRegressor", "TheilSenRegressor", "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV"),
    *("QuantileRegressor", "PassiveAggressiveRegressor"),
)
def read_regression(estimator: Any, source: Source) -> Read:
    """One linear value."""
    coefficients = _dense(estimator.coef_)
    if coefficients.ndim == 2 and coefficients.shape[0] > 1:
        raise UnsupportedModel(
            f"{source.where}{type(estimator).__name__} predicts {coefficients.shape[0]} values at once. Fit one model "
            "per output and explain the one you ask about."
        )
    form = linear_form(source, coefficients.reshape(1, -1), estimator.intercept_, type(estimator).__name__)
    return Read(form, accepts_missing=source.may_miss(False))


@reads("sklearn", "SVR")
def read_svr(estimator: Any, source: Source) -> Read:
    """A linear-kernel SVR is one linear value."""
    _refuse_curved_kernel(estimator, source)
    read = read_regression(estimator, source)
    return replace(read, form=_of_support_vectors(read.form, estimator, source))


@reads("sklearn", "PoissonRegressor", "GammaRegressor", "TweedieRegressor")
def read_generalised(estimator: Any, source: Source) -> Read:
    """A generalised linear model: one linear value, or its exponential where the link is the logarithm."""
    coefficients = np.asarray(estimator.coef_, dtype=np.float64).reshape(1, -1)
    form = linear_form(source, coefficients, estimator.intercept_, type(estimator).__name__)
    missing = source.may_miss(False)
    link = type(estimator._base_loss.link).__name__
    if link == "IdentityLink":
        return Read(form, accepts_missing=missing)
    if link != "LogLink":
        raise UnsupportedModel(
            f"{source.where}{type(estimator).__name__} with {link}: only the links 'log' and 'identity' can be read."
        )
    bent = Bent(np.exp, classes=False, bend=EXP)
    return Read(form, accepts_missing=missing, link_forward=bent, link_inverse=bent.inverse)
