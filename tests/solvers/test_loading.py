"""Two libraries by one name: highspy beside OR-Tools, in either order, each solving with its own HiGHS."""

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ifonly.errors import SolverFailed
from ifonly.solvers import _loading

SOURCE = Path(__file__).resolve().parents[2] / "src"

# With "highs only" a network needs the solver: x -> |x| is at least 2 nearest at 2 when one starts at 0.5.
EXPLAIN = """
import numpy as np, pandas as pd, warnings
from sklearn.neural_network import MLPRegressor
from ifonly import Explainer, Target
X = pd.DataFrame({"x": np.linspace(-3.0, 3.0, 61)})
net = MLPRegressor(hidden_layer_sizes=(2,), max_iter=1, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    net.fit(X, X["x"])
net.coefs_ = [np.array([[1.0, -1.0]]), np.array([[1.0], [1.0]])]
net.intercepts_ = [np.zeros(2), np.zeros(1)]
answer = Explainer(net, X, solver="highs only").explain(X.iloc[35], want=Target(at_least=2.0))
assert abs(answer.frame()["x"].iloc[0] - 2.0) < 1e-6, answer.frame()
assert answer[0].certificate.proven
import sys
assert "highspy" in sys.modules, "nothing was solved"
"""
# max x + 2 y, x + y <= 4, y <= 3: 7 at (1, 3), by the HiGHS inside OR-Tools.
OR_TOOLS = """
from ortools.linear_solver import pywraplp
lp = pywraplp.Solver.CreateSolver("HIGHS")
x, y = lp.NumVar(0, 10, "x"), lp.NumVar(0, 3, "y")
lp.Add(x + y <= 4)
lp.Maximize(x + 2 * y)
assert lp.Solve() == pywraplp.Solver.OPTIMAL
assert abs(lp.Objective().Value() - 7.0) < 1e-9
"""
BINNING = """
import numpy as np
from optbinning import OptimalBinning
x = np.arange(200.0)
binning = OptimalBinning(name="x", solver="cp").fit(x, (x > 90).astype(int))
assert binning.status == "OPTIMAL", binning.status
"""


def run(*parts: str) -> None:
    code = "\n".join(textwrap.dedent(part) for part in parts)
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", code],
        env={"PYTHONPATH": str(SOURCE), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.frameworks
@pytest.mark.parametrize(("package", "other"), [("ortools", OR_TOOLS), ("optbinning", BINNING)])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_our_solver_and_theirs_work_in_one_process_in_either_order(package, other, first):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    run(*((EXPLAIN, other, EXPLAIN) if first == "ours" else (other, EXPLAIN, other)))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the remedy is for the linker of Linux")
def test_a_library_under_its_own_name_solves_as_before():
    of_the_package = """
        from pathlib import Path
        assert "highspy/libhighs" not in Path("/proc/self/maps").read_text()
    """
    run("from ifonly.solvers import _loading", "_loading._RIVAL = 'numpy'", EXPLAIN, of_the_package)


def test_without_a_remedy_the_error_says_what_is_in_the_way(monkeypatch):
    monkeypatch.delitem(sys.modules, "highspy", raising=False)
    monkeypatch.setattr(_loading, "_under_own_name", lambda: False)

    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name == "highspy":
                raise ImportError("undefined symbol: _ZN5Highs3runEv")
            return

    monkeypatch.setattr(sys, "meta_path", [Blocked(), *sys.meta_path])
    with pytest.raises(SolverFailed, match=r"undefined symbol.*Import highspy before"):
        _loading.load_highspy()
