"""Define the layout of the spool on disk. `vademecum record` fills the spool, and the server empties it.

Each spelling of an email has a folder, and each event has a file: `<data>/spool/<user>/<id>.json`. Invalid events and
events without an account are moved to `<data>/spool/rejected/<user>`. This module imports nothing, so that `record`
starts fast.
"""

from __future__ import annotations

SPOOL = "spool"
OWNER_FOLDER = "owner"  # the folder for events without an email, which belong to the owner account
REJECTED_FOLDER = "rejected"

# The status files of a folder. The size of BLOCK_COUNT_FILE in bytes is the number of waiting blocks, which `record`
# reads in constant time. REASON_FILE contains the reason why events wait.
BLOCK_COUNT_FILE = ".tally"
REASON_FILE = ".why"
BLOCK = 4096  # in bytes
# The maximum number of waiting blocks: a gigabyte, enough for seven weeks with five thousand events a day. Beyond it,
# new events are refused with a message. Waiting events stay, because they were acknowledged.
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
    """Return how many blocks a file of `size` bytes occupies on the disk."""
    return max(1, -(-size // BLOCK))
