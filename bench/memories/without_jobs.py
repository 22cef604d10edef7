"""Run the server without background jobs for turns.

Turns are not indexed, so no vectors are computed. There is no assistant, so no memories are extracted.
"""

from __future__ import annotations

from vademecum.cli.main import main
from vademecum.services.memory import memory_index

if __name__ == "__main__":
    memory_index.has_recallable_changes = lambda changes: False
    main()
