"""Read `.vademecum.toml`, whose `project = "name"` assigns a folder to a project. Other keys are ignored.

A file without a valid name is an error, because data would go to another project. Only `vademecum record` continues
with a warning, because an event that it does not record is lost.
"""

from __future__ import annotations

import os
import stat

from vademecum.errors import BadRequest
from vademecum.model.agents.project_identity import NAME_MAX, is_name

CONFIG = ".vademecum.toml"
BYTES_MAX = 65_536
CURE = f'Write `project = "name"` into it, a name of 1 to {NAME_MAX} visible characters.'


def project_of(folder: str) -> str | None:
    """Return the project name in the folder's own config, or None without a config. Raises BadRequest."""
    file = os.path.join(folder, CONFIG)
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):  # opening a pipe would wait for its writer
            raise BadRequest(f"{file} is no file. {CURE}")
        with open(file, "rb") as opened:
            content = opened.read(BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}. {CURE}") from error
    return _named(content, file)


def _named(content: bytes, file: str) -> str:
    import tomllib  # takes a third of the startup of `vademecum record`, and few folders have a config

    if len(content) > BYTES_MAX:
        raise BadRequest(f"{file} is larger than {BYTES_MAX} bytes. {CURE}")
    try:
        name = tomllib.loads(content.decode("utf-8-sig")).get("project")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadRequest(f"{file} is not TOML: {error}. {CURE}") from error
    if not is_name(name):
        raise BadRequest(f"{file} does not name its project. {CURE}")
    return str(name).strip()
