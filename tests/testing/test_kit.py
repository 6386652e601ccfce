"""The conformance kit complains: about forms whose two sides differ, and about readers that are off by a little."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ifonly.data.schema import Schema
from ifonly.models.forms.bends import SIGMOID
from ifonly.models.forms.compose import combine
from ifonly.models.forms.curves import Curve
from ifonly.models.forms.linear import Linear
from ifonly.models.reading.source import Source
from ifonly.models.registry import known_readers, read_estimator
from ifonly.program.mip import Affine
from ifonly.testing import check_form, check_reader, form_checks, reader_checks
from portions import one_in
from reading import mixed_frame, outcome

FRAME = mixed_frame(150)
SCHEMA = Schema.infer(FRAME)
ROWS = SCHEMA.encode(FRAME)[:2]
NUMBERS = FRAME[["income", "debt", "age"]].assign(income=FRAME["income"] / 1000.0)
OUTCOME = outcome(FRAME)

WEIGHTS = np.zeros((1, SCHEMA.width))
WEIGHTS[0, :4] = [0.001, -2.0, 0.05, 1.0]
LINEAR = Linear(SCHEMA, WEIGHTS, np.array([-1.0]))


def forest() -> Any:
    estimator = RandomForestClassifier(3, max_depth=3, random_state=0).fit(NUMBERS, OUTCOME)
    schema = Schema.infer(NUMBERS)
    return read_estimator(estimator, Source.raw(schema, schema.decode, schema.encode(NUMBERS)[0])).form, schema


@dataclass(frozen=True, eq=False)
class Altered:
    """A form of which one side, or one declaration, is another one's."""

    inner: Any
    instead: dict[str, Any]

    @property
    def n_outputs(self) -> int:
        return self.instead.get("n_outputs", self.inner.n_outputs)

    def __call__(self, U: Any) -> Any:
        return self.instead.get("call", self.inner)(U)

    def __getattr__(self, name: str) -> Any:
        return self.instead.get(name, getattr(self.inner, name))


def test_forms_as_they_should_be_pass() -> None:
    check_form(LINEAR, SCHEMA, ROWS)
    check_form(Curve(LINEAR, (SIGMOID,)), SCHEMA, ROWS)
    form, schema = forest()
    check_form(form, schema, schema.encode(NUMBERS)[:2])


def test_a_form_that_takes_missing_values_is_looked_at_with_them() -> None:
    holes = NUMBERS.copy()
    holes.loc[::3, "debt"] = np.nan
    check_reader(DecisionTreeClassifier(max_depth=4).fit(holes, OUTCOME), holes, points=300)


