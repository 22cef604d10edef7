"""Make UUIDv7 ids, which sort by creation time. The caller passes time and randomness."""

from __future__ import annotations


def uuid7(unix_ms: int, random: bytes) -> str:
    """Return a UUIDv7 (RFC 9562) as text, from Unix milliseconds and 10 random bytes."""
    value = (unix_ms & (2**48 - 1)) << 80 | int.from_bytes(random[:10], "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
