"""The JSON schemas of the wire protocol are generated, committed and pinned, so an accidental change fails."""

import hashlib
import json
from pathlib import Path

import pytest

from vademecum.cli.generate_schemas import render_files
from vademecum.model.schema.collections import COLLECTIONS, Registry
from vademecum.model.schema.json_schema import json_schema
from vademecum.model.sync.tombstone import make_tombstone

REPOSITORY = Path(__file__).parents[4]

# A new hash means that the protocol has changed for every device. Before you enter it, raise the version of the
# collection, keep the old schema file, and write the migration.
WIRE = "28b328492ee8d04a1f8e5ec53c492690ab867ad9af6511a3c772b324aebeabc3"


@pytest.mark.parametrize(("path", "content"), render_files().items(), ids=render_files())
def test_committed_schemas_equal_the_generated_ones(path, content):
    assert (REPOSITORY / path).read_text(encoding="utf-8") == content, f"{path} is stale: run `make schemas`"


def test_wire_schemas_have_the_pinned_hash():
    schemas = {name: json_schema(collection) for name, collection in Registry().synced.items()}
    assert hashlib.sha256(json.dumps(schemas, sort_keys=True).encode()).hexdigest() == WIRE


def test_tombstone_has_required_fields_but_no_content():
    for collection in COLLECTIONS:
        schema = json_schema(collection)
        tombstone = make_tombstone(
            collection, {"id": "a", "name": "secret", "text": "secret"}, "2026-01-01T00:00:00.000Z"
        )
        assert set(schema["required"]) <= set(tombstone)
        assert "secret" not in str(tombstone)


def test_tombstone_enum_has_its_first_value():
    tombstones = {c.name: make_tombstone(c, {"id": "a"}, "2026-01-01T00:00:00.000Z") for c in COLLECTIONS}
    assert tombstones["documents"]["status"] == "pending"
    assert tombstones["sessions"]["mode"] == "analysis"


def test_schemas_accept_blank_strings():
    def walk(node):
        if isinstance(node, dict):
            assert "pattern" not in node and "minLength" not in node
            for value in node.values():
                walk(value)

    for collection in COLLECTIONS:
        walk({k: v for k, v in json_schema(collection).items() if k != "description"})


# Properties that RxDB 16 and 17 define on documents. RxDB 16 cannot open a collection with a field of such a name.
RXDB_NAMES = {
    *(
        "primary",
        "revision",
        "deleted",
        "collection",
        "isInstanceOfRxDocument",
        "get",
        "set",
        "update",
        "patch",
    ),
    *("modify", "remove", "close", "toJSON", "toMutableJSON", "populate", "getLatest", "putAttachment"),
    *("incrementalUpdate", "incrementalModify", "incrementalPatch", "incrementalRemove"),
}


@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda collection: collection.name)
def test_no_field_has_the_name_of_a_property_of_rxdb_documents(collection):
    assert RXDB_NAMES.isdisjoint(json_schema(collection)["properties"])
