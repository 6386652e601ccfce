"""The data sets: what the loaders return, where the larger ones are looked for, and what is said when they fail."""

from __future__ import annotations

import hashlib
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from ifonly.data.schema import Categorical, Numeric
from ifonly.datasets import (
    Dataset,
    DatasetMissing,
    adult,
    compas,
    german_credit,
    give_me_some_credit,
    heart,
    heloc,
    store,
)
from ifonly.datasets.fetched import Part
from ifonly.errors import IfOnlyError, SchemaError

SHIPPED = {"german_credit": german_credit, "heart": heart}
FETCHED = {
    "adult": adult,
    "compas": compas,
    "heloc": heloc,
    "give_me_some_credit": give_me_some_credit,
}
COMPAS_HEADER = "age,two_year_recid,c_charge_degree,race,sex,priors_count,length_of_stay,score"
COMPAS_ROWS = ("25,1,M,African-American,Male,3,2,1", "21,1,F,Other,Female,0,4,0")
COMPAS_CSV = "\n".join([COMPAS_HEADER, *COMPAS_ROWS, ""])


def csv_of(name: str) -> pd.DataFrame:
    return pd.read_csv(str(files("ifonly.datasets") / "data" / f"{name}.csv"), keep_default_na=False)


def levels(data: Dataset, name: str) -> tuple[object, ...]:
    feature = data.schema[name]
    assert isinstance(feature, Categorical)
    return feature.levels


