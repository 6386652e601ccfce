"""Form: the protocol of a score function that is said twice, to the optimiser and to NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from ifonly.arrays import FloatArray
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip

__all__ = ["Form"]


@runtime_checkable
class Form(Protocol):
    """A function of the canonical vector that NumPy can evaluate and a program can contain."""

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        ...

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores of canonical rows, shape (rows, outputs)."""
        ...

    def cuts(self) -> Mapping[int, FloatArray]:
        """Return numeric feature -> raw thresholds ``x <= cut`` the form asks for."""
        ...

    def raw(self) -> frozenset[int]:
        """Return the numeric features whose raw value enters the form."""
        ...

    def features(self) -> frozenset[int]:
        """Return the features that can change the scores at all."""
        ...

    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Add the form to a program, as a function of its inputs, and return its scores as expressions."""
        ...

    def refined(self, u: FloatArray) -> Form | None:
        """Return a form that is exact at `u`, or None when this one is exact everywhere."""
        ...
