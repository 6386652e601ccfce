"""An Explainer is pickled plainly: by pickle, cloudpickle and joblib; it answers the same, and carries no cache."""

import io
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from ifonly import Causality, Cause, Explainer, Manifold, Robustness
from ifonly.models.read import Read
from ifonly.models.reading.assemble import RawTree, assemble, float64_at_most
from ifonly.models.registry import reads
from portions import one_in
from questions import FACTUAL, labels, people, pipeline, schema


class Scorecard:
    """A model of the user's own: each rule that holds adds its points, and enough points are a yes."""

    def __init__(self, rules: list[tuple[int, float, float]], needed: float) -> None:
        self.rules, self.needed, self.classes_ = rules, needed, np.array(["bad", "good"])

    def predict(self, X: Any) -> Any:
        values = np.asarray(X, dtype=float)
        points = sum(np.where(values[:, column] <= limit, points, 0.0) for column, limit, points in self.rules)
        return self.classes_[(points >= self.needed).astype(int)]


@reads(Scorecard.__module__, "Scorecard")
def read_scorecard(estimator: Scorecard, source: Any) -> Read:
    trees = [
        RawTree(
            column=np.array([column, -1, -1]),
            threshold=np.array([limit, 0.0, 0.0]),
            left=np.array([1, 1, 2]),
            right=np.array([2, 1, 2]),
            value=np.array([[0.0], [points], [0.0]]),
        )
        for column, limit, points in estimator.rules
    ]
    form = assemble(source, trees, np.zeros(1), float64_at_most)
    names = tuple(str(c) for c in estimator.classes_)
    return Read(form, names, "sign", threshold=estimator.needed, strict=False, piecewise_constant=True)


def scorecard() -> Explainer:
    X = people()[["age", "income", "debts"]]
    return Explainer(Scorecard([(2, 3.0, 20.0), (1, 2.0, -5.0), (0, 40.0, 7.0)], 12.0), X)


def of(last: Any = None, house: Any = None) -> Explainer:
    X = people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pipeline(X, labels(X), last)
    return Explainer(model, X, labels(X), schema=schema(X), criteria=house)


def robust() -> Explainer:
    again = [pipeline(people(seed=s), labels(people(seed=s))) for s in (1, 2)]
    return of(house=[Robustness(radius=0.05, models=again)])


CASES: dict[str, Callable[[], Explainer]] = {
    "linear": of,
    "forest": lambda: of(RandomForestClassifier(8, max_depth=4, random_state=0)),
    "network": lambda: of(MLPClassifier((4,), max_iter=300, random_state=0)),
    "scorecard": scorecard,
    "robustness with models": robust,
    "hull": lambda: of(house=[Manifold(clusters=2)]),
    "isolation": lambda: of(house=[Manifold(isolation=0.2, rows=people(8))]),
    "causality": lambda: of(house=[Causality({"income": Cause(["age"], coefficients={"age": 0.02})})]),
}


def by_joblib(explainer: Explainer) -> Explainer:
    file = io.BytesIO()
    joblib.dump(explainer, file)
    file.seek(0)
    return joblib.load(file)  # type: ignore[no-any-return]


WAYS: list[Callable[[Explainer], Explainer]] = [
    lambda e: pickle.loads(pickle.dumps(e)),
    lambda e: pickle.loads(cloudpickle.dumps(e)),
    by_joblib,
]


def said(explainer: Explainer) -> str:
    row = {name: FACTUAL[name] for name in explainer.schema.names}
    found = explainer.explain(row, want="good")
    return repr([found.status, found[0].row.to_dict("list"), found[0].distance, found[0].certificate.bound])


@pytest.mark.parametrize("name", one_in(3, CASES))
def test_answers_are_the_same_after_a_pickle(name: str) -> None:
    explainer = CASES[name]()
    fresh = [way(explainer) for way in WAYS]  # before anything is cached
    answer = said(explainer)
    used = [way(explainer) for way in WAYS[:1]]  # after
    assert [said(other) for other in fresh + used] == [answer] * (len(fresh) + len(used))


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_a_pickle_carries_no_cache(name: str) -> None:
    explainer = CASES[name]()
    before = len(pickle.dumps(explainer))
    said(explainer)
    assert explainer.training.scores is explainer.training.scores
    assert len(pickle.dumps(explainer)) <= before + 64  # for references that a pickle counts anew


@pytest.mark.parametrize("name", one_in(2, ["linear", "forest", "network"]))
def test_a_pickle_is_about_as_large_as_model_and_rows(name: str) -> None:
    explainer = CASES[name]()
    form, model = explainer.model.read.form, explainer.model.estimator
    # tuned numbers are of one size, whatever the model is
    parts = [explainer._frame, explainer.training.U, explainer.training.labels, model, form, explainer.tuning]
    if explainer._complete is not form:
        parts.append(explainer._complete)
    assert len(pickle.dumps(explainer)) <= 1.1 * len(pickle.dumps(parts)) + 4096


def test_another_process_gives_the_same_answer(tmp_path: Path) -> None:
    explainer = CASES["forest"]()
    (tmp_path / "explainer.pickle").write_bytes(pickle.dumps(explainer))
    script = (
        "import pickle, sys; e = pickle.load(open(sys.argv[1], 'rb')); f = e.explain(eval(sys.argv[2]), want='good')"
    )
    script += "; print(repr([f.status, f[0].row.to_dict('list'), f[0].distance, f[0].certificate.bound]))"
    command = [sys.executable, "-c", script, str(tmp_path / "explainer.pickle"), repr(FACTUAL)]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == said(explainer)
