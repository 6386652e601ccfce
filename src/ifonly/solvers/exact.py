"""SCIP's exact mode: a linear program with integers solved again in rational arithmetic, in a process of its own.

SCIP has it when it was built with it (``EXACTSOLVE``); the wheels of PySCIPOpt are built without. It is chosen before there
is a problem, so the program goes through a file, in which every number is written with all of its digits. A process of its
own keeps SCIP's complaints off the screen, and whatever happens in it away from here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from importlib import util
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from ifonly.errors import SolverMissing
from ifonly.program.mip import MipArrays
from ifonly.runtime.deadline import FOREVER
from ifonly.runtime.tuning import DEFAULT

__all__ = ["exact_minimum", "need_exact", "why_not_exact"]

_LONGEST = 900  # characters of a number: SCIP reads lines of 1,024

Run = Callable[[Path, float], dict[str, Any]]


def why_not_exact() -> str:
    """Return why SCIP's exact mode is not to be had here; nothing where it is."""
    if util.find_spec("pyscipopt") is None:
        return "PySCIPOpt is not installed"
    done = _child("--probe")
    if done.get("status") == "exact":
        return ""
    return f"the SCIP that is installed was built without it ({done.get('version', 'of unknown version')})"


def need_exact() -> None:
    """Complain where SCIP's exact mode is not to be had."""
    why = why_not_exact()
    if why:
        raise SolverMissing(
            f"proof='exact' runs a question again in SCIP's exact mode, but {why}. Build SCIP 10 or later with EXACTSOLVE=on "
            "(it needs GMP, MPFR, Boost and SoPlex) and PySCIPOpt against it; or ask with proof=True, which keeps all that "
            "can be replayed."
        )


def exact_minimum(program: MipArrays, seconds: float, run: Run | None = None) -> float | None:
    """Return the least cost of a program in rational arithmetic, rounded down, or infinity; None: no verdict.

    A program with squares, or with a number of too many digits, has no verdict.
    """
    if program.squares or program.convex:
        return None
    try:
        text = "\n".join(_mps(program)) + "\n"
    except ValueError:
        return None
    with tempfile.TemporaryDirectory(prefix="ifonly-exact-") as folder:
        path = Path(folder) / "program.mps"
        path.write_text(text, encoding="ascii")
        said = (run or _in_child)(path, seconds)
    if said.get("status") == "infeasible":
        return inf
    if said.get("status") != "optimal":
        return None
    least = float(np.nextafter(float(said["bound"]), -inf))  # SCIP tells it as a float
    return float(np.nextafter(least + program.offset, -inf))


# -- the file --------------------------------------------------------------------------------------------------------
def _number(value: float) -> str:
    """Return all digits of a float, each of which is a finite decimal."""
    said = format(Decimal(float(value)), "f")
    if len(said) > _LONGEST or not isfinite(value):
        raise ValueError("a number has too many digits")
    return said


def _mps(program: MipArrays) -> Iterator[str]:
    """Yield the lines of a program in free MPS format; a row with two sides is two rows."""
    sides = [
        (i, kind, end)
        for kind, ends in (("G", program.row_lower), ("L", program.row_upper))
        for i, end in enumerate(ends)
    ]
    sides = [side for side in sides if isfinite(side[2])]
    yield from ("NAME program", "ROWS", " N cost", *(f" {kind} {kind}{i}" for i, kind, _ in sides), "COLUMNS")
    rows_of: dict[int, list[str]] = {}
    for i, kind, _ in sides:
        rows_of.setdefault(i, []).append(f"{kind}{i}")
    columns = program.matrix.tocsc()
    for whole in (True, False):
        if whole:
            yield " M0 'MARKER' 'INTORG'"
        for j in map(int, np.flatnonzero(program.integer == whole)):
            yield f" x{j} cost {_number(program.cost[j])}"
            for at in range(int(columns.indptr[j]), int(columns.indptr[j + 1])):
                for row in rows_of.get(int(columns.indices[at]), ()):
                    yield f" x{j} {row} {_number(columns.data[at])}"
        if whole:
            yield " M1 'MARKER' 'INTEND'"
    yield "RHS"
    yield from (f" RHS {kind}{i} {_number(end)}" for i, kind, end in sides)
    yield "BOUNDS"
    for j, (low, high) in enumerate(zip(program.lower, program.upper, strict=True)):
        yield f" LO BND x{j} {_number(low)}" if isfinite(low) else f" MI BND x{j}"
        yield f" UP BND x{j} {_number(high)}" if isfinite(high) else f" PL BND x{j}"
    yield "ENDATA"


# -- the process -----------------------------------------------------------------------------------------------------
def _in_child(path: Path, seconds: float) -> dict[str, Any]:
    return _child(str(path), repr(float(min(seconds, FOREVER))), seconds=seconds)


def _child(*arguments: str, seconds: float = 0.0) -> dict[str, Any]:
    """Run this module in another process; nothing is said where it fails, or takes too long."""
    command = [sys.executable, "-m", "ifonly.solvers.exact", *arguments]
    limit = seconds + DEFAULT.solving.process_seconds if isfinite(seconds) else None
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)  # noqa: S603 - this module
        said = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
        return {}
    return said if isinstance(said, dict) else {}


def _model(*, exact: bool) -> Any:
    """Return an empty model in exact mode, which is chosen before there is a problem."""
    import pyscipopt  # noqa: PLC0415 - imported only when something is solved

    model = pyscipopt.Model()
    model.hideOutput()
    model.freeProb()
    if exact:
        model.enableExactSolving(True)
        if not model.isExact():
            raise RuntimeError("SCIP is not in its exact mode")
    return model


def _solved(path: Path, seconds: float, *, exact: bool = True) -> dict[str, Any]:
    """Solve the program in a file; return how it ended, and the bound."""
    model = _model(exact=exact)
    model.readProblem(str(path))
    model.setParam("limits/time", max(seconds, 0.0))
    model.optimize()
    return {"status": model.getStatus(), "bound": float(model.getDualbound())}


def _probed() -> dict[str, Any]:
    """Return whether the exact mode can be chosen, and which SCIP this is."""
    import pyscipopt  # noqa: PLC0415 - imported only when asked for

    version = f"SCIP {pyscipopt.Model().version()}"
    try:
        _model(exact=True)
    except Exception:  # noqa: BLE001 - PySCIPOpt raises plain exceptions, and older ones lack the method
        return {"status": "absent", "version": version}
    return {"status": "exact", "version": version}


if __name__ == "__main__":
    told = _probed() if sys.argv[1] == "--probe" else _solved(Path(sys.argv[1]), float(sys.argv[2]))
    sys.stdout.write(json.dumps(told) + "\n")
