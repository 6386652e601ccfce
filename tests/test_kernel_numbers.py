"""Compiled kernels have no numbers of their own: tolerances and tuned numbers are handed over from Python, by name.

What is written in C is a size of an array, a code that Python knows as well, or plain arithmetic.
"""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from ifonly import tolerances
from ifonly.models.forms import signs
from ifonly.question import trail
from ifonly.runtime.tuning import DEFAULT
from ifonly.search.balls import trees
from ifonly.search.cells import keeping

SOURCE = Path(__file__).resolve().parents[1] / "src" / "ifonly"
FILES = {path.name: path for end in ("c", "h") for path in SOURCE.rglob(f"*.{end}")}

# What is told to Python's own headers, and names of capsules.
SET = {"PY_SSIZE_T_CLEAN", "Py_LIMITED_API", "NAME"}

# Sizes of arrays that are fixed when a kernel is compiled, each a guess, and what else has a name in C alone.
SIZES = {
    ("_signs.h", "OWN"): "shifts of a network under which a node is bounded: of arrays in a struct and on the stack",
    ("_signs.h", "SLOTS"): "shifts that a node hands on: of what nodes are made of",
    ("_signs.h", "MOST_ROUND"): "functions over an ellipsoid: the stride of their products",
    ("_signs.h", "MOST_ROWS"): "rows of a program, which is dense: it is as large from the beginning",
    ("_balls.h", "NOT_IN_BUDGET"): "puts costs in order, beyond all costs that there are",
    ("_balls.h", "NOT_IN_NODE"): "the same, beyond that",
}

# What Python has a name for as well, and must be the same.
TWINS = {
    ("_prices_keeping.h", "LARGEST"): keeping._LARGEST,
    ("_prices_keeping.h", "ROUGHEST"): keeping.ROUGHEST,
    ("_prices_keeping.h", "PRICES_EVENT"): trail._PRICES,
    ("_kernel.h", "LEAF_EVENT"): trail._LEAF,
    ("_kernel.h", "CUT_EVENT"): trail._CUT,
    ("_kernel.h", "LEVELS_EVENT"): trail._LEVELS,
}

# Codes of C alone.
CODES = {"UNDECIDED", "FOUND", "KNOWN", "PRUNED", "NO_ROOM", "NO_LEAF"}

# Numbers in formulas, with the reason.
FORMULAS = {
    ("_kernel_parts.h", "1.5"): "any number between the dearest share, 1, and the next line of costs, 2",
    ("_prices_bound.h", "4.0"): "a price is paid and received, and added up in both",
    ("_signs_nodes.h", "4.0"): "of the quadratic formula",
    ("_signs_points.h", "3.0"): "thirds of a way",
    ("_kernel.h", "8"): "running sums of NumPy",
    ("_kernel.h", "128"): "the length of NumPy's blocks",
    ("_prices_keeping.h", "128"): "seven bits of a byte",
    ("_balls.c", "64"): "levels of a category, as bits of a word",
}
PLAIN = {"0.0", "1.0", "2.0", "0.5"}


def code(text: str) -> str:
    """A file without its comments, strings and directives."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r'"(?:[^"\\]|\\.)*"', " ", text)
    return re.sub(r"^#.*$", " ", text, flags=re.MULTILINE)


def defined(text: str) -> dict[str, str]:
    """Constants of a file and their values: those of directives that take no arguments, and of enumerations."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    found = dict(re.findall(r"^#define (\w+)(?:[ \t]+([^\n]*?))?[ \t]*$", text, re.MULTILINE))
    for body in re.findall(r"enum \{(.*?)\}", text, re.DOTALL):
        found |= dict(re.findall(r"(\w+) = ([^,}]*?)\s*(?:,|$)", body.strip()))
    return found


