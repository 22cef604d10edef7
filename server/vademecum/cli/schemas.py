"""`make schemas`: write schemas/<collection>.v<version>.json from the structs. Old versions are never touched."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from vademecum.model.collections import Registry
from vademecum.model.schema import json_schema


def rendered() -> dict[str, str]:
    """File name -> content of every schema served now."""
    return {
        f"{name}.v{collection.version}.json": json.dumps(json_schema(collection), indent=2) + "\n"
        for name, collection in Registry().items()
    }


def main(folder: Path) -> None:
    for name, content in rendered().items():
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
