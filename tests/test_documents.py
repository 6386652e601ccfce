"""The documents tell the truth: their Python blocks run, and the output they show is the output that comes.

The ``python`` blocks of one file run in order and share a namespace. A ``text`` or bare block right after one of them is its
expected output. ``console`` blocks that show output run too: every ``$ ifonly ...`` of them, in one folder; a last line
``...`` leaves out the rest, ``$ echo $?`` shows the exit code, and the comment ``<!-- file: name -->`` right before a block
writes it to a file. The comment ``<!-- no-run -->`` right before a block exempts that block.
"""

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner

import ifonly
from ifonly.cli import main

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCUMENTS = [p for p in (README, *sorted((ROOT / "docs").rglob("*.md"))) if p.exists()]
LONG = {  # seconds each
    "docs/any-model.md",
    "docs/auditors.md",
    "docs/cookbook.md",
    "docs/criteria/actionability.md",
    "docs/criteria/manifold.md",
    "docs/criteria/robustness.md",
    "docs/many-rows.md",
    "docs/tutorial.md",
}
TEST_COMMAND = 'pip install -e ".[test]" && pytest'
MAIN_COMMAND = "pip install -e . && ifonly demo"

NO_RUN = "<!-- no-run -->"
NEEDS = re.compile(r"^<!-- needs: (.+) -->$", re.MULTILINE)  # packages that a whole page is about
FILE = re.compile(r"<!-- file: (\S+) -->$")
OPENING = re.compile(r"^\s*(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w+-]*)")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    exempt: bool
    directly_after_previous: bool
    file: str | None = None


def blocks(markdown: str) -> Iterator[Block]:
    """Yield the fenced blocks; `line` counts from 1 and is the first line inside the fence."""
    lines = markdown.splitlines()
    at, last_end, between = 0, None, ""
    while at < len(lines):
        opening = OPENING.match(lines[at])
        if opening is None:
            between += lines[at].strip()
            at += 1
            continue
        end = next((k for k in range(at + 1, len(lines)) if lines[k].strip() == opening["fence"]), len(lines))
        yield Block(
            language=opening["language"],
            text=dedent("\n".join(lines[at + 1 : end])),
            line=at + 2,
            exempt=between.endswith(NO_RUN),
            directly_after_previous=last_end is not None and not between,
            file=said[1] if (said := FILE.search(between)) else None,
        )
        at, last_end, between = end + 1, end, ""


def comparable(output: str) -> str:
    """Make two runs comparable: seconds differ from one to the next, trailing blanks say nothing."""
    timeless = re.sub(r"\d+\.\d+ s\b", "# s", output)
    return "\n".join(line.rstrip() for line in timeless.strip("\n").splitlines())


