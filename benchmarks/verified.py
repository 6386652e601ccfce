"""Confirms answers of every model family with the framework's own predict, and prints the table kept in docs/verified.md.

Run from the repository's root: ``python -m benchmarks.verified`` (``--factuals 8 --families MLP`` for a short look).
With ``--records lines.jsonl`` a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ifonly import Explainer, Target
from ifonly.datasets import german_credit, heart


@dataclass(frozen=True)
class Task:
    """A data set to explain on."""

    name: str
    frame: pd.DataFrame
    target: pd.Series[Any]
    regression: bool = False


def tasks() -> list[Task]:
    """Return two credit and health sets with categories, one with three classes, one regression set."""
    german, sick = german_credit(), heart()
    wine, diabetes = load_wine(as_frame=True), load_diabetes(as_frame=True, scaled=False)
    return [
        Task("German Credit", german.frame, german.target),
        Task("Heart", sick.frame, sick.target),
        Task("Wine (3 classes)", wine.data, wine.target.map(dict(enumerate(wine.target_names)))),
        Task("Diabetes (regression)", diabetes.data, diabetes.target, regression=True),
    ]


Build = Callable[[Task], Any]


def _encoded(estimator: Any, *, scale: bool = False) -> Any:
    numbers = StandardScaler() if scale else "passthrough"
    categories = make_column_selector(dtype_exclude="number")
    encode = OneHotEncoder(sparse_output=False)
    parts = make_column_transformer((encode, categories), (numbers, make_column_selector(dtype_include="number")))
    return make_pipeline(parts, estimator)


def _sklearn(classifier: Any, regressor: Any | None, *, scale: bool = False) -> Build:
    def build(task: Task) -> Any:
        estimator = regressor if task.regression else classifier
        return _encoded(estimator, scale=scale).fit(task.frame, task.target)

    return build


def _codes(task: Task) -> tuple[pd.Series[Any], list[Any]]:
    labels = sorted(task.target.unique())
    return task.target.map({label: i for i, label in enumerate(labels)}).astype(int), labels


def _xgboost(task: Task) -> Any:
    import xgboost

    y = task.target if task.regression else _codes(task)[0]
    kind = xgboost.XGBRegressor if task.regression else xgboost.XGBClassifier
    return _encoded(kind(n_estimators=30, max_depth=3, random_state=0)).fit(task.frame, y)


def _lightgbm(task: Task) -> Any:
    import lightgbm

    kind = lightgbm.LGBMRegressor if task.regression else lightgbm.LGBMClassifier
    model = kind(n_estimators=30, num_leaves=8, random_state=0, verbose=-1)
    encoded = _encoded(model)
    encoded[0].set_output(transform="pandas")
    return encoded.fit(task.frame, task.target)


def _catboost(task: Task) -> Any:
    import catboost

    kind = catboost.CatBoostRegressor if task.regression else catboost.CatBoostClassifier
    model = kind(iterations=30, depth=3, random_seed=0, verbose=False, allow_writing_files=False)
    return _encoded(model).fit(task.frame, task.target)


def _torch(task: Task) -> Any:
    import torch

    from ifonly.adapters.torch import TorchClassifier, TorchRegressor

    torch.manual_seed(0)
    prepare = _encoded("passthrough", scale=True).fit(task.frame)
    Z = torch.tensor(np.asarray(prepare.transform(task.frame)), dtype=torch.float32)
    y, labels = (task.target, []) if task.regression else _codes(task)
    outputs = 1 if task.regression else len(labels)
    module = torch.nn.Sequential(torch.nn.Linear(Z.shape[1], 16), torch.nn.ReLU(), torch.nn.Linear(16, outputs))
    optimiser = torch.optim.Adam(module.parameters(), lr=0.02)
    goal = torch.tensor(np.asarray(y, dtype=np.float32 if task.regression else np.int64))
    loss = (
        (lambda s: ((s[:, 0] - goal) ** 2).mean())
        if task.regression
        else (lambda s: torch.nn.functional.cross_entropy(s, goal))
    )
    for _ in range(200):
        optimiser.zero_grad()
        loss(module(Z)).backward()
        optimiser.step()
    module.eval()
    last = TorchRegressor(module) if task.regression else TorchClassifier(module, labels)
    return make_pipeline(prepare[0], last)


def _onnx(task: Task) -> Any:
    from skl2onnx import to_onnx

    from ifonly.adapters.onnx import OnnxClassifier, OnnxRegressor

    prepare = _encoded("passthrough", scale=True).fit(task.frame)
    Z = np.asarray(prepare.transform(task.frame), dtype=np.float32)
    kind = MLPRegressor if task.regression else MLPClassifier
    fitted = kind(hidden_layer_sizes=(16,), max_iter=400, random_state=0, alpha=0.01).fit(Z, task.target)
    options = None if task.regression else {id(fitted): {"zipmap": False}}
    graph = to_onnx(fitted, Z[:1], options=options).SerializeToString()
    return make_pipeline(prepare[0], OnnxRegressor(graph) if task.regression else OnnxClassifier(graph))


def _words(task: Task) -> list[str]:
    return list(task.frame.select_dtypes(exclude="number").columns)


def _scorecard(task: Task) -> Any:
    import optbinning

    bins = optbinning.BinningProcess(list(task.frame.columns), categorical_variables=_words(task))
    scale = {"scaling_method": "min_max", "scaling_method_params": {"min": 300, "max": 850}}
    return optbinning.Scorecard(bins, LogisticRegression(), **scale).fit(task.frame, _codes(task)[0].to_numpy())


def _boosting_machine(task: Task) -> Any:
    from interpret import glassbox

    kind = glassbox.ExplainableBoostingRegressor if task.regression else glassbox.ExplainableBoostingClassifier
    pairs = 0 if task.target.nunique() == 3 else 5  # interpret fits pairs for two classes and for values
    return kind(interactions=pairs, outer_bags=4, max_rounds=500, n_jobs=1, random_state=0).fit(task.frame, task.target)


def _evidence(task: Task) -> Any:
    import category_encoders

    two = not task.regression and task.target.nunique() == 2
    encode = (category_encoders.WOEEncoder if two else category_encoders.CountEncoder)(cols=_words(task))
    last = Ridge() if task.regression else LogisticRegression(max_iter=2000)
    y = task.target if task.regression else _codes(task)[0]
    return make_pipeline(encode, StandardScaler(), last).fit(task.frame, y)


def _catboost_words(task: Task) -> Any:
    import catboost

    kind = catboost.CatBoostRegressor if task.regression else catboost.CatBoostClassifier
    words = {"cat_features": _words(task), "max_ctr_complexity": 4}
    model = kind(iterations=30, depth=4, random_seed=0, verbose=False, allow_writing_files=False, **words)
    return model.fit(task.frame, task.target)


def _counts(task: Task) -> Any:
    return _encoded(PoissonRegressor(alpha=1e-3), scale=True).fit(task.frame, task.target)


def _splines(task: Task) -> Any:
    last = Ridge() if task.regression else LogisticRegression(max_iter=2000)
    numbers = make_column_selector(dtype_include="number")
    words = (OneHotEncoder(sparse_output=False), make_column_selector(dtype_exclude="number"))
    parts = make_column_transformer((SplineTransformer(n_knots=4, degree=1), numbers), words)
    return make_pipeline(parts, last).fit(task.frame, task.target)


def _rounded(X: Any) -> Any:
    """Two digits of every number: a transformer that says of itself that it never turns."""
    return np.round(np.asarray(X, dtype=np.float64), 1)


_rounded.column_wise = "monotone"  # type: ignore[attr-defined]


def _own(task: Task) -> Any:
    numbers = make_column_selector(dtype_include="number")
    words = (OneHotEncoder(sparse_output=False), make_column_selector(dtype_exclude="number"))
    small = {"n_estimators": 20, "max_depth": 4, "random_state": 0}
    last = RandomForestRegressor(**small) if task.regression else RandomForestClassifier(**small)
    parts = make_column_transformer((FunctionTransformer(_rounded), numbers), words)
    return make_pipeline(parts, last).fit(task.frame, task.target)


# The tasks that a family can be fitted on, where that is not all of them.
ONLY: dict[str, Callable[[Task], bool]] = {
    "calibrated": lambda task: not task.regression,
    "scorecard": lambda task: task.target.nunique() == 2,
    "Poisson regression": lambda task: task.regression,
    # Of continuous numbers, thirteen in Wine and nine in Diabetes, a proof takes minutes a row: docs/any-model.md says so.
    "nearest neighbours": lambda task: task.name in ("German Credit", "Heart"),
}


def families() -> dict[str, Build]:
    """Return how to fit each family on a task."""
    small = {"n_estimators": 30, "max_depth": 4, "random_state": 0}
    boost = {"n_estimators": 30, "max_depth": 3, "random_state": 0}
    hist = {"max_iter": 30, "max_leaf_nodes": 8, "random_state": 0}
    mlp = {"hidden_layer_sizes": (16,), "max_iter": 400, "random_state": 0, "alpha": 0.01}
    logistic, forest = LogisticRegression(max_iter=2000), RandomForestClassifier(**{**small, "n_estimators": 10})
    return {
        "random forest": _sklearn(RandomForestClassifier(**small), RandomForestRegressor(**small)),
        "extra trees": _sklearn(ExtraTreesClassifier(**small), ExtraTreesRegressor(**small)),
        "gradient boosting": _sklearn(GradientBoostingClassifier(**boost), GradientBoostingRegressor(**boost)),
        "hist gradient boosting": _sklearn(
            HistGradientBoostingClassifier(**hist), HistGradientBoostingRegressor(**hist)
        ),
        "AdaBoost": _sklearn(
            AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=20, random_state=0),
            AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=20, random_state=0),
        ),
        "XGBoost": _xgboost,
        "LightGBM": _lightgbm,
        "CatBoost": _catboost,
        "MLP": _sklearn(MLPClassifier(**mlp), MLPRegressor(**mlp), scale=True),
        "nearest neighbours": _sklearn(KNeighborsClassifier(7), KNeighborsRegressor(7), scale=True),
        "torch": _torch,
        "ONNX": _onnx,
        "voting": _sklearn(
            VotingClassifier(
                [("forest", forest), ("tree", DecisionTreeClassifier(max_depth=4, random_state=0))], voting="soft"
            ),
            VotingRegressor([("forest", RandomForestRegressor(**small)), ("ridge", Ridge())]),
        ),
        "calibrated": _sklearn(CalibratedClassifierCV(logistic, method="sigmoid", ensemble=False), None, scale=True),
        "scorecard": _scorecard,
        "explainable boosting": _boosting_machine,
        "weight of evidence": _evidence,
        "CatBoost, categories": _catboost_words,
        "Poisson regression": _counts,
        "splines": _splines,
        "own transformer": _own,
    }


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    family: str
    task: str
    factuals: int
    answers: int
    confirmed: int
    proven: int
    other: str
    milliseconds: float
    gap: float = 0.0  # the largest one of an answer, relative to its cost


def judge(family: str, task: Task, build: Build, factuals: int) -> Line:
    """Explain random factuals of a task and have the model itself confirm each returned row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = build(task)
    said = np.asarray(model.predict(task.frame)).reshape(-1)
    want, reached, rows = _question(task, said, factuals)
    explainer = Explainer(model, task.frame)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batch = explainer.explain_all(rows, want=want, time_limit=300)
    seconds = time.process_time() - began
    found = batch.found()
    confirmed = sum(_confirmed(model, e.frame(), reached) for e in found)
    missing = batch.status()[[o.explanation is None for o in batch.outcomes]].value_counts()
    proven = sum(e[0].certificate.proven for e in found)
    other = ", ".join(f"{n} {status}" for status, n in missing.items()) or "-"
    gap = max((e[0].certificate.gap for e in found), default=0.0)
    return Line(family, task.name, len(rows), len(found), confirmed, proven, other, 1e3 * seconds / len(rows), gap)


