"""House policy: the criteria of every call, and how the criteria of one call are put on top of them."""

from __future__ import annotations

from collections.abc import Sequence

from ifonly.criteria.diversity.criterion import Diversity
from ifonly.criteria.proximity import Proximity
from ifonly.criteria.sparsity import Sparsity
from ifonly.errors import CriterionError
from ifonly.question.criterion import Criterion
from ifonly.question.further import Diversifies

__all__ = ["DEFAULT_CRITERIA", "checked", "combined", "diversified"]

DEFAULT_CRITERIA: tuple[Criterion, ...] = (Proximity("l1", scale="auto"), Sparsity(price=0.1))


def checked(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return criteria as a tuple, a single one as well; refuse what is none."""
    if isinstance(criteria, Criterion):
        return (criteria,)
    for criterion in criteria:
        if not isinstance(criterion, Criterion):
            raise CriterionError(
                f"A criterion must be one of Proximity, Sparsity, Actionability, ...; got {criterion!r}. Write e.g. "
                "criteria=[Sparsity(at_most=2)]."
            )
    return tuple(criteria)


def combined(house: Sequence[Criterion], call: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Demands add up; of the criteria that cost, the call's own replaces the house's of the same kind."""
    replaced = {type(c) for c in call if isinstance(c, Proximity)}
    prices = any(isinstance(c, Sparsity) and c.price is not None for c in call)
    kept: list[Criterion] = []
    for criterion in house:
        if type(criterion) in replaced:
            continue
        if prices and isinstance(criterion, Sparsity) and criterion.price is not None:
            if criterion.at_most is None:
                continue
            kept.append(Sparsity(at_most=criterion.at_most))
            continue
        kept.append(criterion)
    merged = (*kept, *call)
    if not any(isinstance(c, Proximity) for c in merged):
        merged = (Proximity("l1", scale="auto"), *merged)
    return merged


def diversified(criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
    """Return criteria of which one says what makes a further answer another one."""
    return criteria if any(isinstance(c, Diversifies) for c in criteria) else (*criteria, Diversity())
