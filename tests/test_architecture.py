"""The tree is the data flow: imports point one way, frameworks load late, files and functions stay short."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeGuard

import pytest

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src" / "ifonly"

# A module may import from its own layer and from lower ones, never from a higher one; imports for types count as well. A
# name stands for everything below it unless a longer one is listed, so a new form, reader, criterion, engine or solver
# needs no line here.
LAYERS = {
    "arrays": 0,
    "_moved": 0,
    "errors": 0,
    "events": 0,
    "runtime": 0,
    "tolerances": 0,
    "version": 0,
    "adapters": 1,
    "program.mip": 1,
    "program.scaling": 1,
    "data": 2,
    "solvers": 2,
    "program": 3,
    "models": 4,
    "question": 5,
    "result.many": 5,
    "result.origin": 5,
    "result.values": 5,
    "criteria": 6,
    "search": 7,
    "surrogate": 7,
    "result": 8,
    "explain": 8,
    "batch": 9,
    "record": 9,
    "datasets": 9,
    "policy": 9,
    "bench": 10,
    "extend": 10,
    "spark": 10,
    "studies": 10,
    "testing": 10,
    "ifonly": 11,
    "studio": 12,
    "cli": 13,
    "__main__": 14,
}

# Neighbours that must not know each other.
APART = {("solvers", "data")}

# Faces that a value of a lower layer shows itself by, imported inside a function: importer -> layer, and why.
FACES = {
    (
        "ifonly.errors",
        "record",
    ): "a proven conflict is kept as a record, and its proof as a file",
    ("ifonly.explain", "batch"): "Explainer.explain_to() and explain_all()",
    ("ifonly.explain", "record"): "an answer is kept with what its record needs",
    ("ifonly.explain", "studio"): "Explainer.studio()",
    ("ifonly.result.many", "result"): "many answers as a page, a figure and a text",
    ("ifonly.result.origin", "record"): "the origin of an answer writes its record",
    ("ifonly.result.serial", "record"): "a proof is read back with its answer",
    ("ifonly.result.values", "record"): "an answer as a record, and its proof as a file",
    ("ifonly.result.values", "result"): "an answer as a text, a page, a figure, JSON, and its measures",
}

# Circles that an import inside a function closes: importer -> imported, and why the one is to know the other.
CLOSED_LATE = {
    ("ifonly.criteria.robustness.keeps_lead", "ifonly.criteria.robustness.adversary"): (
        "the demand wraps a search by the method that attacks the demand; loaded for balls only"
    ),
    ("ifonly.search.answering", "ifonly.search.several"): (
        "each of several answers is one more question of the same kind; loaded when several are wanted"
    ),
    ("ifonly.search.linear.knapsack", "ifonly.search.linear.multipliers"): (
        "the search with two multipliers extends the one with one; loaded when there are two"
    ),
}

# Who may import a framework at top level: only modules that are themselves imported late.
HOMES = {
    "anywidget": "ifonly.studio.widget",
    "catboost": "ifonly.models.readers.catboost",
    "gurobipy": "ifonly.solvers.gurobi",
    "highspy": "ifonly.solvers.highs",
    "jinja2": "ifonly.studio",
    "lightgbm": "ifonly.models.readers.lightgbm",
    "markupsafe": "ifonly.studio",
    "matplotlib": "ifonly.result.plots",
    "numba": None,
    "onnx": "ifonly.models.readers.onnx",
    "onnxruntime": None,
    "polars": None,
    "pyarrow": "ifonly.batch.parquet",
    "pyscipopt": "ifonly.solvers.scip",
    "pyspark": None,
    "skl2onnx": None,
    "starlette": "ifonly.studio",
    "sklearn": "ifonly.models.readers.sklearn",
    "torch": "ifonly.models.readers.torch",
    "traitlets": "ifonly.studio.widget",
    "uvicorn": "ifonly.studio.server",
    "xgboost": "ifonly.models.readers.xgboost",
}

HEADLESS = re.compile(r"(What|How|Who|Where|Why|When|Which)(ever)?\b")
IN_C = re.compile(r"(?:/\*+|//)\s*(\w+[^*\n]*)")

FILE_LINES = 450
FUNCTION_LINES = 70


@dataclass(frozen=True)
class Import:
    """An import; `late` if it waits for a call or is there for types alone, `for_types` if the latter."""

    target: str
    line: int
    late: bool
    for_types: bool = False


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def area(self) -> str:
        return area(self.name)


def area(name: str) -> str:
    """The key of LAYERS for a dotted name: the longest that it begins with below the package, or the package itself."""
    package, _, rest = name.partition(".")
    parts = rest.split(".")
    known = (".".join(parts[:k]) for k in range(len(parts), 0, -1))
    return next((key for key in known if key in LAYERS), parts[0] or package)


def modules(source: Path) -> dict[str, Module]:
    paths = {dotted(path, source): path for path in sorted(source.rglob("*.py"))}
    known = {
        *paths,
        *(dotted(path, source) for path in source.rglob("*.pyi")),
    }  # of what is compiled there is only a stub
    found = {}
    for name, path in paths.items():
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        targets = (
            Import(target, statement.lineno, late or types, types and not late)
            for statement, late, types in import_statements(tree)
            for target in imported_by(statement, known)
        )
        found[name] = Module(name, path, tree, tuple(targets))
    return found


def dotted(path: Path, source: Path) -> str:
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_statements(
    node: ast.AST, late: bool = False, types: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    """Yield all imports, and whether each waits for a call, and whether it is there for types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, late, types
        else:
            waits = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from import_statements(child, late or waits, types or is_for_types(child))


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def imported_by(statement: ast.Import | ast.ImportFrom, known: set[str]) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    assert statement.level == 0, f"line {statement.lineno}: a relative import; write the full name"
    members = [f"{statement.module}.{alias.name}" for alias in statement.names]
    return [member if member in known else str(statement.module) for member in members]


