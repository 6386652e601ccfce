"""A policy says in TOML what a schema and criteria say in Python, and reads back as the same."""

import datetime as dt
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ifonly.criteria.actionability.criterion import Actionability, Implies, LinearRow
from ifonly.criteria.causality.causes import Cause
from ifonly.criteria.causality.criterion import Causality
from ifonly.criteria.diversity.criterion import Diversity
from ifonly.criteria.manifold.criterion import Manifold
from ifonly.criteria.proximity import Proximity
from ifonly.criteria.robustness.criterion import Robustness
from ifonly.criteria.sparsity import Sparsity
from ifonly.data.schema import Binary, Categorical, Integer, Numeric, Ordinal, Schema
from ifonly.datasets import german_credit, heart
from ifonly.errors import CriterionError, SchemaError
from ifonly.explain import DEFAULT_CRITERIA
from ifonly.policy import FeaturePolicy, Policy, read_policy, write_policy
from ifonly.question.criterion import Criterion

# Everything a UTF-8 file can hold: quotes, control characters, line separators, other scripts.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBER = st.one_of(st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False))
POSITIVE = st.floats(min_value=1e-300, max_value=1e300)
LEVEL = st.one_of(TEXT, st.integers(-5, 5), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pairs(draw: st.DrawFn, value: st.SearchStrategy[Any]) -> Any:
    return draw(st.dictionaries(TEXT, value, max_size=3))


@st.composite
def interval(draw: st.DrawFn) -> tuple[float | None, float | None]:
    low, high = draw(st.none() | NUMBER), draw(st.none() | NUMBER)
    return (high, low) if low is not None and high is not None and low > high else (low, high)


@st.composite
def demands(draw: st.DrawFn) -> Actionability:
    names = draw(st.lists(TEXT, unique=True, max_size=6))
    condition = st.dictionaries(TEXT, LEVEL | interval() | st.lists(LEVEL, max_size=3).map(tuple), max_size=2)
    moves = st.dictionaries(LEVEL, st.lists(LEVEL, max_size=3).map(tuple), min_size=1, max_size=2)
    row = st.builds(
        LinearRow,
        st.dictionaries(TEXT, NUMBER, min_size=1, max_size=3),
        at_least=NUMBER,
        at_most=st.none() | NUMBER,
    )
    return Actionability(
        frozen=tuple(names[::3]),
        increase=tuple(names[1::3]),
        decrease=tuple(names[2::3]),
        ranges=pairs(draw, interval()),
        max_step=pairs(draw, POSITIVE),
        allow=pairs(draw, st.lists(LEVEL, max_size=40).map(tuple)),
        conditional=pairs(draw, moves),
        rows=tuple(draw(st.lists(row, max_size=2))),
        implies=tuple(draw(st.lists(st.builds(Implies, condition, condition), max_size=2))),
        only=draw(st.none() | st.just((*names[1::3], *names[2::3], "another"))) if "another" not in names else None,
    )


@st.composite
def criteria(draw: st.DrawFn) -> list[Criterion]:
    scale = st.sampled_from(["range", "mad", "std", "none"]) | st.dictionaries(TEXT, POSITIVE, max_size=2)
    norm = st.sampled_from(["l1", "l2", "linf", "mahalanobis"])
    chosen = draw(norm)
    entry = st.integers(-9, 9).filter(bool) | st.text(max_size=4)
    tables = st.dictionaries(TEXT, st.dictionaries(entry, st.floats(0, 9), min_size=1, max_size=3), max_size=2)
    own = draw(tables) if chosen in ("l1", "linf") else {}
    found: list[Criterion] = [Proximity(chosen, draw(scale), pairs(draw, POSITIVE | st.just(0)), own)]
    at_most, price = draw(st.none() | st.integers(1, 9)), draw(st.none() | st.floats(0, 1e9))
    found += [] if at_most is None and price is None else [Sparsity(at_most, price)]
    wanted = draw(demands())
    return found if wanted == Actionability() else [*found, wanted]


@quick
@given(criteria())
def test_criteria_read_back_as_they_were(wanted: list[Criterion]) -> None:
    schema = Schema((Integer("age", 19, 75),))
    assert list(read_policy(write_policy(schema, wanted)).criteria) == wanted


@st.composite
def frames_and_schemas(draw: st.DrawFn) -> tuple[pd.DataFrame, Schema]:
    columns: dict[str, Any] = {}
    options: dict[str, Any] = {"integer": [], "categorical": [], "ordinal": {}, "bounds": {}, "precision": {}}
    options |= {"labels": {}, "numeric": []}
    for name in draw(st.lists(TEXT, unique=True, min_size=1, max_size=4)):
        kind = draw(st.sampled_from(["float", "int", "bool", "text", "category"]))
        levels = draw(st.lists(TEXT, unique=True, min_size=2, max_size=5))
        if kind == "float":
            columns[name] = draw(st.lists(st.floats(-1e4, 1e4), min_size=5, max_size=5))
            options["bounds"] |= {name: (-2e9, 2e9)} if draw(st.booleans()) else {}
            if draw(st.booleans()):
                options["precision"][name] = decimals = draw(st.integers(0, 4))
                columns[name] = [round(value, decimals) for value in columns[name]]
        elif kind == "int":
            columns[name] = draw(st.lists(st.integers(-(2**52), 2**52), min_size=5, max_size=5))
            forced = draw(st.sampled_from(["integer", "numeric", "categorical"]))
            options[forced].append(name)
        elif kind == "bool":
            columns[name] = draw(st.lists(st.booleans(), min_size=5, max_size=5))
        elif kind == "text":
            columns[name] = (levels * 5)[:5]
            options["ordinal"] |= {name: draw(st.permutations(levels))} if draw(st.booleans()) else {}
        else:
            columns[name] = pd.Categorical((levels * 5)[:5], levels, ordered=draw(st.booleans()))
        options["labels"][name] = draw(TEXT)
    frame = pd.DataFrame(columns)
    return frame, Schema.infer(frame, **options)


@quick
@given(frames_and_schemas())
def test_schemas_read_back_as_they_were(drawn: tuple[pd.DataFrame, Schema]) -> None:
    frame, schema = drawn
    assert read_policy(write_policy(schema)).schema(frame) == schema


@pytest.mark.parametrize("load", [german_credit, heart])
def test_shipped_data_round_trip(load: Any) -> None:
    data = load()
    text = write_policy(data.schema)
    assert read_policy(text).schema(data.frame) == data.schema
    assert read_policy(text).criteria == DEFAULT_CRITERIA


def test_examples_in_the_comments_are_true() -> None:
    credit = german_credit()
    text = re.sub(r"^#(?! )", "", write_policy(credit.schema), flags=re.MULTILINE)
    policy = read_policy(text)
    _, _, demands, manifold, causality, robustness, diversity = policy.criteria
    assert manifold == Manifold()
    parent = {"credit_amount": 0.5}
    assert causality == Causality({"duration": Cause(("credit_amount",), coefficients=parent)})
    assert (robustness, diversity) == (Robustness(radius=0.02), Diversity())
    assert isinstance(demands, Actionability)
    assert demands.ranges == {"duration": (4, 72)}
    assert demands.implies == (Implies({"checking_status": "no checking"}, {"duration": (None, 72)}),)
    assert demands.rows[0].weights == {"duration": 1, "credit_amount": 1}
    tables = {"duration": {-68: 2.0, 68: 1.0}}
    assert policy.criteria[:2] == (Proximity(weights={"duration": 2}, tables=tables), Sparsity(3, 0.1))
    assert demands.only == ("duration", "checking_status")


def test_examples_without_suitable_features() -> None:
    text = write_policy(Schema((Categorical("day", (dt.date(2024, 1, 1), dt.date(2024, 1, 2))),)))
    assert "neither text nor numbers" in text
    assert "\n#job = [" in text
    assert read_policy(text).features == {"day": FeaturePolicy(kind="categorical", label="")}


def test_what_is_left_out_keeps_its_default() -> None:
    assert read_policy("") == Policy({}, DEFAULT_CRITERIA)
    assert read_policy("[sparsity]").criteria == (Proximity(),)
    assert read_policy("[proximity]").criteria == DEFAULT_CRITERIA
    assert read_policy("demands.frozen = []").criteria == DEFAULT_CRITERIA
    frame = pd.DataFrame({"a": [1, 2]})
    assert read_policy("").schema(frame) == Schema.infer(frame)
    assert read_policy("features.a.label = 'A'").schema(frame) == Schema.infer(frame, labels={"a": "A"})


FRAME = pd.DataFrame(
    {
        "age": [20, 30, 40],
        "grade": ["b", "a", "c"],
        "size": pd.Categorical(["s", "m", "l"]),
        "fit": pd.Categorical(["s", "m", "l"], ["s", "m", "l"], ordered=True),
        "paid": [True, False, True],
    }
)


def test_kinds_are_overridden() -> None:
    policy = read_policy(
        """
        [features.age]
        kind = "categorical"
        [features.grade]
        kind = "ordinal"
        levels = ["c", "b", "a", "never seen"]
        [features.size]
        kind = "ordinal"
        levels = ["s", "m", "l"]
        [features.fit]
        kind = "ordinal"
        [features.paid]
        kind = "integer"
        """
    )
    schema = policy.schema(FRAME)
    kinds = [type(feature) for feature in schema.features]
    assert kinds == [Categorical, Ordinal, Ordinal, Ordinal, Integer]
    grade, size = schema["grade"], schema["size"]
    assert isinstance(grade, Ordinal)
    assert grade.levels == ("c", "b", "a", "never seen")
    assert isinstance(size, Ordinal)
    assert size.dtype == pd.CategoricalDtype(["s", "m", "l"])
    back = schema.decode(schema.encode(FRAME))
    assert back["size"].tolist() == ["s", "m", "l"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[demands", "not valid TOML"),
        ("[demand]", "Unknown key 'demand' in the policy. Did you mean 'demands'?"),
        (
            "[demands]\nfrosen = []",
            r"Unknown key 'frosen' in \[demands\] of the policy. Did you mean 'frozen'?",
        ),
        ("[sparsity]\natmost = 3", "Did you mean 'at_most'?"),
        ("[proximity]\nnorms = 'l1'", "Did you mean 'norm'?"),
        ("[features.age]\nlevel = 1", r"in \[features.age\] of the policy. Did you mean 'levels'?"),
        ("features = 3", r"'features' in the policy must be a table, \[features\], got 3"),
        ("features.age = 3", r"'features.age' in the policy must be a table"),
        (
            "features.age.kind = 'real'",
            "must be one of numeric, integer, categorical, ordinal, binary, got 'real'",
        ),
        ("features.age.kind = ['real']", "must be one of numeric"),
        ("features.age.label = 3", "must be text in quotes, got 3"),
        ("features.age.precision = 0.5", "must be a whole number, got 0.5"),
        ("features.age.precision = true", "must be a whole number, got True"),
        ("features.age.bounds = [1]", r"'features.age.bounds' in the policy must be \[lowest, highest\]"),
        ("features.age.bounds = [1, nan]", r"must be \[lowest, highest\]"),
        ("features.age.levels = 'a'", "must be a list of levels"),
        ("features.age.levels = [1979-05-27]", "must be a level: text, a number, true or false"),
        ("demands.frozen = 'age'", "must be a list of features such as"),
        ("demands.frozen = [1]", "must be a list of features such as"),
        ("demands.max_step.age = 'x'", "'demands.max_step.age' in the policy must be a number"),
        ("demands.max_step.age = inf", "must be a number, got inf"),
        ("demands.rows = 3", r"must be blocks that begin with \[\[demands.rows\]\]"),
        ("demands.rows = [3]", r"must be blocks that begin with \[\[demands.rows\]\]"),
        ("[[demands.rows]]\nat_most = 3", r"A \[\[demands.rows\]\] of the policy lacks 'weights'"),
        ("[[demands.implies]]\nif = {}", "lacks 'then'"),
        ("[[demands.conditional]]\nfeature = 'a'\nfrom = 'x'", "lacks 'to'"),
        ("[[demands.implies]]\nif = {a = [inf]}\nthen = {}", r"must be \[lowest, highest\]"),
        ("proximity.scale.age = 'x'", "'proximity.scale.age' in the policy must be a number"),
        ("proximity.scale = 3", "must be text in quotes"),
        ("sparsity.at_most = 1.5", "must be a whole number"),
    ],
)
def test_a_slip_is_named(text: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        read_policy(text)


@pytest.mark.parametrize(
    "text",
    [
        "proximity.norm = 'l3'",
        "sparsity.at_most = 0",
        "[[demands.rows]]\nweights = {}\nat_most = 1",
        "demands.ranges.age = [3, 1]",
        "demands.frozen = ['a']\ndemands.increase = ['a']",
    ],
)
def test_ill_posed_criteria_are_refused(text: str) -> None:
    with pytest.raises(CriterionError):
        read_policy(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("features.aga.label = 'A'", "describes 'aga', which is no column of the data. Did you mean 'age'?"),
        ("features.age.levels = [1, 2]", "gives levels to 'age', which is integer"),
        ("features.grade.kind = 'numeric'", "'grade' cannot be read as numeric"),
        ("features.grade.kind = 'ordinal'", r"calls 'grade' ordinal: give it levels = \[...\], lowest first"),
        ("features.grade.kind = 'binary'", "calls 'grade' binary, but it has 3 levels"),
        ("features.grade.bounds = [1, 2]", "Bounds and precision are for numeric features"),
        ("features.age.bounds = [1, inf]", "two finite numbers"),
    ],
)
def test_features_that_do_not_fit_the_data(text: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        read_policy(text).schema(FRAME)


def test_what_a_policy_cannot_hold() -> None:
    schema = Schema((Numeric("x", 0.0, 1.0), Binary("b", (False, True))))
    with pytest.raises(CriterionError, match="one Sparsity, got 2"):
        write_policy(schema, [Sparsity(1), Sparsity(2)])
    with pytest.raises(CriterionError, match="not Criterion"):
        write_policy(schema, [Criterion()])
    with pytest.raises(SchemaError, match=r"not datetime.date\(2024, 1, 1\)"):
        write_policy(schema, [Actionability(allow={"b": [dt.date(2024, 1, 1)]})])


def test_numpy_values_and_long_lists_are_written_plainly() -> None:
    schema = Schema((Categorical("town", tuple(f"a rather long name, number {i}" for i in range(5))),))
    text = write_policy(schema, [Sparsity(price=np.float64(0.25))])
    assert "price = 0.25" in text
    assert 'levels = [\n    "a rather long name, number 0",\n' in text
    assert max(map(len, text.splitlines())) < 120


@pytest.mark.parametrize(
    "manifold",
    [
        Manifold(),
        Manifold(0.05, "linf", clusters=3),
        Manifold(clusters="auto", of="all"),
        Manifold(isolation=0.1, by="label"),
    ],
    ids=repr,
)
def test_closeness_to_the_data_reads_back(manifold: Manifold) -> None:
    schema = Schema.infer(FRAME)
    criteria = (*DEFAULT_CRITERIA, manifold)
    assert read_policy(write_policy(schema, criteria)).criteria == criteria


def test_rows_do_not_fit_into_a_policy() -> None:
    for manifold in (Manifold(rows=FRAME), Manifold(clusters=[0, 0, 1])):
        with pytest.raises(CriterionError, match="cannot hold the 'rows' or the labels"):
            write_policy(Schema.infer(FRAME), [manifold])
    with pytest.raises(SchemaError, match=r"'manifold.clusters' in the policy must be a whole number"):
        read_policy("manifold.clusters = 'many'")


@pytest.mark.parametrize(
    "criterion",
    [
        Robustness(radius=0.05),
        Robustness(radius=0.1, norm="l2", features=("age",), margin=0.2),
        Diversity("iterate", distance=0.3),
        Diversity(nested=True),
        Causality({"age": Cause(("paid", "size"), coefficients={"paid": 2.0, "size": {"s": 1.0, "m": 2.0, "l": 3.5}})}),
        Causality({"age": Cause(("paid",), coefficients={"paid": -1})}, "all"),
    ],
    ids=repr,
)
def test_every_criterion_reads_back(criterion: Criterion) -> None:
    criteria = (*DEFAULT_CRITERIA, criterion)
    assert read_policy(write_policy(Schema.infer(FRAME), criteria)).criteria == criteria


def test_models_do_not_fit_into_a_policy() -> None:
    for criterion in (Causality({"age": Cause(("paid",), model=object())}), Robustness(models=[object()])):
        with pytest.raises(CriterionError, match="in Python"):
            write_policy(Schema.infer(FRAME), [criterion])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[robustness]\nradios = 1", "Did you mean 'radius'?"),
        ("[diversity]\nnested = 1", "must be true or false, got 1"),
        ("[causality]\n[[causality.causes]]\nfeature = 'age'", "lacks 'coefficients'"),
        ("[[causality.causes]]\nfeature = 'age'\ncoefficients = {job = [['a']]}", r"pairs \[change or level, cost\]"),
        ("[[proximity.tables]]\nfeature = 'age'\ncosts = 3", r"pairs \[change or level, cost\]"),
    ],
)
def test_a_slip_in_the_other_sections_is_named(text: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        read_policy(text)


@quick
@given(demands(), demands())
def test_the_law_reads_back_beside_the_house(house: Actionability, law: Actionability) -> None:
    schema = Schema.infer(FRAME)
    written = write_policy(schema, [*DEFAULT_CRITERIA, house, law], law=[law])
    read = read_policy(written)
    empty = Actionability()
    assert read.law == (() if law == empty else (law,))
    acts = [c for c in read.criteria if isinstance(c, Actionability)]
    assert acts == [a for a in (house, law) if a != empty]


def test_the_law_is_demands_alone() -> None:
    policy = read_policy('[law]\nfrozen = ["sex"]\n[demands]\nfrozen = ["purpose"]')
    assert [c.frozen for c in policy.law] == [("sex",)]  # type: ignore[attr-defined]
    assert policy.law[0] is policy.criteria[-1]
    with pytest.raises(SchemaError, match="Unknown key 'frosen' in \\[law\\] of the policy"):
        read_policy("[law]\nfrosen = []")
    with pytest.raises(CriterionError, match="not Sparsity"):
        write_policy(Schema.infer(FRAME), [], law=[Sparsity(1)])
