"""Importing ifonly stays light: no framework, solver or plotting library, and few modules of its own."""

import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.skipif(find_spec("ifonly") is None, reason="the package is not there yet")

# What ifonly is made of; anything it loads beyond these is counted.
FOUNDATION = "import numpy, pandas, scipy.sparse"
MODULES_BEYOND_FOUNDATION = 140

HEAVY = (
    "IPython",
    "catboost",
    "click",
    "gurobipy",
    "highspy",
    "jinja2",
    "joblib",
    "lightgbm",
    "matplotlib",
    "numba",
    "onnx",
    "onnxruntime",
    "polars",
    "pooch",
    "pyscipopt",
    "requests",
    "rich",
    "scipy.optimize",
    "scipy.stats",
    "skl2onnx",
    "sklearn",
    "skops",
    "starlette",
    "torch",
    "xgboost",
)


@cache
def modules_loaded_by(statement: str) -> frozenset[str]:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", statement], capture_output=True, text=True, check=True
    )
    lines = re.findall(r"^import time:\s+\d+ \|\s+\d+ \|\s+(\S+)$", run.stderr, flags=re.MULTILINE)
    return frozenset(lines)


@pytest.mark.parametrize("heavy", HEAVY)
def test_import_loads_nothing_heavy(heavy: str) -> None:
    loaded = [m for m in modules_loaded_by("import ifonly") if m == heavy or m.startswith(heavy + ".")]
    assert not loaded, f"`import ifonly` loads {heavy}: import it inside the function that needs it"


def test_import_adds_few_modules_to_its_foundation() -> None:
    added = modules_loaded_by("import ifonly") - modules_loaded_by(FOUNDATION)
    assert "ifonly" in added, "the report of -X importtime was not understood"
    assert len(added) <= MODULES_BEYOND_FOUNDATION, sorted(added)


@pytest.mark.parametrize("command", ["--help", "--version", "explain --help", "batch --help"])
def test_help_does_not_wait_for_numbers(command: str) -> None:
    """Libraries that take most of a second to load are not needed to say what there is."""
    words = ", ".join(map(repr, command.split()))
    run = f"import sys; sys.argv[1:] = [{words}]; from ifonly.cli import main; main(standalone_mode=False)"
    loaded = modules_loaded_by(run)
    assert "ifonly.cli" in loaded
    assert not loaded & {"numpy", "pandas", "scipy", "sklearn", "rich"}


def test_every_public_name_is_found() -> None:
    import ifonly

    assert {name: getattr(ifonly, name) for name in ifonly.__all__}
    assert set(ifonly.__all__) <= set(dir(ifonly))
    with pytest.raises(AttributeError, match="no attribute 'Explain'"):
        _ = ifonly.Explain  # type: ignore[attr-defined]
