"""Writing a record: an answer, or an impossibility, with the circumstances that a stranger needs to check it."""

from __future__ import annotations

import hmac
import json
import platform
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from ifonly.criteria.validity import as_target
from ifonly.errors import CriterionError, Infeasible
from ifonly.record.criteria import criteria_to_data, in_words
from ifonly.record.fingerprints import of_json, of_model, of_schema, of_training
from ifonly.record.proof import describe_proof
from ifonly.result.origin import Origin
from ifonly.result.serial import (
    FORMAT,
    explanation_to_dict,
    feature_to_dict,
    frame_to_dict,
    plain_value,
)
from ifonly.result.values import Explanation
from ifonly.solvers.backend import Backend, Limits
from ifonly.tolerances import OPTIMALITY
from ifonly.version import __version__

__all__ = ["Factual", "describe", "fingerprints", "infeasible_to_dict", "record_of", "salted", "write_record"]

Factual = Literal["full", "omitted", "salted"]

_PACKAGES = {"sklearn": "scikit-learn", "highspy": "highspy", "pyscipopt": "pyscipopt", "gurobipy": "gurobipy"}


def describe(origin: Origin) -> dict[str, Any]:
    """Return the circumstances of a question as plain values.

    ``sha256`` holds the fingerprints of the model (what it says of the training rows), of the schema, of the training data
    in canonical form, and of the policy.
    """
    explainer = origin.explainer
    house, call = criteria_to_data(explainer.criteria), criteria_to_data(origin.criteria)
    estimator = explainer.model.estimator
    options = {**origin.options, "solver": explainer.backend.name, "seed": int(explainer.random_state)}
    options["settings"] = _settings(explainer.backend, float(options.get("gap", OPTIMALITY)), options["seed"])
    if explainer.surrogate is not None:
        options["surrogate"] = explainer.surrogate
    return {
        "asked_at": origin.asked_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "want": want_to_data(origin.want),
        "policy": {"house": house, "call": call},
        "demands": list(origin.demands),
        "costs": in_words((*explainer.criteria, *origin.criteria)),
        "options": options,
        "model": _steps(estimator),
        "schema": [feature_to_dict(f) for f in explainer.schema.features],
        "versions": _versions(estimator),
        "sha256": {**explainer.fingerprints, "policy": of_json([house, call])},
    }


def fingerprints(explainer: Any) -> dict[str, str]:
    """Return the fingerprints of an explainer's model, schema and data."""
    return {
        "model": of_model(explainer),
        "schema": of_schema([feature_to_dict(f) for f in explainer.schema.features]),
        "training": of_training(explainer),
    }


def want_to_data(want: Any) -> dict[str, Any]:
    """Return a wish as plain values: the label itself, or the parts of a `Target`."""
    target = as_target(want)
    several = {} if target.any_of is None else {"any_of": [plain_value(label) for label in target.any_of]}
    return {
        "label": plain_value(target.label),
        "probability": target.probability,
        "at_least": plain_value(target.at_least),
        "at_most": plain_value(target.at_most),
        **several,
    }


def _settings(backend: Backend, gap: float, seed: int) -> dict[str, Any]:
    """Return what a mixed-integer solver was told, where one had to close a question: in its first run and in the second."""
    first = Limits(gap=gap, seed=seed)
    return {
        "solver": f"{backend.label} {backend.version()}".strip(),
        "first": first.settings(),
        "second": replace(first, second_setting=True).settings(),
    }


def _steps(estimator: Any) -> list[str]:
    steps = [step for _, step in getattr(estimator, "steps", [("", estimator)])]
    return [f"{type(step).__module__.partition('.')[0]}.{type(step).__name__}" for step in steps]


def _versions(estimator: Any) -> dict[str, str]:
    """Return the versions of all that had a part in the answer."""
    frameworks = {type(step).__module__.partition(".")[0] for _, step in getattr(estimator, "steps", [("", estimator)])}
    found = {"ifonly": __version__, "python": platform.python_version()}
    for package in ("numpy", "pandas", "highspy", "scikit-learn", *sorted(_PACKAGES.get(f, f) for f in frameworks)):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