def unknown_modules(tree: dict[str, Module]) -> list[str]:
    return [
        f"{module.name}: {module.area!r} has no layer; give it one in LAYERS, tests/test_architecture.py"
        for module in tree.values()
        if module.area not in LAYERS
    ]


def back_arrows(tree: dict[str, Module]) -> list[str]:
    arrows = {
        (module.name, arrow.line, module.area, area(arrow.target), arrow.late)
        for module in tree.values()
        for arrow in module.imports
        if arrow.target in tree
    }
    return [
        f"{name}, line {line}: {source} must not import {target}"
        for name, line, source, target, late in sorted(arrows)
        if (source, target) in APART or (points_back(source, target) and not (late and (name, target) in FACES))
    ]


def points_back(source: str, target: str) -> bool:
    return source in LAYERS and target in LAYERS and LAYERS[source] < LAYERS[target]


def cycles(tree: dict[str, Module]) -> list[str]:
    """A circle of imports, those inside functions and for types included; a value may name its faces."""
    return circle(tree, CLOSED_LATE.keys())


def circle(tree: dict[str, Module], excused: Collection[tuple[str, str]]) -> list[str]:
    """The first circle of imports, if there is one; `excused` are arrows that count at the top of a module only."""
    graph = {
        module.name: {
            arrow.target
            for arrow in module.imports
            if arrow.target in tree
            and not (
                arrow.late and ((module.name, area(arrow.target)) in FACES or (module.name, arrow.target) in excused)
            )
        }
        for module in tree.values()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" -> ".join(reversed(error.args[1]))]
    return []


def early_frameworks(tree: dict[str, Module]) -> list[str]:
    return [
        f"{module.name}, line {arrow.line}: import {framework} inside the function that needs it"
        for module in tree.values()
        for arrow in module.imports
        if not arrow.late
        and (framework := arrow.target.partition(".")[0]) in HOMES
        and not at_home(module.name, HOMES[framework])
    ]


def at_home(name: str, home: str | None) -> bool:
    return home is not None and re.fullmatch(rf"{re.escape(home)}([._].*)?", name) is not None


def long_pieces(tree: dict[str, Module]) -> list[str]:
    complaints = []
    for module in tree.values():
        length = len(module.path.read_text(encoding="utf-8").splitlines())
        if length >= FILE_LINES:
            complaints.append(f"{module.name} has {length} lines")
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length >= FUNCTION_LINES:
                    complaints.append(f"{module.name}.{node.name} has {length} lines")
    return complaints


def leftovers(tree: dict[str, Module]) -> list[str]:
    complaints = []
    for module in tree.values():
        text = module.path.read_text(encoding="utf-8")
        complaints += [f"{module.name}: {note}" for note in re.findall(r"\b(?:TODO|FIXME|XXX)\b.*", text)]
        if module.area == "cli":
            continue
        complaints += [
            f"{module.name}, line {node.lineno}: print; log to `ifonly` or return the text"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        ]
    return complaints


def headless_docstrings(tree: dict[str, Module]) -> list[str]:
    """Docstrings name the thing by the field's noun (docs/glossary.md), not by a question word."""
    return [
        f"{module.name}, line {node.body[0].lineno}: {text.splitlines()[0]!r} begins with a question word; begin with a noun"
        for module in tree.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and HEADLESS.match(text := ast.get_docstring(node) or "")
    ]


def silent_rows(tree: dict[str, Module]) -> list[str]:
    """Each row that enters a program has its formula, or its reason, in a comment beside or above it."""
    complaints = []
    for module in tree.values():
        lines = module.path.read_text(encoding="utf-8").splitlines()
        complaints += [
            f"{module.name}, line {node.lineno}: say in a comment beside or above which row this is"
            for node in ast.walk(module.tree)
            if is_row(node)
            and "#" not in lines[node.lineno - 1]
            and not (node.lineno > 1 and lines[node.lineno - 2].strip().startswith("#"))
        ]
    return complaints


