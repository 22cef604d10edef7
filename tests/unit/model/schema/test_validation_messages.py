"""Validation messages are sentences. Instead of a regular expression, they contain a valid example."""

import re

import msgspec
import pytest

from vademecum.model.schema.collections import COLLECTIONS, TIME_PATTERN
from vademecum.model.schema.validation_messages import PATTERN_RULES, describe_problem


def patterns(kind):
    """Return the patterns of all strings within a type."""
    inspect = msgspec.inspect
    if isinstance(kind, inspect.StrType):
        return {kind.pattern} - {None}
    inner = getattr(kind, "fields", None) or getattr(kind, "types", None) or []
    inner = [getattr(part, "type", part) for part in inner]
    if isinstance(kind, inspect.ListType):
        inner = [kind.item_type]
    return {pattern for part in inner for pattern in patterns(part)}


def test_each_pattern_has_a_matching_example():
    used = {p for c in COLLECTIONS for p in patterns(msgspec.inspect.type_info(c.struct))}
    assert used | {TIME_PATTERN} == PATTERN_RULES.keys()  # TIME_PATTERN is in code, not in a type
    for pattern, rule in PATTERN_RULES.items():
        assert re.search(pattern, rule.rpartition(" ")[2])


ROW = {"id": "d.0", "createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": "2026-01-01T00:00:00.000Z",
       "documentId": "d", "block": 0, "textHash": "", "model": "", "dims": 0, "embedding": None,
       "chunks": [{"index": 0, "start": 0, "text": "t", "tokens": 1}]}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"createdAt": "2026-11-21"}, "`createdAt` must look like 2026-11-21T15:09:02.059Z."),
        ({"updatedAt": "2026-02-30T00:00:00.000Z"}, "`updatedAt` is not a calendar date: 2026-02-30T00:00:00.000Z"),
        ({"createdAt": "0000-01-01T00:00:00.000Z"}, "`createdAt` is not a calendar date: 0000-01-01T00:00:00.000Z"),
        ({"id": "a b"}, "`id` must have 1 to 100 characters, letters, digits and . _ ~ - only, and not be `.`, `..` or a property name of JavaScript objects, such as `__proto__`, like session-1."),
        ({"documentId": "a b"}, "`documentId` must have 1 to 90 characters, letters, digits and . _ ~ - only, and not be `.`, `..` or a property name of JavaScript objects, such as `__proto__`, like document-1."),
        ({"colour": 1}, "The row has an unknown field, `colour`."),
        ({"co\u202elour" + "x" * 1000: 1}, f"The row has an unknown field, `colour{'x' * 43}…{'x' * 30}`."),
        ({"chunks": [{"index": 0}]}, "The row lacks `start` in `chunks[0]`."),
        ({"chunks": [{**ROW["chunks"][0], "colour": 1}]}, "The row has an unknown field, `colour` in `chunks[0]`."),
        ({"block": -1}, "`block` must be at least 0."),
        ({"model": "m" * 129}, "`model` is longer than 128 characters."),
        ({"chunks": [ROW["chunks"][0]] * 17}, "`chunks` has more entries than 16."),
        ({"block": "x"}, "Expected `int`, got `str` - at `$.block`"),
    ],
)  # fmt: skip
def test_validation_message_is_a_sentence(change, message):
    (blocks,) = (c for c in COLLECTIONS if c.name == "vectorEmbeddings")
    with pytest.raises(msgspec.ValidationError) as problem:
        blocks.validate(ROW | change)
    assert describe_problem(str(problem.value), "The row") == message


def test_unknown_enum_value_is_shortened_in_the_message():
    (sessions,) = (c for c in COLLECTIONS if c.name == "sessions")
    row = {
        **{k: ROW[k] for k in ("id", "createdAt", "updatedAt")},
        "title": "t",
        "mode": "strict" + "x" * 999,
    }
    with pytest.raises(msgspec.ValidationError) as problem:
        sessions.validate(row)
    assert (
        describe_problem(str(problem.value), "The row") == f"`mode` cannot be “strict{'x' * 43}…{'x' * 30}”."
    )
