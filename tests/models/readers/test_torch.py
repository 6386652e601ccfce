"""Reader of PyTorch modules: the same scores and classes as torch in float32, or a refusal that names the layer."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ifonly.adapters.torch import TorchClassifier, TorchRegressor
from ifonly.errors import SchemaError, UnsupportedModel
from ifonly.models.reading.graphs import agrees
from ifonly.models.reading.source import Source
from reading import mixed_frame, read, rows

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional
pytestmark = pytest.mark.frameworks

FRAME = mixed_frame()
NUMBERS = FRAME[["debt", "age"]].assign(age=FRAME["age"] / 40.0, income=FRAME["income"] / 1e4)
PREPARE = make_column_transformer(
    (StandardScaler(), ["income", "debt", "age"]), (OneHotEncoder(), ["job", "home"])
).fit(FRAME)
WIDTH = 8


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def with_statistics(module):
    """Batch norm with statistics that are not the initial ones, and every part in training mode, as users leave it."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
    return module.train()


class Residual(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, 12), nn.Linear(12, 12)
        self.norm, self.drop = nn.BatchNorm1d(12), nn.Dropout(0.3)
        self.last = nn.Linear(12 + WIDTH, outputs)
        self.register_buffer("shift", torch.randn(WIDTH))
        self.scale = nn.Parameter(torch.rand(WIDTH) + 0.5)

    def forward(self, x):
        z = (x - self.shift) / 2.0 * self.scale
        h = functional.leaky_relu(self.first(z), 0.2)
        h = h + torch.relu(self.norm(self.second(h)))
        h = functional.dropout(self.drop(h), 0.5, training=self.training)
        h = h.view(h.size(0), -1)
        return self.last(torch.cat([h, 1.5 - z.clamp(-1, 1)], dim=1))


