"""Writing a policy: commented TOML that reads back as the same schema and the same criteria."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ifonly.criteria.actionability.criterion import Actionability, Implies, LinearRow
from ifonly.criteria.causality.causes import Cause
from ifonly.criteria.causality.criterion import Causality
from ifonly.criteria.diversity.criterion import Diversity
from ifonly.criteria.house import DEFAULT_CRITERIA
from ifonly.criteria.manifold.criterion import Manifold
from ifonly.criteria.proximity import Proximity
from ifonly.criteria.robustness.criterion import Robustness
from ifonly.criteria.sparsity import Sparsity
from ifonly.data.schema import Categorical, Feature, Integer, Numeric, Schema
from ifonly.errors import CriterionError, SchemaError
from ifonly.policy.overrides import KINDS
from ifonly.question.criterion import Criterion

__all__ = ["write_policy"]

C = TypeVar("C", bound=Criterion)

_KINDS = (Proximity, Sparsity, Actionability, Manifold, Causality, Robustness, Diversity)
_WIDTH = 100
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def write_policy(
    schema: Schema, criteria: Sequence[Criterion] = DEFAULT_CRITERIA, law: Sequence[Criterion] = ()
) -> str:
    """Return a policy as commented TOML, ready to be edited.

    Parameters
    ----------
    schema
        The features.
    criteria
        At most one of each kind, beside the law.
    law
        An `Actionability` that the law makes; it may be among the criteria, too, as in a `Policy`.

    Examples
    --------
    >>> from ifonly.data.schema import Integer
    >>> text = write_policy(Schema((Integer("age", 19, 75, label="Age (years)"),)))
    >>> print(text[text.index("[features.age]") :], end="")
    [features.age]
    kind = "integer"
    bounds = [19, 75]
    label = "Age (years)"
    """
    criteria = [c for c in criteria if all(c is not own for own in law)]
    _check_kinds(criteria, _KINDS, "A policy")
    _check_kinds(law, (Actionability,), "The law in a policy")
    example = _example(schema)
    lines = [
        "# A policy for ifonly: what an answer must respect, and what each column means.",
        "# Use it with:  ifonly explain MODEL DATA --row 0 --policy THIS_FILE",
        "# Whatever is left out keeps its default, so delete what you do not need. Examples begin with # and no blank.",
        *_law_lines(_single(law, Actionability)),
        *_demand_lines(_single(criteria, Actionability) or Actionability(), example),
        *_cost_lines(_single(criteria, Sparsity), _single(criteria, Proximity) or Proximity(), example),
        *_manifold_lines(_single(criteria, Manifold)),
        *_causality_lines(_single(criteria, Causality), schema),
        *_robustness_lines(_single(criteria, Robustness)),
        *_diversity_lines(_single(criteria, Diversity)),
        "",
        f"# Features. kind: one of {', '.join(KINDS)} (levels lowest first).",
        "# bounds: the lowest and highest value an answer may have. precision: the decimals of a numeric feature.",
        "# label: what the feature is called in print, if not by its name.",
    ]
    for feature in schema.features:
        lines += ["", *_feature_lines(feature)]
    return "\n".join(lines) + "\n"


def _check_kinds(criteria: Sequence[Criterion], kinds: tuple[type[Criterion], ...], what: str) -> None:
    for criterion in criteria:
        if not isinstance(criterion, kinds):
            raise CriterionError(
                f"{what} holds {', '.join(kind.__name__ for kind in kinds)}, not {type(criterion).__name__}. Give that "
                "one in Python: Explainer(..., criteria=[...])."
            )


def _single(criteria: Sequence[Criterion], kind: type[C]) -> C | None:
    found = [c for c in criteria if isinstance(c, kind)]
    if len(found) > 1:
        raise CriterionError(f"A policy holds one {kind.__name__}, got {len(found)}. Merge them into one.")
    return found[0] if found else None


def _example(schema: Schema) -> Actionability:
    """Return demands that make sense for this schema, to be shown as comments."""
    numbers = [f for f in schema.features if isinstance(f, Numeric)] or [Integer("duration", 4, 72)]
    levelled = (f for f in schema.features if isinstance(f, Categorical) and f.width > 1 and _holds(f.levels))
    group = next(levelled, Categorical("job", ("skilled", "unskilled")))
    (low, high), name = _bounds(numbers[0]), numbers[0].name
    first, second = group.levels[:2]
    return Actionability(
        ranges={name: (low, high)},
        max_step={name: high - low},
        allow={group.name: (first, second)},
        conditional={group.name: {first: (second,)}},
        rows=(LinearRow({f.name: 1 for f in numbers[:2]}, at_most=sum(_bounds(f)[1] for f in numbers[:2])),),
        implies=(Implies({group.name: first}, {name: (None, high)}),),
        only=(name, group.name),
    )


def _demand_lines(demands: Actionability, example: Actionability) -> list[str]:
    lists = {
        "frozen": "features that stay as they are",
        "increase": "numbers and ordinals that may only go up",
        "decrease": "numbers and ordinals that may only go down",
    }
    tables = {
        "ranges": "number = [lowest, highest] of its new value; -inf and inf leave an end open",
        "max_step": "number = largest change either way; ordinal = largest number of levels",
        "allow": "category = the levels it may take",
    }
    blocks: list[tuple[str, Callable[[Actionability], list[str]]]] = [
        ("from one level only to some others; repeat the block for more", _conditional_lines),
        ("at_least <= sum of weight * number <= at_most", _row_lines),
        ("when all of `if` holds, so must `then`: a level, levels, or [lowest, highest]", _rule_lines),
    ]
    lines = ["", "# What the house demands", "[demands]"]
    for name, note in lists.items():
        lines += [f"# {note}", *_entry(name, tuple(getattr(demands, name)))]
    only = _entry("only", tuple(example.only or ())) if demands.only is None else _entry("only", tuple(demands.only))
    lines += ["# the features that may change; all others stay", *(only if demands.only else _commented(only))]
    for name, note in tables.items():
        shown = _entries(getattr(demands, name)) or _commented(_entries(getattr(example, name)))
        lines += ["", f"# {note}", f"[demands.{name}]", *shown]
    for note, render in blocks:
        lines += ["", f"# {note}", *(render(demands) or _commented(render(example)))]
    return lines


def _law_lines(law: Actionability | None) -> list[str]:
    """Return the demands of the law; what it does not say is left out, since [demands] has the examples."""
    lines = ["", "# What the law demands: the same keys as [demands]. Whoever shows a rule says that it is the law's."]
    if law is None:
        return [*lines, "#[law]", "#frozen = []"]
    lines += ["[law]"]
    lines += _entries(
        {name: tuple(getattr(law, name)) for name in ("frozen", "increase", "decrease") if getattr(law, name)}
    )
    lines += _entries({"only": None if law.only is None else tuple(law.only)})
    for name in ("ranges", "max_step", "allow"):
        if getattr(law, name):
            lines += ["", f"[law.{name}]", *_entries(getattr(law, name))]
    return [*lines, *_conditional_lines(law, "law"), *_row_lines(law, "law"), *_rule_lines(law, "law")]


def _conditional_lines(demands: Actionability, table: str = "demands") -> list[str]:
    lines = []
    for name, moves in demands.conditional.items():
        for level, levels in moves.items():
            lines += [
                f"[[{table}.conditional]]",
                *_entries({"feature": name, "from": level, "to": tuple(levels)}),
            ]
    return lines


def _row_lines(demands: Actionability, table: str = "demands") -> list[str]:
    lines = []
    for row in demands.rows:
        ends = {"at_least": row.at_least, "at_most": row.at_most}
        lines += [f"[[{table}.rows]]", *_entry("weights", row.weights), *_entries(ends)]
    return lines


def _rule_lines(demands: Actionability, table: str = "demands") -> list[str]:
    lines = []
    for rule in demands.implies:
        lines += [f"[[{table}.implies]]", *_entry("if", rule.if_), *_entry("then", rule.then)]
    return lines


def _cost_lines(sparsity: Sparsity | None, proximity: Proximity, example: Actionability) -> list[str]:
    price, at_most = (None, None) if sparsity is None else (sparsity.price, sparsity.at_most)
    return [
        "",
        "[sparsity]",
        "# what each changed feature costs, on top of its distance",
        *(_commented(_entry("price", 0.1)) if price is None else _entry("price", price)),
        "# how many features may change",
        *(_commented(_entry("at_most", 3)) if at_most is None else _entry("at_most", at_most)),
        "",
        "[proximity]",
        "# l1, l2, linf or mahalanobis",
        *_entry("norm", proximity.norm),
        "# what the change of a number is divided by: auto (range, unless outliers rule it), range, mad, std or none;",
        "# percentile: counted in shares of the rows that it passes; or { feature = its own scale }",
        *_entry("scale", proximity.scale),
        "",
        "# feature = how much a change of it counts; 1 unless named",
        "[proximity.weights]",
        *(_entries(proximity.weights) or _commented(_entries(dict.fromkeys(example.max_step, 2)))),
        "",
        "# own costs: pairs [change, cost] of a number, linear between; pairs [level, cost] of a category. l1 and linf only",
        *(_table_lines(proximity.tables) or _commented(_table_lines(_example_tables(example)))),
    ]


def _example_tables(example: Actionability) -> dict[str, dict[Any, float]]:
    width = next(iter(example.max_step.values()))
    return {next(iter(example.max_step)): {-width: 2.0, width: 1.0}}


def _table_lines(tables: Mapping[str, Mapping[Any, float]]) -> list[str]:
    lines = []
    for name, table in tables.items():
        lines += ["[[proximity.tables]]", *_entries({"feature": name}), f"costs = {_pairs(table)}"]
    return lines


def _pairs(table: Mapping[Any, Any]) -> str:
    return "[" + ", ".join(f"[{_value(entry)}, {_value(cost)}]" for entry, cost in table.items()) + "]"


def _causality_lines(causality: Causality | None, schema: Schema) -> list[str]:
    if causality is not None and any(cause.coefficients is None for cause in causality.causes.values()):
        raise CriterionError(
            "A policy holds causes by their coefficients, not models or functions. Give that Causality in Python: "
            "Explainer(..., criteria=[Causality(...)])."
        )
    numbers = [f.name for f in schema.features if isinstance(f, Numeric)]
    effect, parent = (*numbers, "duration", "credit_amount")[:2] if len(numbers) != 1 else (numbers[0], "income")
    shown = causality or Causality({effect: Cause((parent,), coefficients={parent: 0.5})})
    lines = ["[causality]", *_entry("count", shown.count)]
    for name, cause in shown.causes.items():
        lines += ["[[causality.causes]]", *_entry("feature", name)]
        weights = {n: _Raw(_pairs(w)) if isinstance(w, Mapping) else w for n, w in (cause.coefficients or {}).items()}
        lines += _entry("coefficients", weights)
    return [
        "",
        "# What follows from a change: the feature moves by coefficient * change of its cause (of a category: pairs",
        '# [level, value]). count: "actions" charges what a person does, "all" also what follows. Learned models: in Python.',
        *(_commented(lines) if causality is None else lines),
    ]


def _robustness_lines(robustness: Robustness | None) -> list[str]:
    if robustness is not None and len(robustness.models):
        raise CriterionError(
            "A policy cannot hold the 'models' of a Robustness. Give that one in Python: Explainer(..., "
            "criteria=[Robustness(...)])."
        )
    shown = robustness or Robustness(radius=0.02)
    features = None if shown.features is None else tuple(shown.features)
    values = {"radius": shown.radius, "norm": shown.norm, "features": features, "margin": shown.margin}
    lines = ["[robustness]", *_entries(values)]
    return [
        "",
        "# Hold the outcome in a ball around the answer: radius as a share of each number's range, norm linf or l2,",
        "# features = [...] that may be off; margin = by how much the score must clear its threshold.",
        *(_commented(lines) if robustness is None else lines),
    ]


def _diversity_lines(diversity: Diversity | None) -> list[str]:
    shown = diversity or Diversity()
    lines = ["[diversity]", *_entries({name: getattr(shown, name) for name in ("how", "distance", "nested")})]
    return [
        "",
        "# What makes a second answer another one: features, iterate (distance apart), incumbents or clusters",
        *(_commented(lines) if diversity is None else lines),
    ]


def _manifold_lines(manifold: Manifold | None) -> list[str]:
    if manifold is not None and (manifold.rows is not None or not isinstance(manifold.clusters, int | str | None)):
        raise CriterionError(
            "A policy cannot hold the 'rows' or the labels of 'clusters' of a Manifold. Give that one in Python: "
            "Explainer(..., criteria=[Manifold(...)])."
        )
    shown = Manifold() if manifold is None else manifold
    names = ("epsilon", "norm", "clusters", "of", "by", "isolation")
    lines = ["[manifold]", *_entries({name: getattr(shown, name) for name in names})]
    return [
        "",
        "# Stay close to the data: in the convex hull of the rows of the wanted outcome, enlarged by epsilon (l1, l2, linf).",
        '# Also: clusters = 3 or "auto"; of = "wanted" or "all"; by = "label" or "prediction"; isolation = 0.1',
        *(_commented(lines) if manifold is None else lines),
    ]


def _feature_lines(feature: Feature) -> list[str]:
    lines = [f"[features.{_key(feature.name)}]", *_entry("kind", feature.kind)]
    if isinstance(feature, Numeric):
        precision = None if isinstance(feature, Integer) else feature.precision
        lines += _entries({"bounds": _bounds(feature), "precision": precision})
        if precision is None and feature.decimals is not None:
            plural = "" if feature.decimals == 1 else "s"
            lines.append(
                f"# {feature.decimals} decimal{plural} in the data; to demand them: precision = {feature.decimals}"
            )
    elif _holds(feature.levels):
        lines += _entry("levels", feature.levels)
    else:
        lines += ["# its levels are neither text nor numbers, so they are read off the data"]
    return [*lines, *_entry("label", feature.label)]


def _bounds(feature: Numeric) -> tuple[float, float]:
    if isinstance(feature, Integer):
        return int(feature.lower), int(feature.upper)
    return float(feature.lower), float(feature.upper)


# -- TOML, which the standard library reads but does not write --------------------------------------------------
def _holds(levels: Sequence[Any]) -> bool:
    return all(isinstance(level, str | bool | int | float) for level in levels)


def _commented(lines: Sequence[str]) -> list[str]:
    return [f"#{line}" for line in lines]


def _entries(table: Mapping[str, Any]) -> list[str]:
    return [line for name, value in table.items() if value is not None for line in _entry(name, value)]


def _entry(name: str, value: Any) -> list[str]:
    """Return ``name = value`` as one line, or a long list as one line per item."""
    line = f"{_key(name)} = {_value(value)}"
    if len(line) <= _WIDTH or not isinstance(value, list | tuple):
        return [line]
    return [f"{_key(name)} = [", *(f"    {_value(item)}," for item in value), "]"]


def _key(name: str) -> str:
    return name if name and _BARE.issuperset(name) else _text(name)


def _text(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c) or _unescaped(c) for c in text) + '"'


def _unescaped(character: str) -> str:
    """Return a character as it is, unless TOML allows it only by its number."""
    control = character < " " or character == "\x7f"
    return f"\\u{ord(character):04x}" if control else character


class _Raw(str):
    """A value that is TOML already."""

    __slots__ = ()


def _value(value: Any) -> str:
    if isinstance(value, _Raw):
        return str(value)
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, _closed(value))) + "]"
    raise SchemaError(
        f"A policy holds text, numbers, true and false, but not {value!r} ({type(value).__name__}). Give that one in "
        "Python."
    )


def _closed(values: Sequence[Any]) -> Sequence[Any]:
    """Return an interval with its open ends, which TOML has no word for, as infinities."""
    if len(values) != 2:
        return values
    low, high = values
    return (-np.inf if low is None else low, np.inf if high is None else high)
