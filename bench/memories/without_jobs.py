"""The server, but nothing follows a turn: no recall index, so no vectors. Without an assistant nothing is extracted."""

from __future__ import annotations

from vademecum.cli.main import main
from vademecum.services.memory import memory_index

if __name__ == "__main__":
    memory_index.has_recallable_changes = lambda changes: False
    main()