def _confirmed(model: Any, answer: pd.DataFrame, reached: Callable[[Any], bool]) -> bool:
    """Whether the model's `predict` says what was wanted of the returned row, and `predict_proba` nothing else."""
    said = np.asarray(model.predict(answer)).reshape(-1)[0]
    if not reached(said):
        return False
    if not hasattr(model, "predict_proba"):
        return True
    shares = np.asarray(model.predict_proba(answer))[0] if hasattr(model, "classes_") else np.ones(1)
    return bool(shares[list(getattr(model, "classes_", [said])).index(said)] == shares.max())


def _question(task: Task, said: Any, factuals: int) -> tuple[Any, Callable[[Any], bool], pd.DataFrame]:
    """Return the wanted outcome, how to recognise it in a prediction, and factuals that do not have it."""
    rng = np.random.default_rng(0)
    if task.regression:
        goal = float(np.quantile(said, 0.4))
        rows = np.flatnonzero(said > goal)
        want: Any = Target(at_most=goal)

        def reached(value: Any) -> bool:
            return float(value) <= goal
    else:
        values, counts = np.unique(said, return_counts=True)
        label = values[int(np.argmax(counts))]
        want = label.item() if isinstance(label, np.generic) else label
        rows = np.flatnonzero(said != label)

        def reached(value: Any) -> bool:
            return bool(value == label)

    chosen = rng.choice(rows, min(factuals, len(rows)), replace=False)
    return want, reached, task.frame.iloc[chosen]


