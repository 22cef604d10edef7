"""Scope, the pure part: what each scope sees. The browser's twin runs the same cases (tests/conformance/scope.json)."""

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
def test_a_scope_sees_its_own_rows_alone(case: dict[str, Any]) -> None:
    scope = msgspec.convert(case["scope"], MemoryScope)  # type: ignore[arg-type]
    assert sees(scope, case["project"]) is case["seen"]


@pytest.mark.parametrize("case", CASES["home"], ids=lambda case: case["name"])
def test_partition_of_a_row(case: dict[str, Any]) -> None:
    assert msgspec.to_builtins(partition_of(case["project"])) == case["home"]