def is_row(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether it is a call of `row`, `rows` or `convex` on a program, or of `add_rows` with one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "add_rows" and bool(node.args) and is_program(node.args[0])
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    return node.func.attr in {"row", "rows", "convex"} and is_program(node.func.value)


def is_program(node: ast.expr) -> bool:
    """Whether it is a name or an attribute `mip`."""
    name = ast.unparse(node)
    return name == "mip" or name.endswith(".mip")


# Where the concrete classes of a package must not be asked for, and where the abilities are that one asks for instead.
ABSTRACT: dict[str, tuple[Callable[[str], bool], str]] = {
    "ifonly.models.forms": (lambda name: not within(name, "ifonly.models"), "ifonly.models.abilities"),
    "ifonly.criteria": (lambda name: within(name, "ifonly.search"), "ifonly.question"),
}

# Classes that may be asked for all the same, with the reason.
CONCRETE = {"Target": "a wish as users write it, before there is a goal"}

# Where no attribute is asked for by its name, but for scikit-learn's own, of estimators that users bring.
DECLARED = ("criteria", "models.abilities", "models.forms", "program", "question", "search")
OF_ESTIMATORS = {"feature_names_in_", "n_features_in_", "predict_proba"}


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def concrete_classes(tree: dict[str, Module]) -> list[str]:
    """A family of forms, or a demand, is asked for what it can do, not for its class: else a new one is not one file."""
    return [
        f"{module.name}, line {line}: ask for an ability ({abilities} has them), not for the class {name}"
        for module in tree.values()
        for home, (forbidden, abilities) in ABSTRACT.items()
        if forbidden(module.name)
        for name, line in classes_asked_for(module.tree)
        if name not in CONCRETE and name in imported_from(module.tree, home)
    ]


def classes_asked_for(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the names in the second argument of `isinstance`, or in a pattern, and their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"isinstance", "issubclass"}:
            yield from ((part.id, node.lineno) for part in ast.walk(node.args[1]) if isinstance(part, ast.Name))
        if isinstance(node, ast.MatchClass):
            yield from ((part.id, node.lineno) for part in ast.walk(node.cls) if isinstance(part, ast.Name))


def imported_from(tree: ast.Module, package: str) -> set[str]:
    """Return the names that a module imports from below a package."""
    froms = (statement for statement, _, _ in import_statements(tree) if isinstance(statement, ast.ImportFrom))
    return {a.asname or a.name for one in froms if within(str(one.module), package) for a in one.names}


def guessed_attributes(tree: dict[str, Module]) -> list[str]:
    """An ability that is asked for by the name of an attribute is declared nowhere, and mistyped without a word."""
    return [
        f"{module.name}, line {node.lineno}: {ast.unparse(node)}; declare a protocol, and ask for that"
        for module in tree.values()
        if any(within(module.name, f"ifonly.{package}") for package in DECLARED)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"getattr", "hasattr"}
        if isinstance(node.args[1], ast.Constant) and node.args[1].value not in OF_ESTIMATORS
    ]


# Where numbers that were tuned would be; they belong in runtime/tuning.py, and tolerances in tolerances.py.
TUNED = {"criteria", "models", "program", "question", "search", "solvers", "surrogate"}
NUMERIC_CALLS = {
    *("float", "int", "frozenset", "list", "range", "sorted", "tuple"),
    *("np.arange", "np.array", "np.float32", "np.float64", "np.full", "np.geomspace", "np.linspace", "np.logspace"),
}

# Where those in capitals belong there as well; in the middle of a line there are lengths of texts, mostly.
TUNED_IN_CAPITALS = TUNED | {"batch", "data", "record"}

# Numbers that nobody tunes, with the reason.
CONSTANTS = {
    "ifonly.batch.collecting: _MOST_NAMED": "of a text",
    "ifonly.batch.folder: SHARD_ROWS": "the default of a parameter",
    "ifonly.batch.records: _CLOCK_SHARE": "the meaning of a column that is written",
    "ifonly.batch.shards: _TAIL": "of the format of shards",
    "ifonly.batch.summary: _MOST_KINDS": "of a text: reasons that are told apart",
    "ifonly.batch.summary: _MOST_REASONS": "of a text",
    "ifonly.batch.summary: _QUANTILES": "of a text",
    "ifonly.batch.verifying: _MOST_TOLD": "of a text",
    "ifonly.data.features: LARGEST_WHOLE": "of the arithmetic of a float64",
    "ifonly.data.features: _SHOWN": "of a text",
    "ifonly.data.inference: _FEWEST_VALUES": "says what a schema is: odds of 1 in 10^10, see decimals_of",
    "ifonly.data.inference: _MOST_DECIMALS": "says what a schema is, see decimals_of",
    "ifonly.data.schema: _MOST_NAMES": "of a text",
    "ifonly.data.schema: _SHOWN": "of a text",
    "ifonly.record.checker: _DEEPEST": "a limit that no file of a stranger may pass",
    "ifonly.record.checker: _MOST_BYTES": "the same",
    "ifonly.record.fingerprints: _MOST_SCORED": "of the format of records",
    "ifonly.record.price_parts: _BITS": "of whole numbers in 64 bits, see the derivation there",
    "ifonly.record.price_parts: _FINEST, _COARSEST": "exponents of a float64",
    "ifonly.record.price_parts: _MOST_PAID, _MOST_COST": "of whole numbers in 64 bits, see the derivation there",
    "ifonly.record.proof: MOST_BYTES": "a limit that no file of a stranger may pass",
    "ifonly.record.proof: _DIGEST": "of SHA-256",
    "ifonly.record.reading: MOST_BYTES": "a limit that no file of a stranger may pass",
    "ifonly.record.reading: _MOST_DEEP": "the same",
    "ifonly.criteria.manifold.branches: _FIRST, _ROW, _SCAN, _GROUP, _FINE": "names of kinds",
    "ifonly.models.forms.leaves: _NO_END": "a position beyond all others that an int32 holds",
    "ifonly.models.own_links: _COMPARED": "more scores than it takes to tell a sigmoid from another function",
    "ifonly.models.readers.catboost_statistics: _MULTIPLIER": "of CatBoost's own hash",
    "ifonly.models.readers.catboost_statistics: _WORD": "64 bits, of CatBoost's own hash",
    "ifonly.models.readers.lightgbm: _LAST_SCORE_OF_HALF": "of the arithmetic of a float64",
    "ifonly.models.readers.lightgbm: _ZERO": "LightGBM's own constant kZeroThreshold",
    "ifonly.models.readers.xgboost: _LAST_SCORE_OF_HALF": "of the arithmetic of a float32",
    "ifonly.solvers.exact: _LONGEST": "of the lines that SCIP's reader of MPS takes",
    "ifonly.models.readers.onnx: _STRING, _INT64": "the ONNX standard's own codes of types",
    "ifonly.models.reading.outcomes: _FAR": "beyond it a score is as good as infinite",
    "ifonly.program.scaling: _COST": "a power of two near 1,000, by the tolerance of solvers: see its comment",
    "ifonly.program.scaling: _LARGEST_COST": "a power of two near 1,000,000, by the same",
    "ifonly.question.trail: _LEAF, _PRICED, _CUT, _LEVELS, _STAYS, _ALTERNATIVE, _DUALS, _PRICES": "codes of proofs",
    "ifonly.question.trail: _OF_PRICES, MOST_OF_PRICES": "of the format of proofs",
    "ifonly.question.varints: _BYTES": "of the format of proofs",
    "ifonly.search.cells.keeping: ROUGHEST": "as in _prices_keeping.h",
    "ifonly.search.cells.keeping: _LARGEST": "as in _prices_keeping.h, within what proofs can hold",
    "ifonly.search.cells.keeping: _LONGEST": "of the format of proofs",
    "ifonly.solvers.highs: _BEYOND_REACH": "below what HiGHS takes for infinite, 1e20",
    "ifonly.solvers.priced_lp: _DUAL, _PRIMAL": "HiGHS's own codes of its two simplex methods",
    "ifonly.solvers.priced_lp: _INFINITY": "HiGHS's own infinity is less",
    "ifonly.surrogate.blackbox: _MOST_CLASSES": "says which answers are classes and which are counts, not how to search",
    "ifonly.search.balls.tables: MOST_LEVELS": "bits of a word",
    "ifonly.search.balls.tables: REAL, SINGLE, WHOLE": "codes of kinds of values, those of the compiled search",
    "ifonly.solvers.tangents: _LIFT": "a power of two, by the tolerance of solvers: see its comment",
}


