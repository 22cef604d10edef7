"""Check the email address of a new account.

The address must not contain invisible characters or imitate another address.
"""

from __future__ import annotations

import re
import unicodedata

from vademecum.model.accounts.passwords import INVISIBLE

_ADDRESS = re.compile(r"[^@\s]{1,64}@[^@\s]{1,190}")
_CJK = frozenset({"HIRAGANA", "KATAKANA", "CJK", "KATAKANA-HIRAGANA", "IDEOGRAPHIC"})
# Combinations of scripts that one label may mix, from the "highly restrictive" level of UTS 39.
_MIXES = (_CJK | {"LATIN"}, frozenset({"LATIN", "HANGUL", "CJK"}), frozenset({"LATIN", "BOPOMOFO", "CJK"}))
# Cyrillic and Greek letters that look like Latin letters. An address of only such letters looks like a Latin address.
_LOOKALIKES = frozenset("асԁеһіјӏорԛѕԝхуѵАВЕНІЈКМОРԚЅТԜХҮ" + "αγικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳ")


def check_email(email: str) -> str:
    """Return the address in NFC. Raises ValueError, with a sentence that describes the problem."""
    email = unicodedata.normalize("NFC", email.strip())
    if not _ADDRESS.fullmatch(email):
        raise ValueError("This is not an email address.")
    for c in email:
        if not " " < c <= "~" and (unicodedata.category(c)[0] not in "LMN" or INVISIBLE.match(c)):
            name = unicodedata.name(c, f"U+{ord(c):04X}")
            raise ValueError(f"The email address contains a character that is not allowed in one: {name}.")
    if unicodedata.normalize("NFKC", email) != email:
        raise ValueError(
            "The email address contains letters that look like ordinary ones but are not. Type it again."
        )
    local, _, domain = email.partition("@")
    for part in (local, *domain.split(".")):
        _check_part(part)
    # A letter without a Latin look-alike, such as п or π, shows that the address does not imitate a Latin one.
    foreign = [c for c in email if c > "~" and unicodedata.category(c)[0] == "L"]
    if foreign and all(c in _LOOKALIKES for c in foreign):
        raise ValueError(
            "The email address contains only letters that look like Latin ones, so it could pass for another address."
        )
    return email


def _check_part(label: str) -> None:
    """Raise ValueError if the local part, or a label of the domain, mixes alphabets."""
    letters = [c for c in label if unicodedata.category(c)[0] == "L"]
    scripts = {unicodedata.name(c, "?").split()[0] for c in letters}
    if len(scripts) > 1 and not any(scripts <= mix for mix in _MIXES):
        raise ValueError(
            f"“{label}” in the email address mixes alphabets ({', '.join(sorted(scripts)).title()}), so it could pass for "
            "another address."
        )
