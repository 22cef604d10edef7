"""`make schemas`: generate JSON schemas and TypeScript types. Schemas of old versions are never changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from vademecum.model.schema.collections import Registry
from vademecum.model.schema.json_schema import json_schema
from vademecum.model.schema.typescript_types import relations, typescript


def render_files() -> dict[str, str]:
    """Map the path of each generated file, relative to the repository, to its content."""
    registry = Registry().synced
    schemas = {
        f"schemas/{name}.v{collection.version}.json": json.dumps(json_schema(collection), indent=2) + "\n"
        for name, collection in registry.items()
    }
    return {
        **schemas,
        "web/src/core/schema/rows.ts": typescript(registry),
        "web/src/core/schema/relations.ts": relations(registry),
    }


def main(repository: Path) -> None:
    for name, content in render_files().items():
        (repository / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
