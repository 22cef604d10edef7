"""The layout is a promise: imports go one way, an engine alone imports its library, nothing grows too large."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "server" / "vademecum"
MODULES = sorted(p for p in PACKAGE.rglob("*.py"))
LINES_MAX = 400
FUNCTION_MAX = 70

# model <- engines <- services <- http, cli; what each layer may import of the package
ALLOWED = {
    "model": {"model"},
    "engines": {"model", "engines", "errors", "durable"},
    "services": {"model", "engines", "services", "errors", "settings", "durable"},
    "http": {"model", "engines", "services", "http", "errors", "settings"},
    "cli": {"model", "engines", "services", "http", "cli", "errors", "settings", "app"},
    "errors": set(),
    "durable": set(),
    "settings": {"model", "errors"},
    "app": {"model", "engines", "services", "http", "errors", "settings"},
    "__init__": set(),
}
OWNED = {"duckdb": "duckdb", "lancedb": "lance", "lance": "lance", "pyarrow": "lance", "onnxruntime": "onnx",
         "onnx": "onnx", "tokenizers": "onnx", "pypdfium2": "files", "docx": "files", "pptx": "files",
         "openpyxl": "files", "lxml": "files", "striprtf": "files"}  # fmt: skip


def layer(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


@cache
def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    allowed = ALLOWED[layer(path)]
    parts = path.relative_to(PACKAGE).parts
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "vademecum" and rest:
            first = rest.split(".")[0]
            assert first in allowed or first == "__version__", f"{path.name} imports {name}"
            if layer(path) == "engines" and first == "engines" and len(parts) > 2:
                assert rest.split(".")[1] == parts[1], (
                    f"engines never import each other: {path} imports {name}"
                )
        owner = OWNED.get(top)
        if owner is not None:
            assert parts[:2] == ("engines", owner), f"only engines/{owner} may import {top}: {path}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_and_its_functions_can_be_seen_whole(path):
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= LINES_MAX
    tree = ast.parse(source)
    assert ast.get_docstring(tree) or not source.strip(), "a file opens by stating its rule"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < FUNCTION_MAX, f"{path.name}: {node.name}"


@pytest.mark.parametrize("path", [p for p in MODULES if p.name != "__init__.py"], ids=lambda p: p.name)
def test_no_file_is_dead(path):
    module = ".".join(("vademecum", *path.relative_to(PACKAGE).with_suffix("").parts))
    if module in {"vademecum.app", "vademecum.cli.main", "vademecum.cli.schemas", "vademecum.cli.install"}:
        return
    if any(p != path and module in imports(p) for p in MODULES):
        return
    run = any(f"-m {module}" in p.read_text() or f'"{module}"' in p.read_text() for p in MODULES)
    tabled = (f'("{path.stem}", ', f': "{path.stem}",')  # a table of readers, or of commands
    run = run or any(entry in p.read_text() for p in path.parent.glob("*.py") for entry in tabled)
    assert run, f"nothing imports {module}"
