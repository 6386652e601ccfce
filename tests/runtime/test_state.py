"""State has an owner: no module, no frozen value and no other object's dict holds what was computed before."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ifonly"
WHERE = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}

# What a process knows once and for all, filled while modules are imported; or what has no other place to be.
REGISTRIES = {
    "batch/parcels.py: _OPENED": "a task in a worker is a function: what it keeps between tasks is the worker's",
    "models/readers/onnx.py: _OPERATIONS": "filled while its module is imported",
    "models/reading/transforms.py: _TRANSFORMS": "filled while modules of readers are imported",
    "models/registry.py: _READERS": "filled while modules of readers are imported",
    "solvers/_loading.py: _kept_open": "files that must stay open as long as the process, under a lock",
}
# Descriptors keep the value of a field, or what follows from the instance alone, in the instance that it belongs to.
DESCRIPTORS = {"runtime/memo.py", "runtime/later.py"}
CACHES = {"WeakKeyDictionary", "WeakValueDictionary"}
CONTAINERS = {*CACHES, "Memo", "OrderedDict", "defaultdict", "deque", "dict", "list", "local", "set"}
# Types of a field that whoever holds the value can write to.
WRITABLE = {*CONTAINERS, "Counter", "MutableMapping", "MutableSequence", "MutableSet", "bytearray"}
# Fields of frozen dataclasses that can change, and why their owner is a frozen value all the same.
OWNERS = {
    "criteria/manifold/in_hull.py: InHull.memo": "where the next linear program starts; any start gives the same distance",
    "criteria/manifold/rows.py: Shape.memo": "hulls of its groups of rows, each made from its rows",
    "models/read.py: Model.clock": "how long its estimator takes: what is measured of it, and not part of what it says",
    "models/read.py: Model.memo": "what follows from the model alone: the size of its sums in a box, forms taken apart",
    "models/reading/source.py: Source.memo": "what its own `evaluate` gave for levels of categories",
    "question/further.py: Further.solved": "lent by the search for several answers, which owns it",
    "question/training.py: Training.memo": "what criteria compute from the training rows, for all questions about them",
    "result/values.py: Counterfactual.measures": "a result is its reader's own: a plain dict, as documented",
    "result/values.py: Counterfactual.ranges": "the same",
}
ONCE = {
    "models/registry.py: cache": "imports all readers once; an import waits for itself",
    "solvers/backend.py: cache": "whether a package is installed",
    "record/reading.py: cache": "the JSON Schema of records, read from a file of the package",
    "studio/language.py: cache": "the texts of a language, read from a file of the package",
}


def names(node: ast.AST) -> str:
    return ast.unparse(node)


def module_state(where: str, tree: ast.Module) -> list[str]:
    """Containers and caches of a module that begin empty: something fills them later."""
    out = []
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = names(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            value = node.value
            empty = (isinstance(value, ast.List) and not value.elts) or (isinstance(value, ast.Dict) and not value.keys)
            if isinstance(value, ast.Call):
                empty = names(value.func).split(".")[-1] in CONTAINERS and not value.args
            if empty and target != "__all__":
                out.append(f"{where}: {target}")
    return out


def tricks(where: str, tree: ast.Module) -> list[str]:
    """Ways to change what is frozen or somebody else's."""
    out = []
    states = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "__getstate__"]
    own = [n for f in states for n in ast.walk(f)] + (list(ast.walk(tree)) if where in DESCRIPTORS else [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            out.append(f"{where}: global {', '.join(node.names)}")
        if isinstance(node, ast.Attribute) and names(node).endswith("__dict__") and node not in own:
            out.append(f"{where}: __dict__, line {node.lineno}")
        if isinstance(node, ast.ImportFrom) and node.module in {"functools", "weakref"}:
            forbidden = {"cached_property", "lru_cache", "cache"} if node.module == "functools" else CACHES
            out += [f"{where}: {a.name}" for a in node.names if a.name in forbidden]
        if isinstance(node, ast.FunctionDef) and node.name not in {"__init__", "__post_init__", "__setstate__"}:
            calls = [n for n in ast.walk(node) if isinstance(n, ast.Call) and names(n.func) == "object.__setattr__"]
            out += [f"{where}: object.__setattr__, line {n.lineno}" for n in calls]
    return out


def is_frozen(cls: ast.ClassDef) -> bool:
    return any("frozen=True" in names(decorator) for decorator in cls.decorator_list)


def heads(annotation: ast.expr) -> set[str]:
    """The types that a value of this annotation may itself have; what it holds is not looked at."""
    match annotation:
        case ast.BinOp():  # one | other
            return heads(annotation.left) | heads(annotation.right)
        case ast.Subscript() if names(annotation.value) in {"InitVar", "ClassVar"}:
            return heads(annotation.slice)
        case ast.Subscript():
            return {names(annotation.value).split(".")[-1]}
        case _:
            return {names(annotation).split(".")[-1]}


def kept_in_frozen(where: str, tree: ast.Module) -> list[str]:
    """Fields of frozen dataclasses that can change: containers that can be written to, and objects made anew by the value."""
    out = []
    classes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    changing = {cls.name for cls in classes if not is_frozen(cls)}
    for cls in filter(is_frozen, classes):
        for node in cls.body:
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            made = re.search(r"default_factory=([\w.]+)", names(node.value) if node.value is not None else "")
            private = made is not None and node.target.id.startswith("_") and "Lock" not in made[1]
            if heads(node.annotation) & WRITABLE or (made is not None and made[1] in changing) or private:
                out.append(f"{where}: {cls.name}.{node.target.id}")
    return out


@pytest.mark.parametrize("where", sorted(WHERE))
def test_no_state_without_an_owner(where: str) -> None:
    tree = ast.parse(WHERE[where].read_text(encoding="utf-8"))
    found = module_state(where, tree) + tricks(where, tree) + kept_in_frozen(where, tree)
    left = [f for f in found if f not in REGISTRIES and f not in ONCE and f not in OWNERS]
    assert not left, f"keep it in the memo of the Training (see ifonly.runtime.memo): {left}"


@pytest.mark.parametrize(
    "text",
    [
        "_KNOWN = {}",
        "_KNOWN: dict[str, int] = {}",
        "_KNOWN = []",
        "_KNOWN = WeakKeyDictionary()",
        "_KNOWN = threading.local()",
        "_KNOWN = dict()",
        "def f():\n    global _known\n    _known = 1",
        "from functools import cached_property",
        "from functools import lru_cache",
        "def f(x):\n    object.__setattr__(x, 'y', 1)",
        "def f(x):\n    x.__dict__.update(y=1)",
        "@dataclass(frozen=True)\nclass A:\n    _read: dict = field(default_factory=dict)",
        "@dataclass(frozen=True)\nclass A:\n    refused: list[int] = field(default_factory=list)",
        "@dataclass(frozen=True)\nclass A:\n    known: dict[str, int]",
        "@dataclass(frozen=True)\nclass A:\n    lent: Memo | None = None",
        "class Clock:\n    pass\n@dataclass(frozen=True)\nclass A:\n    clock: Clock = field(default_factory=Clock)",
    ],
)
def test_a_fault_is_seen(text: str) -> None:
    tree = ast.parse(text)
    assert module_state("a.py", tree) + tricks("a.py", tree) + kept_in_frozen("a.py", tree)


def test_every_exception_is_still_there() -> None:
    found: set[str] = set()
    for where, path in WHERE.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= {*module_state(where, tree), *tricks(where, tree), *kept_in_frozen(where, tree)}
    assert {*REGISTRIES, *ONCE, *OWNERS} <= found


@pytest.mark.parametrize(
    "held", ["tuple[list[int], ...]", "Mapping[str, int]", "Sequence[int] | None", "frozenset[int]"]
)
def test_what_cannot_be_written_to_is_a_value(held: str) -> None:
    text = f"@dataclass(frozen=True)\nclass A:\n    read: {held} = field(default_factory=tuple)"
    assert not kept_in_frozen("a.py", ast.parse(text))
