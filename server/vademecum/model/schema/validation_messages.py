"""Why something sent does not fit, in words for a person: the decoder's own speak of regular expressions."""

from __future__ import annotations

import re

from vademecum.model.schema.collections import DOCUMENT_ID_PATTERN, ID_PATTERN, TIME_LOOKS, TIME_PATTERN
from vademecum.model.text.display_text import short_name

_CHARACTERS = "letters, digits and . _ ~ - only, and not be `.`, `..` or a name that objects of JavaScript have, such as `__proto__`"
LOOKS = {
    TIME_PATTERN: TIME_LOOKS,
    ID_PATTERN: f"have 1 to 100 characters, {_CHARACTERS}, like session-1",
    DOCUMENT_ID_PATTERN: f"have 1 to 90 characters, {_CHARACTERS}, like document-1",
}
_MISSING = "Object missing required field "
_UNKNOWN = "Object contains unknown field "
_VALUE = "Invalid enum value "
_NO_BODY = "'data'"  # what Litestar says of a body that is not there
# The app shows to a person what is said of a question.
_QUESTIONS = dict.fromkeys(("`query`", "`q`"), "The question")
_BOUNDS = {
    re.compile(r"Expected `int` >= (\d+)"): "must be at least",
    re.compile(r"Expected `int` <= (\d+)"): "must be at most",
    re.compile(r"Expected `str` of length >= (\d+)"): "is shorter than",
    re.compile(r"Expected `str` of length <= (\d+)"): "is longer than",
    re.compile(r"Expected `array` of length <= (\d+)"): "has more entries than",
}


def sentence(problem: str, whole: str) -> str:
    """`problem`: what msgspec says. `whole`: what does not fit, such as "The row"."""
    what, _, path = problem.partition(" - at `$")
    place = path.strip(".`")
    subject = f"`{short_name(place)}`" if place else whole
    inside = f" in {subject}" if place else ""
    if what == _NO_BODY:
        return f"{whole} is missing."
    if what.startswith(_MISSING):
        return f"{whole} lacks {what.removeprefix(_MISSING)}{inside}."
    if what.startswith(_UNKNOWN):
        field = short_name(what.removeprefix(_UNKNOWN).strip("`"))
        return f"{whole} has an unknown field, `{field}`{inside}."
    if what.startswith(_VALUE):
        value = short_name(what.removeprefix(_VALUE).strip("'"))
        return f"{subject} cannot be “{value}”."
    for pattern, look in LOOKS.items():
        if what == f"Expected `str` matching regex {pattern!r}":
            return f"{subject} must {look}."
    for bound, said in _BOUNDS.items():
        if found := bound.fullmatch(what):
            of = " characters" if "`str`" in what else ""
            return f"{_QUESTIONS.get(subject, subject)} {said} {int(found[1]):,}{of}."
    return problem
