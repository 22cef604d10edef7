"""Run the server without background jobs for turns: without a recall index no vectors are computed, and without an
assistant no memory is extracted."""

from __future__ import annotations

from vademecum.cli.main import main
from vademecum.services.memory import memory_index

if __name__ == "__main__":
    memory_index.has_recallable_changes = lambda changes: False
    main()
