"""The data sets of the paper: two shipped with the package, four fetched once and kept.

`german_credit` and `heart` need no network. `adult`, `compas`, `heloc` and `give_me_some_credit` are looked for
in the folder named by the environment variable ``IFONLY_DATA`` (default: the user's cache) and downloaded into it
when absent.

Examples
--------
>>> from ifonly.datasets import german_credit
>>> credit = german_credit()
>>> X, y = credit.frame, credit.target
>>> X.shape, credit.wanted
((1000, 20), 'good')
"""

from __future__ import annotations

from ifonly.datasets.dataset import Dataset
from ifonly.datasets.fetched import adult, compas, give_me_some_credit, heloc
from ifonly.datasets.shipped import german_credit, heart
from ifonly.datasets.store import DatasetMissing

__all__ = [
    "Dataset",
    "DatasetMissing",
    "adult",
    "compas",
    "german_credit",
    "give_me_some_credit",
    "heart",
    "heloc",
]
