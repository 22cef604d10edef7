"""The spool: what `vademecum record` leaves for the server, a file an event, whole or not there at all.

`<data>/spool/<user>/<uuid7>.json`. It is not synced to the disk: an agent's next step does not wait for that, and what
a loss of power takes are the last seconds of an agent that has lost its power too.
"""

from __future__ import annotations

import os

OWNER = "owner"  # the folder of events for which no account was named
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def folder_of(data: str, email: str) -> str:
    """`email`: empty, or with an @, so that it is neither `owner` nor a way out of the spool."""
    return os.path.join(data, "spool", quoted(email) if email else OWNER)


def quoted(text: str) -> str:
    """As urllib.parse.quote(text, safe="") has it, without the time that importing urllib takes."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in text.encode(errors="replace"))


def put(folder: str, name: str, content: bytes) -> None:
    """Raises OSError, and then leaves nothing behind."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, f"{name}.json")
    try:
        descriptor = os.open(f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(content)
        os.rename(f"{path}.tmp", path)
    except OSError:
        if os.path.exists(f"{path}.tmp"):
            os.unlink(f"{path}.tmp")
        raise
