"""Hostile records and proofs: a sentence and exit code 6, in bounded time and memory, and nothing is executed."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import joblib
import pytest
from click.testing import CliRunner, Result
from sklearn.ensemble import RandomForestClassifier

import ifonly
from ifonly import Explainer
from ifonly.cli import main
from ifonly.record.proof import pack
from proof_cases import table

REFUTED = 6
GIGABYTE = 2**30
MEMORY = 400 * 2**20  # bytes: six times what a record or a proof may have
SECONDS = 20.0  # of processor time


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, its data, a record and its proof."""
    here = tmp_path_factory.mktemp("hostile")
    X, y = table(4)
    X = X[["whole", "decimal", "real"]]
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(X, y)
    joblib.dump(model, here / "model.joblib")
    X.to_csv(here / "data.csv", index=False)
    Explainer(model, X).explain(X.iloc[[3]], proof=True).write_record(here / "record.json")
    return here


def verified(folder: Path, record: Path, *more: str) -> Result:
    given = ["--model", str(folder / "model.joblib"), "--data", str(folder / "data.csv"), "--trust"]
    return CliRunner().invoke(main, ["verify", str(record), *given, *more])


@pytest.fixture
def bounded() -> Iterator[None]:
    """Fail where a test takes too long, or too much memory."""
    began = time.process_time()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < SECONDS
    assert peak < MEMORY


def told(result: Result) -> str:
    assert result.exit_code == REFUTED, result.output
    assert "Traceback" not in result.output
    assert "bug in ifonly" not in result.output
    return result.output


def test_the_record_itself_stands(folder: Path) -> None:
    result = verified(folder, folder / "record.json")
    assert result.exit_code == 0, result.output
    assert "proof was replayed" in result.output


def zeros(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(GIGABYTE)
    return path


@pytest.mark.usefixtures("bounded")
def test_a_gigabyte_of_zeros(folder: Path, tmp_path: Path) -> None:
    big = zeros(tmp_path / "zeros.json")
    assert "more than the" in told(verified(folder, big))
    assert "more than the" in told(verified(folder, folder / "record.json", "--proof", str(big)))
    small = tmp_path / "small.proof"
    small.write_bytes(bytes(10**7))
    assert "no proof of ifonly" in told(verified(folder, folder / "record.json", "--proof", str(small)))
    assert json.loads(verified(folder, big, "--json").stdout)["ok"] is False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory are Linux's")
def test_a_gigabyte_of_zeros_under_a_limit_of_memory(folder: Path, tmp_path: Path) -> None:
    """The process that verifies may take less than the file is large, on top of what it has after its imports."""
    big = zeros(tmp_path / "zeros.json")
    code = (
        "import resource, sys, pathlib, joblib, pandas as pd, ifonly\n"
        "from ifonly.record import verify\n"
        "folder, big = map(pathlib.Path, sys.argv[1:])\n"
        "model, X = joblib.load(folder / 'model.joblib'), pd.read_csv(folder / 'data.csv')\n"
        "verify(folder / 'record.json', model, X)\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "most = pages * resource.getpagesize() + 512 * 2**20\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
        "try:\n"
        "    verify(big, model, X)\n"
        "except ifonly.SchemaError as error:\n"
        "    print(error)\n"
        "print(*(c.sentence for c in verify(folder / 'record.json', model, X, proof=big).checks if c.ok is False))\n"
    )
    command = [sys.executable, "-c", code, str(folder), str(big)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ), timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("more than the") == 2


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        '{"format":' * 1_000_000,
        '{"format": "ifonly/2", "kind": "explanation", "counterfactuals": ' + "[" * 900 + "]" * 900 + "}",
        '{"format": NaN}',
        '{"format": -Infinity}',
        "9" * 1_000_000,
        '"' + "\\ud800" * 1000 + '"',
        pytest.param("[" + "0," * 1_000_000 + "0]", marks=pytest.mark.slow),
        "\x00" * 1_000_000,
    ],
    ids=("lists", "objects", "deep", "nan", "infinity", "digits", "surrogates", "long", "zeros"),
)
def test_hostile_text(folder: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(text, encoding="utf-8")
    assert "Error" in told(verified(folder, path)) or "record" in told(verified(folder, path))


def paths(part: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [at, *(p for key, value in inner for p in paths(value, (*at, key)))]


HUGE = (10**4000, -1, 1e308, "9" * 10_000, {}, [[]] * 1000)


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
def test_numbers_and_counts_in_a_record(folder: Path) -> None:
    """Each count and number of a record as a hostile one: never an answer that stands with another cost or bound."""
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    model = joblib.load(folder / "model.joblib")
    X = ifonly.cli.files.read_table(folder / "data.csv")  # type: ignore[attr-defined]
    checked = 0
    for path in [
        p for p in paths(record) if p and p[-1] in ("n", "seed", "parts", "precision", "bound", "objective", "margin")
    ]:
        for bad in HUGE:
            forged = json.loads(json.dumps(record))
            part = forged
            for key in path[:-1]:
                part = part[key]
            if part[path[-1]] == bad:
                continue
            part[path[-1]] = bad
            checked += 1
            try:
                verdict = ifonly.verify(forged, model, X, proof=folder / "record.proof", time_limit=5.0)
            except ifonly.IfOnlyError:
                continue
            stands = path[-1] in ("n", "seed")  # what was asked beside the question: how many, and by what chance
            assert stands or not verdict.ok, (path, str(bad)[:40], str(verdict))
    assert checked > 30


def sealed(count: int, *trails: tuple[int, bytes]) -> bytes:
    """A proof with counts of one's own and a checksum that fits."""
    body = b"ifonly-proof\x01" + struct.pack("<I", count)
    body += b"".join(struct.pack("<Q", size) + trail for size, trail in trails)
    return body + sha256(body).digest()


HOSTILE = {
    "many answers": sealed(2**32 - 1),
    "a long trail": sealed(1, (2**63, b"\x00")),
    "a million leaves": pack([b"\x00" * 1_000_000]),
    "a million splits": pack([struct.pack("<BId", 2, 0, 0.5) * 1_000_000]),
    "a wide mask": pack([struct.pack("<BIH", 4, 0, 2**16 - 1) + b"\xff" * 8192]),
    "an open mask": pack([struct.pack("<BIH", 4, 0, 2**16 - 1)]),
    "a far feature": pack([struct.pack("<BId", 2, 2**32 - 1, 0.5)]),
    "many duals": pack([struct.pack("<BII", 9, 2**32 - 1, 2**32 - 1)]),
    "many rows": pack([struct.pack("<BII", 9, 2**32 - 1, 0)]),
    "a dual that is no number": pack([struct.pack("<BIIId", 9, 1, 1, 0, float("nan"))]),
    "a far alternative": pack([struct.pack("<BI", 8, 2**32 - 1)]),
    "a million alternatives": pack([struct.pack("<BIB", 8, 0, 0) * 1_000_000]),
    "a cut at no number": pack([struct.pack("<BId", 2, 0, float("nan")) + b"\x00\x00"]),
    "a cut at infinity": pack([struct.pack("<BId", 2, 0, float("inf")) + b"\x00\x00\x00"]),
    "unknown": pack([b"\xff" * 1000]),
    "no answer": pack([]),
    "more answers": pack([b"\x00"] * 1000),
    "nothing": b"",
}


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if i % 2 or n == "a million splits" else n for i, n in enumerate(HOSTILE)],
)
def test_counts_in_a_proof(folder: Path, tmp_path: Path, name: str) -> None:
    """A hostile proof that is sealed, its checksum written into the record, gets a sentence."""
    data = HOSTILE[name]
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    record["proof"] = {"sha256": sha256(data).hexdigest(), "parts": [10**9]}
    path = tmp_path / "record.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    path.with_suffix(".proof").write_bytes(data)
    assert "proof" in told(verified(folder, path)).lower()


