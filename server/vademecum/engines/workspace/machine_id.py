"""A mark of this machine, so that a folder which is not here is not taken for one that was moved away.

Another computer, a container and a user with another home folder have each another. It is a hash, as names of computers
are often those of persons; and a short one, for it tells a person's few machines apart.
"""

from __future__ import annotations

import os

ID_FILE = "/etc/machine-id"
ID_MAX = 100  # bytes


def machine(home: str) -> str:
    return _hash("\0".join((_id(), os.uname().nodename, os.path.realpath(home))).encode(errors="replace"))


def _id() -> str:
    """A container has none, or its computer's; then its name is its own."""
    try:
        with open(ID_FILE, "rb") as file:
            return file.read(ID_MAX).decode(errors="replace").strip()
    except OSError:
        return ""


def _hash(content: bytes) -> str:
    """FNV-1a of 64 bits: hashlib is slow to load, and `vademecum record` starts at each step of an agent."""
    number = 0xCBF29CE484222325
    for byte in content:
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return f"{number:016x}"