def tuned_numbers(tree: dict[str, Module]) -> list[str]:
    """Numbers in capitals at the top of a module that searches, batches or checks of records go by."""
    return [
        f"{module.name}: {names}; make it a field of a group in runtime/tuning.py, with its measurement"
        for module in of_packages(tree, TUNED_IN_CAPITALS)
        for names, value in constants(module)
        if has_number(value) and f"{module.name}: {names}" not in CONSTANTS
    ]


def of_packages(tree: dict[str, Module], packages: Collection[str]) -> Iterator[Module]:
    return (module for module in tree.values() if module.name.partition(".")[2].partition(".")[0] in packages)


def constants(module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield what is assigned to capitals at the top of a module, with the names together."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            names = [name.id for name in ast.walk(target) if isinstance(name, ast.Name)]
            if all(name.isupper() for name in names):
                yield ", ".join(names), node.value


def has_number(value: ast.expr) -> bool:
    """Whether a written number is the value of a constant, or one of several."""
    parts = value.elts if isinstance(value, ast.Tuple | ast.List | ast.Set) else [value]
    parts = [part.value if isinstance(part, ast.Starred) else part for part in parts]
    return any(is_number(part) or (part is not value and has_number(part)) for part in parts)


def is_number(value: ast.expr) -> bool:
    """Whether an expression is made of written numbers alone: sums, tuples, dicts and arrays of them included."""
    parts: Sequence[ast.expr | None]
    match value:
        case ast.Constant():
            return isinstance(value.value, int | float) and not isinstance(value.value, bool)
        case ast.UnaryOp():
            parts = [value.operand]
        case ast.BinOp():
            parts = [value.left, value.right]
        case ast.Tuple() | ast.List() | ast.Set():
            parts = value.elts
        case ast.Dict():
            parts = value.values
        case ast.Subscript():
            parts = [value.value]
        case ast.Starred():
            parts = [value.value]
        case ast.Attribute():
            return ast.unparse(value).startswith("np.finfo(")
        case ast.Call():
            if ast.unparse(value.func) not in NUMERIC_CALLS:
                return False
            parts = value.args[:1]
        case _:
            return False
    return bool(parts) and all(part is not None and is_number(part) for part in parts)


# Modules of bytes, whose numbers are those of a format.
FORMATS = {"ifonly.question.trail", "ifonly.question.varints"}

# Numbers in the middle of a line that nobody tunes, and on which no proof rests beyond the formula they are in.
INLINE: dict[tuple[str, float], str] = {
    ("ifonly.criteria.causality.criterion", 5): "folds: says what is learned, and can be passed",
    ("ifonly.criteria.diversity.criterion", 0.1): "the distance that is asked for if nothing else is said",
    ("ifonly.criteria.manifold.criterion", 5): "a place in a tuple",
    ("ifonly.criteria.manifold.isolation", 100): "per cent",
    ("ifonly.models.forms.bends", 8.0): "of the error of a chord, h^2 |f''| / 8",
    ("ifonly.models.readers.onnx", 0.01): "the ONNX standard's default",
    ("ifonly.models.readers.onnx", 1e-5): "the ONNX standard's default",
    ("ifonly.models.readers.onnx", 5): "inputs of BatchNormalization",
    ("ifonly.models.readers.sklearn_hist", 32): "bits of a word",
    ("ifonly.models.readers.sklearn_neighbours", 4.0): "products of vectors in a difference of two distances, at most",
    ("ifonly.models.readers.torch", 0.01): "PyTorch's own default",
    ("ifonly.models.readers.xgboost", 256): "values of a byte",
    ("ifonly.models.reading.columnwise", 3.0): "the range of a feature, and as much on either side",
    ("ifonly.models.reading.on_grids", 3.0): "the range of a feature, and as much on either side",
    ("ifonly.models.reading.outcomes", 4.0): "steps that grow by a factor, until nothing is beyond them",
    ("ifonly.models.reading.pullback", 4.0): "so that differences of differences are finite, too",
    ("ifonly.question.goal", 1e4): "digits that are shown",
    ("ifonly.question.training", 0.05): "the middle nine tenths: a unit of what is asked",
    ("ifonly.question.training", 0.95): "the middle nine tenths: a unit of what is asked",
    ("ifonly.question.training", 21): "twentieths, both ends included: the same",
    ("ifonly.question.words", 1e15): "digits that are shown",
    ("ifonly.question.words", 6): "digits that are shown",
    ("ifonly.search.boxes.affordable", 1000.0): "the unit of Tuning.size.per_score, 1,000 weights",
    ("ifonly.search.cells.cost_tables", 1.5): "any number between the dearest share, 1, and the next line of costs, 2",
    ("ifonly.search.cells.keeping", 32): "the upper half of a word",
    ("ifonly.search.cells.split_prices", 4.0): "a price is paid and received, and added up in both",
    ("ifonly.search.composites.program", 4.0): "an end of a column that no cost reaches",
    ("ifonly.search.distances.enumeration", 1.5): "the next point of a grid, rounded down",
    ("ifonly.search.inputs.free", 4.0): "of the quadratic formula",
    ("ifonly.search.linear.shaving", 6): "columns of a table",
    ("ifonly.search.reduce", 4.0): "of the quadratic formula",
    ("ifonly.search.refusals", 6): "digits that are shown",
    ("ifonly.solvers.backend", 30.0): "the time limit of a call if nothing else is said",
    ("ifonly.solvers.column_prices", 4.0): "products of vectors in a difference",
}


def inline_numbers(tree: dict[str, Module]) -> list[str]:
    """Numbers in the middle of a line that look chosen: floats but 0, 1, 2 and one half, and whole numbers above 4."""
    return [
        f"{module.name}, line {node.lineno}: {node.value!r}; give it a name in tolerances.py if proofs rest on it, make it a "
        "field of a group in runtime/tuning.py if they do not, or say in INLINE of which formula it is"
        for module in of_packages(tree, TUNED)
        if module.name not in FORMATS
        for node in chosen(module)
        if (module.name, node.value) not in INLINE
    ]


def chosen(module: Module) -> Iterator[ast.Constant]:
    """Yield such numbers, but for powers, bits, and what has a name in capitals at the top of its module."""
    known = {id(node) for _, value in constants(module) for node in ast.walk(value)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.BinOp) and isinstance(
            node.op, ast.Pow | ast.LShift | ast.RShift | ast.BitAnd | ast.BitOr
        ):
            sides = (side.operand if isinstance(side, ast.UnaryOp) else side for side in (node.left, node.right))
            known |= set(map(id, sides))
        if isinstance(node, ast.Constant) and id(node) not in known and is_chosen(node.value):
            yield node


def is_chosen(value: object) -> bool:
    if isinstance(value, float):
        return abs(value) not in {0.0, 0.5, 1.0, 2.0}
    return isinstance(value, int) and value > 4


Check = Callable[[dict[str, Module]], list[str]]
CHECKS: list[Check] = [
    unknown_modules,
    back_arrows,
    cycles,
    early_frameworks,
    long_pieces,
    leftovers,
    headless_docstrings,
    silent_rows,
    concrete_classes,
    guessed_attributes,
    tuned_numbers,
    inline_numbers,
]
TREE = modules(SOURCE)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_source_has_no(check: Check) -> None:
    complaints = check(TREE)
    assert not complaints, "\n".join(complaints)


def test_every_class_that_is_excused_is_asked_for() -> None:
    asked = {name for module in TREE.values() for name, _ in classes_asked_for(module.tree)}
    assert not CONCRETE.keys() - asked


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "examples", "scripts"])
def test_other_folders_have_no_headless_docstrings(folder: str) -> None:
    complaints = headless_docstrings(modules(TESTS.parent / folder))
    assert not complaints, "\n".join(complaints)


