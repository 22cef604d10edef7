"""Each regular expression of the server takes linear time for any text.

All hostile texts are timed at a short length, and only the slowest of each pattern at full length. There, a quadratic
pattern takes seconds, and a linear one milliseconds.
"""

import heapq
import re
import time
from collections.abc import Callable

import pytest

from regex_inputs import Regex, hostile_texts, patterns

FIRST, EXPLOSIVE = (22, 400), 0.02  # detect exponential and cubic patterns before they take hours
SHORT, LONG, SECONDS = 2_000, 20_000, 0.06
# A pattern that is faster than this at this length is fast at any stored length.
GLANCE, NOTICED = 1_000, 0.0001
STEP, FACTOR, GROWTH = (
    8_000,
    4,
    9,
)  # for four times the length, a linear pattern takes 4 times as long, a quadratic one 16 times


def took(found: Regex, text: str) -> float:
    before = time.process_time()
    found.consume(text)
    return time.process_time() - before


def explosive_text(found: Regex) -> str | None:
    """Return a text of at most a few hundred characters that is already slow, or None."""
    for first in FIRST:
        for text in hostile_texts(found.pattern, first):
            if all(took(found, text) > EXPLOSIVE for _ in range(3)):
                return text
    return None


def shortest_time(found: Regex, text: str, seconds: float) -> float:
    """Return the shortest of three times, or the first one that is at most `seconds`."""
    shortest = took(found, text)
    for _ in range(2):
        if shortest > seconds:
            shortest = min(shortest, took(found, text))
    return shortest


def slow_text(found: Regex, length: int, seconds: float) -> tuple[str | None, float]:
    """Return two values: a text that is too slow, or None, and the time in seconds of the slowest text.

    The text is an explosive short one, or one of `length` characters.
    """
    if explosive := explosive_text(found):
        return explosive, took(found, explosive)
    timed = ((took(found, text), at) for at, text in enumerate(hostile_texts(found.pattern, SHORT)))
    slowest = {at for _, at in heapq.nlargest(3, timed)}
    longest = 0.0
    for at, text in enumerate(hostile_texts(found.pattern, length)):
        if at in slowest:
            longest = max(longest, shortest_time(found, text, seconds))
            if longest > seconds:
                return text, longest
    return None, longest


def slow_ones(
    found: list[Regex], length: int, seconds: float, record_property: Callable[[str, object], None]
) -> list[str]:
    """Return the patterns with a slow text. Record each pattern as a case of a sweep (see tests/conftest.py)."""
    texts = [(one, *slow_text(one, length, seconds)) for one in found]
    for _, text, longest in texts:
        sweep = f"regular expressions, {length:,} characters"
        record_property("sweep", (sweep, longest, text is not None))
    return [f"{one.location} {one.pattern.pattern!r:.90}: {text[:20]!r}…" for one, text, _ in texts if text]


def growing_text(found: Regex) -> str | None:
    """Return a text for which the time grows faster than the length. The ratio of times hardly depends on the load."""
    if explosive := explosive_text(found):
        return explosive
    seconds, at = max((took(found, text), at) for at, text in enumerate(hostile_texts(found.pattern, GLANCE)))
    if seconds < NOTICED:
        return None

    short, long = (
        next(text for number, text in enumerate(hostile_texts(found.pattern, length)) if number == at)
        for length in (STEP, STEP * FACTOR)
    )
    return long if all(took(found, long) > GROWTH * took(found, short) for _ in range(3)) else None


@pytest.fixture(scope="module")
def found() -> list[Regex]:
    return patterns()


def test_patterns_are_found_and_not_built_in_functions(found):
    assert len(found) > 200


@pytest.mark.soak
def test_time_of_a_pattern_grows_linearly(found):
    growing = [(one, growing_text(one)) for one in found]
    assert [f"{one.location}: {text[:20]!r}…" for one, text in growing if text] == []


@pytest.mark.soak
@pytest.mark.parametrize("source", ["(a+)+b", "x*y", "<a[^>]*>"])
def test_growth_check_detects_a_quadratic_pattern(source):
    assert growing_text(Regex("here", re.compile(source), set()))


@pytest.mark.soak
def test_no_pattern_is_quadratic(found, record_property):
    assert slow_ones(found, LONG, SECONDS, record_property) == []


@pytest.mark.soak
@pytest.mark.parametrize("source", ["(a+)+b", "x*y", "<a[^>]*>"])
def test_time_check_detects_a_quadratic_pattern(source):
    assert slow_text(Regex("here", re.compile(source), set()), LONG, SECONDS)[0]


@pytest.mark.soak
def test_each_pattern_reads_a_megabyte_in_at_most_a_second(found, record_property):
    assert slow_ones(found, 1_000_000, 1, record_property) == []