class Parts(nn.Module):
    """Slices, functional layers, in-place sums and a squeezed output."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.matrix = nn.Parameter(torch.randn(4, 3))

    def forward(self, x):
        a = functional.linear(x[:, :4], self.weight)
        a += functional.hardtanh(x[:, 4:])
        a = torch.abs(-a).flatten(1) @ self.matrix
        return torch.add(a[:, 1], a[:, 2].mul(0.5)).squeeze(-1)


class Ends(nn.Module):
    """Clamps at one end, at the other, at none; constants met from the left; one entry spread over several."""

    def forward(self, x):
        a = x.clamp(min=0.2) + torch.clamp(x, max=0.4) + torch.clip(x, -1e9 * 1e300, None)
        b = 2.0 - a * torch.tensor([0.5] * WIDTH) + x[:, :1]
        c = functional.leaky_relu(b[:, :1], negative_slope=0.3) + torch.tensor([1.0, 2.0]) * 3
        return torch.sub(c, b[:, [1, 2]])[:, 0] - c[:, 1]


def sequential(outputs, *last):
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(WIDTH, 16),
        nn.ReLU(),
        nn.BatchNorm1d(16),
        nn.Dropout(0.5),
        nn.Linear(16, 8),
        nn.LeakyReLU(0.05),
        nn.Identity(),
        nn.BatchNorm1d(8, affine=False),
        nn.PReLU(8),
        nn.ReLU6(),
        nn.Linear(8, outputs, bias=False),
        *last,
    )


MODULES = {
    "one output": (lambda: sequential(1), 2, "scores"),
    "two outputs": (lambda: sequential(2), 2, "scores"),
    "three outputs": (lambda: sequential(3), 3, "scores"),
    "residual": (lambda: Residual(3), 3, "scores"),
    "log softmax": (lambda: sequential(3, nn.LogSoftmax(dim=1)), 3, "scores"),
    "softmax": (lambda: sequential(3, nn.Softmax(dim=1)), 3, "probabilities"),
    "sigmoid": (lambda: sequential(1, nn.Sigmoid()), 2, "probabilities"),
}


@pytest.mark.parametrize("name", MODULES)
def test_scores_and_classes_are_torchs(name):
    build, n, kind = MODULES[name]
    module = with_statistics(build())
    classes = ["bad", "fair", "good"][-n:]
    adapter = TorchClassifier(module, classes, transform=PREPARE, outputs_are=kind)
    read_model, schema = read(adapter, FRAME)
    U = rows(schema, FRAME)
    frame, scores = schema.decode(U), read_model.form(U)
    raw = adapter.outputs(frame)
    if kind == "scores" and name != "log softmax":
        raw = raw[:, 1:] - raw[:, :1] if raw.shape[1] == 2 else raw
        np.testing.assert_allclose(scores, raw, rtol=1e-5, atol=1e-5 * np.abs(raw).max())
    np.testing.assert_allclose(read_model.probabilities(scores), adapter.predict_proba(frame), atol=1e-5)
    same = np.array(classes)[read_model.decide(scores)] == adapter.predict(frame)
    assert same[clear(scores)].all()
    assert clear(scores).mean() > 0.999
    assert module.training


def clear(scores):
    """Whether the decision is not within the noise of float32."""
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0]) > 1e-5 * np.abs(scores).max()
    top = np.sort(scores, axis=1)
    return top[:, -1] - top[:, -2] > 1e-5 * np.abs(scores).max()


@pytest.mark.parametrize("build", [lambda: Residual(1), Parts, Ends, lambda: sequential(1)])
def test_values_are_torchs(build):
    adapter = TorchRegressor(with_statistics(build()), transform=PREPARE)
    read_model, schema = read(adapter, FRAME)
    U = rows(schema, FRAME)
    expected = adapter.predict(schema.decode(U))
    np.testing.assert_allclose(read_model.form(U)[:, 0], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_a_module_in_double_precision_is_exact():
    adapter = TorchRegressor(with_statistics(Residual(1)).double(), transform=PREPARE, dtype=np.float64)
    read_model, schema = read(adapter, FRAME)
    U = rows(schema, FRAME)
    np.testing.assert_allclose(read_model.form(U)[:, 0], adapter.predict(schema.decode(U)), rtol=1e-9, atol=1e-12)


def test_an_adapter_ends_a_pipeline_and_behaves_like_an_estimator():
    adapter = TorchClassifier(sequential(1), [0, 1])
    pipeline = Pipeline([("prepare", PREPARE), ("net", adapter)])
    read_model, schema = read(pipeline, FRAME)
    U = rows(schema, FRAME, 500)
    np.testing.assert_allclose(
        read_model.probabilities(read_model.form(U)), pipeline.predict_proba(schema.decode(U)), atol=1e-5
    )
    assert is_classifier(pipeline)
    assert is_regressor(TorchRegressor(sequential(1)))
    assert clone(pipeline)[-1] is adapter
    assert adapter.fit(FRAME) is adapter
    assert adapter.get_params()["classes"] == [0, 1]
    again = pickle.loads(pickle.dumps(pipeline))
    assert (again.predict(FRAME) == pipeline.predict(FRAME)).all()


def test_columns_are_chosen_by_name():
    module = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    adapter = TorchClassifier(module, ["no", "yes"], columns=["income", "debt"])
    read_model, schema = read(adapter, NUMBERS)
    U = rows(schema, NUMBERS, 500)
    frame = schema.decode(U)
    np.testing.assert_allclose(read_model.probabilities(read_model.form(U)), adapter.predict_proba(frame), atol=1e-5)
    assert read_model.form.features() == {0, 2}
    assert adapter.takes_frames
    with pytest.raises(SchemaError, match="array without names"):
        adapter.predict(NUMBERS.to_numpy())
    with pytest.raises(UnsupportedModel, match="'wealth'"):
        read(TorchClassifier(module, ["no", "yes"], columns=["wealth", "debt"]), NUMBERS)


def test_a_transform_fitted_on_arrays_is_given_arrays():
    scaler = StandardScaler().fit(NUMBERS.to_numpy())
    adapter = TorchRegressor(nn.Linear(3, 1), transform=scaler)
    assert not adapter.takes_frames
    read_model, schema = read(adapter, NUMBERS)
    U = rows(schema, NUMBERS, 500)
    np.testing.assert_allclose(read_model.form(U)[:, 0], adapter.predict(schema.decode(U)), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(adapter.predict(NUMBERS.to_numpy()), adapter.predict(NUMBERS))


def small(*layers):
    return nn.Sequential(nn.Linear(3, 4), *layers)


class Branching(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Product(nn.Module):
    def forward(self, x):
        return x[:, :1] * x[:, 1:2]


class Inputs(nn.Module):
    def forward(self, x, y):
        return x + y


class Always(nn.Module):
    def forward(self, x):
        return functional.dropout(x[:, :1], 0.5)


class Turned(nn.Module):
    def forward(self, x):
        return x.flip(1)[:, :1]


class Uneven(nn.Module):
    def forward(self, x):
        return x[:, :2] + x


class Unequal(nn.Module):
    def forward(self, x):
        return x * torch.tensor([1.0, 2.0])


class Beside(nn.Module):
    def forward(self, x):
        return torch.cat([x, torch.ones(1, 1)], dim=1)


class Rows(nn.Module):
    def forward(self, x):
        return x[0]


class Under(nn.Module):
    def forward(self, x):
        return torch.cat([x, x])


class Nothing(nn.Module):
    def forward(self, x):
        return None


class Pair(nn.Module):
    def forward(self, x):
        return x, x


REFUSED = [
    (small(nn.Tanh(), nn.Linear(4, 1)), r"layer '1' \(Tanh\).*ReLU"),
    (small(nn.Sigmoid(), nn.Linear(4, 1)), r"layer '2' \(Linear\) comes after a sigmoid"),
    (small(nn.LayerNorm(4), nn.Linear(4, 1)), "LayerNorm"),
    (small(nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 1)), "running statistics"),
    (nn.Linear(5, 1), "takes 5 columns, but receives 3"),
    (nn.Linear(3, 3), "3 outputs and 2 classes"),
    (Branching(), "cannot be traced"),
    (Product(), "multiplies two signals"),
    (Inputs(), "second input"),
    (Always(), "drops at random"),
    (Turned(), "operation 'flip'"),
    (Pair(), "not one tensor"),
    (Nothing(), "returns NoneType"),
    (Uneven(), "meets 2 entries with 3"),
    (Unequal(), "meets 2 constants with 3"),
    (Beside(), "constant beside a signal"),
    (Rows(), "picks rows"),
    (Under(), "along dim=0"),
]


@pytest.mark.parametrize(("module", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_what_cannot_be_read_is_refused_by_name(module, message):
    with pytest.raises(UnsupportedModel, match=message):
        read(TorchClassifier(module, [0, 1]), NUMBERS)


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_misread_graph_never_passes(outputs):
    torch.manual_seed(1)
    one, other = (TorchClassifier(nn.Linear(3, outputs), list(range(max(outputs, 2)))) for _ in range(2))
    read_model, schema = read(one, NUMBERS)
    source = Source.raw(schema, schema.decode, schema.encode(NUMBERS)[0])
    assert agrees(read_model, one, source) is read_model
    with pytest.raises(UnsupportedModel, match="differs from what it computes"):
        agrees(read_model, other, source)


def test_a_bare_module_is_refused_with_the_repair():
    with pytest.raises(UnsupportedModel, match=r"TorchClassifier\(module, classes\)"):
        read(sequential(1), NUMBERS)


def test_scores_and_probabilities_are_not_confused():
    with pytest.raises(UnsupportedModel, match="outputs_are='probabilities'"):
        TorchClassifier(sequential(1, nn.Sigmoid()), [0, 1])

    class Hidden(nn.Module):
        def forward(self, x):
            return torch.sigmoid(x[:, :1])

    with pytest.raises(UnsupportedModel, match="outputs_are='probabilities'"):
        read(TorchClassifier(Hidden(), [0, 1]), NUMBERS)
    with pytest.raises(UnsupportedModel, match="does not end in"):
        read(TorchClassifier(nn.Linear(3, 1), [0, 1], outputs_are="probabilities"), NUMBERS)
    with pytest.raises(UnsupportedModel, match="multilabel"):
        read(
            TorchClassifier(nn.Sequential(nn.Linear(3, 2), nn.Sigmoid()), [0, 1], outputs_are="probabilities"),
            NUMBERS,
        )
    with pytest.raises(UnsupportedModel, match="looks like a classifier"):
        read(TorchRegressor(nn.Sequential(nn.Linear(3, 1), nn.Sigmoid())), NUMBERS)
    with pytest.raises(UnsupportedModel, match="2 values at once"):
        read(TorchRegressor(nn.Linear(3, 2)), NUMBERS)
