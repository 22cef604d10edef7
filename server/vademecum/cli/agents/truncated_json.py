"""The beginning of an event that is too large to be read whole, as JSON: what stands there complete, all that is open closed.

An agent's hook says first what was done and where; what makes an event large is a file's content or a command's output.
"""

from __future__ import annotations

import re

HEAD = 2**20  # bytes
# A text that is cut this far from its beginning is shown without its end anyway; of a shorter one a half of a secret might
# be left, which would not be known for what it is.
TEXT_MIN = 10_000
_PARTS = r'(?P<text>"[^"\\]*+(?:\\(?:u[0-9A-Fa-f]{4}|[^u])[^"\\]*+)*+)(?P<end>"?)|[\[\]{},:]'


def beginning(content: bytes) -> bytes:
    head = content[:HEAD].decode(errors="ignore")
    open_ones: list[str] = []
    whole, before = 0, ""
    for found in re.finditer(_PARTS, head):
        part = found[0]
        if part[0] == '"':
            if not found["end"]:
                if before == ":" or open_ones[-1:] == ["]"]:  # a value, not a key
                    return _closed(f'{head[: found.start()]}{_text(found["text"])}"', open_ones)
                break
        elif part in "[{":
            open_ones.append("]" if part == "[" else "}")
            whole = found.end()
        elif part in "]}":
            if not open_ones:
                break
            open_ones.pop()
            whole = found.end()
        elif part == ",":
            whole = found.start()
        before = part
    return _closed(head[:whole], open_ones)


def _text(text: str) -> str:
    return text if len(text) > TEXT_MIN else '"'


def _closed(text: str, open_ones: list[str]) -> bytes:
    return (text + "".join(reversed(open_ones))).encode(errors="replace")
