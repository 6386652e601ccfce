"""The two studies: an applicant of German Credit and a patient of Heart, with the models and demands of the paper."""

# ruff: noqa: PLC0415 - scikit-learn is loaded with the first model

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ifonly.criteria.actionability.criterion import Actionability
from ifonly.criteria.causality.criterion import Causality
from ifonly.criteria.diversity.criterion import Diversity
from ifonly.criteria.manifold.criterion import Manifold
from ifonly.criteria.proximity import Proximity
from ifonly.criteria.sparsity import Sparsity
from ifonly.data.schema import Numeric, Schema
from ifonly.datasets import Dataset, german_credit, heart
from ifonly.explain import Explainer
from ifonly.question.criterion import Criterion
from ifonly.runtime.memo import cached_property
from ifonly.studies.study import Part, Study

__all__ = ["german_study", "heart_study"]

_PRICE = 10.0  # per changed feature: more than any distance within the data, so that few changes come first
_ROOM = 0.05  # around the hull once causality is demanded: without it, part F is proven impossible
_APART = 0.02  # of a range, between the answers of part F: enough to show amount and duration moving together
_NO_BOUND = (-1e6, 1e6)

_GERMAN = {
    "duration": "F1",
    "credit_amount": "F2",
    "installment_commitment": "F3",
    "age": "F4",
    "residence_since": "F5",
    "existing_credits": "F6",
    "num_dependents": "F7",
    "checking_status": "F8",
    "credit_history": "F9",
    "employment": "F10",
    "foreign_worker": "F11",
    "housing": "F12",
    "job": "F13",
    "other_parties": "F14",
    "other_payment_plans": "F15",
    "own_telephone": "F16",
    "personal_status": "F17",
    "property_magnitude": "F18",
    "purpose": "F19",
    "savings_status": "F20",
}
_GERMAN_REAL = ("duration", "credit_amount", "installment_commitment", "age")
_GERMAN_NOT_NEGATIVE = ("duration", "credit_amount", "installment_commitment", "existing_credits", "num_dependents")
_GERMAN_ACTIONS = Actionability(
    frozen=["foreign_worker", "personal_status", "purpose"],
    increase=["age", "residence_since"],
    ranges=dict.fromkeys(_GERMAN_NOT_NEGATIVE, (0, None)),
    conditional={"employment": {"1<=X<4": ["4<=X<7", ">=7"]}},
)

_HEART = {
    "age": "age",
    "trestbps": "bp",
    "chol": "sch",
    "thalach": "mhrt",
    "oldpeak": "opk",
    "cp": "chp",
    "restecg": "ecg",
    "exang": "exian",
    "fbs": "fbs",
    "sex": "sex",
    "slope": "slope",
    "thal": "thal",
    "ca": "vessel",
}
_HEART_REAL = ("age", "trestbps", "chol", "thalach", "oldpeak")
_HEART_ACTIONS = Actionability(
    frozen=["age", "sex"], ranges=dict.fromkeys(("trestbps", "chol", "thalach", "oldpeak"), (0, None))
)

OnPart = Callable[[Part], None]

_STEPS = ("sparsity", "diversity", "actionability", "data manifold closeness", "causality")


