"""Find the regular expressions of the server, and generate hostile texts for each from its parts."""

from __future__ import annotations

import ast
import importlib
import itertools
import pkgutil
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import vademecum
from vademecum.model.secrets.hinted_regex import Pattern

_CALLS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
_ANCHORED = {"match", "fullmatch"}  # methods that try a match only at the start of the text
_PIECES_MAX = 14
_DEFERRED = "vademecum.model.secrets.hinted_regex"  # compiles the patterns that other modules define


class Regex:
    """A regular expression, its location, and whether the server tries it only at the start of a text."""

    def __init__(self, location: str, pattern: re.Pattern[Any], methods: set[str]) -> None:
        self.location = location
        self.pattern = pattern
        self.is_anchored = bool(methods) and methods <= _ANCHORED

    def consume(self, text: str) -> None:
        """Match the whole text, at its start or at every position."""
        subject: Any = text.encode("latin-1", "replace") if isinstance(self.pattern.pattern, bytes) else text
        if self.is_anchored:
            self.pattern.match(subject)
            self.pattern.fullmatch(subject)
        else:
            for _ in self.pattern.finditer(subject):
                pass


def patterns() -> list[Regex]:
    """Return each regular expression in `server/vademecum`, found in the syntax trees and in the loaded modules.

    Raises AssertionError for one that a function builds from local names, because the tests could not find it.
    """
    regexes: dict[tuple[Any, int], Regex] = {}
    trees = {}
    for info in pkgutil.walk_packages(vademecum.__path__, "vademecum."):
        module = importlib.import_module(info.name)
        trees[info.name] = (module, ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")))
    for name, (module, tree) in trees.items():
        used = _methods(tree)
        in_functions = set(_in_functions(tree))
        for key, pattern in _compiled(vars(module)):
            regexes.setdefault(_identity(pattern), Regex(f"{name}.{key}", pattern, used.get(key, set())))
        for call in _calls(tree):
            try:
                source, flags = _evaluate(call, vars(module))
            except NameError:
                if name == _DEFERRED or call not in in_functions:
                    continue  # in a comprehension: `_compiled` finds the pattern in the module's values
                raise AssertionError(f"{name}:{call.lineno}: compile the pattern at module level") from None
            pattern = re.compile(source, flags)
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            methods = set() if method == "compile" else {method}
            regexes.setdefault(_identity(pattern), Regex(f"{name}:{call.lineno}", pattern, methods))
    return sorted(regexes.values(), key=lambda regex: regex.location)


def _identity(pattern: re.Pattern[Any]) -> tuple[Any, int]:
    return pattern.pattern, pattern.flags


def _compiled(values: dict[str, Any]) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the compiled patterns among a module's values, including those in containers and in slots of objects."""
    for key, value in values.items():
        if not key.startswith("__"):
            yield from ((key, pattern) for pattern in _within(value, 3))


def _within(value: Any, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Pattern):
        yield value.compiled()
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        yield from itertools.chain.from_iterable(_within(item, depth - 1) for item in value)
    elif depth and isinstance(value, dict):
        yield from itertools.chain.from_iterable(
            _within(item, depth - 1) for pair in value.items() for item in pair
        )


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name)) if name in _CALLS:
                yield node


def _in_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from ast.walk(node)


