"""Compute an id of this machine, so that a folder on another machine is not mistaken for a moved folder.

Each computer, container and home folder has its own id. The id is a hash, because host names often contain personal
names. 64 bits suffice to distinguish a person's few machines.
"""

from __future__ import annotations

import os

ID_FILE = "/etc/machine-id"
ID_MAX = 100  # maximum number of bytes to read


def compute_machine_id(home: str) -> str:
    return _hash(
        "\0".join((_read_id(), os.uname().nodename, os.path.realpath(home))).encode(errors="replace")
    )


def _read_id() -> str:
    """Return the content of /etc/machine-id, or "".

    A container may lack this file or share that of its host. Its host name is its own and is therefore hashed, too.
    """
    try:
        with open(ID_FILE, "rb") as file:
            return file.read(ID_MAX).decode(errors="replace").strip()
    except OSError:
        return ""


def _hash(content: bytes) -> str:
    """Return the 64-bit FNV-1a hash. hashlib is slow to import, and `vademecum record` starts at each agent step."""
    number = 0xCBF29CE484222325
    for byte in content:
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return f"{number:016x}"
