"""Reading a policy: every key is known, every value has the right type, or the error says what was meant."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan
from typing import Any, TypeVar

from ifonly.criteria.actionability.criterion import Actionability, Implies, LinearRow
from ifonly.criteria.causality.causes import Cause
from ifonly.criteria.causality.criterion import Causality
from ifonly.criteria.diversity.criterion import Diversity
from ifonly.criteria.manifold.criterion import Manifold
from ifonly.criteria.proximity import Proximity
from ifonly.criteria.robustness.criterion import Robustness
from ifonly.criteria.sparsity import Sparsity
from ifonly.errors import SchemaError, did_you_mean
from ifonly.explain import DEFAULT_CRITERIA
from ifonly.policy.overrides import KINDS, FeaturePolicy, Policy
from ifonly.question.criterion import Criterion

__all__ = ["read_policy"]

T = TypeVar("T")
Reader = Callable[[str, Any], T]

_DEMANDS = ("frozen", "only", "increase", "decrease", "ranges", "max_step", "allow", "conditional", "rows", "implies")


def read_policy(text: str) -> Policy:
    """Return what TOML text says; see `write_policy` for the form.

    Raises
    ------
    SchemaError
        When the text is not TOML, a key is unknown, or a value has the wrong type.
    CriterionError
        When a criterion is ill-posed by itself.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"The policy is not valid TOML: {error}.") from None
    top = _Table("", data)
    top.only("law", "demands", "sparsity", "proximity", "manifold", "causality", "robustness", "diversity", "features")
    sections = (_proximity, _sparsity, _actionability, _manifold, _causality, _robustness, _diversity)
    criteria = tuple(criterion for section in sections for criterion in section(top))
    law = tuple(_demands(top.part("law")))
    features = {name: _feature(part) for name, part in top.part("features").parts()}
    return Policy(features, (*criteria, *law), law)