def _evaluate(call: ast.Call, names: dict[str, Any]) -> tuple[Any, int]:
    flags = [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    positions = {"compile": 1, "search": 2, "match": 2, "fullmatch": 2, "findall": 2, "finditer": 2}
    position = positions.get(call.func.attr if isinstance(call.func, ast.Attribute) else "", 9)
    flags += call.args[position : position + 1]
    values = [
        eval(compile(ast.Expression(node), "pattern", "eval"), names) for node in [call.args[0], *flags]
    ]
    source = values[0].source if isinstance(values[0], Pattern) else values[0]
    return source, int(values[1]) if flags else 0


def _methods(tree: ast.AST) -> dict[str, set[str]]:
    """Map each name to the methods that the module calls on it. Any other use of a name counts as the method ""."""
    methods: dict[str, set[str]] = {}
    callers = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name) as value, attr=method):
                methods.setdefault(name, set()).add(method)
                callers.add(value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in callers:
            methods.setdefault(node.id, set()).add("")
    return methods


def hostile_texts(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    """Yield texts of about `length` characters that repeat a match of a part of the pattern and end with a mismatch."""
    source = pattern.pattern
    tree = _parser.parse(source, pattern.flags)
    pieces = list(dict.fromkeys(piece for piece in _pieces(tree) if piece))[:_PIECES_MAX]
    starts = list(dict.fromkeys(["", *_starts(tree)]))[:4]
    pairs = [a + b for a, b in itertools.permutations(pieces[:4], 2)]
    for piece in dict.fromkeys(pieces + pairs):
        for start, end in [*((start, "\0") for start in starts), ("x", "x"), ("", "\n\0")]:
            yield start + piece * (length // len(piece)) + end


def _sample(nodes: Iterable[Any], which: int = 0) -> str:
    """Return a text that the nodes match: few repeats, and the `which`-th choice of each class and branch."""
    return "".join(_sample_node(kind, value, which) for kind, value in nodes)


def _sample_node(kind: Any, value: Any, which: int) -> str:
    match kind:
        case op.LITERAL:
            return chr(value)
        case op.NOT_LITERAL:
            return "a" if value != ord("a") else "b"
        case op.ANY:
            return "a"
        case op.IN:
            members = _members(value)
            return members[which % len(members)]
        case op.BRANCH:
            return _sample(value[1][which % len(value[1])], which)
        case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
            return _sample(value[2], which) * min(max(value[0], 1), 600)
        case op.SUBPATTERN:
            return _sample(value[3], which)
        case op.ATOMIC_GROUP:
            return _sample(value, which)
    return ""


_CATEGORIES = {
    op.CATEGORY_DIGIT: "0",
    op.CATEGORY_NOT_DIGIT: "a",
    op.CATEGORY_SPACE: " ",
    op.CATEGORY_NOT_SPACE: "a",
    op.CATEGORY_WORD: "a",
    op.CATEGORY_NOT_WORD: "-",
}


def _members(items: Any) -> list[str]:
    if items[0][0] is op.NEGATE:
        others = [char for char in "a 0-A\n<[\"'é\0" if not any(_contains(item, char) for item in items[1:])]
        return others[:3] or ["\u4e00"]
    members = []
    for kind, value in items:
        if kind is op.LITERAL:
            members.append(chr(value))
        elif kind is op.RANGE:
            members += [chr(value[0]), chr(value[1])]
        elif kind is op.CATEGORY:
            members.append(_CATEGORIES[value])
    return [char for char in members if not "\ud800" <= char <= "\udfff"] or ["a"]


def _contains(item: Any, char: str) -> bool:
    kind, value = item
    if kind is op.LITERAL:
        return ord(char) == value
    if kind is op.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    is_in = {"0": op.CATEGORY_DIGIT, " ": op.CATEGORY_SPACE, "\n": op.CATEGORY_SPACE}.get(char)
    word = char.isalnum() or char == "_"
    return (
        value is is_in or (value is op.CATEGORY_WORD and word) or (value is op.CATEGORY_NOT_WORD and not word)
    )


def _pieces(nodes: Iterable[Any]) -> Iterator[str]:
    """Yield texts that parts of the pattern match: first the repeated parts, then beginnings, ends and the whole."""
    nodes = list(nodes)
    for kind, value in nodes:
        if kind in {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}:
            yield from (_sample(value[2], which) for which in range(2))
            yield from _pieces(value[2])
    for kind, value in nodes:
        if kind is op.SUBPATTERN:
            yield from _pieces(value[3])
        elif kind is op.ATOMIC_GROUP:
            yield from _pieces(value)
        elif kind is op.BRANCH:
            for branch in value[1]:
                yield from _pieces(branch)
        elif kind in {op.ASSERT, op.ASSERT_NOT}:
            yield from _pieces(value[1])
    for which in range(2):
        yield _sample(nodes, which)
        for end in range(1, len(nodes)):
            yield _sample(nodes[:end], which)
            yield _sample(nodes[end:], which)


def _starts(nodes: Iterable[Any]) -> Iterator[str]:
    """Yield, for each repeat, a text that matches the part of the pattern before it."""
    nodes = list(nodes)
    for end, (kind, value) in enumerate(nodes):
        if kind in {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT} and end:
            yield _sample(nodes[:end])
        elif kind is op.SUBPATTERN:
            yield from (_sample(nodes[:end]) + start for start in ["", *_starts(value[3])])