def headless_comments(text: str) -> list[str]:
    """Return the comments of a file in C that begin with a question word."""
    return [comment for comment in IN_C.findall(text) if HEADLESS.match(comment)]


def test_c_has_no_headless_comments() -> None:
    files = list(SOURCE.rglob("*.[ch]"))
    complaints = [
        f"{path.name}: {text}" for path in files for text in headless_comments(path.read_text(encoding="utf-8"))
    ]
    assert len(files) > 3
    assert not complaints, "\n".join(complaints)


def test_headless_comments_are_found() -> None:
    assert headless_comments("/* What is spent. */ x; // how\n/* The cost:\n * Which one. */ /**\n How far. */") == [
        "What is spent. ",
        "How far. ",
    ]


def test_every_number_that_is_excused_is_there() -> None:
    found = {f"{module.name}: {names}" for module in TREE.values() for names, _ in constants(module)}
    assert not CONSTANTS.keys() - found
    assert not INLINE.keys() - {(module.name, node.value) for module in TREE.values() for node in chosen(module)}
    assert TREE.keys() >= FORMATS


@pytest.mark.parametrize("arrow", CLOSED_LATE, ids=" -> ".join)
def test_every_circle_that_is_excused_is_there(arrow: tuple[str, str]) -> None:
    assert circle(TREE, CLOSED_LATE.keys() - {arrow})


@pytest.mark.parametrize("face", FACES, ids=" -> ".join)
def test_every_face_that_is_excused_is_shown(face: tuple[str, str]) -> None:
    importer, layer = face
    assert any(arrow.late and area(arrow.target) == layer for arrow in TREE[importer].imports)
    assert points_back(TREE[importer].area, layer)


def test_ten_modules_lie_loose_at_the_top() -> None:
    """All but those that Python looks for there; `_moved` and `version` count like any other."""
    loose = {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}
    assert len(loose) <= 10


