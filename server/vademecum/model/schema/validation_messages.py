"""Reword the validation errors of msgspec for users, because its regular expressions are hard to read.

msgspec reports errors as text only. A message without an entry in the tables stays unchanged (docs/decisions/0029).
"""

from __future__ import annotations

from vademecum.model.schema.collections import (
    DOCUMENT_ID_PATTERN,
    ID_PATTERN,
    TIME_PATTERN,
    TIMESTAMP_EXAMPLE,
)
from vademecum.model.text.display_text import short_name

_CHARACTERS = (
    "letters, digits and . _ ~ - only, and not be `.`, `..` or a property name of JavaScript objects, such as "
    "`__proto__`"
)
PATTERN_RULES = {
    TIME_PATTERN: TIMESTAMP_EXAMPLE,
    ID_PATTERN: f"have 1 to 100 characters, {_CHARACTERS}, like session-1",
    DOCUMENT_ID_PATTERN: f"have 1 to 90 characters, {_CHARACTERS}, like document-1",
}
_PATTERNS = {f"Expected `str` matching regex {pattern!r}": rule for pattern, rule in PATTERN_RULES.items()}
_MISSING = "Object missing required field "
_UNKNOWN = "Object contains unknown field "
_VALUE = "Invalid enum value "
_NO_BODY = "'data'"  # Litestar's message for a missing body
_BOUNDS = {
    "Expected `int` >= ": ("must be at least", ""),
    "Expected `int` <= ": ("must be at most", ""),
    "Expected `str` of length >= ": ("is shorter than", " characters"),
    "Expected `str` of length <= ": ("is longer than", " characters"),
    "Expected `array` of length <= ": ("has more entries than", ""),
}


def describe_problem(message: str, whole: str) -> str:
    """Return a sentence for a message of msgspec. `whole`: the subject if the message names no field, such as "The row"."""
    problem, _, path = message.partition(" - at `$")
    path = path.strip(".`")
    subject = f"`{short_name(path)}`" if path else whole
    container = f" in {subject}" if path else ""
    if problem == _NO_BODY:
        return f"{whole} is missing."
    if problem.startswith(_MISSING):
        return f"{whole} lacks {problem.removeprefix(_MISSING)}{container}."
    if problem.startswith(_UNKNOWN):
        field = short_name(problem.removeprefix(_UNKNOWN).strip("`"))
        return f"{whole} has an unknown field, `{field}`{container}."
    if problem.startswith(_VALUE):
        value = short_name(problem.removeprefix(_VALUE).strip("'"))
        return f"{subject} cannot be “{value}”."
    if rule := _PATTERNS.get(problem):
        return f"{subject} must {rule}."
    for prefix, (relation, unit) in _BOUNDS.items():
        bound = problem.removeprefix(prefix)
        if bound != problem and bound.isdecimal():
            # The app shows this message to users, who do not know the names of these fields.
            name = "The question" if subject in ("`query`", "`q`") else subject
            return f"{name} {relation} {int(bound):,}{unit}."
    return message