@dataclass(frozen=True)
class _Case:
    """Design of a study: all but its answers.

    Attributes
    ----------
    data, row, want
        The data set, the person, and the wished-for outcome.
    real
        The columns read as continuous.
    actions
        What may change, and how.
    estimator
        The model that decides, not fitted yet, on one-hot categories and numbers scaled to [0, 1].
    graph
        Feature -> its causes.
    free
        How many of the parts know no bounds, as some of the paper's answers lie outside the data.
    """

    data: Dataset
    row: int
    want: str
    real: Sequence[str]
    actions: Actionability
    estimator: Any
    graph: Mapping[str, Sequence[str]]
    free: int = 0

    @cached_property
    def split(self) -> tuple[pd.DataFrame, pd.Series[Any]]:
        """The rows the model is trained on: four fifths, stratified."""
        from sklearn.model_selection import train_test_split

        X, y = self.data.frame, self.data.target
        X_train, _, y_train, _ = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
        return X_train, y_train

    @cached_property
    def model(self) -> Any:
        """The fitted model."""
        from sklearn.compose import ColumnTransformer
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

        X, y = self.split
        numbers = [f.name for f in self.data.schema.features if isinstance(f, Numeric)]
        categories = [name for name in X if name not in numbers]
        one_hot = OneHotEncoder(sparse_output=False)
        encode = ColumnTransformer([("number", MinMaxScaler(), numbers), ("category", one_hot, categories)])
        return Pipeline([("encode", encode), ("decide", self.estimator)]).fit(X, y)

    @cached_property
    def wanted_rows(self) -> pd.DataFrame:
        """All rows whose label is the wished-for outcome."""
        return self.data.frame[self.data.target == self.want]

    @cached_property
    def law(self) -> Causality:
        """Causal model learned as in the paper: a network, by five-fold cross-validation."""
        from sklearn.neural_network import MLPRegressor

        sizes = ((5,), (10,), (20,))
        networks = [MLPRegressor(hidden_layer_sizes=s, solver="lbfgs", max_iter=2000, random_state=0) for s in sizes]
        return Causality.learn(self.data.frame, self.graph, models=networks)

    def schema(self, *, bounded: bool) -> Schema:
        """Schema of the columns, with the bounds of all data or with none."""
        frame = self.data.frame
        numbers = [f.name for f in self.data.schema.features if isinstance(f, Numeric)]
        bounds = {} if bounded else dict.fromkeys(numbers, _NO_BOUND)
        return Schema.infer(frame, numeric=self.real, bounds=bounds)

    def hull(self, epsilon: float) -> Criterion:
        """Return the demand to lie in the hull of all rows with the wished-for outcome."""
        return Manifold(epsilon=epsilon, rows=self.wanted_rows)

    def criteria(self, step: int) -> list[Criterion]:
        """Return what is demanded beside validity, proximity and coherence, after so many steps."""
        added: list[Callable[[], Criterion]] = [
            lambda: Sparsity(price=_PRICE),
            lambda: Diversity("features") if step < 5 else Diversity("iterate", distance=_APART),
            lambda: self.actions,
            lambda: self.hull(_ROOM if step > 4 else 0.0),
            lambda: self.law,
        ]
        return [make() for make in added[:step]]

    def study(self, title: str, labels: Mapping[str, str], parts: str, time_limit: float, on_part: OnPart) -> Study:
        """Return the whole study."""
        done = []
        for letter in parts:
            done.append(self.part(letter, time_limit))
            on_part(done[-1])
        return Study(title, tuple(done), labels)

    def part(self, letter: str, time_limit: float) -> Part:
        """Return one step of the study."""
        step = ord(letter) - ord("A")
        X, _ = self.split
        explainer = Explainer(
            self.model,
            X,
            schema=self.schema(bounded=step >= self.free),
            solver="highs",  # always there, so that the tables are the same everywhere
            criteria=[Proximity("l2", scale="range"), *self.criteria(step)],
        )
        n = 3 if step >= 2 else 1
        factual = self.data.frame.iloc[[self.row]]
        answer = explainer.explain(factual, want=self.want, n=n, time_limit=time_limit, gap=1e-8)
        words = ["validity, proximity, coherence", *_STEPS[:step]]
        if step > 4:
            words[4] += f" (within {_ROOM:g})"
        return Part(letter, ", ".join(words), answer)


def _nothing(part: Part) -> None:
    del part


def _german() -> _Case:
    from sklearn.svm import LinearSVC

    svm = LinearSVC(C=0.1, dual=False, random_state=0)
    graph = {"duration": ["credit_amount"]}
    return _Case(german_credit(), 775, "good", _GERMAN_REAL, _GERMAN_ACTIONS, svm, graph, free=4)


def _heart() -> _Case:
    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier(hidden_layer_sizes=(50,), max_iter=2000, random_state=0)
    return _Case(heart(), 263, "present", _HEART_REAL, _HEART_ACTIONS, network, {})


def german_study(parts: str = "ABCDEF", *, time_limit: float = 60.0, on_part: OnPart = _nothing) -> Study:
    """Return the German Credit study: an applicant whom a linear support vector machine refuses.

    Parameters
    ----------
    parts
        Which steps: A validity, proximity and coherence; B adds sparsity, C diversity, D actionability, E the hull of
        all good applicants, F a learned network by which the amount of credit causes its duration.
    time_limit
        Seconds per step.
    on_part
        Called with each step that is done.
    """
    title = "German Credit: what would have made applicant 775 a good risk (linear support vector machine)"
    return _german().study(title, _GERMAN, parts, time_limit, on_part)


def heart_study(parts: str = "ABCDE", *, time_limit: float = 60.0, on_part: OnPart = _nothing) -> Study:
    """Return the Heart study: a patient whom a network of 50 rectifiers calls healthy.

    Parameters
    ----------
    parts
        Which steps: A validity, proximity and coherence; B adds sparsity, C diversity, D actionability, E the hull of
        all patients with the disease.
    time_limit
        Seconds per step.
    on_part
        Called with each step that is done.
    """
    title = "Heart: what would have made the network see a disease in patient 263 (50 rectifiers)"
    return _heart().study(title, _HEART, parts, time_limit, on_part)
