"""The shipped demo: German Credit with a forest and a logistic regression."""

from __future__ import annotations

from ifonly import Actionability, Causality, Cause, Explainer, Proximity, Sparsity
from ifonly.datasets import german_credit
from ifonly.studio.library import credit_model
from ifonly.studio.subject import Subject, standard_switches

__all__ = ["demo_subjects"]

_NAMES = {"forest": "German Credit, a forest of 100 trees", "linear": "German Credit, a logistic regression"}
_RECIPE = (
    "from ifonly.bench import credit_model",
    "from ifonly.datasets import german_credit",
    "",
    "credit = german_credit()",
    "X, schema = credit.frame, credit.schema",
    "model = credit_model({name!r}, X, credit.target)",
)
_PROTECTED = ("personal_status", "foreign_worker")
_FIRST = 11  # refused by both models


def demo_subjects() -> tuple[Subject, ...]:
    """Train both models and return them with the house policy of the demo."""
    # scikit-learn takes a second to load. Only what is loaded can be told how many threads to use.
    import sklearn.linear_model  # noqa: F401, PLC0415
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with it

    # A thousand rows are too few to share: several threads spend ten times as long on waiting for each other.
    with threadpool_limits(1):
        return _trained()


def _trained() -> tuple[Subject, ...]:
    credit = german_credit()
    # Nobody may be asked to be somebody else; what a loan is for and how old people get is for the house to say.
    law = Actionability(frozen=tuple(name for name in credit.immutable if name in _PROTECTED))
    frozen = tuple(name for name in credit.immutable if name not in _PROTECTED)
    house = (Proximity("l1", scale="range"), Sparsity(price=0.1), law, Actionability(frozen=frozen, increase=("age",)))
    # A rule of thumb of the demo, not of the data: a thousand marks more take two months longer to pay back.
    follows = Causality({"duration": Cause(["credit_amount"], coefficients={"credit_amount": 0.002})})
    found = []
    for name in ("forest", "linear"):
        model = credit_model(name, credit.frame, credit.target)
        explainer = Explainer(model, credit.frame, credit.target, schema=credit.schema, criteria=house)
        recipe = tuple(line.format(name=name) for line in _RECIPE)
        switches = {**standard_switches(), "causal": follows}
        shown = Subject(name, _NAMES[name], explainer, credit.frame, credit.wanted, _FIRST, recipe, switches, (law,))
        found.append(shown)
    return tuple(found)
