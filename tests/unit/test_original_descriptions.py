"""docs/original-descriptions.md states the constants that the code has."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "original-descriptions.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| `([\w/]+)\.py` \| `([^`]+)` \|(.*)\|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))


def value_of(module: str, name: str) -> list[float]:
    """Return the numbers behind a name such as `TOKENS`, `BUDGETS["FREE"]` or `Settings.port`."""
    base, key, attribute = re.fullmatch(r'(\w+)(?:\["(\w+)"\]|\.(\w+))?', name).groups()
    value: Any = getattr(import_module(f"vademecum.{module.replace('/', '.')}"), base)
    if key:
        value = value[key]
    if attribute:
        value = getattr(value(), attribute)
    if isinstance(value, msgspec.Struct):
        return [float(number) for number in msgspec.structs.astuple(value)]
    return [float(value)]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_documented_constants_match_the_code(row):
    _, original, here, module, name, reason = row
    assert [float(number) for number in here.split(",")] == value_of(module, name)
    assert original == here or reason.strip(), "a number that differs from the original needs a reason"


def test_table_of_constants_is_read_whole():
    table = PAGE.read_text(encoding="utf-8").partition("## Constants")[2].partition("\n## ")[0]
    assert len(ROWS) == table.count("\n| ") - 1 > 15
