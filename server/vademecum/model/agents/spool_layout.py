"""Define the layout of the spool on disk, for `record`, which fills it and imports little, and the server, which empties it.

`<data>/spool/<user>/<id>.json`: a folder for each spelling of an email, a file for each event. Invalid events and events
without an account are moved to `<data>/spool/rejected/<user>`.
"""

from __future__ import annotations

SPOOL = "spool"
OWNER_FOLDER = "owner"  # for events recorded without an email; they belong to the local owner
REJECTED_FOLDER = "rejected"

# The status of a folder. The size of the first file is the number of waiting blocks: `record` reads it in constant time,
# however much waits. The second says why events wait.
BLOCK_COUNT_FILE = ".tally"
REASON_FILE = ".why"
BLOCK = 4096  # bytes
# A gigabyte: seven weeks of five thousand events a day. Above it, new events are refused with a message and the waiting
# ones stay, because those were acknowledged.
BLOCKS_MAX = 2**18
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def folder_name(email: str) -> str:
    """Return the folder for an email, or OWNER_FOLDER for "".

    The result equals urllib.parse.quote(email, safe=""), whose import is slow. An email contains an @, so the name is
    neither OWNER_FOLDER nor a path out of the spool.
    """
    quoted = (chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in email.encode(errors="replace"))
    return "".join(quoted) or OWNER_FOLDER


def count_blocks(size: int) -> int:
    """Return the blocks that a file of `size` bytes takes on the disk."""
    return max(1, -(-size // BLOCK))
