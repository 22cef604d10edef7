"""Compute and verify checksums of segments.

A checksum is two MD5 digests in hexadecimal. One covers all columns except the bodies, the other all columns except the
heads. So heads are verified without reading bodies, and bodies without reading heads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import duckdb
import msgspec

DIGEST = 32  # length of a digest in characters


class DamagedSegment(duckdb.SerializationException):
    """A stored segment differs from the one that was written."""

    def __init__(self, collection: str, first: int, problem: str) -> None:
        super().__init__(f"segment {first} of {collection} {problem}")


def checksum(first: int, collection: str, seqs: str, heads: str, bodies: str) -> str:
    return _digest(first, collection, seqs, heads) + _digest(first, collection, seqs, bodies)


def _digest(first: int, collection: str, seqs: str, rest: str) -> str:
    digest = hashlib.md5(f"{first}\n{collection}\n{seqs}\n".encode(), usedforsecurity=False)
    digest.update(rest.encode())
    return digest.hexdigest()


def verify(
    collection: str,
    first: int,
    seqs: str,
    stored: str | None,
    *,
    heads: str | None = None,
    bodies: str | None = None,
) -> None:
    """Compare the given columns of a segment with its checksum (`stored`), if it has one. Raises DamagedSegment."""
    if stored is None:
        return
    for rest, expected in ((heads, stored[:DIGEST]), (bodies, stored[DIGEST:])):
        if rest is not None and _digest(first, collection, seqs, rest) != expected:
            raise DamagedSegment(collection, first, "does not match its checksum")


def decoded(collection: str, first: int, *columns: tuple[Callable[[str], list[Any]], str]) -> list[Any]:
    """Decode columns into rows. Raises DamagedSegment."""
    try:
        return list(zip(*(decode(text) for decode, text in columns), strict=True))
    except (msgspec.DecodeError, ValueError) as error:
        raise DamagedSegment(collection, first, f"cannot be decoded ({error})") from error