@pytest.mark.parametrize("name", [name for name in TREE if not name.endswith("__main__")])
def test_module_imports_or_lacks_only_its_own_framework(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError as error:
        framework = (error.name or "").partition(".")[0]
        if not at_home(name, HOMES.get(framework)):
            raise
        pytest.skip(f"{framework} is not installed")


def test_test_files_have_names_of_their_own() -> None:
    # Pytest imports a test outside a package by its bare name, and can mistake one for its namesake.
    loose = [p for p in TESTS.rglob("test_*.py") if not (p.parent / "__init__.py").exists()]
    twins = [name for name, count in Counter(path.name for path in loose).items() if count > 1]
    assert not twins


# -- the tree of the documentation ------------------------------------------------------------------------------------
def documented(markdown: str) -> set[str]:
    """The folders and modules of the tree in docs/architecture.md, as paths below the package."""
    block = next(part for part in markdown.split("```") if part.strip().startswith("src/ifonly/"))
    found, folders = set(), list[str]()
    for line in block.strip().splitlines()[1:]:
        name = re.match(r"( +)([a-z_]+(?:/|\.py))(?: |$)", line)
        if name is None or len(name[1]) > 2 * (len(folders) + 1):
            continue  # the second line of a description
        folders = folders[: len(name[1]) // 2 - 1]
        found.add("".join(folders) + name[2])
        if name[2].endswith("/"):
            folders.append(name[2])
    return found


def on_disk(source: Path) -> set[str]:
    """Packages below the package, at any depth, and its top-level modules."""
    packages = {path.parent.relative_to(source).as_posix() + "/" for path in source.rglob("*/__init__.py")}
    return packages | {path.name for path in source.glob("*.py")}


def test_the_documented_tree_is_the_folder() -> None:
    shown = documented((TESTS.parent / "docs" / "architecture.md").read_text(encoding="utf-8"))
    there = on_disk(SOURCE)
    assert not there - shown, "name these in the tree of docs/architecture.md"
    assert not shown - there, "these are in the tree of docs/architecture.md, but not in src/ifonly"


def test_the_tree_is_read_as_people_read_it(tmp_path: Path) -> None:
    tree = "Text\n```\nsrc/ifonly/\n  a.py   x\n  b/     y\n         more of y/ z.py\n    c/   w\n  d/     v\n```\n"
    assert documented(tree) == {"a.py", "b/", "b/c/", "d/"}
    for name in ("a.py", "b/__init__.py", "b/c/__init__.py", "b/e.py", "f/data.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert on_disk(tmp_path) == {"a.py", "b/", "b/c/"}


# -- the glossary -----------------------------------------------------------------------------------------------------
def names_of(tree: dict[str, Module]) -> set[str]:
    """Classes and functions of all modules, members of classes as ``Class.member``, decorators with their sign."""
    found = set()
    for module in tree.values():
        found |= {node.name for node in module.tree.body if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef):
                found.add(f"@{node.name}")
            if isinstance(node, ast.ClassDef):
                found.add(node.name)
                found |= {f"{node.name}.{n.name}" for n in node.body if isinstance(n, ast.FunctionDef)}
                fields = (n.target for n in node.body if isinstance(n, ast.AnnAssign))
                found |= {f"{node.name}.{ast.unparse(target)}" for target in fields}
    return found


def rows_of_tables(markdown: str) -> list[list[str]]:
    """The rows of all tables but their headers: the names in code in the first cell, and those in the last one."""
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    cells = [line.strip("| ").split(" | ") for line in lines if not line.startswith(("| word", "| before"))]
    return [[" ".join(re.findall(r"`([^`]+)`", cell)) for cell in (row[0], row[-1])] for row in cells]


def test_the_glossary_names_what_there_is() -> None:
    text = (TESTS.parent / "docs" / "glossary.md").read_text(encoding="utf-8")
    words, changed = (rows_of_tables(part) for part in text.split("## Names that changed"))
    assert len(words) >= 25
    assert len(changed) >= 10
    known = names_of(TREE)
    named = [name for _, now in words + changed for name in now.split()]
    gone = [name for name in named if not ((SOURCE / name).exists() if "/" in name else name in known)]
    assert not gone, "docs/glossary.md names what is not in src/ifonly"
    kept = [name for before, _ in changed for name in before.split() if name in known]
    assert not kept, "docs/glossary.md says that these names changed, but they are in src/ifonly"


CLEAN = {
    "errors.py": "import typing\nif typing.TYPE_CHECKING:\n    from ifonly.runtime.deadline import Deadline",
    "runtime/deadline.py": "import time",
    "program/mip.py": "import numpy as np\nfrom ifonly.errors import IfOnlyError",
    "data/schema.py": "from ifonly import errors\nfrom ifonly.program.mip import Mip",
    "program/box.py": "from ifonly.data.schema import Schema",
    "models/__init__.py": "from ifonly.data.schema import Schema",
    "models/readers/sklearn_linear.py": "import sklearn.base\nfrom ifonly.models import Form",
    "models/readers/xgboost.py": "import xgboost.core\nhasattr(xgboost, 'core')",
    "models/forms/curves.py": "from ifonly.models.forms.trees import Trees\nisinstance(1, Trees)",
    "criteria/sparsity.py": "import ifonly.data.schema\nfrom ifonly.models import Form\nhasattr(1, 'predict_proba')",
    "search/asking.py": "from ifonly.criteria.validity import Target\nisinstance(1, Target)",
    "result/values.py": "def plot():\n    from ifonly.result.plots import draw\n    import matplotlib",
    "result/plots.py": "import matplotlib.pyplot as plt\nfrom ifonly.result.values import Explanation",
    "cli.py": "import ifonly\nprint(1)",
    "program/cells.py": "def f(mip, x, schema):\n    # x = 0\n    mip.row(x)\n    x.mip.convex(x)  # why\n    schema.row(x)",
    "search/cells.py": "WITH_SOLVER = (Cells(1), Cells(2))[-1:]\n_NEAR = 0.5 * FEASIBILITY\nNAMES = ('a', 'b')",
    "program/inputs.py": "def f(x, bits):\n    return 0.5 * x[1:3] - 2.0**-52 * (bits >> 32) + 10.0**x if x else -1",
    "studio/plan.py": "_ROWS = 1000",
    "events.py": 'class Event:\n    """Event of a search."""',
    "__init__.py": "from ifonly.result.values import Explanation",
}


def dummy(folder: Path, files: dict[str, str]) -> dict[str, Module]:
    source = folder / "ifonly"
    for name, text in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return modules(source)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_checks_accept_a_clean_tree(check: Check, tmp_path: Path) -> None:
    assert check(dummy(tmp_path, CLEAN)) == []


@pytest.mark.parametrize(
    ("check", "name", "text"),
    [
        (unknown_modules, "utils.py", ""),
        (back_arrows, "program/mip.py", "from ifonly.data.schema import Schema"),
        (back_arrows, "program/mip.py", "from ifonly.data import schema"),
        (back_arrows, "program/mip.py", "from ifonly.program import box"),
        (back_arrows, "data/schema.py", "import ifonly.criteria.sparsity"),
        (back_arrows, "data/schema.py", "def late():\n    from ifonly.criteria import sparsity"),
        (
            back_arrows,
            "data/schema.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ifonly.criteria import sparsity",
        ),
        (back_arrows, "result/values.py", "from ifonly.result.plots import draw"),
        (back_arrows, "program/box.py", "def late():\n    from ifonly.result.plots import draw"),
        (back_arrows, "result/values.py", "def late():\n    from ifonly.studio import plan"),
        (back_arrows, "criteria/manifold.py", "from ifonly import Explainer"),
        (back_arrows, "solvers/highs.py", "from ifonly.data.schema import Schema"),
        (cycles, "errors.py", "from ifonly.program.mip import Mip"),
        (cycles, "errors.py", "def late():\n    from ifonly.program.mip import Mip"),
        (
            cycles,
            "program/mip.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ifonly.program.mip import Mip",
        ),
        (
            cycles,
            "runtime/deadline.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ifonly.errors import IfOnlyError",
        ),
        (early_frameworks, "explain.py", "import sklearn.base"),
        (early_frameworks, "explain.py", "try:\n    import torch\nexcept ImportError:\n    torch = None"),
        (early_frameworks, "models/readers/lightgbm.py", "from xgboost import Booster"),
        (early_frameworks, "data/schema.py", "class Schema:\n    import polars"),
        (long_pieces, "program/mip.py", "x = 1\n" * FILE_LINES),
        (long_pieces, "program/mip.py", "class Mip:\n    def solve(self):\n" + "        x = 1\n" * FUNCTION_LINES),
        (leftovers, "program/mip.py", "x = 1  # TODO: more"),
        (leftovers, "program/mip.py", "def show():\n    print(1)"),
        (headless_docstrings, "events.py", '"""What a listener hears."""'),
        (headless_docstrings, "events.py", '"""Whatever a listener hears."""'),
        (headless_docstrings, "events.py", 'class Event:\n    def f(self):\n        """How far."""'),
        (
            concrete_classes,
            "search/cells.py",
            "from ifonly.models.forms.trees import Trees\nisinstance(1, int | Trees)",
        ),
        (
            concrete_classes,
            "question/goal.py",
            "from ifonly.models.forms import trees\nisinstance(1, (int, trees.Trees))",
        ),
        (
            concrete_classes,
            "criteria/wary.py",
            "from ifonly.models.forms.votes import Votes as V\ndef f(x):\n    match x:\n        case V():\n            pass",
        ),
        (concrete_classes, "search/cells.py", "from ifonly.criteria.keeps import Keeps\nisinstance(1, Keeps)"),
        (guessed_attributes, "question/goal.py", "def f(form):\n    return getattr(form, 'spacing', 0.0)"),
        (guessed_attributes, "models/forms/votes.py", "def f(form):\n    return hasattr(form, 'spacing')"),
        (tuned_numbers, "search/cells.py", "_MOST_PARTS = 400_000"),
        (tuned_numbers, "search/cells.py", "MOST: int = -4"),
        (tuned_numbers, "batch/plan.py", "_ROWS = 1000"),
        (tuned_numbers, "criteria/robustness/adversary.py", "_COPIES = {'linf': 5, 'l2': 3}"),
        (tuned_numbers, "solvers/trusted.py", "_SECONDS, _SHARE = 0.05, 0.2"),
        (tuned_numbers, "solvers/bounds.py", "_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)"),
        (tuned_numbers, "criteria/manifold/points.py", "_STOPS = np.linspace(0.0, 1.0, 13)[1:]"),
        (tuned_numbers, "models/forms/curves.py", "_TANGENTS = np.array([1.0, 0.5])"),
        (tuned_numbers, "search/nudge.py", "_SHARES = 2.0 ** np.arange(-40.0, -9.75, 0.25)"),
        (tuned_numbers, "search/neighbours.py", "_SHARES = tuple(2.0 ** -np.arange(0.0, 7.0))"),
        (tuned_numbers, "search/ellipsoid.py", "_FARTHER = (0.0, *(10.0 ** np.arange(-15.0, -8.0)))"),
        (tuned_numbers, "models/forms/polynomials.py", "_CLOSELY, _EXACT = 0.01, ON_BREAKPOINT"),
        (tuned_numbers, "models/readers/splines.py", "_PROBES, _SAME = 301, DUST"),
        (inline_numbers, "criteria/robustness/adversary.py", "def f(d):\n    return d.enough - 0.25 * d.room"),
        (inline_numbers, "question/goal.py", "def f(rounding):\n    return 64.0 * rounding"),
        (inline_numbers, "search/incumbents.py", "def f():\n    return np.linspace(0.0, 1.0, 65)[:-1]"),
        (inline_numbers, "search/cells.py", "def f(x, tries: int = 40):\n    pass"),
        (inline_numbers, "models/forms/curves.py", "class Curve:\n    pieces: int = 8"),
        (inline_numbers, "solvers/priced_lp.py", "def f(self):\n    self.penalty *= 10.0"),
        (inline_numbers, "surrogate/question.py", "def f(rows):\n    return rows[:8]"),
        (inline_numbers, "search/cells.py", "_probes = 301"),
        (silent_rows, "program/cells.py", "def f(mip, x):\n    mip.row(x)"),
        (silent_rows, "models/forms/curves.py", "def f(mip, x):\n    add_rows(mip, x)"),
        (
            silent_rows,
            "program/cells.py",
            "def f(self, x):\n    # a comment on another line\n    x = 1\n    self.mip.rows(x)",
        ),
    ],
)
def test_checks_complain_about_a_fault(check: Check, name: str, text: str, tmp_path: Path) -> None:
    assert check(dummy(tmp_path, CLEAN | {name: text}))


# -- the tests mirror the tree ----------------------------------------------------------------------------------------
# Folders of tests that are no folder of the source, with the reason.
OF_NO_PACKAGE = {
    "before": "files that an older commit wrote, of several kinds",
    "faults": "a fault is kept by what went wrong, and most went through several packages",
}

# Test files that are about something else than the module of their name.
NAMESAKES = {
    "test_cost_tables.py": "costs that people give as tables, not those of a grid of cells",
    "test_decimals.py": "decimals as they are read off the data; search/decimals.py is one use of them",
    "test_oracle.py": "the oracle is the enumeration of a grid, not a black box",
    "test_state.py": "the state of all modules, not of the page",
}


def home(name: str, tree: dict[str, Module]) -> str:
    """The package in whose folder a module is tested."""
    return name if tree[name].path.name == "__init__.py" else name.rpartition(".")[0]


def misplaced_tests(tests: Path, tree: dict[str, Module]) -> list[str]:
    """Test files in no folder of the source, or not in that of the module of their name, or of all that they import."""
    complaints = []
    for path in sorted(tests.rglob("*.py")):
        place = path.relative_to(tests)
        if place.parts[0] in OF_NO_PACKAGE:
            continue
        folder = ".".join(("ifonly", *place.parts[:-1]))
        if folder not in tree or home(folder, tree) != folder:
            complaints.append(f"{place}: src/ifonly has no such folder")
            continue
        if not path.name.startswith("test_"):
            continue  # what tests of several folders share
        named = {home(name, tree) for name in tree if name.rpartition(".")[2] == path.stem.removeprefix("test_")}
        if named and folder not in named and path.name not in NAMESAKES:
            complaints.append(f"{place}: named after a module of {' or '.join(sorted(named))}")
        statements = import_statements(ast.parse(path.read_text(encoding="utf-8")))
        used = {
            target for statement, *_ in statements for target in imported_by(statement, set(tree)) if target in tree
        }
        homes = {home(name, tree) for name in used}
        # A file may be about several folders below its own, and lies above them all then.
        below = {name.removeprefix(f"{folder}.").partition(".")[0] for name in homes if name.startswith(f"{folder}.")}
        if len(below) == 1 and folder not in homes:
            complaints.append(f"{place}: of {folder} it imports {below.pop()} alone")
    return complaints


def test_the_tests_mirror_the_tree() -> None:
    complaints = misplaced_tests(TESTS, TREE)
    assert not complaints, "\n".join(complaints)


def test_every_namesake_that_is_excused_is_there() -> None:
    assert not NAMESAKES.keys() - {path.name for path in TESTS.rglob("test_*.py")}
    assert all((TESTS / folder).is_dir() and not (SOURCE / folder).exists() for folder in OF_NO_PACKAGE)


MIRRORED = dict.fromkeys(
    ["__init__.py", "search/__init__.py", "search/blame.py", "search/cells/__init__.py", "search/cells/grids.py"], ""
)


@pytest.mark.parametrize(
    ("place", "text", "complaint"),
    [
        ("search/cells/test_grids.py", "from ifonly.search.cells.grids import Grid", None),
        ("search/cells/test_sizes.py", "import ifonly", None),
        ("search/test_both.py", "from ifonly.search import blame\nfrom ifonly.search.cells import grids", None),
        ("search/test_neither.py", "from ifonly import Explainer", None),
        ("faults/test_grids.py", "", None),
        ("cells/test_sizes.py", "", "src/ifonly has no such folder"),
        ("search/blame/test_sizes.py", "", "src/ifonly has no such folder"),
        ("search/test_grids.py", "", "named after a module of ifonly.search.cells"),
        ("search/test_cells.py", "", "named after a module of ifonly.search.cells"),
        (
            "search/test_sizes.py",
            "from ifonly.search.cells.grids import Grid",
            "of ifonly.search it imports cells alone",
        ),
    ],
)
def test_a_test_file_out_of_place_is_told(place: str, text: str, complaint: str | None, tmp_path: Path) -> None:
    path = tmp_path / "tests" / place
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    found = misplaced_tests(tmp_path / "tests", dummy(tmp_path, MIRRORED))
    assert found == ([] if complaint is None else [f"{Path(place)}: {complaint}"])