def kinds(data: Dataset) -> dict[str, int]:
    counted: dict[str, int] = {}
    for feature in data.schema.features:
        counted[feature.kind] = counted.get(feature.kind, 0) + 1
    return counted


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder that does not exist yet."""
    path = tmp_path / "data"
    monkeypatch.setenv("IFONLY_DATA", str(path))
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that a server on this machine serves as the public home of the data."""
    public = tmp_path / "public"
    public.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(public))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(store, "PUBLIC_HOME", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield public
        server.shutdown()
        thread.join()


class TestShipped:
    def test_german_credit(self) -> None:
        data = german_credit()
        assert data.frame.shape == (1000, 20)
        assert data.target.name == "class"
        assert data.target.value_counts().to_dict() == {"good": 700, "bad": 300}
        assert data.wanted == "good"
        assert kinds(data) == {"integer": 7, "categorical": 11, "binary": 2}
        numbers = data.frame.select_dtypes("number")
        assert set(map(str, numbers.dtypes)) == {"int64"}
        categories = data.frame.drop(columns=numbers.columns)
        assert all(isinstance(dtype, pd.CategoricalDtype) and not dtype.ordered for dtype in categories.dtypes)

    def test_german_credit_levels_go_from_low_to_high(self) -> None:
        data = german_credit()
        assert levels(data, "employment") == ("unemployed", "<1", "1<=X<4", "4<=X<7", ">=7")
        assert levels(data, "checking_status") == ("no checking", "<0", "0<=X<200", ">=200")

    def test_german_credit_frame_holds_the_values_of_the_file(self) -> None:
        data, table = german_credit(), csv_of("german_credit")
        for name in data.frame:
            assert data.frame[name].tolist() == table[name].tolist()
        assert data.target.tolist() == table["class"].tolist()

    def test_the_factual_of_the_paper(self) -> None:
        names = ["duration", "credit_amount", "installment_commitment", "age"]
        assert german_credit().frame[names].iloc[775].tolist() == [24, 1371, 4, 25]

    def test_heart(self) -> None:
        data = heart()
        assert data.frame.shape == (270, 13)
        assert data.target.name == "presence"
        assert data.target.value_counts().to_dict() == {"absent": 150, "present": 120}
        assert data.wanted == "absent"
        assert kinds(data) == {"integer": 4, "numeric": 1, "categorical": 5, "binary": 3}
        assert data.frame.dtypes[["age", "trestbps", "chol", "thalach"]].map(str).unique().tolist() == ["int64"]
        oldpeak = data.schema["oldpeak"]
        assert isinstance(oldpeak, Numeric)
        assert oldpeak.precision == 1

    @pytest.mark.parametrize(
        ("column", "meanings"),
        [
            ("sex", {0: "female", 1: "male"}),
            ("cp", {1: "typical angina", 2: "atypical angina", 3: "nonanginal pain", 4: "asymptomatic"}),
            ("fbs", {0: "no", 1: "yes"}),
            ("restecg", {0: "normal", 1: "ST-T abnormality", 2: "left ventricular hypertrophy"}),
            ("exang", {0: "no", 1: "yes"}),
            ("slope", {1: "upsloping", 2: "flat", 3: "downsloping"}),
            ("ca", {0: "0", 1: "1", 2: "2", 3: "3"}),
            ("thal", {3: "normal", 6: "fixed defect", 7: "reversible defect"}),
        ],
    )
    def test_heart_codes(self, column: str, meanings: dict[int, str]) -> None:
        pairs = set(zip(csv_of("heart")[column], heart().frame[column], strict=True))
        assert pairs == set(meanings.items())

    def test_heart_presence(self) -> None:
        pairs = set(zip(csv_of("heart")["presence"], heart().target, strict=True))
        assert pairs == {(1, "absent"), (2, "present")}

    def test_heart_raw_is_the_file_as_it_is(self) -> None:
        data, table = heart(raw=True), csv_of("heart")
        pd.testing.assert_frame_equal(data.frame, table.drop(columns="presence"))
        pd.testing.assert_series_equal(data.target, table["presence"])
        assert set(map(str, data.frame.dtypes)) == {"float64"}
        assert data.wanted == 1
        assert kinds(data) == kinds(heart())
        assert levels(data, "thal") == (3.0, 6.0, 7.0)

    def test_heart_oldpeak_has_its_decimal_points(self) -> None:
        oldpeak = heart().frame["oldpeak"]
        assert oldpeak.max() == 6.2
        assert oldpeak.loc[[0, 1, 9]].tolist() == [2.4, 1.6, 4.0]

    def test_repr_is_a_summary(self) -> None:
        assert repr(german_credit()) == (
            "<Dataset german_credit: 1000 rows, 20 features (13 categorical), class: good 700, bad 300; wanted 'good'>"
        )

    def test_each_call_gives_its_own_frame(self) -> None:
        frame = german_credit().frame
        frame.loc[0, "duration"] = -1
        assert german_credit().frame.loc[0, "duration"] == 6

    def test_no_network_and_no_pooch_needed(self) -> None:
        code = "import sys; from ifonly.datasets import heart; heart(); assert 'pooch' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True)


def check_coherent(data: Dataset) -> None:
    assert data.wanted in set(data.target)
    assert data.target.name not in data.frame
    assert len(data.frame) == len(data.target)
    assert not data.frame.isna().to_numpy().any()
    assert set(data.immutable) <= set(data.frame)
    assert data.schema.names == tuple(data.frame)
    assert all(feature.label for feature in data.schema.features)
    assert data.description
    assert data.citation
    assert data.licence
    sample = data.frame.head(50)
    pd.testing.assert_frame_equal(data.schema.decode(data.schema.encode(sample)), sample)


@pytest.mark.parametrize("load", [*SHIPPED.values(), partial(heart, raw=True)])
def test_shipped_is_coherent(load: Callable[[], Dataset]) -> None:
    check_coherent(load())


class TestFolder:
    def test_a_file_in_the_folder_is_used_and_left_alone(self, folder: Path) -> None:
        folder.mkdir()
        path = folder / "compas_test.csv"
        path.write_text(COMPAS_CSV)
        data = compas(part="test")
        assert data.frame["race"].tolist() == ["African-American", "Other"]
        assert data.target.tolist() == [1, 0]
        assert data.target.dtype == "int64"
        assert path.read_text() == COMPAS_CSV

    def test_train_and_test_have_equal_dtypes(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "compas_train.csv").write_text(COMPAS_CSV)
        (folder / "compas_test.csv").write_text("\n".join([COMPAS_HEADER, COMPAS_ROWS[0]]))
        assert compas("train").frame.dtypes.equals(compas("test").frame.dtypes)

    def test_columns_may_come_in_another_order(self, folder: Path) -> None:
        folder.mkdir()
        path = folder / "compas_train.csv"
        path.write_text(COMPAS_CSV)
        expected = compas().frame
        table = pd.read_csv(path)
        table[table.columns[::-1]].to_csv(path, index=False)
        pd.testing.assert_frame_equal(compas().frame, expected)

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (COMPAS_CSV.replace("priors_count", "priors"), r"(?s)columns differ.*- priors_count.*\+ priors"),
            (COMPAS_CSV.replace("Female", "Unknown"), "'sex' .* holds 'Unknown', .* only 'Female', 'Male'"),
            (COMPAS_CSV.replace("25,", "young,"), "'age' .* must be a number"),
            (
                COMPAS_CSV.replace("25,", ","),
                "'age' .* must be a number, but it holds text or an empty field",
            ),
            (COMPAS_CSV.replace(",0\n", ",2\n"), "'score' .* holds 2"),
            ("", "cannot be read as CSV"),
        ],
    )
    def test_a_wrong_file_is_refused(self, folder: Path, content: str, says: str) -> None:
        folder.mkdir()
        (folder / "compas_train.csv").write_text(content)
        with pytest.raises(SchemaError, match=says) as caught:
            compas()
        assert "compas_train.csv" in str(caught.value)
        assert "Put the right file there" in str(caught.value)

    def test_an_unknown_part(self, folder: Path) -> None:
        with pytest.raises(ValueError, match=r"'part' parameter of heloc must be 'train' or 'test'\. Got 'dev'"):
            heloc("dev")  # type: ignore[arg-type]

    def test_without_the_variable_it_is_the_cache(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("IFONLY_DATA", raising=False)
        assert "ifonly" in store.data_folder().parts


class TestFetch:
    def test_fetched_once_then_kept(self, folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (home / "compas_train.csv").write_bytes(COMPAS_CSV.encode())
        monkeypatch.setitem(store.SHA256, "compas_train.csv", hashlib.sha256(COMPAS_CSV.encode()).hexdigest())
        first = compas()
        assert (folder / "compas_train.csv").read_bytes() == COMPAS_CSV.encode()
        (home / "compas_train.csv").unlink()
        pd.testing.assert_frame_equal(compas().frame, first.frame)

    def test_another_file_is_refused_and_not_kept(self, folder: Path, home: Path) -> None:
        (home / "compas_train.csv").write_text(COMPAS_CSV)
        with pytest.raises(DatasetMissing, match=r"serves is another file .* and was discarded"):
            compas()
        assert not (folder / "compas_train.csv").exists()

    def test_not_there(self, folder: Path, home: Path) -> None:
        with pytest.raises(DatasetMissing, match="404"):
            compas()

    def test_offline(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with socket.socket() as bound:
            # Bound but not listening: every connection to this port is refused.
            bound.bind(("127.0.0.1", 0))
            monkeypatch.setattr(store, "PUBLIC_HOME", f"http://127.0.0.1:{bound.getsockname()[1]}/")
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            with pytest.raises(DatasetMissing) as caught:
                adult()
        message = str(caught.value)
        assert message.startswith("Data file 'adult_train.csv' not found")
        assert str(folder) in message
        assert "download from http://127.0.0.1" in message
        assert "set the environment variable IFONLY_DATA" in message
        assert isinstance(caught.value, FileNotFoundError)
        assert isinstance(caught.value, IfOnlyError)
        assert str(pickle.loads(pickle.dumps(caught.value))) == message

    @pytest.mark.parametrize("name", FETCHED)
    @pytest.mark.parametrize("part", ["train", "test"])
    def test_every_file_has_a_checksum(self, name: str, part: str) -> None:
        assert len(store.SHA256[f"{name}_{part}.csv"]) == 64


@pytest.mark.data
class TestRealData:
    @pytest.fixture(autouse=True)
    def data(self) -> Path:
        if not os.environ.get("IFONLY_DATA"):
            pytest.skip("IFONLY_DATA is not set")
        return store.data_folder()

    @pytest.mark.parametrize("name", SHIPPED)
    def test_shipped_equals_the_reference(self, data: Path, name: str) -> None:
        reference = pd.read_csv(data / f"{name}.csv", keep_default_na=False)
        pd.testing.assert_frame_equal(csv_of(name), reference, check_exact=True)

    @pytest.mark.parametrize("file", store.SHA256)
    def test_checksums(self, data: Path, file: str) -> None:
        assert hashlib.sha256((data / file).read_bytes()).hexdigest() == store.SHA256[file]

    @pytest.mark.parametrize(
        ("name", "part", "rows", "good", "kind"),
        [
            ("adult", "train", 36624, 8747, {"integer": 6, "binary": 7}),
            ("adult", "test", 12208, 2940, {"integer": 6, "binary": 7}),
            ("compas", "train", 4629, 3764, {"integer": 4, "binary": 3}),
            ("compas", "test", 1543, 1264, {"integer": 4, "binary": 3}),
            ("heloc", "train", 7403, 3548, {"integer": 11, "numeric": 10}),
            ("heloc", "test", 2468, 1187, {"integer": 11, "numeric": 10}),
            ("give_me_some_credit", "train", 86645, 80759, {"integer": 8, "numeric": 2}),
            ("give_me_some_credit", "test", 28882, 26927, {"integer": 8, "numeric": 2}),
        ],
    )
    def test_fetched(self, name: str, part: Part, rows: int, good: int, kind: dict[str, int]) -> None:
        data = FETCHED[name](part=part)
        check_coherent(data)
        assert data.name == name
        assert len(data.frame) == rows
        assert data.target.dtype == "int64"
        assert data.wanted == 1
        assert data.target.value_counts().to_dict() == {1: good, 0: rows - good}
        assert kinds(data) == kind
        # Declared whole means whole in every row, not only in the sample above.
        for feature in data.schema.features:
            if feature.kind == "integer":
                assert (data.frame[feature.name] % 1 == 0).all()