@dataclass(frozen=True)
class _Table:
    """A table of the policy that knows where it stands, so that complaints can say so."""

    path: str
    data: Mapping[str, Any]

    def only(self, *known: str) -> None:
        """Complain about keys that are not known here."""
        for key in self.data:
            if key not in known:
                where = f"in [{self.path}] of the policy" if self.path else "in the policy"
                raise SchemaError(f"Unknown key {key!r} {where}.{did_you_mean(key, known)} Known: {', '.join(known)}.")

    def where(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def get(self, key: str, read: Reader[T]) -> T | None:
        return read(self.where(key), self.data[key]) if key in self.data else None

    def need(self, key: str, read: Reader[T]) -> T:
        if key not in self.data:
            raise SchemaError(f"A [[{self.path}]] of the policy lacks {key!r}. Add it.")
        return read(self.where(key), self.data[key])

    def part(self, key: str) -> _Table:
        return _Table(self.where(key), self.get(key, _table) or {})

    def parts(self) -> Iterator[tuple[str, _Table]]:
        for key in self.data:
            yield key, self.part(key)

    def blocks(self, key: str) -> list[_Table]:
        """Return an array of tables, e.g. all [[demands.rows]]."""
        found = self.data.get(key, [])
        if not (isinstance(found, list) and all(isinstance(block, dict) for block in found)):
            raise _wrong(self.where(key), f"blocks that begin with [[{self.where(key)}]]", found)
        return [_Table(self.where(key), block) for block in found]

    def each(self, key: str, read: Reader[T]) -> dict[str, T]:
        part = self.part(key)
        return {name: read(part.where(name), value) for name, value in part.data.items()}


# -- values -----------------------------------------------------------------------------------------------------
def _wrong(where: str, expected: str, got: Any) -> SchemaError:
    return SchemaError(f"'{where}' in the policy must be {expected}, got {got!r}.")


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(where, f"a table, [{where}]", value)
    return value


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(where, "text in quotes", value)
    return value


def _kind(where: str, value: Any) -> str:
    if value not in KINDS:
        raise _wrong(where, f"one of {', '.join(KINDS)}", value)
    return str(value)


def _texts(where: str, value: Any) -> tuple[str, ...]:
    if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise _wrong(where, 'a list of features such as ["age"]', value)
    return tuple(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(where: str, value: Any) -> float:
    if not (_is_number(value) and isfinite(value)):
        raise _wrong(where, "a number", value)
    return value  # type: ignore[no-any-return] # whole numbers stay whole, as they were written


def _whole(where: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(where, "a whole number", value)
    return value


def _scale(where: str, value: Any) -> str | dict[str, float]:
    if isinstance(value, dict):
        return {name: _number(f"{where}.{name}", own) for name, own in value.items()}
    return _text(where, value)


def _pair(where: str, value: Any) -> tuple[float, float]:
    if not (isinstance(value, list) and len(value) == 2 and all(_is_number(v) and not isnan(v) for v in value)):
        raise _wrong(where, "[lowest, highest]", value)
    return value[0], value[1]


def _interval(where: str, value: Any) -> tuple[float | None, float | None]:
    low, high = _pair(where, value)
    return None if low == -inf else low, None if high == inf else high


def _level(where: str, value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise _wrong(where, "a level: text, a number, true or false", value)
    return value


def _levels(where: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _wrong(where, "a list of levels", value)
    return tuple(_level(where, item) for item in value)


def _condition(where: str, value: Any) -> Any:
    """Return a level, levels or an interval; which of the two a pair is, the kind of the feature will tell."""
    if not isinstance(value, list):
        return _level(where, value)
    infinite = any(item in (-inf, inf) for item in value)
    return _interval(where, value) if infinite else _levels(where, value)


# -- sections ---------------------------------------------------------------------------------------------------
def _feature(part: _Table) -> FeaturePolicy:
    part.only("kind", "bounds", "levels", "precision", "label")
    return FeaturePolicy(
        kind=part.get("kind", _kind),
        bounds=part.get("bounds", _pair),
        levels=part.get("levels", _levels),
        precision=part.get("precision", _whole),
        label=part.get("label", _text),
    )


def _default(kind: type[Criterion]) -> list[Criterion]:
    return [c for c in DEFAULT_CRITERIA if isinstance(c, kind)]


def _proximity(top: _Table) -> Sequence[Criterion]:
    if "proximity" not in top.data:
        return _default(Proximity)
    part = top.part("proximity")
    part.only("norm", "scale", "weights", "tables")
    # Proximity itself says which norms and scales there are.
    norm: Any = part.get("norm", _text)
    scale: Any = part.get("scale", _scale)
    usual = Proximity()
    return [
        Proximity(
            usual.norm if norm is None else norm,
            usual.scale if scale is None else scale,
            part.each("weights", _number),
            dict(_cost_table(block) for block in part.blocks("tables")),
        )
    ]


def _cost_table(block: _Table) -> tuple[str, dict[Any, float]]:
    block.only("feature", "costs")
    return block.need("feature", _text), dict(block.need("costs", _costs))


def _costs(where: str, value: Any) -> list[tuple[Any, float]]:
    if not (isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value)):
        raise _wrong(where, "pairs [change or level, cost]", value)
    return [(_level(where, entry), _number(where, cost)) for entry, cost in value]


def _sparsity(top: _Table) -> Sequence[Criterion]:
    if "sparsity" not in top.data:
        return _default(Sparsity)
    part = top.part("sparsity")
    part.only("at_most", "price")
    at_most, price = part.get("at_most", _whole), part.get("price", _number)
    return [] if at_most is None and price is None else [Sparsity(at_most, price)]


def _clusters(where: str, value: Any) -> int | str:
    return value if value == "auto" else _whole(where, value)


def _manifold(top: _Table) -> Sequence[Criterion]:
    if "manifold" not in top.data:
        return []
    part = top.part("manifold")
    part.only("epsilon", "norm", "clusters", "of", "by", "isolation")
    # Manifold itself says which norms and rows there are.
    given: dict[str, Any] = {
        "epsilon": part.get("epsilon", _number),
        "norm": part.get("norm", _text),
        "clusters": part.get("clusters", _clusters),
        "of": part.get("of", _text),
        "by": part.get("by", _text),
        "isolation": part.get("isolation", _number),
    }
    return [Manifold(**{name: value for name, value in given.items() if value is not None})]


def _flag(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(where, "true or false", value)
    return value


def _given(part: _Table, **readers: Reader[Any]) -> dict[str, Any]:
    """Return the values of a section that are there; whether they make sense the criterion itself says."""
    part.only(*readers)
    return {name: part.get(name, read) for name, read in readers.items() if name in part.data}


def _robustness(top: _Table) -> Sequence[Criterion]:
    if "robustness" not in top.data:
        return []
    return [Robustness(**_given(top.part("robustness"), radius=_number, norm=_text, features=_texts, margin=_number))]


def _diversity(top: _Table) -> Sequence[Criterion]:
    if "diversity" not in top.data:
        return []
    return [Diversity(**_given(top.part("diversity"), how=_text, distance=_number, nested=_flag))]


def _causality(top: _Table) -> Sequence[Criterion]:
    if "causality" not in top.data:
        return []
    part = top.part("causality")
    part.only("count", "causes")
    causes = dict(_cause(block) for block in part.blocks("causes"))
    count: Any = part.get("count", _text)
    return [Causality(causes) if count is None else Causality(causes, count)]


def _cause(block: _Table) -> tuple[str, Cause]:
    block.only("feature", "coefficients")
    block.need("coefficients", _table)
    weights = block.each("coefficients", _coefficient)
    return block.need("feature", _text), Cause(tuple(weights), coefficients=weights)


def _coefficient(where: str, value: Any) -> Any:
    """Return the weight of a number, or of a category the value of each level, as pairs."""
    return dict(_costs(where, value)) if isinstance(value, list) else _number(where, value)


def _actionability(top: _Table) -> Sequence[Criterion]:
    return _demands(top.part("demands"))


def _demands(part: _Table) -> Sequence[Criterion]:
    """Return the demands of [demands] or [law], which have the same keys."""
    part.only(*_DEMANDS)
    conditional: dict[str, dict[Any, tuple[Any, ...]]] = {}
    for block in part.blocks("conditional"):
        block.only("feature", "from", "to")
        moves = conditional.setdefault(block.need("feature", _text), {})
        moves[block.need("from", _level)] = block.need("to", _levels)
    demands = Actionability(
        frozen=part.get("frozen", _texts) or (),
        increase=part.get("increase", _texts) or (),
        decrease=part.get("decrease", _texts) or (),
        ranges=part.each("ranges", _interval),
        max_step=part.each("max_step", _number),
        allow=part.each("allow", _levels),
        conditional=conditional,
        rows=tuple(_row(block) for block in part.blocks("rows")),
        implies=tuple(_rule(block) for block in part.blocks("implies")),
        only=part.get("only", _texts),
    )
    return [] if demands == Actionability() else [demands]


def _row(block: _Table) -> LinearRow:
    block.only("weights", "at_least", "at_most")
    block.need("weights", _table)
    return LinearRow(block.each("weights", _number), block.get("at_least", _number), block.get("at_most", _number))


def _rule(block: _Table) -> Implies:
    block.only("if", "then")
    block.need("if", _table)
    block.need("then", _table)
    return Implies(block.each("if", _condition), block.each("then", _condition))
