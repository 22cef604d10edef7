"""Compile a regular expression only when a text contains one of its hints. Every match contains at least one hint.

Compiling all patterns takes as long as starting Python, and `vademecum record` starts at each step of an agent. Most
steps contain no hint of a secret, so most patterns are never compiled.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Iterator


class Span(namedtuple("Span", ("start", "end", "kind"))):
    """The position of a secret in a text, and its kind."""

    __slots__ = ()


class Pattern:
    """A regular expression that is compiled on first use.

    `hints`: strings of which every match contains one, in lower case if the pattern ignores case. By default every text
    is searched.
    """

    def __init__(self, source: str, flags: int = 0, hints: tuple[str, ...] = ("",)) -> None:
        self.source = source
        self.flags = flags
        self.hints = hints
        self._compiled: re.Pattern[str] | None = None

    def compiled(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self.source, self.flags)
        return self._compiled

    def is_hinted(self, text: str) -> bool:
        seen = folded(text) if self.flags & re.IGNORECASE else text
        return any(hint in seen for hint in self.hints)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self.compiled().finditer(text) if self.is_hinted(text) else iter(())


def folded(text: str) -> str:
    """Return the text in lower case. Letters that `re.IGNORECASE` treats as `i` or `s` become `i` or `s`."""
    return text.replace("İ", "i").replace("ı", "i").replace("ſ", "s").lower()
