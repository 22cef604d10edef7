"""Detect secrets by their entropy: long runs of characters that nobody would have typed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from vademecum.model.secrets.hinted_regex import Pattern, Span

RUN_MIN = 20  # minimum length in characters of a run that is tested
ENTROPY_MIN = 3.5  # bits per character: random base64 of 20 characters has about 4
CHANGES_MIN = 0.45  # share of adjacent characters that differ in kind: 0.65 in base64, 0.35 in camelCase
NUMBERS_MIN = 3  # the minimum of numbers in a random word of a single case, as in base32 and base36

_RUN = Pattern(rf"[A-Za-z0-9+/_=-]{{{RUN_MIN},}}+")
# Hashes and UUIDs, which are names and not secrets.
_HEX = Pattern(r"(?:0x)?[0-9A-Fa-f-]+|[a-z]{0,9}[0-9]{0,3}[-_=][0-9a-f]{32,128}")
_WORD = Pattern(r"[A-Za-z0-9]+")
_NUMBER = Pattern(r"[0-9]+")
# The base64 prefixes of PNG, JPEG, GIF, WebP, SVG and BMP images.
_IMAGE = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "PHN2Zy", "Qk0")


def by_look(text: str) -> Iterator[Span]:
    for found in _RUN.finditer(text):
        run = found[0]
        if not run.startswith(_IMAGE) and any(looks_random(piece) for piece in run.split("/")):
            yield Span(*found.span(), "random")


def looks_random(run: str) -> bool:
    """Return whether a run looks random: letters and digits are mixed more than in identifiers.

    Tests that are cheap and reject many runs come first.
    """
    if len(run) < RUN_MIN or not has_digit(run) or not _is_mixed(run):
        return False
    letters = [c for c in run if c.isalnum()]
    return (
        len(letters) >= RUN_MIN * 3 // 4
        and _entropy(letters) >= ENTROPY_MIN
        and not _HEX.compiled().fullmatch(run)
    )


def _is_mixed(run: str) -> bool:
    if run.lower() == run or run.upper() == run:
        words = _WORD.compiled().findall(run)
        return any(
            len(word) >= RUN_MIN and len(_NUMBER.compiled().findall(word)) >= NUMBERS_MIN for word in words
        )
    kinds = [c.isdigit() * 2 + c.isupper() for c in run if c.isalnum()]
    return sum(a != b for a, b in pairwise(kinds)) >= CHANGES_MIN * (len(kinds) - 1)


def _entropy(characters: list[str]) -> float:
    """Return the Shannon entropy in bits per character."""
    from math import log2  # loads slowly, and few runs reach this test

    total = len(characters)
    return -sum(n / total * log2(n / total) for n in Counter(characters).values())


def has_digit(text: str) -> bool:
    return any("0" <= c <= "9" for c in text)
