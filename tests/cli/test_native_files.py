"""Native model files on the command line: opened without --trust, read exactly, their columns found by name."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression, Ridge

from ifonly.cli import main
from ifonly.cli.files import features, load_model
from ifonly.testing import check_reader
from reading import mixed_frame, outcome

pytestmark = pytest.mark.frameworks

FRAME = mixed_frame(200).assign(income=lambda f: (f["income"] / 1000.0).round(3))
NUMBERS = FRAME[["income", "debt", "age"]]
YES = (outcome(FRAME) > 0).astype(int)
VALUE = (FRAME["income"] - FRAME["debt"]).to_numpy()


def xgboost(path: Path, kind: str) -> None:
    xgb = pytest.importorskip("xgboost")
    made = xgb.XGBRegressor if kind == "value" else xgb.XGBClassifier
    model = made(n_estimators=5, max_depth=3, n_jobs=1).fit(NUMBERS, VALUE if kind == "value" else YES)
    model.get_booster().save_model(path)


def lightgbm(path: Path, kind: str) -> None:
    lgb = pytest.importorskip("lightgbm")
    options = {"n_estimators": 5, "num_leaves": 6, "verbose": -1, "n_jobs": 1, "min_child_samples": 5}
    if kind == "words":
        frame = FRAME.astype({"job": "category", "home": "category"})
        lgb.LGBMClassifier(**options, min_data_per_group=1, cat_smooth=1).fit(frame, YES).booster_.save_model(path)
        return
    made = lgb.LGBMRegressor if kind == "value" else lgb.LGBMClassifier
    made(**options).fit(NUMBERS, VALUE if kind == "value" else YES).booster_.save_model(path)


def catboost(path: Path, kind: str) -> None:
    cat = pytest.importorskip("catboost")
    options = {"iterations": 5, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    if kind == "words":
        options |= {"one_hot_max_size": 255, "cat_features": ["job", "home"]}
        cat.CatBoostClassifier(**options).fit(FRAME, YES).save_model(str(path))
        return
    made = cat.CatBoostRegressor if kind == "value" else cat.CatBoostClassifier
    made(**options).fit(NUMBERS, VALUE if kind == "value" else YES).save_model(str(path))


def onnx(path: Path, kind: str) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    Z = NUMBERS.to_numpy(dtype=np.float32)
    fitted = Ridge().fit(Z, VALUE) if kind == "value" else LogisticRegression(max_iter=1000).fit(Z, YES)
    options = None if kind == "value" else {id(fitted): {"zipmap": False}}
    path.write_bytes(skl2onnx.to_onnx(fitted, Z[:1], options=options).SerializeToString())


FILES = [
    (xgboost, "model.json", "two"),
    (xgboost, "model.ubj", "two"),
    (xgboost, "model.json", "value"),
    (lightgbm, "model.txt", "two"),
    (lightgbm, "model.txt", "value"),
    (lightgbm, "model.txt", "words"),
    (catboost, "model.cbm", "two"),
    (catboost, "model.cbm", "value"),
    (catboost, "model.cbm", "words"),
    (onnx, "model.onnx", "two"),
    (onnx, "model.onnx", "value"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("write", "name", "kind"), FILES, ids=lambda v: getattr(v, "__name__", v))
def test_a_native_file_is_opened_read_and_explained(write, name, kind, tmp_path):
    path, data = tmp_path / name, tmp_path / "data.csv"
    write(path, kind)
    # Without names a graph of one matrix is given the columns as they are.
    table = NUMBERS if name.endswith(".onnx") else FRAME.assign(id=range(200))
    table.to_csv(data, index=False)
    model = load_model(path, trust=False)
    X = features(model, pd.read_csv(data))
    assert list(X.columns) == list(FRAME.columns if kind == "words" else NUMBERS.columns)
    check_reader(model, X, points=5000, tolerance=1e-5)
    said = np.asarray(model.predict(X)).reshape(-1)
    wish = ["--at-least", f"{float(np.quantile(said, 0.9)):.6f}"] if kind == "value" else ["--want", "1"]
    row = int(said.argmin())
    answer = tmp_path / "answer.json"
    done = CliRunner().invoke(
        main, ["explain", str(path), str(data), "--row", str(row), *wish, "--output", str(answer)]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(answer.read_text())


def test_a_file_that_is_none_of_these_and_one_that_is_damaged(tmp_path):
    data = tmp_path / "data.csv"
    NUMBERS.to_csv(data, index=False)
    catboost = importlib.util.find_spec("catboost") is not None
    for name, said in (
        ("model.h5", "nor one of XGBoost"),
        ("model.cbm", "cannot be opened" if catboost else "needs the package catboost"),
        ("model.txt", "no model file"),
    ):
        path = tmp_path / name
        path.write_bytes(b"CBM1 and then nothing" if name.endswith("cbm") else b"nothing of the kind")
        done = CliRunner().invoke(main, ["explain", str(path), str(data), "--row", "0"])
        assert done.exit_code != 0
        assert said in " ".join(done.output.split())


def test_an_onnx_graph_without_labels_counts_its_outputs(tmp_path):
    helper = pytest.importorskip("onnx").helper
    from ifonly.adapters.onnx import OnnxClassifier, OnnxRegressor, load_onnx

    for width, kind in ((3, OnnxClassifier), (1, OnnxRegressor)):
        weights = helper.make_tensor("w", 1, [2, width], np.arange(2.0 * width))
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", 1, [None, 2])],
            [helper.make_tensor_value_info("y", 1, [None, width])],
            [weights],
        )
        path = tmp_path / f"{width}.onnx"
        path.write_bytes(helper.make_model(graph).SerializeToString())
        made = load_onnx(path)
        assert type(made) is kind
        assert made.input_names() == ["x"]
        if width == 3:
            assert made.classes_.tolist() == [0, 1, 2]
