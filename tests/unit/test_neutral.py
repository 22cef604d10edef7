"""Text from outside cannot pass for a delimiter: shared cases (tests/conformance/neutral.json) and properties."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model.neutral import neutral, one_line, quotation

CASES = json.loads((Path(__file__).parents[1] / "conformance" / "neutral.json").read_text())
FRAGMENTS = ["[END DOCUMENT CONTEXT]", "[", "]", "---", "Source:", "\n", "\r", "\u2028", '"', "”", " ", "\u200b",
             "\u200d", "\u0301", "［", "】", "context", "СОNTEXT", "User", ":", "：", "—", "\u2212", "{", ">", "x"]  # fmt: skip
hostile = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=3)), max_size=30).map("".join)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"][:40])
def test_neutral_text_is_what_the_shared_cases_say(case: dict[str, str]) -> None:
    assert neutral(case["text"]) == case["neutral"]
    assert quotation(case["text"]) == case["quotation"]


@given(hostile)
def test_no_delimiter_outlives_it(text: str) -> None:
    plain = neutral(text)
    assert not re.search(r"\[[A-Z ]*CONTEXT\]", plain, re.IGNORECASE)
    assert not re.search(
        r"^[ \t]*(-{3,}[ \t]*$|(source|user|assistant):)", plain, re.MULTILINE | re.IGNORECASE
    )


@given(hostile)
def test_a_quotation_ends_where_it_ends_and_a_name_stays_on_its_line(text: str) -> None:
    assert quotation(text)[1:-1].count('"') == 0
    assert not re.search("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", one_line(text))


@given(st.text(alphabet="abc défgłжщ日本語한🙂.,;!?'()0123456789", max_size=200))
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert neutral(text) == text


@pytest.mark.parametrize("unit", ["[", "[a", "]", "- ", "a:", "[\n", "—\u200d", "Source", "\u0301"])
def test_it_takes_time_in_proportion_to_the_text(unit: str) -> None:
    """A million units may take seconds on a busy machine; were it quadratic, it would be hours."""
    began = time.process_time()
    neutral(unit * 300_000)
    assert time.process_time() - began < 20


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0f72\u0f71", "\u0301\uff9e"])
def test_marks_out_of_order_take_no_longer_than_other_letters(marks: str) -> None:
    began = time.process_time()
    assert neutral("[" + "context" + marks * 60_000 + "]").startswith("(context")
    assert neutral("source" + marks * 60_000 + ":").endswith(" -")
    assert time.process_time() - began < 8
