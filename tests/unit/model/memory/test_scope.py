"""The rows that each scope includes. The browser's implementation runs the same cases (tests/conformance/scope.json)."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from vademecum.model.memory.scope import MemoryScope, partition_of, sees

CASES: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[3] / "conformance" / "scope.json").read_text()
)


@pytest.mark.parametrize("case", CASES["sees"], ids=lambda case: case["name"])
def test_memory_scope_includes_only_its_own_rows(case: dict[str, Any]) -> None:
    scope = msgspec.convert(case["scope"], MemoryScope)  # type: ignore[arg-type]
    assert sees(scope, case["project"]) is case["seen"]


@pytest.mark.parametrize("case", CASES["home"], ids=lambda case: case["name"])
def test_row_belongs_to_partition_of_its_project(case: dict[str, Any]) -> None:
    assert msgspec.to_builtins(partition_of(case["project"])) == case["home"]
