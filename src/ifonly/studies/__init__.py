"""The paper's case studies: one person, and criteria added step by step (Maragno et al. 2022, appendix C).

>>> from ifonly.studies import german_study
>>> print(german_study("B").table())  # doctest: +SKIP
"""

from __future__ import annotations

from ifonly.studies.cases import german_study, heart_study
from ifonly.studies.study import Part, Study

__all__ = ["Part", "Study", "german_study", "heart_study"]
