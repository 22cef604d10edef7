"""Make untrusted text safe to display: on one line in a terminal, or as a shortened name in a message."""

from __future__ import annotations

import re

from vademecum.model.text.sanitize import join_lines, strip_hidden
from vademecum.model.text.unicode14 import MARKS, regex_for_ranges

MAX_NAME_LENGTH = 80  # in characters
NAME_END_LENGTH = 30  # the number of characters that a shortened name keeps from its end
_BLANK = (
    " \t\xa0\u1680\u2000-\u200f\u202f\u205f\u2800\u3000\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"
    "\ufe00-\ufe0f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
_DIRECTION_MARK = re.compile("[\u061c\u200e\u200f]")  # `strip_hidden` removes the other direction marks
_GAP = re.compile(f"[{_BLANK}]{{3,}}")  # at least three, because an emoji may contain two blanks in a row
_INVISIBLE_START = re.compile(f"^(?:[{_BLANK}]|{regex_for_ranges(MARKS)})+")
_INVISIBLE_END = re.compile(f"(?<![{_BLANK}])[{_BLANK}]+$")


def printable_line(text: str) -> str:
    """Return the text on one line without invisible characters and characters that could control a terminal."""
    return join_lines(strip_hidden(text))


def short_name(name: str) -> str:
    """Shorten a name from outside for use in a sentence, and remove characters that would reorder or widen the text.

    A long name keeps its beginning and its end, because the end has a file's extension.
    """
    shown = " ".join(_GAP.sub(" ", _DIRECTION_MARK.sub("", printable_line(name))).split())
    if len(shown) > MAX_NAME_LENGTH:
        start = _INVISIBLE_END.sub("", shown[: MAX_NAME_LENGTH - NAME_END_LENGTH - 1])
        # Remove combining marks at the cut, because their letter was cut off.
        end = _INVISIBLE_START.sub("", shown[-NAME_END_LENGTH:])
        shown = f"{start}…{end}"
    return shown if _INVISIBLE_START.sub("", shown) else "(no name)"
