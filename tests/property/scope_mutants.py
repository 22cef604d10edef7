"""Create mutants of the services. Each mutant disables one scope condition.

A condition is a call with a scope argument, or a call that creates a scope. The mutant replaces that scope by the scope
of all the person's rows.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from vademecum import services

ASKING = {"sees", "is_within", "is_row_in_scope", "_is_within", "list_keys_in_scope", "list_scoped_keys", "check_within", "_check_within", "_row_within", "_list_keys_in_scope"}  # fmt: skip
MAKING = {"InProject", "partition_of"}
MAKERS = ("scope", "agent_scope")  # the modules that create scopes
ALL = ast.parse(
    "__import__('vademecum.model.memory.scope').model.memory.scope.Everything()", mode="eval"
).body


@dataclass(frozen=True)
class Mutant:
    """A function with one disabled condition. `code`: the mutated code.

    `name`: the module, the function, the called function, and a number that distinguishes calls with the same names.
    """

    name: str
    function: FunctionType
    code: CodeType

    @property
    def writes(self) -> bool:
        """Whether the mutated function works in a transaction, and therefore may write."""
        return "tx" in self.code.co_varnames

    @contextmanager
    def planted(self) -> Iterator[None]:
        original = self.function.__code__
        self.function.__code__ = self.code
        try:
            yield
        finally:
            self.function.__code__ = original


def mutants() -> list[Mutant]:
    found = pkgutil.walk_packages(services.__path__, f"{services.__name__}.")
    modules = [importlib.import_module(one.name) for one in found if not one.ispkg]
    return [mutant for module in modules for mutant in _of_module(module)]


def _of_module(module: ModuleType) -> Iterator[Mutant]:
    source = inspect.getsource(module)
    short = module.__name__.rpartition(".")[2]
    count: Counter[str] = Counter()
    for at, (owner, place) in enumerate(_places(ast.parse(source), short)):
        tree = ast.parse(source)
        _, call = list(_places(tree, short))[at]
        _widen(call)
        code = compile(ast.fix_missing_locations(tree), module.__file__ or "", "exec")
        function = _function(module, owner)
        said = f"{short}.{'.'.join(owner)}: {_called(place)}"
        count[said] += 1
        name = f"{said} {count[said]}"
        yield Mutant(name, function, _code_of(code, function.__code__))


def _places(tree: ast.Module, module: str) -> Iterator[tuple[tuple[str, ...], ast.Call]]:
    """Yield each call that is a condition, with the names of the class (if any) and the function that contain it."""
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        above = (node.name,) if isinstance(node, ast.ClassDef) else ()
        for one in inside:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                for call in ast.walk(one):
                    if isinstance(call, ast.Call) and _is_condition(call, module):
                        yield (*above, one.name), call


def _is_condition(call: ast.Call, module: str) -> bool:
    if _called(call) in MAKING:
        return module in MAKERS
    return _called(call) in ASKING and _scope_in(call) is not None


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _scope_in(call: ast.Call) -> int | None:
    """Return the position of the scope among the arguments of a call, or None."""
    for at, argument in enumerate(call.args):
        name = argument.attr if isinstance(argument, ast.Attribute) else getattr(argument, "id", "")
        narrow = isinstance(argument, ast.Call) and _called(argument) in MAKING
        if name in ("scope", "memory_scope", "partition", "home", "asked") or narrow:
            return at
    return None


def _widen(call: ast.Call) -> None:
    at = _scope_in(call)
    if _called(call) in MAKING:
        call.func, call.args = ALL.func, []  # type: ignore[attr-defined]
    elif at is not None:
        call.args[at] = ALL


def _function(module: ModuleType, names: tuple[str, ...]) -> FunctionType:
    found: Any = module
    for name in names:
        found = vars(found)[name]
    function = inspect.unwrap(found)
    assert isinstance(function, FunctionType), names
    return function


def _code_of(module: CodeType, original: CodeType) -> CodeType:
    """Return the code that the function with the code `original` has in the mutated module."""
    for constant in module.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_qualname == original.co_qualname and constant.co_firstlineno == original.co_firstlineno:  # fmt: skip
                return constant
            if original.co_qualname.startswith(f"{constant.co_qualname}."):
                return _code_of(constant, original)
    raise AssertionError(original.co_qualname)
