"""What commands take if nobody says: where the data is, whose it is, in which folder an agent works.

For those that import little, too.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

# Where an agent was started, in the environment of all that it runs, wherever it has gone since.
AGENT_FOLDER = "CLAUDE_PROJECT_DIR"

# The account that a new data folder begins with.
OWNER = "owner@localhost"


def default_data(environment: Mapping[str, str], home: str) -> str:
    return posixpath.join(
        environment.get("XDG_DATA_HOME") or posixpath.join(home, ".local", "share"), "vademecum"
    )


def default_models(environment: Mapping[str, str], home: str) -> str:
    """Return the folder for models that all data folders of this machine share."""
    cache = environment.get("XDG_CACHE_HOME") or posixpath.join(home, ".cache")
    return posixpath.join(cache, "vademecum", "models")
