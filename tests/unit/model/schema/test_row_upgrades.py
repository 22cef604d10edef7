"""Rows of version 0 become valid rows of version 1, as in the browser."""

import json
from pathlib import Path

import pytest

from vademecum.model.schema.collections import Registry
from vademecum.model.schema.row_upgrades import upgrade_row
from vademecum.model.sync.tombstone import make_tombstone

CASES = json.loads(
    (Path(__file__).parents[3] / "conformance" / "row_upgrades.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_upgraded_row_equals_the_shared_case(case):
    assert upgrade_row(case["collection"], case["before"]) == case["after"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_upgraded_row_is_valid(case):
    collection = Registry()[case["collection"]]
    row = case["after"]
    if row.get("_deleted"):
        assert make_tombstone(collection, row, row["updatedAt"]) == row
    elif case["collection"] != "documents" or not row.get("syncError"):
        collection.validate(row)
