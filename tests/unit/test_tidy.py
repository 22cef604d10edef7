"""The code layout: imports go one way, only one engine imports each library, and files and functions are short."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "server" / "vademecum"
MODULES = sorted(p for p in PACKAGE.rglob("*.py"))
LINES_MAX = 500
FUNCTION_MAX = 70

# The parts of the package that each layer may import: model <- engines <- services <- http, cli.
ALLOWED = {
    "model": {"model"},
    "model/records": {"model", "errors"},  # the errors are part of the interface that engines implement
    "engines": {"model", "engines", "errors", "fsync", "fair_queue"},
    "services": {"model", "engines", "services", "errors", "settings", "fsync", "fair_queue"},
    "http": {"model", "engines", "services", "http", "errors", "settings", "fair_queue"},
    "cli": {"model", "engines", "services", "cli", "errors", "settings", "app"},
    "errors": set(),
    "fsync": set(),
    "fair_queue": set(),
    "settings": {"model", "errors"},
    "app": {"model", "engines", "services", "http", "errors", "settings"},
    "__init__": set(),
}
OWNED = {"duckdb": "duckdb", "lancedb": "lance", "lance": "lance", "pyarrow": "lance", "onnxruntime": "onnx",
         "onnx": "onnx", "tokenizers": "onnx", "pypdfium2": "files", "docx": "files", "pptx": "files",
         "openpyxl": "files", "lxml": "files", "striprtf": "files"}  # fmt: skip


# The modules of services and http that may name the DuckDB engine. All others use `model/records/store_interface`.
NAMING_DUCKDB = {
    "services/data/backup.py",  # a backup is a copy of the engine's files
    "services/data/restore.py",
    "services/runtime/composition.py",
}


WEB = ROOT / "web" / "src"
WEB_MODULES = sorted(p for p in WEB.rglob("*.ts*") if not p.name.endswith(".d.ts"))
WEB_IMPORT = re.compile(r"""(?:\bfrom\s*|\bimport\s*\(?\s*|\bnew URL\(\s*)"(\.[^"?]*\.tsx?)\b""")
# The folders of the app that each folder may import.
WEB_ALLOWED = {
    "lib": {"lib"},
    "locale": {"locale"},
    "core": {"core", "lib", "locale"},
    "parsers": {"parsers", "core", "lib"},
    "embedder": {"embedder", "core", "lib"},
    "storage": {"storage", "core", "lib"},
    "backend": {"backend", "storage", "embedder", "parsers", "core", "lib"},
    "backendWorker.ts": {"backend", "core", "lib"},
    "client": {"client", "backendWorker.ts", "storage", "core", "lib"},
    "ui": {"ui", "client", "core", "lib", "locale"},
    "main.tsx": {"ui", "locale"},
}  # fmt: skip
# The folders client and ui may import this module of the worker, because it contains only types.
WEB_API = WEB / "backend" / "api.ts"


def layer(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return "model/records" if parts[:2] == ("model", "records") else parts[0].removesuffix(".py")


@cache
def source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(source(path))


@cache
def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_server_imports_go_one_way():
    assert [said for path in MODULES if (said := wrong_import(path))] == []


def wrong_import(path: Path) -> str:
    """Return what is wrong with a file's imports, or an empty string."""
    allowed = ALLOWED[layer(path)]
    parts = path.relative_to(PACKAGE).parts
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "vademecum" and rest:
            first = rest.split(".")[0]
            if first not in allowed and first != "__version__":
                return f"{path} imports {name}"
            within = layer(path) == "engines" and first == "engines" and len(parts) > 2
            if within and rest.split(".")[1] != parts[1]:
                return f"engines never import each other: {path} imports {name}"
        owner = OWNED.get(top)
        if owner is not None and parts[:2] != ("engines", owner):
            return f"only engines/{owner} may import {top}: {path}"
    return ""


def test_services_and_routes_use_the_records_interface():
    naming = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        if layer(path) in ("services", "http") and any(".engines.duckdb" in name for name in imports(path))
    }
    assert naming == NAMING_DUCKDB


@cache
def web_imports(path: Path) -> list[Path]:
    """Return the modules of the app that a module imports, types included."""
    return [(path.parent / name).resolve() for name in WEB_IMPORT.findall(source(path))]


