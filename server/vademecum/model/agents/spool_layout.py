"""How the spool lies on the disk, for `record`, which fills it and imports little, and for the server, which empties it.

`<data>/spool/<user>/<id>.json`: a folder for each way to write a user, a file an event. What is no event, or of nobody, is
set aside in `<data>/spool/rejected/<user>`.
"""

from __future__ import annotations

SPOOL = "spool"
OF_OWNER = "owner"  # the folder of events for which no account was named: they are the local owner's
REJECTED = "rejected"

# Of what waits in a folder: its size, a byte of this file a block, as `record` counts it, which must not take the longer the
# more there is; and why it is not taken up, in words.
TALLY = ".tally"
WHY = ".why"
BLOCK = 4096
# A gigabyte: seven weeks of five thousand events a day. What is there stays, what comes is refused: it is the promise
# that was made, and who is refused hears of it.
BLOCKS_MAX = 2**18
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def folder_name(email: str) -> str:
    """`email`: empty, or with an @, so that its folder is neither OF_OWNER nor a way out of the spool. It is written as
    urllib.parse.quote(email, safe="") has it, without the time that importing urllib takes."""
    plain = (chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in email.encode(errors="replace"))
    return "".join(plain) or OF_OWNER


def blocks(size: int) -> int:
    """What a file takes on a disk."""
    return max(1, -(-size // BLOCK))
