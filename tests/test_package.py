"""Laws of the package: which way imports point, what ``import hinge`` costs, and that public names are real."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import re
import runpy
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import hinge as hg

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(hg.__file__).resolve().parent
SOURCES = sorted((ROOT / "src" / "hinge").rglob("*.py"))
NATIVE = sorted((ROOT / "native").rglob("*.[ch]pp"))

# A room may import from its own level and from lower ones.
LEVELS = {
    **dict.fromkeys(hg.NAMESPACES, 8), "_lazy": 0,
    "problem": 0, "_native": 0, "_validation": 0, "_cached": 0, "_parameters": 0, "_sources": 0, "errors": 0, "settings": 0, "environment": 0,
    "solvers": 1, "tables": 1, "datasets": 1, "files": 1, "file_values": 1, "file_schema": 1,
    "features": 2, "blocks": 2,
    "models": 3,
    "select": 4,
    "explain": 5,
    "report": 6,
    "learning": 7, "onnx": 7,
    "cli": 8, "selftest": 8,
}  # fmt: skip
NATIVE_LEVELS = {
    "core": 0, "problem": 1, "solvers": 2,
    "trees": 3, "sequence": 3, "generative": 3, "network": 3, "multiclass": 3, "neighbors": 3,
    "bind": 4, "tests": 4,
}  # fmt: skip
# scikit-learn's plumbing; its estimators are never used here.
PLUMBING = {"BaseEstimator", "Pipeline", "ColumnTransformer"}


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name) for every import in the file, wherever it stands; name is empty for ``import module``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            yield from ((node.module or "", alias.name) for alias in node.names)


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_imports_point_downward(path):
    here = room(module_of(path))
    if not here:
        return
    assert here in LEVELS, f"give the new room {here!r} a level in this test"
    for module, name in imports(path):
        if module == "hinge" and name:
            module = f"hinge.{name}"
        if module.startswith("hinge.") and (there := room(module)) in LEVELS:
            assert LEVELS[there] <= LEVELS[here], f"{here} must not import {module}"
        if module == "hinge._core" or module.startswith("hinge._core."):
            assert module_of(path) == "hinge._native", "only hinge._native may import the compiled core"


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """Nodes that lie on a cycle."""

    def reachable(start: str) -> set[str]:
        found: set[str] = set()
        todo = list(graph.get(start, ()))
        while todo:
            node = todo.pop()
            if node not in found:
                found.add(node)
                todo.extend(graph.get(node, ()))
        return found

    return sorted(node for node in graph if node in reachable(node))


def test_rooms_do_not_import_each_other_in_a_circle():
    graph: dict[str, set[str]] = {}
    for path in SOURCES:
        here = room(module_of(path))
        for module, name in imports(path):
            there = room(f"hinge.{name}" if module == "hinge" else module) if module.startswith("hinge") else ""
            if here and there in LEVELS and there != here:
                graph.setdefault(here, set()).add(there)
    assert not cycles(graph)


def test_modules_do_not_import_each_other_in_a_circle():
    """Imports at the top of modules; one inside a function may refer back to its own room."""
    known = {module_of(path) for path in SOURCES}
    graph: dict[str, set[str]] = {}
    for path in SOURCES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.module in known and module_of(path) != "hinge":
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                graph.setdefault(module_of(path), set()).update((names & known) or {node.module})
    assert not cycles(graph)


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_models_keep_to_each_others_public_names(path):
    here = module_of(path)
    for module, name in imports(path):
        family = ".".join(here.split(".")[:3])
        if module.startswith("hinge.models") and not module.startswith(family):
            assert not name.startswith("_"), f"{here} uses the private name {name} of {module}"


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_no_estimator_of_scikit_learn_is_used(path):
    for module, name in imports(path):
        if module.split(".")[0] != "sklearn" or not name or name in PLUMBING:
            continue
        try:
            value = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue  # guarded imports of newer versions
        is_estimator = inspect.isclass(value) and issubclass(value, BaseEstimator) and hasattr(value, "fit")
        assert not is_estimator, f"{module}.{name} is an estimator of scikit-learn"


def _is_class_name(node: ast.AST) -> bool:
    """Whether an expression is ``type(x).__name__`` or ``x.__class__.__name__``."""
    if not (isinstance(node, ast.Attribute) and node.attr == "__name__"):
        return False
    owner = node.value
    by_type = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "type"
    return by_type or (isinstance(owner, ast.Attribute) and owner.attr == "__class__")


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_no_capability_is_found_by_the_name_of_a_class(path):
    """Class names are for messages; what an object can do is declared by its members."""
    for node in ast.walk(ast.parse(path.read_text())):
        parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("startswith", "endswith")
        ):
            parts = [node.func.value]
        assert not any(map(_is_class_name, parts)), f"{path}:{node.lineno}"


@pytest.mark.parametrize("path", NATIVE, ids=lambda path: str(path.relative_to(ROOT)))
def test_native_includes_point_downward(path):
    here = path.relative_to(ROOT / "native").parts[0]
    text = path.read_text()
    for there in re.findall(r'#include "(\w+)/', text):
        assert NATIVE_LEVELS[there] <= NATIVE_LEVELS[here], f"{here} must not include {there}/"
    if here != "bind":
        assert not re.search(r"#include <(nanobind|Python\.h)", text), "Python stays in native/bind"


@pytest.mark.parametrize("path", sorted((ROOT / "native" / "bind").glob("*.[ch]pp")), ids=lambda path: path.name)
def test_bindings_keep_to_the_stable_abi(path):
    """One wheel serves Python 3.12 and later: macros that read the insides of objects do not exist there."""
    assert not re.findall(r"\bPy\w+_(?:GET_\w+|DATA|KIND|ITEMS|AS_\w+|SET_ITEM)\b|\b_Py\w+", path.read_text())


HOT = re.compile(r"^HINGE_HOT [^;{]*?(\w+)\(.*?^}", re.MULTILINE | re.DOTALL)
ALLOCATES = re.compile(
    r"std::vector<\w+> \w+[({]|push_back|emplace|\.(?:assign|resize|reserve|insert)\(|\bgrow\(|\bthrow\b"
)


@pytest.mark.parametrize("path", NATIVE, ids=lambda path: str(path.relative_to(ROOT)))
def test_hot_functions_allocate_nothing(path):
    """An exception out of one would end the process (native/core/hot.hpp)."""
    text = path.read_text()
    found = [match[1] for match in HOT.finditer(text) if ALLOCATES.search(match[0])]
    assert [name for name in found if not re.search(rf"may_throw\(&{name}\b", text)] == []


def _parameters_of(signature: str) -> list[str]:
    """The parameters in a signature that nanobind records, without markers and self."""
    inside = re.sub(
        r"\[[^\[\]]*\]", "", re.sub(r"\[[^\[\]]*\]", "", signature[signature.index("(") + 1 : signature.rindex(")")])
    )
    names = (part.strip().partition(":")[0] for part in re.sub(r"\([^()]*\)", "", inside).split(","))
    return [name for name in names if name not in ("", "*", "/", "self")]


def test_options_reach_the_core_in_structs():
    """A compiled function of many arguments takes them as objects, which Python fills by keyword in one place."""
    core = importlib.import_module("hinge._core")
    found = [value for value in vars(core).values() if not isinstance(value, type)]
    found += [member for cls in vars(core).values() if isinstance(cls, type) for member in vars(cls).values()]
    signatures = [line for value in found for line, *_ in getattr(value, "__nb_signature__", ())]
    assert len(signatures) > 100
    assert [line for line in signatures if len(_parameters_of(line)) > 12] == []
    assert max(len(_parameters_of(line)) for line in signatures) > 8


# Words of a narrator. The field has its own: certificate, score, request, argument, prediction.
NARRATED = {"told", "said", "heard", "voices", "asked", "ours", "theirs", "judge"}
# Those that have no other meaning in tests, benchmarks, tools and pages ("ours" is the estimator compared with a peer's).
ALWAYS_NARRATED = {
    "told", "said", "heard", "voices", "asked", "speaks", "fooled", "liar", "nobody", "somebody", "whoever",
}  # fmt: skip
# Folders and files whose names and comments are in the field's words; add yours.
PLAIN_ROOMS = (
    "native/core", "native/problem", "native/trees", "native/sequence", "native/generative", "native/network",
    "native/multiclass", "native/neighbors", "native/solvers", "native/bind", "src/hinge/problem/losses",
    "src/hinge/problem/penalties", "src/hinge/problem/kernels", "src/hinge/problem/decisions",
    "src/hinge/problem/certificates", "src/hinge/solvers", "src/hinge/explain", "src/hinge/select",
    "src/hinge/learning", "src/hinge/cli", "src/hinge/report", "src/hinge/tables", "src/hinge/blocks", "src/hinge/features",
    "src/hinge/onnx",
    *(f"src/hinge/models/{family}" for family in (
        "structured", "generative", "bayes", "neural", "conformal", "glm", "trees", "committee", "neighbors", "linear",
        "kernel", "calibration", "blocks", "multiclass",
    )),
    *sorted(f"src/hinge/{path.name}" for path in (ROOT / "src" / "hinge").glob("*.py")),
)  # fmt: skip


def words_of(path: Path) -> Iterator[tuple[int, str]]:
    """(line, word) for the words of identifiers and comments; strings are left out, since error messages quote users.

    Of docstrings only those of modules, classes and functions in tests, benchmarks and tools count; of pages every word.
    """
    text = path.read_text()
    if path.suffix == ".md":
        parts = list(enumerate(text.splitlines(), 1))
    elif path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        parts = [(t.start[0], t.string) for t in tokens if t.type in (tokenize.NAME, tokenize.COMMENT)]
        if not path.is_relative_to(ROOT / "src"):
            nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
            parts += [(getattr(n, "lineno", 1), ast.get_docstring(n) or "") for n in nodes]
    else:
        parts = [(n, re.sub(r'"(\\.|[^"])*"', "", line)) for n, line in enumerate(text.splitlines(), 1)]
    for line, part in parts:
        yield from ((line, word) for word in re.findall(r"[a-z]+", part.lower()))


@pytest.mark.parametrize("room", PLAIN_ROOMS)
def test_names_and_comments_use_the_words_of_the_field(room):
    paths = [ROOT / room, *(ROOT / room).rglob("*")]
    files = sorted(p for p in paths if p.suffix in (".py", ".cpp", ".hpp"))
    assert files
    found = [f"{p.relative_to(ROOT)}:{n}: {word}" for p in files for n, word in words_of(p) if word in NARRATED]
    assert not found, "\n".join(found)


PROSE = (
    *(f"tests/{path.name}" for path in sorted((ROOT / "tests").iterdir()) if path.is_dir() or path.suffix == ".py"),
    "benchmarks", "tools", "docs", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md",
)  # fmt: skip


@pytest.mark.parametrize("room", PROSE)
def test_tests_and_pages_use_no_words_of_a_narrator(room):
    paths = [ROOT / room, *(ROOT / room).rglob("*")]
    files = sorted(
        p for p in paths if p.suffix in (".py", ".md") and p.name != Path(__file__).name and "_build" not in p.parts
    )
    found = [f"{p.relative_to(ROOT)}:{n}: {word}" for p in files for n, word in words_of(p) if word in ALWAYS_NARRATED]
    assert not found, "\n".join(found)


def test_comments_of_the_core_name_files_that_exist():
    names = {path.name for path in NATIVE}
    for path in NATIVE:
        for n, line in enumerate(path.read_text().splitlines(), 1):
            for name in re.findall(r"\b\w+\.[ch]pp\b", line.partition("//")[2]):
                assert name in names, f"{path.relative_to(ROOT)}:{n} mentions {name}"


def test_the_glossary_names_code_that_exists():
    rows = re.findall(r"^\| [^|]+ \| (`[^|]+) \|", (ROOT / "docs" / "notation.md").read_text(), re.MULTILINE)
    names = {name for row in rows for quoted in re.findall(r"`([^`]+)`", row) for name in re.findall(r"\w+", quoted)}
    assert len(names) > 30
    source = set(re.findall(r"\w+", " ".join(path.read_text() for path in [*SOURCES, *NATIVE])))
    assert not names - source


def test_import_hinge_loads_nothing_heavy():
    code = "import sys, hinge; print([m for m in ('numpy', 'scipy', 'sklearn', 'hinge._core') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


PUBLIC = [("hg", hg, name) for name in hg.__all__ if name not in hg.NAMESPACES] + [
    (f"hg.{space}", getattr(hg, space), name) for space in hg.NAMESPACES for name in getattr(hg, space).__all__
]


@pytest.mark.parametrize(("space", "module", "name"), PUBLIC, ids=[f"{space}.{name}" for space, _, name in PUBLIC])
def test_every_public_name_is_real_and_documented(space, module, name):
    value = getattr(module, name)
    assert name in dir(module)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert inspect.getdoc(value), f"{space}.{name} has no docstring"
        assert value.__name__ == name


@pytest.mark.parametrize("name", [name for name in hg.__all__ if name not in hg.NAMESPACES])
def test_no_public_name_is_also_a_module(name):
    """Importing hinge.x makes hg.x the module, whatever the table of public names holds."""
    assert not (ROOT / "src" / "hinge" / name).exists()
    assert not (ROOT / "src" / "hinge" / f"{name}.py").exists()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        hg.nothing_of_the_kind  # noqa: B018


def test_the_stub_is_current():
    stubs = runpy.run_path(str(ROOT / "tools" / "stubs.py"))["stubs"]()
    for path, text in stubs.items():
        assert path.read_text() == text, "run `make format`"


def _reading_lists() -> dict[str, list[str]]:
    """The calls of CONTRIBUTING's "Follow a fit", and the files to read for each."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `((?:hg\.|hinge )[^`]+)` \| (.*) \|$", text, re.MULTILINE)
    return {call: re.findall(r"`([\w/]+\.\w+)`", files) for call, files in rows}