@pytest.mark.parametrize(
    ("instead", "complaint"),
    [
        ({"n_outputs": 2}, r"shape \(2, 1\), expected \(2, 2\)"),
        ({"call": lambda U: LINEAR(U) + 0.01}, r"the program gives score 0 of \{'income': .* NumPy as"),
        ({"call": lambda U: LINEAR(U) + U[:, -1:]}, "features\\(\\) leaves out 'home', but it changes a score"),
        ({"call": lambda U: LINEAR(U) - LINEAR(U).mean()}, "alone and .* among other rows"),
        ({"call": lambda U: np.where(U[:, :1] > 0, np.nan, 0.0)}, "are not finite"),
        (
            {"raw": lambda: frozenset({0, 1})},
            r"by cuts\(\) two values of 'age' lie in one cell, and raw\(\) does not name it: score 0 of",
        ),
        (
            {"embed": lambda mip, x: [x.raw(1)], "raw": frozenset, "call": lambda U: np.ones((len(U), 1))},
            r"embed\(\) asks for what raw\(\) does not name: 'debt' is used",
        ),
        ({"raw": lambda: frozenset({3})}, r"raw\(\) names \[3\], which are not numeric features"),
        ({"features": lambda: frozenset({7})}, r"features\(\) names \[7\], but the schema has 5 features"),
        ({"cuts": lambda: {0: np.array([np.inf])}}, "thresholds that are not finite"),
        ({"embed": lambda mip, x: [*LINEAR.embed(mip, x), Affine()]}, "returns 2 expressions, but n_outputs is 1"),
        (
            {"embed": lambda mip, x: [LINEAR.embed(mip, x)[0] + mip.column(-0.5, 0.5)]},
            r"leaves score 0 of .* anywhere between .* refined\(\) says that it is exact",
        ),
    ],
)
def test_a_linear_form_with_a_fault(instead: dict[str, Any], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_form(Altered(LINEAR, instead), SCHEMA, ROWS)


def test_a_program_that_leaves_points_out() -> None:
    """Pinned rows are allowed, but the greatest score of the box is not."""

    def embed(mip: Any, x: Any) -> list[Affine]:
        (score,) = LINEAR.embed(mip, x)
        mip.row(score, upper=float(LINEAR(ROWS).max()))
        return [score]

    with pytest.raises(AssertionError, match=r"to be the greatest score 0 near .* but NumPy gives"):
        check_form(Altered(LINEAR, {"embed": embed}), SCHEMA, ROWS[LINEAR(ROWS)[:, 0].argmax()])


def test_a_program_that_reaches_too_far() -> None:
    """A score that the program can have near a row, but not at it."""

    def embed(mip: Any, x: Any) -> list[Affine]:
        (score,) = LINEAR.embed(mip, x)
        age = x.raw(2)
        return [score + (age - float(ROWS[0, 2])) * 0.01]

    with pytest.raises(AssertionError, match=r"least score 0, at .*, where NumPy gives"):
        check_form(Altered(LINEAR, {"embed": embed}), SCHEMA, ROWS[0])


def test_a_refinement_that_is_none() -> None:
    curve = Curve(LINEAR, (SIGMOID,), pieces=2)
    with pytest.raises(AssertionError, match=r"refined at .*, the program gives score 0 there as between"):
        check_form(Altered(curve, {"refined": lambda u: curve}), SCHEMA, ROWS)


def test_a_threshold_that_cuts_does_not_name() -> None:
    form, schema = forest()
    fewer = {j: cuts[1:] for j, cuts in form.cuts().items()}
    with pytest.raises(AssertionError, match=r"by cuts\(\) two values of 'income' lie in one cell"):
        check_form(Altered(form, {"cuts": lambda: fewer}), schema, schema.encode(NUMBERS)[:3])


def test_a_form_that_asks_for_more_than_its_inputs() -> None:
    def embed(mip: Any, x: Any) -> list[Affine]:
        return [LINEAR.embed(mip, x)[0] + 0.0 * x.changed(0)]

    with pytest.raises(
        AssertionError, match=r"embed\(\) uses 'changed' of its inputs, which have only box, schema, raw"
    ):
        check_form(Altered(LINEAR, {"embed": embed}), SCHEMA, ROWS)


def test_rows_of_another_width() -> None:
    with pytest.raises(AssertionError, match="rows have 3 entries"):
        check_form(LINEAR, SCHEMA, np.zeros((1, 3)))


# -- named checks ------------------------------------------------------------------------------------------------------
def failing(checks: Any) -> set[str]:
    """The names of the checks that complain; each is run, whatever the others say."""
    out = set()
    for name, check in checks:
        try:
            check()
        except AssertionError:
            out.add(name)
    return out


def free_score(mip: Any, x: Any) -> list[Affine]:
    """A program in which the score is not tied to the input."""
    return [LINEAR.embed(mip, x)[0] + mip.column(-0.5, 0.5)]


@pytest.mark.parametrize(
    ("instead", "names"),
    [
        ({}, set()),
        ({"cuts": lambda: {0: np.array([np.inf])}}, {"declarations are valid"}),
        ({"call": lambda U: LINEAR(U) - LINEAR(U).mean()}, None),
        ({"embed": free_score}, {"pinned program equals the call", "program bounds the call"}),
        (
            {"features": lambda: frozenset({0, 1, 2})},
            {"features are all that matter", "pinned program equals the call"},
        ),
    ],
    ids=["nothing", "declaration", "dependence", "program", "features"],
)
def test_a_fault_is_named(instead: dict[str, Any], names: set[str] | None) -> None:
    form = Altered(LINEAR, instead)
    found = failing(form_checks(form, SCHEMA, ROWS))
    assert found == names if names is not None else "scores are finite and independent" in found
    first = next((name for name, _ in form_checks(form, SCHEMA, ROWS) if name in found), None)
    if first is None:
        check_form(form, SCHEMA, ROWS)
        return
    with pytest.raises(AssertionError, match=rf"^{first}: "):
        check_form(form, SCHEMA, ROWS)


def test_the_checks_of_a_reader_go_on_with_those_of_its_form(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = LogisticRegression().fit(NUMBERS / 100.0, OUTCOME)
    names = [name for name, _ in reader_checks(estimator, NUMBERS / 100.0)]
    assert [f"form, {name}" for name, _ in form_checks(LINEAR, SCHEMA, ROWS)] == names[6:]
    broken(monkeypatch, "LogisticRegression", without_intercept)
    found = failing(reader_checks(estimator, NUMBERS / 100.0, points=200))
    assert "probabilities are the estimator's" in found
    assert not any(name.startswith("form") for name in found), "a wrong intercept is wrong on both sides of the form"


@pytest.mark.parametrize("check", [pytest.param(c, id=n) for n, c in form_checks(LINEAR, SCHEMA, ROWS)])
def test_each_check_is_a_test_of_its_own(check: Any) -> None:
    check()


# -- readers -----------------------------------------------------------------------------------------------------------
def broken(monkeypatch: pytest.MonkeyPatch, name: str, change: Any) -> None:
    """Put a reader in place that does as the real one and then changes what it read."""
    reader = known_readers()["sklearn", name]
    monkeypatch.setitem(known_readers(), ("sklearn", name), lambda e, source: change(reader(e, source)))


def shifted(read: Any, direction: float) -> Any:
    nodes = read.form.nodes
    cut = np.where(np.isfinite(nodes.cut), np.nextafter(nodes.cut, direction), nodes.cut)
    return replace(read, form=replace(read.form, nodes=replace(nodes, cut=cut)))


@pytest.mark.parametrize("direction", one_in(2, [-np.inf, np.inf]))
def test_a_threshold_off_by_one_float(monkeypatch: pytest.MonkeyPatch, direction: float) -> None:
    estimator = DecisionTreeClassifier(max_depth=3, random_state=0).fit(NUMBERS, OUTCOME)
    check_reader(estimator, NUMBERS)
    broken(monkeypatch, "DecisionTreeClassifier", lambda read: shifted(read, direction))
    with pytest.raises(AssertionError, match=r"\{'income': .*\}: probability \d by the form .*, by DecisionTree"):
        check_reader(estimator, NUMBERS)


def test_a_tie_that_goes_to_the_wrong_class(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"x": [0.0, 0.0, 1.0, 1.0, 2.0]})
    estimator = DecisionTreeClassifier().fit(frame, ["a", "b", "a", "a", "b"])
    check_reader(estimator, frame, points=100)

    def last_wins(read: Any) -> Any:
        return replace(read, form=combine(read.form, np.array([[0.0, 1.0]])), rule="sign", threshold=0.5, strict=False)

    broken(monkeypatch, "DecisionTreeClassifier", last_wins)
    with pytest.raises(
        AssertionError, match=r"\{'x': .*\}: the form says 'b' .*, DecisionTreeClassifier.predict says 'a'"
    ):
        check_reader(estimator, frame, points=100)


def without_intercept(read: Any) -> Any:
    return replace(read, form=replace(read.form, intercept=np.zeros(read.form.n_outputs)))


@pytest.mark.parametrize(
    ("estimator", "complaint"),
    [
        (LogisticRegression(), "probability . by the form"),
        (LinearSVC(), "decision score . by the form"),
        (LinearRegression(), "value by the form"),
    ],
)
def test_a_missing_intercept(monkeypatch: pytest.MonkeyPatch, estimator: Any, complaint: str) -> None:
    scaled = (NUMBERS - NUMBERS.mean()) / NUMBERS.std()
    estimator.fit(scaled, OUTCOME)
    check_reader(estimator, scaled, points=200)
    broken(monkeypatch, type(estimator).__name__, without_intercept)
    with pytest.raises(AssertionError, match=complaint):
        check_reader(estimator, scaled, points=200)


def test_scores_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """An isolation forest is read by the mean path, of which its decision score is an increasing function."""
    estimator = IsolationForest(n_estimators=5, random_state=0).fit(NUMBERS)
    check_reader(estimator, NUMBERS, points=300)
    middle = estimator.offset_
    broken(
        monkeypatch,
        "IsolationForest",
        lambda read: replace(read, form=combine(read.form, np.array([[-1.0]]), np.array([2 * middle]))),
    )
    with pytest.raises(AssertionError, match=r"has a greater score by the form than .* but not by IsolationForest"):
        check_reader(estimator, NUMBERS, points=300)


def test_probabilities_that_the_estimator_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = LinearSVC().fit(NUMBERS, OUTCOME > 0)
    broken(monkeypatch, "LinearSVC", lambda read: replace(read, link="sigmoid"))
    with pytest.raises(AssertionError, match=r"the form has probabilities .*, LinearSVC has none"):
        check_reader(estimator, NUMBERS, points=100)


def test_the_program_of_what_was_read_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that are too narrow change no prediction of NumPy's side, only the program."""
    estimator = MLPRegressor(hidden_layer_sizes=(3,), max_iter=30, random_state=0)
    scaled = (NUMBERS - NUMBERS.mean()) / NUMBERS.std()
    with pytest.warns(UserWarning, match="converged"):
        estimator.fit(scaled, OUTCOME)

    def narrow(read: Any) -> Any:
        bounds = [(np.full(len(b.constant), -0.01), np.full(len(b.constant), 0.01)) for b in read.form.blocks]
        return replace(read, form=read.form.with_bounds(bounds))

    check_reader(estimator, scaled, points=200)
    broken(monkeypatch, "MLPRegressor", narrow)
    with pytest.raises(AssertionError, match="the program"):
        check_reader(estimator, scaled, points=200)
