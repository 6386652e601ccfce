"""Old import paths still work: the same objects, a warning that names the new place, and files that name an old path load."""

from __future__ import annotations

import importlib
import io
import json
import pickle
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ifonly
import ifonly.criteria
import ifonly.extend
from ifonly._moved import GONE, MOVED, NAMES
from ifonly.adapters import BoosterClassifier, TorchClassifier


@pytest.fixture
def first_import() -> Iterator[None]:
    """Forget the old names that this process has met, during a test and after it."""

    def forget() -> None:
        for old in (MOVED.keys() | GONE.keys()) & sys.modules.keys():
            del sys.modules[old]

    forget()
    yield
    forget()


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_module_is_the_new_one_and_warns(old: str, new: str, first_import: None) -> None:
    with pytest.warns(DeprecationWarning, match=rf"^{old} has moved: import from ifonly\."):
        found = importlib.import_module(old)
    there = importlib.import_module(new)
    if old not in NAMES:
        assert found is there
    for name in getattr(there, "__all__", ()):  # and a stand-in has all that is there, without another word
        if name not in NAMES.get(old, ()):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert getattr(found, name) is getattr(there, name)


@pytest.mark.parametrize(("old", "name"), [(old, name) for old, names in NAMES.items() for name in names])
def test_a_name_that_went_another_way_is_found_and_warns(old: str, name: str, first_import: None) -> None:
    place, _, new = NAMES[old][name].partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module(old)
    with pytest.warns(
        DeprecationWarning, match=rf"^{old}\.{name} has moved: import (it|{new}) from {place}\. The old"
    ) as caught:
        assert getattr(module, name) is getattr(importlib.import_module(place), new)
    assert caught[0].filename == __file__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_what_is_called_something_else_now(first_import: None) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from ifonly.criteria.stays import Stays
        from ifonly.engine import find
    assert (Stays.__name__, find.__module__) == ("KeepsLead", "ifonly.search.progress")
    said = [str(warning.message).partition(". ")[0] for warning in caught]
    assert said == [
        "ifonly.criteria.stays has moved: import from ifonly.criteria.robustness.keeps_lead",
        "ifonly.criteria.stays.Stays has moved: import KeepsLead from ifonly.criteria.robustness.keeps_lead",
        "ifonly.engine has moved: import from ifonly.search.boxes.engine",
        "ifonly.engine.find has moved: import it from ifonly.search.progress",
    ]


@pytest.mark.parametrize("old", GONE)
def test_of_a_module_that_is_gone_it_is_said_what_does_its_work(old: str, first_import: None) -> None:
    with pytest.raises(ModuleNotFoundError, match=rf"^{old} is gone\. The .*\.$"):
        importlib.import_module(old)


# The modules of 03503d0, the commit before they moved.
BEFORE = (Path(__file__).parent / "before" / "modules.txt").read_text(encoding="utf-8").split()


@pytest.mark.parametrize("old", BEFORE)
def test_every_module_of_before_is_there_or_known(old: str, first_import: None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(old)
        except ModuleNotFoundError as error:
            if error.name not in GONE and (error.name or "").startswith("ifonly"):
                raise
            if error.name != old:
                pytest.skip(f"{error.name} is not installed")


def test_the_table_names_no_module_that_is_there() -> None:
    source = Path(ifonly.__file__).parent.parent
    files = [source.joinpath(*old.split(".")) for old in (*MOVED, *GONE)]
    assert not [path for path in files if path.with_suffix(".py").exists() or path.is_dir()]


def test_from_an_old_module_by_name(first_import: None) -> None:
    with pytest.warns(DeprecationWarning, match=r"ifonly\.mip has moved: import from ifonly\.extend") as caught:
        from ifonly.mip import Mip
    assert Mip is ifonly.extend.Mip
    assert caught[0].filename == __file__, "the warning points at the line that imports"
    assert Mip.__module__ == "ifonly.program.mip", "the module itself is left as it is"
    assert sys.modules["ifonly.program.mip"].__spec__.name == "ifonly.program.mip"  # type: ignore[union-attr]


def test_what_adapters_were_once_said_to_come_from(first_import: None) -> None:
    with pytest.warns(DeprecationWarning, match=r"ifonly\.boosters has moved: import from ifonly\.adapters\."):
        from ifonly.boosters import BoosterClassifier as Old
    assert Old is BoosterClassifier


@pytest.mark.parametrize("name", ["Costs", "Criterion", "Demand", "Query"])
def test_names_that_left_the_criteria(name: str) -> None:
    with pytest.warns(
        DeprecationWarning, match=rf"ifonly\.criteria\.{name} has moved: import it from ifonly\.extend\."
    ):
        assert getattr(ifonly.criteria, name) is getattr(ifonly.extend, name)


def test_the_criteria_are_a_catalogue_of_the_public_ones() -> None:
    assert all(getattr(ifonly.criteria, name) is getattr(ifonly, name) for name in ifonly.criteria.__all__)
    with pytest.raises(AttributeError, match=r"'ifonly\.criteria' has no attribute 'Kriterion'"):
        ifonly.criteria.Kriterion  # noqa: B018


def test_a_name_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'ifonly\.nothing'"):
        importlib.import_module("ifonly.nothing")


# -- files --------------------------------------------------------------------------------------------------------
def renamed(pickled: bytes, new: str, old: str) -> bytes:
    """Return a pickle of protocol 0, which is text, with another module in it."""
    assert f"c{new}\n".encode() in pickled or f"\n{new}\n".encode() in pickled
    return pickled.replace(new.encode(), old.encode())


def test_a_pickle_of_torch_adapters_by_their_old_path(first_import: None) -> None:
    stored = pickle.dumps(TorchClassifier, protocol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # ifonly.adapters is a place of today, so nothing is said
        assert pickle.loads(renamed(stored, "ifonly.adapters.torch", "ifonly.adapters")) is TorchClassifier


@pytest.mark.frameworks
def test_a_pickle_of_a_booster_by_its_old_path(first_import: None) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    frame = pd.DataFrame({"x": np.arange(60.0)})
    target = np.arange(60) % 7 > 3
    booster = lightgbm.train({"verbose": -1, "objective": "binary"}, lightgbm.Dataset(frame, target), 3)
    adapter = BoosterClassifier(booster, classes=["no", "yes"])
    stored = renamed(pickle.dumps(adapter, protocol=0), "ifonly.adapters.boosters", "ifonly.boosters")
    with pytest.warns(DeprecationWarning, match=r"ifonly\.boosters"):
        loaded = pickle.loads(stored)
    assert type(loaded) is BoosterClassifier
    assert np.array_equal(loaded.predict(frame), adapter.predict(frame))


def test_a_skops_file_by_an_old_path(first_import: None) -> None:
    skops_io = pytest.importorskip("skops.io")
    schema = ifonly.Schema.infer(pd.DataFrame({"x": [0.0, 1.0], "home": ["own", "rent"]}))
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(skops_io.dumps(schema.features[0]))) as new, zipfile.ZipFile(buffer, "w") as old:
        for name in new.namelist():
            text = new.read(name)
            if name == "schema.json":
                assert "ifonly.data.features" in json.dumps(json.loads(text))
                text = text.replace(b"ifonly.data.features", b"ifonly.features")
            old.writestr(name, text)
    stored = buffer.getvalue()
    trusted = skops_io.get_untrusted_types(data=stored)
    assert any(name.startswith("ifonly.features.") for name in trusted)
    with pytest.warns(DeprecationWarning, match=r"ifonly\.features"):
        loaded = skops_io.loads(stored, trusted=trusted)
    assert type(loaded) is type(schema.features[0])
