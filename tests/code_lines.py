"""Count lines of code: without blank lines, comments and docstrings.

    python tests/code_lines.py            # server, web and tests of this checkout
    python tests/code_lines.py --by-folder

A line of Python counts if it contains any token except a comment, and is not part of a docstring. A line of TypeScript
counts if it is not empty without the comments that Babel's parser finds. Generated files do not count.
The number of docstring lines is reported too, because deleting documentation must not look like deleting code.
"""

import argparse
import ast
import io
import json
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATED = {"web/src/core/schema/rows.ts"}
AREAS = {"server": ("server",), "web": ("web",), "tests": ("tests",)}
IGNORED_TOKENS = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
COUNT_TYPESCRIPT = """
const { parse } = require("@babel/parser");
const fs = require("fs");
const counts = {};
for (const path of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const text = fs.readFileSync(path, "utf8");
  const plugins = path.endsWith("x") ? ["typescript", "jsx"] : ["typescript"];
  const { comments } = parse(text, { sourceType: "module", errorRecovery: true, plugins });
  let code = "";
  let end = 0;
  for (const comment of comments) {
    code += text.slice(end, comment.start) + "\\n".repeat(comment.loc.end.line - comment.loc.start.line);
    end = comment.end;
  }
  code += text.slice(end);
  counts[path] = code.split("\\n").filter((line) => line.trim() && line.trim() !== "{}").length;
}
console.log(JSON.stringify(counts));
"""


def count_python(source: str) -> tuple[int, int]:
    """Return the numbers of code lines and of docstring lines."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else node
            if ast.get_docstring(node, clean=False) is not None:
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    text = source.splitlines()
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in IGNORED_TOKENS:
            code.update(range(token.start[0], token.end[0] + 1))
    code = {line for line in code - docstrings if text[line - 1].strip()}
    return len(code), len(docstrings)


def count_typescript(paths: list[Path]) -> dict[str, int]:
    """Return the number of code lines of each file."""
    answer = subprocess.run(
        ["node", "-e", COUNT_TYPESCRIPT],
        input=json.dumps([str(path) for path in paths]),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    counts: dict[str, int] = json.loads(answer.stdout)
    return counts


def tracked_files(folders: tuple[str, ...]) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", *folders], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return [ROOT / name for name in listing.stdout.splitlines() if name not in GENERATED]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--by-folder", action="store_true", help="also list the folders of each area")
    by_folder = parser.parse_args().by_folder
    for area, folders in AREAS.items():
        files = tracked_files(folders)
        code: Counter[str] = Counter()
        docstring_lines = 0
        for path in files:
            if path.suffix == ".py":
                lines, documentation = count_python(path.read_text())
                docstring_lines += documentation
            elif path.suffix == ".css" or path.name.startswith("en.json"):
                lines = sum(1 for line in path.read_text().splitlines() if line.strip())
            else:
                continue
            code[str(path.parent.relative_to(ROOT))] += lines
        scripts = [path for path in files if path.suffix in {".ts", ".tsx"}]
        for name, lines in count_typescript(scripts).items():
            code[str(Path(name).parent.relative_to(ROOT))] += lines
        print(f"{area}: {code.total():,} lines of code, {docstring_lines:,} lines of Python docstrings")
        if by_folder:
            for folder, lines in sorted(code.items()):
                print(f"  {lines:6,}  {folder}")


if __name__ == "__main__":
    main()
