"""The wire is generated, committed and pinned: a change is deliberate, or it is red."""

import hashlib
import json
from pathlib import Path

import pytest

from vademecum.cli.generate_schemas import render_files
from vademecum.model.schema.collections import COLLECTIONS, Registry
from vademecum.model.schema.json_schema import json_schema
from vademecum.model.sync.tombstone import make_tombstone

REPOSITORY = Path(__file__).parents[4]

# Changing this is changing what every device speaks: raise the version of the collection, keep the old file, write
# the migration, and only then put the new hash here.
WIRE = "9c33c89bb0e268b796b2ebfa71256d9021b7b9743ddbf5b25b900b0f4e33ddbe"


@pytest.mark.parametrize(("path", "content"), render_files().items(), ids=render_files())
def test_what_is_committed_is_made_from_the_structs(path, content):
    assert (REPOSITORY / path).read_text(encoding="utf-8") == content, f"{path} is stale: run `make schemas`"


def test_the_wire_is_the_pinned_one():
    schemas = {name: json_schema(collection) for name, collection in Registry().synced.items()}
    assert hashlib.sha256(json.dumps(schemas, sort_keys=True).encode()).hexdigest() == WIRE


def test_a_tombstone_has_every_required_field_and_no_content():
    for collection in COLLECTIONS:
        schema = json_schema(collection)
        tombstone = make_tombstone(
            collection, {"id": "a", "name": "secret", "text": "secret"}, "2026-01-01T00:00:00.000Z"
        )
        assert set(schema["required"]) <= set(tombstone)
        assert "secret" not in str(tombstone)


def test_an_enum_is_blanked_to_its_first_value():
    tombstones = {c.name: make_tombstone(c, {"id": "a"}, "2026-01-01T00:00:00.000Z") for c in COLLECTIONS}
    assert tombstones["documents"]["status"] == "pending"
    assert tombstones["sessions"]["mode"] == "analysis"


def test_no_schema_refuses_a_blank():
    def walk(node):
        if isinstance(node, dict):
            assert "pattern" not in node and "minLength" not in node
            for value in node.values():
                walk(value)

    for collection in COLLECTIONS:
        walk({k: v for k, v in json_schema(collection).items() if k != "description"})
