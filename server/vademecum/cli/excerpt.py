"""Select the part of a passage that contains the most words of the query."""

from __future__ import annotations

import re

WIDTH = 400
_WORD = re.compile(r"\w+")


def excerpt(text: str, query: str) -> str:
    """Return at most WIDTH characters of `text` on one line, with "…" where text is omitted."""
    text = " ".join(text.split())
    if len(text) <= WIDTH:
        return text
    width = WIDTH - len("… " + " …")
    query_words = {word.casefold() for word in _WORD.findall(query)}
    hits = [match for match in _WORD.finditer(text) if match[0].casefold() in query_words]

    def weight(first: re.Match[str]) -> int:
        """Return the total length of the distinct query words near this hit: longer words are more specific."""
        reach = first.start() + width * 3 // 4
        return sum(map(len, {hit[0].casefold() for hit in hits if first.start() <= hit.start() < reach}))

    best = max(hits, key=weight).start() if hits else 0
    start = max(0, min(best - width // 4, len(text) - width))  # leave a quarter before the first hit
    return _between_words(text, start, width)


def _between_words(text: str, start: int, width: int) -> str:
    """Return the complete words of text[start:start + width], with an ellipsis at each truncated end."""
    end = min(start + width, len(text))
    if start > 0:
        space = text.find(" ", start, end)
        start = space + 1 if space >= 0 else start + 1  # without spaces, as in Japanese, cut anywhere
    if end < len(text):
        space = text.rfind(" ", start, end + 1)
        end = space if space > start else end
    return ("… " if start > 0 else "") + text[start:end].strip() + (" …" if end < len(text) else "")
