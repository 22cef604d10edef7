"""Prepare passwords by the OpaqueString profile of RFC 8265, so that every keyboard produces the same bytes.

The allowed characters are the FreeformClass of RFC 8264, section 9.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

# Characters without a glyph of their own: the Unicode property Default_Ignorable_Code_Point.
INVISIBLE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_OLD_HANGUL = re.compile("[\u1100-\u11ff\ua960-\ua97c\ud7b0-\ud7fb]")
_DISALLOWED = frozenset("\u0640\u07fa\u302e\u302f\u3031\u3032\u3033\u3034\u3035\u303b")  # RFC 5892, 2.6
_ARABIC_DIGITS = re.compile("[\u0660-\u0669]")
_PERSIAN_DIGITS = re.compile("[\u06f0-\u06f9]")
_CATEGORIES = re.compile("L[ulotm]|M[nce]|N[dlo]|Zs|S[mcko]|P[cdseifo]")
_VIRAMA = 9  # the canonical combining class of viramas


def prepare(password: str) -> str:
    """Return the password as it is hashed: in NFC, with every kind of space as an ASCII space.

    Raises ValueError, with the name of the character, for a character that OpaqueString disallows.
    """
    spaced = "".join(" " if unicodedata.category(c) == "Zs" else c for c in password)
    prepared = unicodedata.normalize("NFC", spaced)
    for at, c in enumerate(prepared):
        if not _is_allowed(prepared, at):
            raise ValueError(unicodedata.name(c, f"U+{ord(c):04X}"))
    return prepared


def _is_allowed(text: str, at: int) -> bool:
    c = text[at]
    if " " <= c <= "~":
        return True
    if c in _IN_CONTEXT:
        return _IN_CONTEXT[c](text, at)
    if c in _DISALLOWED or _OLD_HANGUL.match(c) or INVISIBLE.match(c):
        return False
    if _ARABIC_DIGITS.match(c):
        return not _PERSIAN_DIGITS.search(text)
    return _CATEGORIES.match(unicodedata.category(c)) is not None


def _script_at(text: str, at: int) -> str:
    """Return the first word of the character's Unicode name, or "" outside the text.

    For a letter this is its script.
    """
    return unicodedata.name(text[at], "").partition(" ")[0] if 0 <= at < len(text) else ""


def _after_virama(text: str, at: int) -> bool:
    return at > 0 and unicodedata.combining(text[at - 1]) == _VIRAMA


def _joins(text: str, at: int) -> bool:
    """Return whether a ZWNJ is allowed at this position: after a virama, or between two Arabic letters.

    RFC 5892 requires certain joining types of the letters, but Python has no Joining_Type.
    """
    return _after_virama(text, at) or _script_at(text, at - 1) == _script_at(text, at + 1) == "ARABIC"


def _has_kana(text: str, _: int) -> bool:
    return any(
        _script_at(text, n) in ("HIRAGANA", "KATAKANA", "CJK")
        for n in range(len(text))
        if text[n] != "\u30fb"
    )


# The contextual rules of RFC 5892, appendix A.
_IN_CONTEXT: dict[str, Callable[[str, int], bool]] = {
    "\u200c": _joins,
    "\u200d": _after_virama,
    "\xb7": lambda text, at: text[max(0, at - 1) : at + 2] == "l\xb7l",
    "\u0375": lambda text, at: _script_at(text, at + 1) == "GREEK",
    "\u05f3": lambda text, at: _script_at(text, at - 1) == "HEBREW",
    "\u05f4": lambda text, at: _script_at(text, at - 1) == "HEBREW",
    "\u30fb": _has_kana,
}
