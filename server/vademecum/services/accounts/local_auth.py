"""The local door: commands on this machine act for a user through the running server.

The server writes `<data>/server.json` (mode 0600) with its address and a secret of this start. Whoever can read the
data folder can read the records themselves, so the secret gives nothing away; it is accepted from the loopback only.
"""

from __future__ import annotations

import errno
import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from vademecum.errors import Broken


class Door(msgspec.Struct):
    """`url` of the running server, its process, and the secret of the local door. `public`: by which other machines reach
    it. An older server says nothing of that, nor of its `version`."""

    url: str
    pid: int
    secret: str
    public: str = ""
    version: str = ""


def path(data: Path) -> Path:
    return data / "server.json"


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def publish(data: Path, door: Door) -> None:
    """Write it whole, readable by the owner alone. Raises Broken, as on a full disk."""
    new = path(data).with_suffix(".new")
    with _writing(data):
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(door))
        new.replace(path(data))


def withdraw(data: Path) -> None:
    """Take away what an earlier start has left. Raises Broken when something else is in its place."""
    with _writing(data):
        path(data).unlink(missing_ok=True)


@contextmanager
def _writing(data: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cure = "Make room there" if error.errno == errno.ENOSPC else "Take away what stands in its place"
        raise Broken(
            f"{path(data)} cannot be written ({error.strerror}): by it, commands find a running server. Nothing was "
            f"changed. {cure}."
        ) from error


def read(data: Path) -> Door | None:
    try:
        return msgspec.json.decode(path(data).read_bytes(), type=Door)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def opens(expected: str, given: str) -> bool:
    return bool(expected) and hmac.compare_digest(expected.encode(), given.encode(errors="replace"))
