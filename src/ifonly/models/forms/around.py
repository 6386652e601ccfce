"""Forms around another form: they look where the inner one looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ifonly.arrays import FloatArray
from ifonly.models.form import Form

__all__ = ["Around"]


@dataclass(frozen=True, eq=False)
class Around:
    """A function of the scores of `inner`; subclasses say which."""

    inner: Form

    def inside(self) -> tuple[Form, ...]:
        """Return the inner form."""
        return (self.inner,)

    def cuts(self) -> Mapping[int, FloatArray]:
        """Return the thresholds of the inner form."""
        return self.inner.cuts()

    def raw(self) -> frozenset[int]:
        """Return the numeric features whose raw value enters the inner form."""
        return self.inner.raw()

    def features(self) -> frozenset[int]:
        """Return the features the inner form looks at."""
        return self.inner.features()
