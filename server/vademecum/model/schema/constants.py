"""Define the default folders, the default account and the environment variable with an agent's folder.

This module imports almost no others, so that commands which must start fast can use it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

# The environment variable with the folder in which an agent was started. All commands of the agent inherit it.
AGENT_FOLDER = "CLAUDE_PROJECT_DIR"

# The account that a new data folder starts with.
OWNER = "owner@localhost"


def default_data(environment: Mapping[str, str], home: str) -> str:
    """Return the default data folder."""
    return posixpath.join(
        environment.get("XDG_DATA_HOME") or posixpath.join(home, ".local", "share"), "vademecum"
    )


def default_models(environment: Mapping[str, str], home: str) -> str:
    """Return the default folder for models. All data folders of a user on this computer share it."""
    cache = environment.get("XDG_CACHE_HOME") or posixpath.join(home, ".cache")
    return posixpath.join(cache, "vademecum", "models")
