"""Who has left for good. No backup brings them back, and what hooks of agents still write for them is deleted.

A line holds the account's id and, keyed by it, a digest of the address: the address itself stays nowhere.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from vademecum.engines.duckdb.accounts import email_key


def left_file(data: Path) -> Path:
    return data / "ledger" / "left"


def note_left(data: Path, account_id: str, email: str) -> None:
    left_file(data).parent.mkdir(parents=True, exist_ok=True)
    with left_file(data).open("a") as file:
        file.write(f"{account_id} {_digest(account_id, email)}\n")


def read_left(data: Path) -> set[str]:
    """Their ids."""
    return {words[0] for words in _lines(data)}


def has_left(data: Path, email: str) -> bool:
    """Was there an account with this address, that left? There may be another by now."""
    return any(_digest(words[0], email) in words[1:] for words in _lines(data))


def _lines(data: Path) -> list[list[str]]:
    try:
        lines = left_file(data).read_text().splitlines()
    except FileNotFoundError:
        return []
    return [words for line in lines if (words := line.split())]


def _digest(account_id: str, email: str) -> str:
    key = account_id.encode()[: hashlib.blake2b.MAX_KEY_SIZE]
    return hashlib.blake2b(email_key(email).encode(), key=key, digest_size=16).hexdigest()
