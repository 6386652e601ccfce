"""Reader of ONNX graphs: the same scores and classes as onnxruntime in float32, or a refusal that names the node."""

import io
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ifonly.adapters.onnx import OnnxClassifier, OnnxRegressor
from ifonly.errors import UnsupportedModel
from reading import mixed_frame, read, rows

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.frameworks
helper, numpy_helper, FLOAT = onnx.helper, onnx.numpy_helper, onnx.TensorProto.FLOAT


def frame_of(X):
    return pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])


CANCER, IRIS, DIABETES = (
    (frame_of(X), y) for X, y in (load(return_X_y=True) for load in (load_breast_cancer, load_iris, load_diabetes))
)
WORDS = np.array(["one", "three", "two"])


def exported(model, frame, y, **options):
    skl2onnx = pytest.importorskip("skl2onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame.to_numpy(), y)
        return skl2onnx.to_onnx(model, frame.to_numpy()[:1].astype(np.float32), **options)


def clear(read_model, scores):
    """Whether the decision is not within the noise of float32."""
    if read_model.rule.name == "sign":
        return np.abs(scores[:, 0] - read_model.threshold) > 1e-5 * np.abs(scores).max()
    top = np.sort(scores, axis=1)
    return top[:, -1] - top[:, -2] > 1e-5 * np.abs(scores).max()


def check_classifier(adapter, frame):
    read_model, schema = read(adapter, frame)
    U = rows(schema, frame)
    seen, scores = schema.decode(U), read_model.form(U)
    decided = clear(read_model, scores)
    assert decided.mean() > 0.97
    named = np.array(read_model.classes)[read_model.decide(scores)]
    assert (named == adapter.predict(seen))[decided].all()
    if hasattr(adapter, "predict_proba"):
        np.testing.assert_allclose(read_model.probabilities(scores), adapter.predict_proba(seen), atol=1e-5)
    else:
        assert read_model.link.name == "none"
    return read_model


def check_regressor(adapter, frame):
    read_model, schema = read(adapter, frame)
    U = rows(schema, frame)
    expected = adapter.predict(schema.decode(U))
    np.testing.assert_allclose(read_model.form(U)[:, 0], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def mlp(*layers):
    return MLPClassifier(layers, max_iter=60, random_state=0)


CLASSIFIERS = {
    "mlp": (make_pipeline(StandardScaler(), mlp(8, 8)), CANCER, "sigmoid"),
    "mlp of several": (make_pipeline(MinMaxScaler(clip=True), mlp(6)), IRIS, "softmax"),
    "logistic": (make_pipeline(MaxAbsScaler(), LogisticRegression()), CANCER, "sigmoid"),
    "logistic of several": (make_pipeline(StandardScaler(), LogisticRegression()), IRIS, "softmax"),
    "svc": (LinearSVC(), CANCER, "none"),
    "svc of several": (LinearSVC(), IRIS, "none"),
    "ridge": (RidgeClassifier(), CANCER, "none"),
    "tree": (DecisionTreeClassifier(max_depth=4, random_state=0), IRIS, "identity"),
    "forest": (RandomForestClassifier(21, max_depth=4, random_state=0), CANCER, "identity"),
    "scaled forest": (
        make_pipeline(StandardScaler(), ExtraTreesClassifier(21, max_depth=4, random_state=0)),
        IRIS,
        "identity",
    ),
    "boosting": (GradientBoostingClassifier(n_estimators=20, random_state=0), CANCER, "sigmoid"),
    "boosting of several": (GradientBoostingClassifier(n_estimators=8, random_state=0), IRIS, "softmax"),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_exported_by_skl2onnx(name):
    model, (frame, y), link = CLASSIFIERS[name]
    adapter = OnnxClassifier(exported(model, frame, y))
    assert check_classifier(adapter, frame).link.name == link


def test_text_labels_are_read_off_the_graph():
    for model in (
        make_pipeline(StandardScaler(), mlp(6)),
        RandomForestClassifier(9, max_depth=3, random_state=0),
    ):
        graph = exported(model, IRIS[0], WORDS[IRIS[1]], options={"zipmap": False})
        adapter = OnnxClassifier(graph)
        assert check_classifier(adapter, IRIS[0]).classes == ("one", "three", "two")


REGRESSORS = {
    "mlp": make_pipeline(RobustScaler(), PCA(6), MLPRegressor(hidden_layer_sizes=(8, 4), max_iter=60, random_state=0)),
    "linear": LinearRegression(),
    "forest": RandomForestRegressor(20, max_depth=4, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=20, random_state=0),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_exported_by_skl2onnx(name):
    check_regressor(OnnxRegressor(exported(REGRESSORS[name], *DIABETES)), DIABETES[0])


def test_tree_thresholds_are_exact_to_the_last_float():
    frame, y = IRIS
    adapter = OnnxClassifier(exported(RandomForestClassifier(5, max_depth=3, random_state=0), frame, y))
    read_model, schema = read(adapter, frame)
    base = schema.encode(frame)[0]
    for j, cuts in read_model.form.cuts().items():
        near = np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf)])
        U = np.repeat(base[None], len(near), axis=0)
        U[:, schema.starts[j]] = near
        np.testing.assert_allclose(read_model.form(U), adapter.predict_proba(schema.decode(U)), atol=1e-6)


# -- graphs by hand ---------------------------------------------------------------------------------------------
RNG = np.random.default_rng(0)
NUMBERS = mixed_frame()[["debt", "age"]].assign(age=mixed_frame()["age"] / 40.0)


def graph(nodes, constants=(), width=2, outputs=("y",), inputs=None, kind=FLOAT):
    made = helper.make_graph(
        nodes,
        "g",
        inputs or [helper.make_tensor_value_info("x", kind, [None, width])],
        [helper.make_tensor_value_info(o, FLOAT, None) for o in outputs],
        [numpy_helper.from_array(np.asarray(v, dtype=np.float32), k) for k, v in dict(constants).items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(made, opset_imports=opsets, ir_version=8)


def node(kind, inputs, output="y", **options):
    ml = kind in {"Scaler", "LinearClassifier", "LinearRegressor", "Normalizer", "TreeEnsembleRegressor"}
    return helper.make_node(
        kind, inputs.split(), output.split(), name=f"the {kind}", domain="ai.onnx.ml" if ml else "", **options
    )


def everything():
    """A residual network with most of the operations that are read."""
    nodes = [
        node("Scaler", "x", "z0", offset=[0.1, 0.2], scale=[2.0, 0.5]),
        node("Sub", "z0 shift", "z1"),
        node("Div", "z1 two", "z2"),
        node("Gemm", "z2 W1 b1", "s1", transB=1, alpha=1.5, beta=0.5),
        node("LeakyRelu", "s1", "h1", alpha=0.1),
        node("BatchNormalization", "h1 g b m v", "n1"),
        node("PRelu", "n1 slope", "h2"),
        node("Add", "h2 h1", "r1"),
        node("Dropout", "r1", "d1"),
        node("Flatten", "d1", "f1"),
        node("MatMul", "f1 W2", "s2"),
        node("Clip", "s2 low high", "c2"),
        node("Neg", "c2", "q2"),
        node("Abs", "q2", "a2"),
        node("Concat", "a2 z0", "k2", axis=1),
        node("Gather", "k2 picks", "p2", axis=1),
        node("Cast", "p2", "t2", to=FLOAT),
        node("Constant", "", "c", value=numpy_helper.from_array(np.float32([[0.5]]))),
        node("Mul", "t2 c", "u2"),
        node("Reshape", "u2 shape", "y"),
    ]
    constants = {
        "shift": [0.3, -0.2],
        "two": 2.0,
        "W1": RNG.normal(size=(5, 2)),
        "b1": RNG.normal(size=5),
        "g": RNG.uniform(0.5, 2, 5),
        "b": RNG.normal(size=5),
        "m": RNG.normal(size=5),
        "v": RNG.uniform(0.5, 2, 5),
        "slope": [0.2],
        "W2": RNG.normal(size=(5, 3)),
        "low": -1.0,
        "high": 1.5,
    }
    model = graph(nodes, constants)
    for name, values in (("picks", [0, 2, 4]), ("shape", [-1, 3])):
        model.graph.initializer.append(numpy_helper.from_array(np.array(values, dtype=np.int64), name))
    return model


def test_a_network_of_many_operations():
    adapter = OnnxClassifier(everything(), classes=["a", "b", "c"])
    check_classifier(adapter, NUMBERS)
    again = pickle.loads(pickle.dumps(adapter))
    assert (again.predict(NUMBERS) == adapter.predict(NUMBERS)).all()


@pytest.mark.parametrize(("kind", "outputs"), [("Softmax", 3), ("Sigmoid", 1), ("LogSoftmax", 3), ("Softmax", 2)])
def test_a_last_link_is_recognised(kind, outputs):
    constants = {"W": RNG.normal(size=(2, outputs)), "b": RNG.normal(size=outputs)}
    model = graph([node("Gemm", "x W b", "s"), node(kind, "s")], constants)
    classes = list(range(max(outputs, 2)))
    read_model = check_classifier(OnnxClassifier(model, classes=classes), NUMBERS)
    assert read_model.link.name == ("softmax" if outputs == 3 else "sigmoid")


def test_probabilities_normalised_over_the_classes():
    linear = node(
        "LinearClassifier",
        "x",
        "label p",
        coefficients=[float(c) for c in RNG.normal(size=6)],
        intercepts=[0.1, 0.2, -0.3],
        classlabels_ints=[4, 5, 6],
        post_transform="LOGISTIC",
    )
    model = graph([linear, node("Normalizer", "p", "y", norm="L1")], outputs=("label", "y"))
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    read_model = check_classifier(OnnxClassifier(model), NUMBERS)
    assert (read_model.link.name, read_model.classes) == ("normalised", (4, 5, 6))


def test_a_file_and_separate_inputs(tmp_path):
    inputs = [helper.make_tensor_value_info(name, FLOAT, [None, 1]) for name in NUMBERS]
    nodes = [node("Concat", "debt age", "k", axis=1), node("MatMul", "k W")]
    path = tmp_path / "model.onnx"
    onnx.save(graph(nodes, {"W": [[1.0], [-2.0]]}, inputs=inputs), path)
    check_regressor(OnnxRegressor(str(path)), NUMBERS)
    check_regressor(OnnxRegressor(path.read_bytes()), NUMBERS)
    turned = NUMBERS[["age", "debt"]]
    with pytest.raises(UnsupportedModel, match=r"columns=\['debt', 'age'\]"):
        read(OnnxRegressor(path), turned)
    check_regressor(OnnxRegressor(path, columns=["debt", "age"]), turned)


def test_trees_in_double_precision_and_with_every_comparison():
    def trees(**kind):
        return node(
            "TreeEnsembleRegressor",
            "x",
            nodes_treeids=[0] * 9,
            nodes_nodeids=list(range(9)),
            nodes_featureids=[0, 1, 0, 1, 0, 0, 0, 0, 0],
            nodes_modes=["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", *["LEAF"] * 5],
            nodes_truenodeids=[1, 3, 5, 7, 0, 0, 0, 0, 0],
            nodes_falsenodeids=[2, 4, 6, 8, 0, 0, 0, 0, 0],
            target_treeids=[0] * 5,
            target_nodeids=[4, 5, 6, 7, 8],
            target_ids=[0] * 5,
            n_targets=1,
            **kind,
        )

    cuts, leaves = [0.25, 1.5, 0.5, 0.75] + [0.0] * 5, [1.0, 2.0, 4.0, 8.0, 16.0]
    single = graph([trees(nodes_values=cuts, target_weights=leaves, base_values=[0.5])])
    exact = [0.25, 1.5, 0.5, 0.75]
    frame = pd.DataFrame([(a, b) for a in [0.1, 0.7, *exact] for b in [0.1, 2.0, *exact]], columns=["a", "b"])
    adapter = OnnxRegressor(single)
    read_model, schema = read(adapter, frame)
    np.testing.assert_array_equal(read_model.form(schema.encode(frame))[:, 0], adapter.predict(frame))
    near = frame.map(lambda v: np.nextafter(np.float32(v), np.float32(2)).item())
    np.testing.assert_array_equal(read_model.form(schema.encode(near))[:, 0], adapter.predict(near))

    double = graph(
        [
            trees(
                nodes_values_as_tensor=numpy_helper.from_array(np.array(cuts)),
                target_weights_as_tensor=numpy_helper.from_array(np.array(leaves)),
            ),
            node("Cast", "y", "out", to=onnx.TensorProto.FLOAT),
        ],
        kind=onnx.TensorProto.DOUBLE,
        outputs=("out",),
    )
    adapter = OnnxRegressor(double)
    read_model, schema = read(adapter, frame)
    near = frame.map(lambda v: np.nextafter(v, 2))
    for data in (frame, near):
        np.testing.assert_array_equal(read_model.form(schema.encode(data))[:, 0], adapter.predict(data))


def test_trees_that_average():
    model = trees_behind("Identity", aggregate_function="AVERAGE", base_values=[0.5])
    check_regressor(OnnxRegressor(model), NUMBERS)


def test_a_module_exported_by_torch():
    torch = pytest.importorskip("torch")
    nn = torch.nn
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 3)).eval()
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            module,
            (torch.zeros(1, 2),),
            buffer,
            dynamo=False,
            input_names=["x"],
            dynamic_axes={"x": {0: "n"}},
        )
    check_classifier(OnnxClassifier(buffer.getvalue(), classes=["a", "b", "c"]), NUMBERS)


