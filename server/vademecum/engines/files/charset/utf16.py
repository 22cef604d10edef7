"""Detect UTF-16 without a BOM."""

from __future__ import annotations

import re
from contextlib import suppress

_WIDE_SAMPLE = 100_000
_LATIN = "\t\n\f\r -~\xa0-\u024f\u0300-\u036f\u1e00-\u1eff\u2000-\u2bff\ufeff\U0001f000-\U0001faff"
# A text uses one of these families of scripts, and Latin letters and signs. Each pattern matches the characters that
# are neither of its family nor Latin letters or signs.
_WIDE = [
    re.compile(f"[^{_LATIN}{letters}]")
    for letters in (
        "\u0370-\u058f\u1f00-\u1fff",  # Greek, Cyrillic, Armenian
        "\u0590-\u06ff\ufb1d-\ufdff\ufe70-\ufefc",  # Hebrew, Arabic
        "\u0900-\u10ff",  # India, South-East Asia, Georgia
        "\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef",  # China, Japan, Korea
    )
]
_RARE = re.compile("[\u0100-\u024f\u0300-\u036f\u2000-\u2bff]")  # no text consists mostly of these
_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_NO_IDEOGRAPH = re.compile("[\u3000-\u30ff\uac00-\ud7a3\uff00-\uffef]")
WIDE_MIN = 8  # minimum length of a text in characters; a shorter text proves nothing


def decode_utf16(data: bytes) -> str | None:
    """Return the text if the data is UTF-16, else None.

    In the right byte order, the characters belong to one family of scripts. In the wrong order, they are from all over
    Unicode.
    """
    candidates: dict[int, str] = {}
    for encoding, half in (("utf-16-be", 0), ("utf-16-le", 1)):
        with suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            if len(text) >= WIDE_MIN and _looks_like_text(text[:_WIDE_SAMPLE]):
                candidates[len(set(data[half : 2 * _WIDE_SAMPLE : 2]))] = text
    return candidates[min(candidates)] if candidates else None


def _looks_like_text(text: str) -> bool:
    """Return whether the characters look like text.

    Two bytes of ASCII text can form an ideograph. So text with ideographs must also contain CJK punctuation, kana or
    Hangul, and a quarter of its ideographs must have a low byte outside of ASCII.
    """
    few = len(text) // 50
    if len(_RARE.findall(text)) * 2 > len(text) or min(len(foreign.findall(text)) for foreign in _WIDE) > few:
        return False
    ideographs = _IDEOGRAPH.findall(text)
    if len(ideographs) <= few:
        return True
    others = len(_NO_IDEOGRAPH.findall(text))
    return others * 50 >= len(text) and sum(ord(sign) & 0x80 > 0 for sign in ideographs) * 4 >= len(
        ideographs
    )