def test_nothing_of_a_record_is_executed(folder: Path, tmp_path: Path) -> None:
    """Every text of a record and its proof as code, a pickle or a path: nothing is unpickled, started or written."""
    evil = "__import__('os').system('touch evil')"
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    for path in [p for p in paths(record) if p]:
        part = record
        for key in path[:-1]:
            part = part[key]
        if isinstance(part[path[-1]], str) and path[-1] not in ("format", "kind", "status"):
            part[path[-1]] = evil
    (tmp_path / "record.json").write_text(json.dumps(record), encoding="utf-8")
    (tmp_path / "record.proof").write_bytes(b"cposix\nsystem\n(S'touch evil'\ntR.")
    code = (
        "import sys, pathlib, joblib, pandas as pd, ifonly\n"
        "from ifonly.record import verify\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "model, X = joblib.load(folder / 'model.joblib'), pd.read_csv(folder / 'data.csv')\n"
        "assert verify(folder / 'record.json', model, X).ok\n"
        "seen = []\n"
        "watched = ('pickle.find_class', 'os.system', 'subprocess.Popen', 'os.exec', 'os.posix_spawn', 'socket.connect')\n"
        "sys.addaudithook(lambda event, args: seen.append(event) if event in watched or (\n"
        "    event == 'open' and isinstance(args[1], str) and set(args[1]) & set('wax+')) else None)\n"
        "for record in (pathlib.Path('record.json'), folder / 'record.json'):\n"
        "    try:\n"
        "        print(verify(record, model, X, proof=pathlib.Path('record.proof')).ok)\n"
        "    except ifonly.IfOnlyError as error:\n"
        "        print(False)\n"
        "assert not seen, seen\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=dict(os.environ),
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "False"]
    assert not (tmp_path / "evil").exists()
