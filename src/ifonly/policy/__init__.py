"""A policy is TOML text that people edit: what an answer must respect, and what each column means.

Whatever a policy leaves out keeps its default, so one line is a policy too.

Examples
--------
>>> policy = read_policy('demands.frozen = ["age"]')
>>> policy.criteria[-1].frozen
('age',)
"""

from __future__ import annotations

from ifonly.policy.overrides import FeaturePolicy, Policy
from ifonly.policy.read import read_policy
from ifonly.policy.write import write_policy

__all__ = ["FeaturePolicy", "Policy", "read_policy", "write_policy"]
