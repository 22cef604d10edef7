"""Read `.vademecum.toml`, whose `project = "name"` assigns a folder to a project. Other keys are ignored.

A file without a valid name is an error, because otherwise data would go to another project. Only `vademecum record`
continues with a warning, because an event that it does not record is lost.
"""

from __future__ import annotations

import os
import stat

from vademecum.errors import BadRequest
from vademecum.model.agents.project_identity import NAME_MAX, is_name

CONFIG = ".vademecum.toml"
SIZE_MAX = 65_536  # maximum size of a config in bytes
ADVICE = f'Write `project = "name"` into it, a name of 1 to {NAME_MAX} visible characters.'


def read_project_name(folder: str) -> str | None:
    """Return the project name in the folder's config, or None without a config. Raises BadRequest."""
    path = os.path.join(folder, CONFIG)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
            raise BadRequest(f"{path} is not a regular file. {ADVICE}")
        with open(path, "rb") as handle:
            content = handle.read(SIZE_MAX + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}. {ADVICE}") from error
    return _parse_name(content, path)


def _parse_name(content: bytes, path: str) -> str:
    # Imported here, because it takes a third of the startup time of `vademecum record` and few folders have a config.
    import tomllib

    if len(content) > SIZE_MAX:
        raise BadRequest(f"{path} is larger than {SIZE_MAX} bytes. {ADVICE}")
    try:
        name = tomllib.loads(content.decode("utf-8-sig")).get("project")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadRequest(f"{path} is not TOML: {error}. {ADVICE}") from error
    if not is_name(name):
        raise BadRequest(f"{path} does not name its project. {ADVICE}")
    return str(name).strip()