def check(markdown: str, name: str) -> int:
    """Run the blocks of one document, compare the outputs it shows, and return how many blocks ran."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None
    ran = 0
    for block in blocks(markdown):
        if block.file is not None:
            Path(block.file).write_text(block.text + "\n", encoding="utf-8")
        if block.language == "console" and not block.exempt:
            ran += check_console(block, name)
            continue
        if block.language in {"python", "py"} and not block.exempt:
            # The blank lines make a traceback point at the line in the document.
            code = compile("\n" * (block.line - 1) + block.text, name, "exec")
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                exec(code, namespace)
            printed = stdout.getvalue()
            ran += 1
            continue
        shown = block.language in {"", "text"} and block.directly_after_previous
        if shown and printed is not None:
            assert block.text.strip(), f"{name}:{block.line} shows an output that is empty"
            assert comparable(printed) == comparable(block.text), f"{name}:{block.line} shows other output"
        printed = None
    return ran


def check_console(block: Block, name: str) -> int:
    """Run the commands of a block that shows what they print, compare, and return how many ran."""
    lines = block.text.splitlines()
    if not any(line.startswith("$ ifonly") for line in lines) or all(line.startswith("$ ") for line in lines if line):
        return 0
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    code = 0
    for part in parts:
        command, _, shown = part.partition("\n")
        if command == "echo $?":
            assert shown.strip() == str(code), f"{name}:{block.line} shows another exit code"
            continue
        program, *words = shlex.split(command)
        assert program == "ifonly", f"{name}:{block.line} runs {program}, which this harness does not"
        result = CliRunner().invoke(main, words)
        code, printed = result.exit_code, comparable(result.output)
        expected = comparable(shown)
        if expected.endswith("\n..."):
            expected = expected.removesuffix("...").rstrip()
            printed = printed[: len(expected)]
        assert printed == expected, f"{name}:{block.line} shows other output than {command!r}"
    return len(parts)


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("COLUMNS", "110")
    yield tmp_path
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "document",
    [pytest.param(path, marks=pytest.mark.slow) if named(path) in LONG else path for path in DOCUMENTS],
    ids=named,
)
def test_document_runs_and_shows_what_comes(document: Path, empty_folder: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for package in needed[1].split() if (needed := NEEDS.search(text)) else ():
        pytest.importorskip(package)
    ran = check(text, str(document))
    assert ran or document != README, "README.md has no Python block that runs"


@pytest.mark.skipif(not README.exists(), reason="the project has no README yet")
def test_documents_are_found_and_navigable() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in DOCUMENTS if path != README}
    navigation = re.findall(r"^ +- .*?: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert pages, "docs/ has no page"
    assert pages == set(navigation), "mkdocs.yml's nav and the pages in docs/ differ"


@pytest.mark.skipif(not README.exists(), reason="the project has no README yet")
def test_readme_gives_the_two_commands_and_the_gate_runs_the_same() -> None:
    readme = README.read_text(encoding="utf-8")
    assert MAIN_COMMAND in readme
    assert TEST_COMMAND in readme
    gate = ROOT / ".ci" / "run"
    assert TEST_COMMAND in gate.read_text(encoding="utf-8")


# Where documents and examples may import from; what people who extend need is in ifonly.extend.
PUBLIC = {
    "adapters",
    "batch",
    "bench",
    "datasets",
    "errors",
    "events",
    "extend",
    "policy",
    "record",
    "spark",
    "studies",
    "studio",
}
IMPORT = re.compile(r"^\s*(?:from|import) ifonly\.(\w+)", re.MULTILINE)


def test_documents_and_examples_import_from_public_places() -> None:
    texts = {p: "\n".join(b.text for b in blocks(p.read_text("utf-8"))) for p in DOCUMENTS}
    texts |= {p: p.read_text("utf-8") for p in sorted((ROOT / "examples").glob("*.py"))}
    places = [(path.name, place) for path, text in texts.items() for place in IMPORT.findall(text)]
    assert ("architecture.md", "extend") in places
    assert not [(name, place) for name, place in places if place not in PUBLIC]


SAMPLE = """
```python
x = 2
print("took", 0.51 * x, "s")
```

```text
took 7.25 s
```

<!-- no-run -->
```python
raise SystemExit
```
```
not the output of anything
```

1. In a list:

    ```python
    print(x)
    ```
    ```
    2
    ```

```python
print("prose follows, so nothing is compared")
```
As a tree:
```
src/
```
"""


def test_harness_runs_blocks_in_one_namespace(empty_folder: Path) -> None:
    assert check(SAMPLE, "sample.md") == 3


def test_harness_notices_other_output(empty_folder: Path) -> None:
    with pytest.raises(AssertionError, match=r"sample\.md:5 shows other output"):
        check("```python\nprint(1)\n```\n```text\n2\n```", "sample.md")


def test_harness_points_at_the_line_that_fails(empty_folder: Path) -> None:
    with pytest.raises(ZeroDivisionError) as failure:
        check("words\n\n```python\nx = 0\n1 / x\n```", "sample.md")
    assert failure.traceback[-1].lineno == 4


def test_harness_notices_an_output_that_is_empty(empty_folder: Path) -> None:
    with pytest.raises(AssertionError, match=r"sample\.md:6 shows an output that is empty"):
        check("```python\nx = 1\n```\n\n```text\n```", "sample.md")


def test_harness_runs_commands_that_show_output(empty_folder: Path) -> None:
    text = "<!-- file: x.csv -->\n```text\na,b\n1,2\n```\n\n```console\n$ ifonly --version\n%s\n$ echo $?\n0\n```\n"
    assert check(text % f"ifonly {ifonly.__version__}", "sample.md") == 2
    assert Path("x.csv").read_text() == "a,b\n1,2\n"
    with pytest.raises(AssertionError, match=r"shows other output than 'ifonly --version'"):
        check(text % "ifonly 9", "sample.md")
    assert check("```console\n$ ifonly nonsense\n```", "sample.md") == 0  # shows nothing, so nothing is compared
    assert check("```console\n$ ifonly --help\nUsage: main [OPTIONS] [COMMAND] [ARGS]...\n...\n```", "sample.md") == 1
