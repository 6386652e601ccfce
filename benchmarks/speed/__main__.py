"""Runs the benchmark: ``python -m benchmarks.speed --help``."""

from __future__ import annotations

import os

# One core for ours: no threads inside linear algebra. Before NumPy is imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse  # noqa: E402 - after the environment is set
import importlib.metadata  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
from pathlib import Path  # noqa: E402

import pandas as pd  # noqa: E402

from benchmarks.speed import bars, plot, records, table  # noqa: E402
from benchmarks.speed.growth import CURVES, grow  # noqa: E402
from benchmarks.speed.methods import METHODS  # noqa: E402
from benchmarks.speed.problems import PROBLEMS, QUICK  # noqa: E402
from benchmarks.speed.run import Settings, run  # noqa: E402
from benchmarks.speed.throughput import measure  # noqa: E402

PARTS = ("answers", "growth", "throughput")
_PACKAGES = ("ifonly", "highspy", "numpy", "pandas", "scikit-learn", "xgboost")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description="Ours and every peer, in one go.")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, metavar="NAME", help=f"of {', '.join(PROBLEMS)}")
    parser.add_argument("--peers", nargs="*", choices=METHODS[1:], metavar="NAME", help=f"of {', '.join(METHODS[1:])}")
    parser.add_argument("--factuals", type=int, help="rows per problem (20; growth curves: 5)")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per answer (60)")
    parser.add_argument(
        "--give-up",
        type=int,
        default=0,
        metavar="N",
        help="record a peer's other rows of a problem as given up when its first N all ran into the limit (never)",
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="record a peer's other rows as given up when it has taken so long for a problem, and answered three (never)",
    )
    parser.add_argument("--solver", default="auto", help="the solver of ours (auto)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to run (all)")
    parser.add_argument("--curves", nargs="+", choices=CURVES, default=list(CURVES), help="which growth curves (all)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/speed"), help="folder of the results")
    parser.add_argument("--cache", type=Path, help="folder of the peers' environments (IFONLY_PEERS)")
    parser.add_argument("--resume", action="store_true", help="go on with the answers of an interrupted run")
    parser.add_argument("--quick", action="store_true", help="a few small problems, 3 rows, 10 s: does it work?")
    options = parser.parse_args()
    if options.quick:
        options.problems = options.problems or list(QUICK)
        options.factuals = options.factuals or 3
        options.time_limit = min(options.time_limit, 10.0)
    return options


def main() -> None:
    """Run the parts that were asked for, then write tables and plots of all that is there."""
    options = _options()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    (out / "machine.json").write_text(json.dumps(_machine(options.time_limit), indent=2) + "\n", encoding="utf-8")
    peers = list(METHODS[1:]) if options.peers is None else options.peers
    limits = (options.time_limit, options.solver, options.cache, options.give_up, options.budget)
    settings = Settings(options.factuals or 20, *limits)
    results = out / "results.csv"
    if "answers" in options.parts:
        if not options.resume:
            results.unlink(missing_ok=True)
        chosen = [PROBLEMS[name] for name in options.problems or PROBLEMS]
        run(chosen, ["ifonly", *peers], settings, results)
    if results.exists():
        found = records.load(results)
        summary = table.summarise(found)
        table.write(summary, out)
        plot.save(plot.draw_speed(summary), out, "speed")
        _warn_if_beaten(found)
    if "growth" in options.parts:
        curves = [CURVES[name] for name in options.curves]
        few = Settings(options.factuals or 5, *limits)
        compared = ["ifonly", *(["treecf"] if "treecf" in peers else [])]
        grown = grow([c.quick() for c in curves] if options.quick else curves, compared, few, out / "growth.csv")
        plot.save(plot.draw_growth(grown), out, "growth")
    if "throughput" in options.parts:
        measure(out / "throughput.csv", 50 if options.quick else 1000)
    if results.exists():
        text, _ = bars.report(out)
        (out / "bars.md").write_text(text, encoding="utf-8")
        print(text)


def _warn_if_beaten(found: pd.DataFrame) -> None:
    lost = records.beaten(found)
    if not lost.empty:
        print(f"A peer found less than what ours called optimal; this is an error of ours:\n{lost.to_string()}")


def _machine(time_limit: float) -> dict[str, object]:
    """Return what the numbers depend on."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "time_limit": time_limit,
        "load": records.load_average(),
        "versions": versions,
    }


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    if known.exists():
        for line in known.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