def numbers(text: str) -> set[str]:
    """Numbers written in a file that look chosen: floats but the plain ones, and ends of comparisons above 4."""
    text = code(text)
    floats = set(re.findall(r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?(?![\w.])", text)) - PLAIN
    ends = {n for n in re.findall(r"[<>]=?\s*(\d+)\b(?![.\w])", re.sub(r"<<|>>|->", "", text)) if int(n) > 4}
    return floats | ends


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_number_is_written_in_c(name: str) -> None:
    text = FILES[name].read_text(encoding="utf-8")
    left = [n for n in sorted(numbers(text)) if (name, n) not in FORMULAS]
    assert not left, f"{left}: hand them over from tolerances.py or a Tuning, see _numbers.h"
    known = SET | CODES | {constant for file, constant in (*SIZES, *TWINS) if file == name}
    assert not defined(text).keys() - known, "a number with a name in C: give it one in Python, or say which size it is"


def test_what_is_excused_is_there() -> None:
    texts = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
    assert not [key for key in FORMULAS if key[1] not in numbers(texts[key[0]])]
    assert not [key for key in (*SIZES, *TWINS) if key[1] not in defined(texts[key[0]])]


@pytest.mark.parametrize(("name", "constant"), sorted(TWINS))
def test_twins_are_the_same(name: str, constant: str) -> None:
    assert float(defined(FILES[name].read_text(encoding="utf-8"))[constant]) == TWINS[name, constant]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = y + 1e-9;", {"1e-9"}),
        ("if (a < 0.001 || b <= .25) {", {"0.001", ".25"}),
        ("for (int i = 0; i < 60; i++) a *= 4.0;", {"60", "4.0"}),
        ("f(3.E-2);", {"3.E-2"}),
        ('x = 1.0 - 0.5 * y[12]; /* not 1e-9 */ s = "1e-9"; b >> 8; p->x > 4; t = 0x7f;', set()),
    ],
)
def test_a_number_in_c_is_seen(text: str, said: set[str]) -> None:
    assert numbers(text) == said


def test_constants_of_c_are_seen() -> None:
    text = "#define A 1e-9  /* why */\n#define B\n#define F(x) (x)\nenum { ONE, TWO = 2,\n THREE = 3 };\n"
    assert defined(text) == {"A": "1e-9", "B": "", "TWO": "2", "THREE": "3"}


# -- what is handed over -----------------------------------------------------------------------------------------------
HANDED = [
    (signs, "_signs", DEFAULT.signs),
    (trees, "_balls", DEFAULT.no_goods),
]


@pytest.mark.parametrize(("module", "kernel", "group"), HANDED)
def test_each_number_has_its_place_in_c_and_is_used_there(module: object, kernel: str, group: object) -> None:
    text = "".join(path.read_text(encoding="utf-8") for name, path in FILES.items() if name.startswith(kernel))
    tolerated = set(module._TOLERANCES)  # type: ignore[attr-defined]
    tuned = {one.name for one in fields(group)}  # type: ignore[arg-type]
    kinds = {name: kind for kind, name in re.findall(r"\b(DOUBLE|COUNT)\(Numbers, (\w+)\)", text)}
    assert kinds.keys() == tolerated | tuned
    assert not tolerated & tuned
    assert {name for name in tuned if isinstance(getattr(group, name), int)} == {
        n for n in kinds if kinds[n] == "COUNT"
    }
    assert not [name for name in kinds if not re.search(rf"(?:\.|->){name}\b", text)]


@pytest.mark.parametrize("module", [signs, trees])
def test_each_tolerance_that_is_handed_over_is_one_of_ours(module: object) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))  # type: ignore[attr-defined]
    (table,) = (n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "_TOLERANCES")
    assert isinstance(table, ast.Dict)
    assert {ast.unparse(value) for value in table.values} <= set(tolerances.__all__)


@pytest.mark.parametrize(("module", "kernel", "group"), HANDED)
@pytest.mark.parametrize("given", [{}, {"rounding": 0.0}, None])
def test_a_number_that_is_missing_or_unknown_is_refused(
    module: object, kernel: str, group: object, given: object
) -> None:
    built = module._built  # type: ignore[attr-defined]
    if built is None:
        pytest.skip(f"{kernel} is not built")
    all_ = module._TOLERANCES | {one.name: getattr(group, one.name) for one in fields(group)}  # type: ignore[attr-defined, arg-type]
    other = given if given is not None else {("odd" if name == "rounding" else name): n for name, n in all_.items()}
    with pytest.raises((ValueError, KeyError)):
        _opened(built, kernel, other)


def _opened(built: object, kernel: str, numbers: object) -> None:
    if kernel == "_signs":
        built.opened([b""] * 14, [[]], numbers, [0.0], [0.0], [0], 0.0, 0.0, 1, 1000)  # type: ignore[attr-defined]
    else:
        built.opened([b""] * 13, [[]], numbers, 0.0, 1, 1, 1, 1000)  # type: ignore[attr-defined]
