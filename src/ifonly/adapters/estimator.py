"""Base class of models that came trained, as scikit-learn sees an estimator, shared by all adapters."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Literal

__all__ = ["Trained"]


class Trained:
    """Base class of fitted estimators, with all that scikit-learn asks of one; subclasses are dataclasses."""

    _estimator_type: Literal["classifier", "regressor"]
    _allows_missing: ClassVar[bool] = False

    def fit(self, X: Any = None, y: Any = None) -> Any:  # noqa: ARG002 - scikit-learn's signature
        """Do nothing: the model is trained already."""
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's signature
        """Return the constructor's arguments."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Any:
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags  # noqa: PLC0415 - slow

        classifies = self._estimator_type == "classifier"
        return Tags(
            estimator_type=self._estimator_type,
            target_tags=TargetTags(required=False),
            classifier_tags=ClassifierTags() if classifies else None,
            regressor_tags=None if classifies else RegressorTags(),
            input_tags=InputTags(allow_nan=self._allows_missing),
            requires_fit=False,
        )
