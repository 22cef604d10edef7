"""Folders and names of which commands that import little and the rest must both know."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

# Where an agent was started, in the environment of all that it runs, wherever it has gone since.
AGENT_FOLDER = "CLAUDE_PROJECT_DIR"

# The account that a new data folder begins with.
OWNER = "owner@localhost"


def default_data(environment: Mapping[str, str], home: str) -> str:
    """Where the data is if nobody says."""
    return posixpath.join(
        environment.get("XDG_DATA_HOME") or posixpath.join(home, ".local", "share"), "vademecum"
    )


# Of what waits in a folder of the spool: its size, a byte of this file a block, as `record` counts it, which must not take
# the longer the more there is; and why it is not taken up, in words.
TALLY = ".tally"
WHY = ".why"
BLOCK = 4096
# A gigabyte: seven weeks of five thousand events a day. What is there stays, what comes is refused: it is the promise
# that was made, and who is refused hears of it.
BLOCKS_MAX = 2**18


def blocks(size: int) -> int:
    """What a file takes on a disk."""
    return max(1, -(-size // BLOCK))
