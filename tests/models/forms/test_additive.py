"""Sums of tables as trees: the same function as the linear model over bins, and its cheapest answers by enumeration."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

from ifonly import Explainer, Proximity, Sparsity, Target
from ifonly.data.schema import Schema
from ifonly.models.forms.additive import Axis, Table, additive
from ifonly.models.forms.steps import Stepped
from ifonly.models.forms.trees import Trees
from portions import diagonals
from reading import mixed_frame, outcome

FRAME = mixed_frame(200).assign(income=lambda f: f["income"] / 1000.0)
YES = (outcome(FRAME) > 0).astype(int)
NUMBERS = ["income", "debt", "age"]


def bins(n: int = 5) -> KBinsDiscretizer:
    return KBinsDiscretizer(n, encode="onehot-dense", strategy="uniform")


def binned(last, rest="drop"):
    parts = make_column_transformer((bins(), NUMBERS), (OneHotEncoder(), ["job"]), remainder=rest)
    return make_pipeline(parts, last)


def test_a_table_adds_what_it_says_in_every_cell_and_level():
    schema = Schema.infer(FRAME[["debt", "job"]])
    debt, job = Axis(0, np.array([-0.1, 0.2, 0.5])), Axis(1, np.empty(0))
    by_level = np.array([[0.5], [0.0], [-3.0], [9.0]])
    tables = [Table((debt,), np.array([[1.0], [5.0], [5.0], [2.0], [7.0]])), Table((job,), by_level)]
    form = additive(schema, tables, np.array([10.0]))
    cells = [(-0.1, 1.0), (np.nextafter(-0.1, 1), 5.0), (0.2, 5.0), (0.5, 5.0), (0.500001, 2.0), (np.nan, 7.0)]
    for (x, own), level in itertools.product(cells, [0, 1, 2, None]):
        u = np.concatenate([[x], np.arange(3) == level if level is not None else np.zeros(3)])
        expected = 10.0 + own + by_level[3 if level is None else level, 0]
        assert form(u[None, :])[0, 0] == expected
    assert additive(schema, [], np.array([3.0]))(np.zeros((2, schema.width))).tolist() == [[3.0], [3.0]]


def test_a_table_of_two_features_has_a_value_for_every_pair():
    schema = Schema.infer(FRAME[["debt", "job"]])
    values = np.random.default_rng(0).normal(size=(4, 4, 2)).round(1)
    form = additive(schema, [Table((Axis(0, np.array([0.1, 0.4])), Axis(1, np.empty(0))), values)], np.zeros(2))
    for (i, x), k in itertools.product(enumerate([0.1, 0.3, 0.5, np.nan]), range(4)):
        u = np.concatenate([[x], np.arange(3) == k])
        assert form(u[None, :])[0].tolist() == values[i, k].tolist()


def test_only_tables_become_trees_a_number_beside_them_does_not():
    assert isinstance(Explainer(binned(LogisticRegression()).fit(FRAME, YES), FRAME).model.read.form, Trees)
    two = FRAME[["income", "debt"]]
    mixed = make_pipeline(make_column_transformer((bins(), ["income"]), remainder="passthrough"), LogisticRegression())
    assert isinstance(Explainer(mixed.fit(two, YES), two).model.read.form, Stepped)


@pytest.mark.parametrize(("row", "price"), diagonals(3, range(0, 40, 8), [0.0, 0.2]))
def test_the_answer_is_the_cheapest_of_all_combinations_of_cells(row, price):
    """Every cell has one cheapest value, the one nearest to what it is; every level has its own price."""
    frame = FRAME[[*NUMBERS, "job"]].assign(age=FRAME["age"].astype(float))
    model = binned(Ridge()).fit(frame, YES)
    explainer = Explainer(model, frame, criteria=[Proximity("l1", scale="range"), Sparsity(price=price)])
    schema, cuts = explainer.schema, explainer.model.read.form.cuts()
    factual = frame.iloc[[row]]
    goal = float(model.predict(factual)[0]) + 0.25
    options = []
    for j, name in enumerate(NUMBERS):
        x, low, high = float(factual[name].iloc[0]), frame[name].min(), frame[name].max()
        inner = cuts[j][(cuts[j] >= low) & (cuts[j] < high)]
        below, above = inner[inner < x], inner[inner >= x]
        values = [x, *below, *np.nextafter(above, np.inf)]
        options.append([(v, abs(v - x) / (high - low) + price * (v != x)) for v in values])
    levels = [(level, (1.0 + price) * (level != factual["job"].iloc[0])) for level in frame["job"].unique()]
    options.append(levels)
    points = list(itertools.product(*options))
    table = pd.DataFrame([[v for v, _ in p] for p in points], columns=frame.columns)
    reached = np.asarray(model.predict(table)) >= goal
    cheapest = min((sum(c for _, c in p) for p, ok in zip(points, reached, strict=True) if ok), default=None)
    assert cheapest is not None
    answer = explainer.explain(factual, want=Target(at_least=goal))
    assert answer[0].certificate.proven
    assert answer[0].certificate.solver == "no solver needed"
    assert answer[0].certificate.objective == pytest.approx(cheapest, abs=1e-6)
    assert schema.names == tuple(frame.columns)
