"""Authenticate local commands, which act for a user through the running server.

At each start, the server writes `<data>/server.json` (mode 0600) with its address and a new secret. The secret gives no
further access to anyone who can read the data folder, because they can already read the records. The server accepts the
secret only from the same machine.
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


class ServerInfo(msgspec.Struct):
    """The content of `server.json`. `public`: the URL for other machines. Older servers omit `public` and `version`."""

    url: str
    pid: int
    secret: str
    public: str = ""
    version: str = ""


def path(data: Path) -> Path:
    return data / "server.json"


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def publish(data: Path, server: ServerInfo) -> None:
    """Write `server.json` atomically, readable only by the server. Raises Broken, for example on a full disk."""
    new = path(data).with_suffix(".new")
    with _writing(data):
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(server))
        new.replace(path(data))


def withdraw(data: Path) -> None:
    """Delete `server.json` if it exists. Raises Broken if it cannot be deleted."""
    with _writing(data):
        path(data).unlink(missing_ok=True)


@contextmanager
def _writing(data: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = (
            "Free some disk space"
            if error.errno == errno.ENOSPC
            else "Delete the file or folder of this name"
        )
        raise Broken(
            f"{path(data)} cannot be written ({error.strerror}). Commands need it to find the running server. Nothing "
            f"was changed. {remedy}."
        ) from error


def read(data: Path) -> ServerInfo | None:
    try:
        return msgspec.json.decode(path(data).read_bytes(), type=ServerInfo)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def matches(expected: str, given: str) -> bool:
    return bool(expected) and hmac.compare_digest(expected.encode(), given.encode(errors="replace"))