# -- records ---------------------------------------------------------------------------------------------------------
def record_of(explanation: Explanation, factual: Factual = "full", salt: bytes | None = None) -> dict[str, Any]:
    """Return an explanation as a record.

    Parameters
    ----------
    explanation
        The answer.
    factual
        ``"full"``: the row is part of the record. ``"omitted"``: neither it nor the values that answers leave as they are.
        ``"salted"``: in their place a keyed SHA-256, by which whoever has the row and the salt can show that it is the one.
    salt
        The key, for ``"salted"``: at least 16 bytes that are kept apart from the record.
    """
    data = explanation_to_dict(explanation)
    if factual == "full":
        return data
    data.pop("proof", None)  # the splits of a search tell where the row is
    return _hidden(data, explanation.factual, factual, salt)


def write_record(said: Explanation | Infeasible, path: Path) -> list[Path]:
    """Write an explanation or an impossibility as a record, and its proof beside it; return what was written."""
    proof, beside = said.proof, path.with_suffix(".proof")
    if beside == path:
        raise CriterionError(f"{path.name!r} is the name of a proof. Give the record another ending, e.g. .json.")
    text = json.dumps(said.record(), indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    if proof is None:
        return [path]
    beside.write_bytes(proof)
    return [path, beside]


def infeasible_to_dict(error: Infeasible, factual: Factual = "full", salt: bytes | None = None) -> dict[str, Any]:
    """Return a proven impossibility as a record: the clashing demands and their loosenings."""
    if error.origin is None or error.factual is None:
        raise CriterionError(
            "This Infeasible was not raised by Explainer.explain, so nothing is known of its question. Catch the one that "
            "explain raises."
        )
    data: dict[str, Any] = {
        "format": FORMAT,
        "kind": "impossible",
        "status": "infeasible",
        "message": str(error),
        "conflict": list(error.conflict),
        "minimal": bool(error.minimal),
        "relaxations": [
            {"demand": r.demand, "change": r.change, "amount": plain_value(float(r.amount))} for r in error.relaxations
        ],
        **(
            {}
            if error.score is None
            else {"prediction": plain_value(error.prediction), "score": plain_value(error.score)}
        ),
        "factual": frame_to_dict(error.factual),
        "schema": [feature_to_dict(f) for f in error.schema.features],
        "origin": dict(error.origin.data()),
    }
    if factual != "full":
        return _hidden(data, error.factual, factual, salt)
    return data if error.proof is None else {**data, "proof": describe_proof(error.proof, [None])}


def _hidden(data: dict[str, Any], row: pd.DataFrame, how: Factual, salt: bytes | None) -> dict[str, Any]:
    """Return a record without the values of the factual."""
    if how not in ("omitted", "salted"):
        raise CriterionError(f"The 'factual' of a record must be 'full', 'omitted' or 'salted'. Got {how!r}.")
    hidden: dict[str, Any] = {"hidden": how}
    if how == "salted":
        if salt is None or len(salt) < 16:
            raise CriterionError(
                "A salted record needs salt= of at least 16 bytes, e.g. secrets.token_bytes(16). Keep it apart from the "
                "record."
            )
        hidden["hmac_sha256"] = salted(row, salt)
    answers = [
        {
            **answer,
            "row": None,
            "changes": [{"feature": c["feature"], "after": c["after"]} for c in answer["changes"]],
        }
        for answer in data.get("counterfactuals", ())
    ]
    return {**data, "factual": hidden, **({"counterfactuals": answers} if "counterfactuals" in data else {})}


def salted(row: pd.DataFrame, salt: bytes) -> str:
    """Return the keyed SHA-256 of a row's names and values."""
    values: Mapping[str, Any] = frame_to_dict(row)["columns"]
    text = json.dumps([[str(name), value] for name, value in values.items()], allow_nan=False)
    return hmac.new(salt, text.encode("utf-8"), sha256).hexdigest()
