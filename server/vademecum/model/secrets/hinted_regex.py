"""A pattern that is compiled when a text holds one of its hints: pieces of which every match contains at least one.

Compiling all of them takes as long as starting Python, and `vademecum record` starts at each step of an agent, most of
which speak of nothing like a secret.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Iterator


class Span(namedtuple("Span", ("start", "end", "kind"))):
    """Where a secret lies in a text, and what it is taken for."""

    __slots__ = ()


class Pattern:
    """`hints`: in small letters if the pattern ignores case. Without any, every text may hold a match."""

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
    """In small letters, and the letters that `re` takes for an `i` or an `s` when it ignores case are those."""
    return text.replace("İ", "i").replace("ı", "i").replace("ſ", "s").lower()