MOST_FILES = {"hg.Ridge": 8, "hg.SVC": 10, "hg.DecisionTreeClassifier": 10, "hinge fit": 12}


@pytest.mark.parametrize(("call", "files"), _reading_lists().items(), ids=_reading_lists())
def test_the_files_to_read_take_part_in_the_call(call, files, tmp_path, monkeypatch, rng):
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    assert len(files) <= next(most for name, most in MOST_FILES.items() if call.startswith(name))
    for file in files:
        assert (ROOT / file if file.startswith("native/") else PACKAGE / file).exists()
    entered = set()

    def profile(frame, event, arg):
        entered.add(frame.f_code.co_filename)

    if call.startswith("hinge fit"):
        pytest.importorskip("typer")
        pytest.importorskip("polars")
        from hinge.cli.main import main

        table = tmp_path / "table.csv"
        table.write_text(
            "a,b,c,y\n" + "\n".join(f"{a},{b},{c},{t}" for (a, b, c), t in zip(X, X[:, 0] + rng.normal(size=60)))
        )
        options = ["-t", "y", "--models", "linear", "--time", "600", "-o", str(tmp_path / "out")]
        monkeypatch.setattr("sys.argv", ["hinge", "fit", str(table), *options])
        run = main
    else:
        run = lambda: eval(call, {"hg": hg, "X": X, "y": y})  # noqa: E731
    sys.setprofile(profile)
    try:
        with contextlib.suppress(SystemExit):
            run()
    finally:
        sys.setprofile(None)
    python = [file for file in files if not file.startswith("native/")]
    assert [file for file in python if str(PACKAGE / file) not in entered] == []