def table(lines: list[Line]) -> str:
    """Return the lines as a markdown table."""
    head = (
        "| family | data set | factuals | answers | confirmed by `predict` | proven optimal | no answer | ms per row |"
    )
    rule = "|---|---|---|---|---|---|---|---|"
    body = [
        f"| {x.family} | {x.task} | {x.factuals} | {x.answers} | {x.confirmed} | {x.proven} | {x.other} "
        f"| {x.milliseconds:.0f} |"
        for x in lines
    ]
    return "\n".join([head, rule, *body])


def main() -> None:
    """Run the table for the families and sets that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--factuals", type=int, default=200, help="per family, shared out evenly over its data sets")
    parser.add_argument("--families", nargs="*", default=list(families()))
    parser.add_argument("--records", type=Path, default=None, help="keep finished lines here, and do not redo them")
    parser.add_argument("--output", type=Path, default=None, help="also write the page, e.g. docs/verified.md")
    options = parser.parse_args()
    done = _read(options.records)
    lines = []
    for family in options.families:
        of_family = [task for task in tasks() if ONLY.get(family, lambda _: True)(task)]
        left = options.factuals
        for i, task in enumerate(of_family):
            line = done.get((family, task.name))
            if line is None:
                # What one set is short of rows with another outcome, the next ones make up for.
                line = judge(family, task, families()[family], -(-left // (len(of_family) - i)))
                _keep(options.records, line)
            left -= line.factuals
            lines.append(line)
            print(table([line]).splitlines()[-1], flush=True)
    closing = summary(lines)
    print(closing)
    if options.output is not None:
        options.output.write_text(_PAGE.format(closing=closing, table=table(lines)), encoding="utf-8")


def summary(lines: list[Line]) -> str:
    """Return the totals in words."""
    asked, answers = sum(x.factuals for x in lines), sum(x.answers for x in lines)
    confirmed, proven = sum(x.confirmed for x in lines), sum(x.proven for x in lines)
    text = f"{asked} questions, {answers} answers: {confirmed} confirmed by the model itself, {proven} proven optimal."
    if proven < answers:
        widest = max(x.gap for x in lines if x.proven < x.answers)
        text += f" The other {answers - proven} are proven to be within {widest:.1e} of the best, relative to its cost."
    return text


def _read(records: Path | None) -> dict[tuple[str, str], Line]:
    if records is None or not records.exists():
        return {}
    lines = [Line(**json.loads(text)) for text in records.read_text(encoding="utf-8").splitlines()]
    return {(x.family, x.task): x for x in lines}


def _keep(records: Path | None, line: Line) -> None:
    if records is not None:
        with records.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(line)) + "\n")


_PAGE = """# Confirmed by the models themselves

Two hundred random rows per model family, shared out over its data sets. Every answer was handed back, as the frame that a
user gets, to the fitted model's own `predict`, and to `predict_proba` where there is one. Classification asks for the most
common predicted class, regression for a value of at most the 40 per cent quantile of the predictions; the criteria are the
default ones. Calibration is for classifiers, so it has three sets; scorecards have the two sets of two classes, and Poisson
regression has the one of values. The page is written by `python -m benchmarks.verified --output docs/verified.md`;
milliseconds are CPU time of one core of the machine that ran it. Networks that compute in float32 (torch, ONNX) round their
scores by so much that the cheapest answer is known to a few millionths of its cost; beyond the asked gap of one millionth
it is not called optimal.

{table}

{closing}
"""


if __name__ == "__main__":
    main()