def text_input():
    return graph(
        [node("Identity", "x")],
        inputs=[helper.make_tensor_value_info("x", onnx.TensorProto.STRING, [None, 2])],
    )


def trees_behind(kind, **options):
    """A single leaf, behind or with something that is not read."""
    leaf = {"nodes_treeids": [0], "nodes_nodeids": [0], "nodes_featureids": [0], "nodes_values": [0.0]}
    leaf |= {"nodes_truenodeids": [0], "nodes_falsenodeids": [0], "nodes_modes": ["LEAF"], "n_targets": 1}
    leaf |= {"target_treeids": [0], "target_nodeids": [0], "target_ids": [0], "target_weights": [1.0]}
    return graph([node(kind, "x", "r"), node("TreeEnsembleRegressor", "r", "y", **(leaf | options))])


REFUSED = [
    (lambda: trees_behind("Relu"), "after a network"),
    (lambda: trees_behind("Identity", aggregate_function="MAX"), "sums or averages"),
    (lambda: trees_behind("Identity", nodes_modes=["BRANCH_EQ"]), "BRANCH_EQ"),
    (lambda: trees_behind("Identity", post_transform="LOGISTIC"), "behind 'sigmoid'"),
    (lambda: graph([node("Gemm", "x W", transA=1)], {"W": [[1.0], [1.0]]}), "transposes"),
    (lambda: graph([node("MatMul", "x x")]), "multiplies two signals"),
    (lambda: graph([node("Gather", "x i", axis=0)], {"i": 0}), "picks rows"),
    (
        lambda: graph([node("LinearRegressor", "x", coefficients=[1.0, 1.0], post_transform="PROBIT")]),
        "PROBIT",
    ),
    (lambda: graph([node("Relu", "elsewhere")]), "no tensor 'elsewhere'"),
    (lambda: graph([node("Tanh", "x")]), r"'the Tanh' \(Tanh\).*Relu"),
    (lambda: graph([node("Mul", "x x")]), "multiplies two signals"),
    (lambda: graph([node("Div", "one x")], {"one": 1.0}), "divides by a signal"),
    (lambda: graph([node("Normalizer", "x", norm="L2")]), "divides each row by its norm"),
    (lambda: graph([node("Sigmoid", "x", "p"), node("Relu", "p")]), "comes after a sigmoid"),
    (lambda: graph([node("Softmax", "x", axis=0)]), "along axis 0"),
    (lambda: graph([node("Concat", "x x", axis=0)]), "along axis 0"),
    (lambda: graph([node("Identity", "x")], width=5), "takes 5 columns"),
    (lambda: graph([node("Identity", "x")], kind=onnx.TensorProto.INT64), "whole numbers"),
    (text_input, "transform="),
    (lambda: graph([node("Identity", "x")]), "2 values at once"),
    (
        lambda: graph([node("Gemm", "x W", "s"), node("Sigmoid", "s")], {"W": [[1.0], [1.0]]}),
        "looks like a classifier",
    ),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_what_cannot_be_read_is_refused_by_name(build, message):
    with pytest.raises(UnsupportedModel, match=message):
        read(OnnxRegressor(build()), NUMBERS)


def test_steps_of_scikit_learn_that_are_not_piecewise_linear_are_refused():
    for model in (make_pipeline(Normalizer(), LogisticRegression()), AdaBoostClassifier(n_estimators=3)):
        with pytest.raises(UnsupportedModel, match=r"Normalizer|Exp"):
            read(OnnxClassifier(exported(model, *IRIS)), IRIS[0])


def test_bare_graphs_and_unnamed_classes_are_refused_with_the_repair():
    with pytest.raises(UnsupportedModel, match=r"OnnxClassifier\(model\)"):
        read(everything(), NUMBERS)
    with pytest.raises(UnsupportedModel, match=r"classes=\[...\]"):
        OnnxClassifier(everything())
    with pytest.raises(UnsupportedModel, match="3 outputs and 2 classes"):
        read(OnnxClassifier(everything(), classes=[0, 1]), NUMBERS)
