"""Each regular expression of the server takes time in proportion to the text, whatever stands in it.

Short texts find those that are slowest for a pattern; these are then made long. A quadratic pattern takes seconds for
what takes an ordinary one some milliseconds.
"""

import heapq
import re
import time

import pytest

from pattern_texts import Found, hostile, patterns

FIRST = (24, 400)  # stop an exponential or a cubic pattern before it takes hours
SHORT, LONG, SECONDS = 2_000, 20_000, 0.06


def took(found: Found, text: str) -> float:
    before = time.process_time()
    found.consume(text)
    return time.process_time() - before


def slow_text(found: Found, length: int, seconds: float) -> str | None:
    """Return a text of `length` characters for which the pattern takes more than `seconds`, or shorter ones as well."""
    for first in FIRST:
        for text in hostile(found.pattern, first):
            if all(took(found, text) > seconds for _ in range(3)):
                return text
    timed = ((took(found, text), at) for at, text in enumerate(hostile(found.pattern, SHORT)))
    slowest = {at for _, at in heapq.nlargest(3, timed)}
    for at, text in enumerate(hostile(found.pattern, length)):
        if at in slowest and all(took(found, text) > seconds for _ in range(3)):
            return text
    return None


def slow_ones(found: list[Found], length: int, seconds: float) -> list[str]:
    texts = [(one, slow_text(one, length, seconds)) for one in found]
    return [f"{one.where} {one.pattern.pattern!r:.90}: {text[:20]!r}…" for one, text in texts if text]


@pytest.fixture(scope="module")
def found() -> list[Found]:
    return patterns()


@pytest.mark.soak
def test_no_pattern_is_quadratic(found):
    assert len(found) > 200
    assert slow_ones(found, LONG, SECONDS) == []


@pytest.mark.soak
@pytest.mark.parametrize("source", ["(a+)+b", "x*y", "<a[^>]*>"])
def test_a_quadratic_pattern_is_noticed(source):
    assert slow_text(Found("here", re.compile(source), set()), LONG, SECONDS)


@pytest.mark.soak
def test_a_megabyte_takes_two_seconds(found):
    assert slow_ones(found, 1_000_000, 2) == []  # one second, except for the names of secrets on a slow core
