"""Policy: features and criteria of the house, and the way they override those inferred from the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ifonly.data.schema import Binary, Categorical, Feature, Integer, Numeric, Ordinal, Schema
from ifonly.data.tables import as_frame
from ifonly.errors import SchemaError, did_you_mean
from ifonly.explain import DEFAULT_CRITERIA
from ifonly.question.criterion import Criterion

__all__ = ["KINDS", "FeaturePolicy", "Policy"]

_LEVELLED: dict[str, type[Categorical]] = {kind.kind: kind for kind in (Categorical, Ordinal, Binary)}
KINDS = (Numeric.kind, Integer.kind, *_LEVELLED)


@dataclass(frozen=True)
class FeaturePolicy:
    """Overrides of one feature; None is left to the data."""

    kind: str | None = None
    bounds: tuple[float, float] | None = None
    levels: tuple[Any, ...] | None = None
    precision: int | None = None
    label: str | None = None


@dataclass(frozen=True)
class Policy:
    """Overrides of features, and the criteria of the house.

    Attributes
    ----------
    features
        Feature -> what the policy says of it.
    criteria
        Everything that an answer must respect, the law included.
    law
        Those of the criteria that the law makes and no house can loosen; whoever shows a rule can say so.

    Examples
    --------
    >>> import pandas as pd
    >>> policy = Policy({"grade": FeaturePolicy(kind="ordinal", levels=("low", "high"))})
    >>> policy.schema(pd.DataFrame({"grade": ["high", "low"]}))["grade"].levels
    ('low', 'high')
    """

    features: Mapping[str, FeaturePolicy] = field(default_factory=dict)
    criteria: tuple[Criterion, ...] = DEFAULT_CRITERIA
    law: tuple[Criterion, ...] = ()

    def schema(self, X: Any) -> Schema:
        """Return the schema of a frame: inferred, then overridden by this policy."""
        frame = as_frame(X)
        said = self.features.items()
        for name in self.features:
            if name not in frame.columns:
                raise SchemaError(
                    f"The policy describes {name!r}, which is no column of the data."
                    f"{did_you_mean(name, frame.columns)} Rename its table, or take it out."
                )
        found = Schema.infer(frame)
        if not self.features:
            return found
        inferred = Schema.infer(
            frame,
            bounds={name: f.bounds for name, f in said if f.bounds is not None},
            precision={name: f.precision for name, f in said if f.precision is not None},
            labels={name: f.label for name, f in said if f.label is not None},
            numeric=[name for name, f in said if f.kind == "numeric" != found[name].kind],
            integer=[name for name, f in said if f.kind == "integer" != found[name].kind],
            categorical=[name for name, f in said if f.kind in _LEVELLED and isinstance(found[name], Numeric)],
        )
        return Schema(tuple(_overridden(f, self.features.get(f.name)) for f in inferred.features))


def _overridden(feature: Feature, said: FeaturePolicy | None) -> Feature:
    if said is None:
        return feature
    if not isinstance(feature, Numeric):
        return _with_levels(feature, said)
    if said.levels is not None:
        raise SchemaError(
            f'The policy gives levels to {feature.name!r}, which is {feature.kind}. Set its kind to "categorical" or '
            '"ordinal", or take the levels out.'
        )
    return feature


def _with_levels(feature: Categorical, said: FeaturePolicy) -> Categorical:
    kind = said.kind or feature.kind
    if kind == Ordinal.kind and not isinstance(feature, Ordinal) and said.levels is None:
        raise SchemaError(f"The policy calls {feature.name!r} ordinal: give it levels = [...], lowest first.")
    levels = feature.levels if said.levels is None else said.levels
    if kind == Binary.kind and len(levels) != 2:
        raise SchemaError(f"The policy calls {feature.name!r} binary, but it has {len(levels)} levels.")
    dtype = feature.dtype
    # A category column decodes by the codes of its dtype, which must count the levels in the policy's order.
    if isinstance(dtype, pd.CategoricalDtype) and tuple(dtype.categories) != levels:
        dtype = pd.CategoricalDtype(list(levels), dtype.ordered)
    return _LEVELLED[kind](feature.name, levels, feature.label, dtype)
