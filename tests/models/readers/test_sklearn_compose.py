"""scikit-learn's composite estimators: the form is their own score, and the optimum is that of brute force."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ifonly import Explainer, Target
from ifonly.errors import CriterionError, Infeasible, UnsupportedModel
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.trees import Trees
from ifonly.models.opening import open_model
from reading import rows

NUMBERS = ["a", "b", "c"]
# The proof is the point here, not how busy the machine is.
PATIENCE = 300.0


def prepared(last, scaler=None):
    columns = make_column_transformer(
        (OneHotEncoder(), ["g"]), (scaler or StandardScaler(), NUMBERS), sparse_threshold=0
    )
    return make_pipeline(columns, last)


def logistic(C=1.0, scaler=None):
    return prepared(LogisticRegression(C=C, max_iter=2000), scaler)


def svc(C=1.0):
    return prepared(LinearSVC(C=C, max_iter=20000))


def tree(depth=3):
    return prepared(DecisionTreeClassifier(max_depth=depth, random_state=0))


def forest():
    return prepared(RandomForestClassifier(5, max_depth=3, random_state=0))


def boosting(loss="log_loss"):
    return prepared(GradientBoostingClassifier(n_estimators=5, max_depth=2, loss=loss, random_state=0))


def ridge():
    return prepared(Ridge())


def value_tree():
    return prepared(DecisionTreeRegressor(max_depth=3, random_state=0))


def soft(*members, weights=None):
    return VotingClassifier([(f"m{i}", m) for i, m in enumerate(members)], voting="soft", weights=weights)


def hard(*members, weights=None):
    return VotingClassifier([(f"m{i}", m) for i, m in enumerate(members)], voting="hard", weights=weights)


def stacking(*members, last=None, **options):
    return StackingClassifier([(f"m{i}", m) for i, m in enumerate(members)], last, cv=3, **options)


def calibrated(member, **options):
    return CalibratedClassifierCV(member, cv=3, **options)


def binned(encode, last):
    return prepared(last, KBinsDiscretizer(3, encode=encode, strategy="uniform"))


TWO = {
    "soft vote": lambda: soft(logistic(), logistic(0.01, MinMaxScaler()), logistic(20.0)),
    "weighted soft vote": lambda: soft(logistic(), logistic(0.05), weights=[1.0, 2.5]),
    "soft vote of all kinds": lambda: soft(logistic(), tree(), boosting()),
    "soft vote of forests": lambda: soft(forest(), tree()),
    "soft vote over exponential boosting": lambda: soft(boosting("exponential"), logistic()),
    "soft vote over clipped probabilities": lambda: soft(
        prepared(SGDClassifier(loss="modified_huber", random_state=0)), logistic()
    ),
    "hard vote": lambda: hard(logistic(), svc(0.1), tree(2)),
    "hard vote with a tie": lambda: hard(logistic(), tree(2)),
    "weighted hard vote": lambda: hard(logistic(), svc(0.1), tree(2), weights=[0.5, 0.3, 0.4]),
    "calibrated alone": lambda: calibrated(svc(), ensemble=False),
    "isotonic alone": lambda: calibrated(logistic(), method="isotonic", ensemble=False),
    "isotonic forest alone": lambda: calibrated(forest(), method="isotonic", ensemble=False),
    "temperature alone": lambda: calibrated(tree(2), method="temperature", ensemble=False),
    "calibrated folds": lambda: calibrated(logistic()),
    "isotonic folds": lambda: calibrated(svc(), method="isotonic"),
    "temperature folds": lambda: calibrated(logistic(), method="temperature"),
    "stacking": lambda: stacking(logistic(), svc(), tree()),
    "stacking with the data": lambda: prepared(
        stacking(
            LogisticRegression(C=0.1),
            DecisionTreeClassifier(max_depth=2, random_state=0),
            last=make_pipeline(StandardScaler(), LogisticRegression()),
            passthrough=True,
        )
    ),
    "stacking of predictions": lambda: stacking(logistic(), tree(2), last=LinearSVC(), stack_method="predict"),
    "fixed threshold": lambda: FixedThresholdClassifier(logistic(), threshold=0.3, pos_label="yes"),
    "fixed threshold of the first": lambda: FixedThresholdClassifier(logistic(), threshold=0.6, pos_label="no"),
    "fixed threshold of a score": lambda: FixedThresholdClassifier(
        svc(), threshold=0.3, response_method="decision_function", pos_label="no"
    ),
    "fixed threshold of a forest": lambda: FixedThresholdClassifier(forest(), threshold=0.4, pos_label="no"),
    "fixed threshold of a vote": lambda: FixedThresholdClassifier(
        soft(logistic(), tree(2)), threshold=0.4, pos_label="yes"
    ),
    "tuned threshold": lambda: TunedThresholdClassifierCV(logistic(), cv=3, random_state=0),
    "grid search": lambda: GridSearchCV(logistic(), {"logisticregression__C": [0.1, 1.0]}, cv=3),
    "one vs rest of two": lambda: OneVsRestClassifier(logistic()),
    "one vs rest of two forests": lambda: OneVsRestClassifier(forest()),
    "one vs rest of two by a network": lambda: prepared(
        OneVsRestClassifier(MLPClassifier((4,), solver="lbfgs", alpha=1.0, max_iter=2000, random_state=0))
    ),
    "bagged logistic": lambda: prepared(
        BaggingClassifier(LogisticRegression(), n_estimators=4, max_features=0.7, random_state=0)
    ),
    "ordinal bins": lambda: binned("ordinal", LogisticRegression()),
    "one-hot bins": lambda: binned("onehot", LogisticRegression()),
    "dense bins": lambda: binned("onehot-dense", LogisticRegression()),
    "bins before a tree": lambda: binned("ordinal", DecisionTreeClassifier(max_depth=3, random_state=0)),
    "vote over bins": lambda: soft(binned("onehot-dense", LogisticRegression()), logistic()),
}
THREE = {
    "soft vote": lambda: soft(logistic(), logistic(0.05)),
    "soft vote with a forest": lambda: soft(logistic(), forest()),
    "hard vote": lambda: hard(logistic(), svc(0.1), tree(2)),
    "calibrated alone": lambda: calibrated(svc(), ensemble=False),
    "isotonic alone": lambda: calibrated(logistic(), method="isotonic", ensemble=False),
    "calibrated forest alone": lambda: calibrated(forest(), ensemble=False),
    "temperature alone": lambda: calibrated(logistic(), method="temperature", ensemble=False),
    "temperature forest alone": lambda: calibrated(forest(), method="temperature", ensemble=False),
    "temperature folds": lambda: calibrated(logistic(), method="temperature"),
    "one vs rest": lambda: OneVsRestClassifier(logistic()),
    "one vs rest of forests": lambda: OneVsRestClassifier(forest()),
    "stacking": lambda: stacking(logistic(), tree(2)),
    "stacking of scores": lambda: stacking(logistic(), svc(), stack_method="decision_function"),
    "bagged votes": lambda: prepared(BaggingClassifier(LinearSVC(max_iter=20000), n_estimators=3, random_state=0)),
}
SLOW = {
    "calibrated folds": lambda: calibrated(svc()),
    "vote over shares": lambda: soft(calibrated(svc(), ensemble=False), OneVsRestClassifier(logistic())),
}
NUMBER = {
    "mean": lambda: VotingRegressor([("l", ridge()), ("t", value_tree())], weights=[1, 2]),
    "mean of linear": lambda: VotingRegressor([("l", ridge()), ("m", prepared(LinearRegression()))]),
    "mean with an exponential": lambda: VotingRegressor(
        [
            ("l", TransformedTargetRegressor(ridge(), func=np.log1p, inverse_func=np.expm1)),
            ("t", ridge()),
        ]
    ),
    "mean with a Poisson loss": lambda: VotingRegressor(
        [
            ("h", prepared(HistGradientBoostingRegressor(loss="poisson", max_iter=3, max_leaf_nodes=4))),
            ("t", ridge()),
        ]
    ),
    "stacking": lambda: StackingRegressor([("l", ridge()), ("t", value_tree())], Ridge(), cv=3),
    "log target": lambda: TransformedTargetRegressor(ridge(), func=np.log, inverse_func=np.exp),
    "cubic target": lambda: TransformedTargetRegressor(ridge(), func=np.arcsinh, inverse_func=np.sinh),
    "root target": lambda: TransformedTargetRegressor(ridge(), func=np.sqrt, inverse_func=np.square),
    "plain target": lambda: TransformedTargetRegressor(ridge()),
    "scaled target": lambda: TransformedTargetRegressor(ridge(), transformer=StandardScaler()),
    "robust target": lambda: TransformedTargetRegressor(value_tree(), transformer=RobustScaler()),
    "power target": lambda: TransformedTargetRegressor(ridge(), transformer=PowerTransformer()),
    "quantile target": lambda: TransformedTargetRegressor(ridge(), transformer=QuantileTransformer(n_quantiles=20)),
    "bagged ridge": lambda: prepared(BaggingRegressor(Ridge(), n_estimators=4, random_state=0)),
}


def data(seed=0, n=90, whole=True):
    """A frame and one number per row; its values lie on a small grid when `whole`."""
    rng = np.random.default_rng(seed)
    ends = {"a": 6, "b": 5, "c": 4}
    X = pd.DataFrame(
        {k: rng.integers(0, e, n) if whole else rng.uniform(0, e - 1, n) for k, e in ends.items()}
        | {"g": rng.choice(["x", "y", "z"], n)}
    )
    score = X[NUMBERS].to_numpy() @ rng.normal(size=3) / 2 + (X["g"] == "x") * rng.normal()
    return X, (score + 0.8 * rng.normal(size=n)).to_numpy()


def fitted(family, kind, seed=0, whole=True):
    X, score = data(seed, whole=whole)
    if kind == "number":
        return family().fit(X, score - score.min() + 0.5), X
    cuts, names = ([0.5], ["no", "yes"]) if kind == "two" else ([0.33, 0.67], ["low", "mid", "top"])
    return family().fit(X, np.array(names)[np.searchsorted(np.quantile(score, cuts), score)]), X


FAMILIES = [
    *[pytest.param(family, "two", id=f"two: {name}") for name, family in TWO.items()],
    *[pytest.param(family, "three", id=f"three: {name}") for name, family in THREE.items()],
    *[pytest.param(family, "number", id=f"number: {name}") for name, family in NUMBER.items()],
]


# -- twins ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("family", "kind"),
    [
        *(family for i, family in enumerate(FAMILIES) if i % 6 == 3),
        *[
            pytest.param(*family.values, marks=pytest.mark.slow, id=family.id)
            for i, family in enumerate(FAMILIES)
            if i % 6 != 3
        ],
        *[pytest.param(f, "three", marks=pytest.mark.slow, id=n) for n, f in SLOW.items()],
    ],
)
def test_the_form_is_the_estimators_own_score(family, kind):
    """On floats; on a grid, see the tests of the optimum."""
    estimator, X = fitted(family, kind, whole=False)
    schema, model, _, _ = open_model(estimator, X, None)
    own_score(model, rows(schema, X), kind)


def own_score(model, U, kind):
    scores = model.read.form(U)
    if kind == "number":
        theirs = model.predict(U)
        np.testing.assert_allclose(model.read.decide(scores), theirs, rtol=1e-9, atol=1e-12)
        return
    decided = np.array(model.read.classes, dtype=object)[model.read.decide(scores)]
    assert (decided == model.predict(U)).all()
    theirs, ours = model.predict_proba(U), model.read.probabilities(scores)
    if ours is not None:
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_simple_parts_make_simple_forms():
    for name, form in (("mean of linear", Linear), ("bagged ridge", Linear), ("scaled target", Linear)):
        estimator, X = fitted(NUMBER[name], "number")
        assert isinstance(open_model(estimator, X, None)[1].read.form, form), name
    for name, form in (("soft vote of forests", Trees), ("calibrated alone", Linear), ("isotonic alone", Linear)):
        estimator, X = fitted(TWO[name], "two")
        assert isinstance(open_model(estimator, X, None)[1].read.form, form), name


def test_a_frozen_estimator_is_what_it_holds():
    X, score = data()
    inner = logistic().fit(X, score > 0)
    frozen = CalibratedClassifierCV(FrozenEstimator(inner)).fit(X, score > 0)
    schema, model, _, _ = open_model(frozen, X, None)
    U = rows(schema, X)
    np.testing.assert_allclose(model.read.probabilities(model.read.form(U)), model.predict_proba(U), rtol=1e-9)


def test_a_dropped_member_does_not_count():
    X, score = data()
    vote = soft(logistic(), tree()).set_params(m1="drop").fit(X, score > 0)
    schema, model, _, _ = open_model(vote, X, None)
    U = rows(schema, X)
    np.testing.assert_allclose(model.read.form(U), model.predict_proba(U), rtol=1e-9)


def test_arrays_are_taken_as_they_come():
    X, score = data(whole=False)
    array = X[NUMBERS].to_numpy()
    vote = soft(LogisticRegression(), BaggingClassifier(LogisticRegression(), 3, random_state=0)).fit(array, score > 0)
    explainer = Explainer(vote, array)
    answer = explainer.explain(array[int(np.argmin(vote.predict(array)))], want=True)
    assert vote.predict(answer.frame().to_numpy())[0]


# -- the optimum ------------------------------------------------------------------------------------------------------
def grid(X):
    values = [range(X[k].min(), X[k].max() + 1) for k in NUMBERS] + [sorted(X["g"].unique())]
    return pd.DataFrame(list(itertools.product(*values)), columns=[*NUMBERS, "g"]).astype(X.dtypes.to_dict())


def cost(G, row, X):
    """The default distance and the price of 0.1 per changed feature, said once more."""
    parts = [(G[k] - row[k]).abs() / (X[k].max() - X[k].min()) + 0.1 * (G[k] != row[k]) for k in NUMBERS]
    return (sum(parts) + 1.1 * (G["g"] != row["g"])).to_numpy()


def wishes(estimator, X, kind, seed):
    """A row, what is wanted for it, and who in a frame has it."""
    rng = np.random.default_rng(seed)
    said, i = estimator.predict(X), int(rng.integers(len(X)))
    if kind == "number":
        low, high = np.quantile(said, [0.7, 0.85] if said[i] < np.median(said) else [0.15, 0.3])
        yield (
            i,
            Target(at_least=low, at_most=high),
            lambda G: (estimator.predict(G) >= low) & (estimator.predict(G) <= high),
        )
        bound = np.quantile(said, 0.9)
        yield int(np.argmin(said)), Target(at_least=bound), lambda G: estimator.predict(G) >= bound
        return
    others = [c for c in estimator.classes_ if c != said[i]]
    label = others[int(rng.integers(len(others)))]
    yield i, label, lambda G: estimator.predict(G) == label
    if hasattr(estimator, "predict_proba"):
        p = estimator.predict_proba(X)
        k = int(rng.integers(p.shape[1]))
        wanted = float(np.clip(np.quantile(p[:, k], 0.8), 0.02, 0.98))
        target = Target(estimator.classes_[k], probability=wanted)
        yield int(np.argmin(p[:, k])), target, lambda G: estimator.predict_proba(G)[:, k] >= wanted


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        *(family for i, family in enumerate(FAMILIES) if i % 6 == 1),
        *[pytest.param(*f.values, marks=pytest.mark.slow, id=f.id) for i, f in enumerate(FAMILIES) if i % 6 != 1],
    ],
)
def test_the_optimum_is_that_of_brute_force(family, kind):
    estimator, X = fitted(family, kind, seed=1)
    G, explainer, refusals = grid(X), Explainer(estimator, X), []
    own_score(explainer.model, explainer.schema.encode(G), kind)
    for i, want, judge in wishes(estimator, X, kind, seed=1):
        row = X.iloc[i]
        meets = judge(G)
        best = cost(G, row, X)[meets].min() if meets.any() else np.inf
        try:
            answer = explainer.explain(row, want=want, time_limit=PATIENCE)
        except CriterionError as error:
            refusals.append(str(error))
            continue
        except Infeasible:
            assert best == np.inf
            continue
        assert answer.status == "optimal"
        assert bool(judge(answer.frame())[0])
        assert answer[0].certificate.objective == pytest.approx(best, abs=1e-6)
    # Probabilities that are divided by a sum cannot be asked for, nor what is there already.
    assert all(
        "gives no prob" in text or "divides" in text or "one by one" in text or "already there" in text
        for text in refusals
    )


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        pytest.param(
            family,
            kind,
            marks=pytest.mark.slow if kind == "three" or name in ("calibrated folds", "stacking") else (),
            id=f"{kind}: {name}",
        )
        for table, kind in ((TWO, "two"), (THREE, "three"), (NUMBER, "number"))
        for name, family in table.items()
        if name
        in ("soft vote", "hard vote", "calibrated folds", "stacking", "mean with an exponential", "ordinal bins")
    ],
)
def test_answers_on_floats_are_proven_and_confirmed(family, kind):
    estimator, X = fitted(family, kind, seed=4, whole=False)
    explainer = Explainer(estimator, X)
    # A softmax over a mean of softmaxes is proven too, but takes its time.
    asked = itertools.islice(wishes(estimator, X, kind, seed=0), 1 if kind == "three" else None)
    for i, want, judge in asked:
        try:
            answer = explainer.explain(X.iloc[i], want=want, time_limit=PATIENCE)
        except CriterionError:
            continue
        assert answer.status == "optimal"
        assert bool(judge(answer.frame())[0])


def test_a_soft_vote_is_never_undercut_by_a_random_search():
    estimator, X = fitted(TWO["soft vote"], "two", seed=3, whole=False)
    row = X.iloc[int(np.argmax(estimator.predict(X) == "no"))]
    best = Explainer(estimator, X).explain(row, want="yes")[0].certificate.objective
    rng = np.random.default_rng(0)
    G = pd.DataFrame([row] * 20000).reset_index(drop=True).astype(X.dtypes.to_dict())
    for k in NUMBERS:
        moved = rng.random(len(G)) < 0.5
        G.loc[moved, k] = rng.uniform(X[k].min(), X[k].max(), int(moved.sum()))
    assert cost(G, row, X)[estimator.predict(G) == "yes"].min() >= best - 1e-6


# -- refusals ---------------------------------------------------------------------------------------------------------
def refuse(estimator, X, *words):
    with pytest.raises(UnsupportedModel) as caught:
        open_model(estimator, X, None)
    for word in words:
        assert word in str(caught.value)


def test_what_cannot_be_read_is_refused_by_name():
    X, score = data()
    two, three = score > 0, np.searchsorted(np.quantile(score, [0.33, 0.67]), score)
    positive = score - score.min() + 0.5
    refuse(
        soft(logistic(), prepared(KNeighborsClassifier(weights="distance"))).fit(X, two),
        X,
        "m1",
        "KNeighborsClassifier",
    )
    refuse(calibrated(logistic(), method="isotonic").fit(X, three), X, "isotonic", "ensemble=False")
    refuse(calibrated(tree(), method="temperature").fit(X, two), X, "temperature", "ensemble=False")
    refuse(stacking(logistic(), last=DecisionTreeClassifier()).fit(X, two), X, "DecisionTreeClassifier", "linear")
    many = np.column_stack([two, score > 1])
    refuse(OneVsRestClassifier(logistic()).fit(X, many), X, "multilabel")
    odd = TransformedTargetRegressor(ridge(), func=lambda v: np.log(2 * v), inverse_func=lambda v: np.exp(v) / 2)
    odd.fit(X, positive)
    refuse(odd, X, "TransformedTargetRegressor", "<lambda>", "expm1")
    steps = KBinsDiscretizer(3, encode="ordinal", strategy="uniform")
    kbins = TransformedTargetRegressor(ridge(), transformer=steps, check_inverse=False)
    refuse(kbins.fit(X, positive), X, "KBinsDiscretizer", "PowerTransformer")
    power = TransformedTargetRegressor(ridge(), transformer=PowerTransformer())
    refuse(VotingRegressor([("p", power), ("l", ridge())]).fit(X, positive), X, "'p'", "unknown curvature")
    mixed = make_pipeline(FunctionTransformer(), VotingClassifier([("s", svc())], voting="hard")).fit(X, two)
    assert open_model(mixed, X, None)[1].read.rule.name == "argmax"


def test_a_probability_without_one_is_refused():
    estimator, X = fitted(TWO["hard vote"], "two")
    with pytest.raises(CriterionError, match="gives no probabilities"):
        Explainer(estimator, X).explain(X.iloc[0], want=Target("yes", probability=0.7))
