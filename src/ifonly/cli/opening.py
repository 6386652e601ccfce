"""Opening what a question needs: the explainer of a model file, its training data and a policy; and the wish."""

# ruff: noqa: PLC0415 - each command loads what it needs, so that --help stays quick

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifonly.cli import files

if TYPE_CHECKING:
    import pandas as pd

    from ifonly.explain import Explainer

__all__ = ["goal_of", "open_explainer"]


def open_explainer(fitted: Any, table: pd.DataFrame, data: Path, options: dict[str, Any]) -> Explainer:
    """Return the explainer of a model, its training data and the policy of the house."""
    from ifonly.explain import Explainer
    from ifonly.policy import Policy, read_policy

    source: Path = options["background"] or data
    train = table if source == data else files.read_table(source)
    X = files.features(fitted, files.without(train, options["target"], source))
    policy = read_policy(files.read_text(options["policy"])) if options["policy"] else Policy()
    # A policy written from the whole table also describes the columns that the model does not see.
    unseen = set(train.columns) - set(X.columns)
    policy = replace(policy, features={n: f for n, f in policy.features.items() if n not in unseen})
    surrogate = "auto" if options.get("surrogate") else None
    schema = policy.schema(X)
    return Explainer(fitted, X, schema=schema, criteria=policy.criteria, solver=options["solver"], surrogate=surrogate)


def goal_of(explainer: Explainer, options: dict[str, Any]) -> Any:
    """Return what is wanted, with the class as the model spells it."""
    from ifonly.criteria.validity import Target

    # A plan on disk may hold one class as it was typed.
    given = options["want"] or ()
    typed = (given,) if isinstance(given, str) else tuple(given)
    classes = explainer.model.read.classes
    labels = [next((c for c in classes if files.same(c, str(one))), one) for one in typed]
    rest = {name: options[name] for name in ("probability", "at_least", "at_most")}
    if len(labels) > 1:
        return Target(any_of=labels, **rest)
    label = labels[0] if labels else None
    return label if all(value is None for value in rest.values()) else Target(label, **rest)
