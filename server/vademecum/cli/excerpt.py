"""The part of a passage that is shown: where the question's words are, cut between words."""

from __future__ import annotations

import re

WIDTH = 400
_WORD = re.compile(r"\w+")


def excerpt(text: str, query: str) -> str:
    """At most WIDTH characters of `text` on one line, with "…" where something is left out."""
    text = " ".join(text.split())
    if len(text) <= WIDTH:
        return text
    room = WIDTH - len("… " + " …")
    asked = {word.casefold() for word in _WORD.findall(query)}
    hits = [match for match in _WORD.finditer(text) if match[0].casefold() in asked]

    def weight(first: re.Match[str]) -> int:
        """Of what was asked, how much lies within reach of this hit: long words say more than "of" and "the"."""
        reach = first.start() + room * 3 // 4
        return sum(map(len, {hit[0].casefold() for hit in hits if first.start() <= hit.start() < reach}))

    best = max(hits, key=weight).start() if hits else 0
    start = max(0, min(best - room // 4, len(text) - room))  # a quarter leads up to the first hit
    return _between_words(text, start, room)


def _between_words(text: str, start: int, room: int) -> str:
    """The whole words of text[start:start + room], with an ellipsis at each end that is cut."""
    end = min(start + room, len(text))
    if start > 0:
        space = text.find(" ", start, end)
        start = space + 1 if space >= 0 else start + 1  # without spaces, as in Japanese, any place will do
    if end < len(text):
        space = text.rfind(" ", start, end + 1)
        end = space if space > start else end
    return ("… " if start > 0 else "") + text[start:end].strip() + (" …" if end < len(text) else "")