def web_layer(path: Path) -> str:
    return path.relative_to(WEB).parts[0]


def test_web_imports_go_one_way():
    wrong = [
        f"{path.relative_to(WEB)} imports {target.relative_to(WEB)}"
        for path in WEB_MODULES
        for target in web_imports(path)
        if web_layer(target) not in WEB_ALLOWED[web_layer(path)]
        and not (target == WEB_API and web_layer(path) in ("client", "ui"))
    ]
    assert wrong == []
    assert all(line.startswith(("/**", "export type {")) for line in source(WEB_API).splitlines() if line)


def test_web_has_no_import_cycles():
    """Only imports of values count, because cycles of type imports are harmless."""
    graph = {path: value_imports(path) for path in WEB_MODULES}
    done: set[Path] = set()

    def visit(path: Path, above: tuple[Path, ...]) -> None:
        assert path not in above, " imports ".join(p.name for p in (*above, path))
        if path in done:
            return
        for target in graph.get(path, ()):
            visit(target, (*above, path))
        done.add(path)

    for path in WEB_MODULES:
        visit(path, ())


def value_imports(path: Path) -> list[Path]:
    static = re.findall(
        r"""^(?:import|export)\b(?! type\b)[^;]*?"(\.[^"?]*\.tsx?)\b""", source(path), re.MULTILINE
    )
    return [(path.parent / name).resolve() for name in static]


def test_web_files_are_short():
    generated = WEB / "core" / "schema" / "rows.ts"
    long = [path for path in WEB_MODULES if source(path).count("\n") > LINES_MAX and path != generated]
    assert long == []


def test_web_locks_and_channels_are_registered():
    """One module defines the names of Web Locks and BroadcastChannels, because tabs of all versions share them."""
    named = re.compile(r"""(?:\blocks\s*\.request\(|\bnew BroadcastChannel\()\s*[`"']""")
    assert [path for path in WEB_MODULES if named.search(source(path))] == []
    names = re.findall(r"`(vademecum-\w+-)\$", source(WEB / "lib" / "locks.ts"))
    others = [path for path in WEB_MODULES if path.name != "locks.ts" and web_layer(path) != "storage"]
    assert [(path, name) for path in others for name in names if name in source(path)] == []


def test_files_and_functions_are_short_and_documented():
    for path in MODULES:
        assert source(path).count("\n") <= LINES_MAX, path
        tree = parsed(path)
        assert ast.get_docstring(tree) or not source(path).strip(), f"{path} has no docstring"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < FUNCTION_MAX, f"{path}: {node.name}"


def test_every_module_is_used():
    started = {
        "vademecum.app",
        "vademecum.cli.main",
        "vademecum.cli.generate_schemas",
        "vademecum.cli.install_model",
    }
    assert {module for path in MODULES if not is_used(path, module := dotted(path))} <= started


def dotted(path: Path) -> str:
    return ".".join(("vademecum", *path.relative_to(PACKAGE).with_suffix("").parts))


def is_used(path: Path, module: str) -> bool:
    """Return whether the module is imported, run, or named in a table of parsers or commands."""
    if path.name == "__init__.py" or any(p != path and module in imports(p) for p in MODULES):
        return True
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    for depth in range(len(parts)):
        name = ".".join(parts[depth:])
        tabled = (f'("{name}", ', f': "{name}",')
        beside = PACKAGE.joinpath(*parts[:depth]).glob("*.py")
        if any(entry in source(p) for p in beside for entry in tabled):
            return True
    return any(f"-m {module}" in source(p) or f'"{module}"' in source(p) for p in MODULES)


def test_documents_name_files_that_exist():
    """A mention of a module includes its layer's folder, so that a script can rename it."""
    folders = (PACKAGE, *(ROOT / name for name in ("web", "tests", "bench")))
    there = [f"/{path.relative_to(ROOT).as_posix()}" for folder in folders for path in folder.rglob("*.*")]
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        named = set(re.findall(r"`([\w./]+\.(?:py|tsx?|mjs))\b", source(page)))
        assert [name for name in named if not any(p.endswith(f"/{name}") for p in there)] == [], page
    architecture = source(ROOT / "docs" / "architecture.md")
    assert len(set(re.findall(r"`[\w./]+/[\w.]+\.(?:py|tsx?)`", architecture))) > 150
