"""Turn the beginning of an event that is too large to be read completely into valid JSON.

Complete values are kept and open brackets are closed. The beginning suffices, because a hook event names its action and
its file before the long text: the content of a file or the output of a command.
"""

from __future__ import annotations

import re

HEAD = 2**20  # number of bytes of a large event that are parsed
# A string that was cut off is kept if it is longer than this, because its end is removed later (`CONTENT_MAX`). A
# shorter string is replaced with "": it could end within a secret, and a partial secret is not recognized.
TEXT_MIN = 10_000
_SYMBOL = r'(?P<text>"[^"\\]*+(?:\\(?:u[0-9A-Fa-f]{4}|[^u])[^"\\]*+)*+)(?P<end>"?)|[\[\]{},:]'


def repair_beginning(content: bytes) -> bytes:
    head = content[:HEAD].decode(errors="ignore")
    closing_brackets: list[str] = []
    valid_length, previous = 0, ""
    for match in re.finditer(_SYMBOL, head):
        symbol = match[0]
        if symbol[0] == '"':
            if not match["end"]:
                if previous == ":" or closing_brackets[-1:] == ["]"]:  # a value; a key is dropped
                    text = match["text"] if len(match["text"]) > TEXT_MIN else '"'
                    return _close(f'{head[: match.start()]}{text}"', closing_brackets)
                break
        elif symbol in "[{":
            closing_brackets.append("]" if symbol == "[" else "}")
            valid_length = match.end()
        elif symbol in "]}":
            if not closing_brackets:
                break
            closing_brackets.pop()
            valid_length = match.end()
        elif symbol == ",":
            valid_length = match.start()
        previous = symbol
    return _close(head[:valid_length], closing_brackets)


def _close(text: str, closing_brackets: list[str]) -> bytes:
    return (text + "".join(reversed(closing_brackets))).encode(errors="replace")
