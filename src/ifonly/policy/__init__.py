"""Policies: TOML text that people edit, with the criteria of the house and the meaning of each column.

Whatever a policy leaves out keeps its default, so one line is a policy too.

Examples
--------
>>> policy = read_policy('demands.frozen = ["age"]')
>>> policy.criteria[-1].frozen
('age',)
"""

from __future__ import annotations

from ifonly.policy.lint import lint
from ifonly.policy.overrides import FeaturePolicy, Policy
from ifonly.policy.read import read_policy
from ifonly.policy.write import write_policy

__all__ = ["FeaturePolicy", "Policy", "lint", "read_policy", "write_policy"]
