"""Sanitized text cannot imitate a prompt delimiter.

Tested with the shared cases (tests/conformance/sanitize.json) and property-based tests.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model.text.sanitize import quote, sanitize, sanitize_line

CASES = json.loads((Path(__file__).parents[3] / "conformance" / "sanitize.json").read_text())
FRAGMENTS = ["[END DOCUMENT CONTEXT]", "[", "]", "---", "Source:", "\n", "\r", "\u2028", '"', "”", " ", "\u200b",
             "\u200d", "\u0301", "［", "】", "context", "СОNTEXT", "User", ":", "：", "—", "\u2212", "{", ">", "x"]  # fmt: skip
hostile = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=3)), max_size=30).map("".join)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"][:40])
def test_sanitizing_and_quoting_match_shared_cases(case: dict[str, str]) -> None:
    assert sanitize(case["text"]) == case["sanitized"]
    assert quote(case["text"]) == case["quoted"]


@given(hostile)
def test_sanitized_text_has_no_delimiter(text: str) -> None:
    sanitized = sanitize(text)
    assert not re.search(r"\[[A-Z ]*CONTEXT\]", sanitized, re.IGNORECASE)
    assert not re.search(
        r"^[ \t]*(-{3,}[ \t]*$|(source|user|assistant):)", sanitized, re.MULTILINE | re.IGNORECASE
    )


@given(hostile)
def test_quoted_text_cannot_end_its_quotation_or_line(text: str) -> None:
    assert quote(text)[1:-1].count('"') == 0
    assert not re.search("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", sanitize_line(text))


@given(st.text(alphabet="abc défgłжщ日本語한🙂.,;!?'()0123456789", max_size=200))
def test_sanitize_does_not_change_ordinary_text(text: str) -> None:
    assert sanitize(text) == text


@pytest.mark.parametrize("unit", ["[", "[a", "]", "- ", "a:", "[\n", "—\u200d", "Source", "\u0301"])
def test_sanitize_takes_linear_time(unit: str) -> None:
    """A million characters may take seconds on a busy machine. Quadratic time would be hours."""
    started = time.process_time()
    sanitize(unit * 300_000)
    assert time.process_time() - started < 20


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0f72\u0f71", "\u0301\uff9e"])
def test_unordered_marks_take_linear_time(marks: str) -> None:
    started = time.process_time()
    assert sanitize("[" + "context" + marks * 60_000 + "]").startswith("(context")
    assert sanitize("source" + marks * 60_000 + ":").endswith(" -")
    assert time.process_time() - started < 8
