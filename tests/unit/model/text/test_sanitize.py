"""Text from outside cannot pass for a delimiter: shared cases (tests/conformance/neutral.json) and properties."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model.text.sanitize import NAME_SHOWN, neutral, one_line, quotation, short_name

CASES = json.loads((Path(__file__).parents[3] / "conformance" / "neutral.json").read_text())
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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("lease.txt", "lease.txt"),
        ("Mietvertrag (2024) \u2013 Größe.pdf", "Mietvertrag (2024) \u2013 Größe.pdf"),
        ("חוזה שכירות.pdf", "חוזה שכירות.pdf"),
        ("می\u200cخواهم.txt", "می\u200cخواهم.txt"),
        ("\u2764\ufe0f\u200d\U0001f525.md", "\u2764\ufe0f\u200d\U0001f525.md"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("\u200ea\u200fb\u061c.txt\u2066\u2069", "ab.txt"),
        ("a\x1b[2J\x07.txt", "a[2J.txt"),
        ("two\r\n lines\u2028more.txt", "two lines more.txt"),
        ("  far \t\u3000\xa0 apart.txt ", "far apart.txt"),
        ("gap\u3164\u3164\u3164\u3164here.txt", "gap here.txt"),
        ("\ud800a.txt", "a.txt"),
        ("", "(no name)"),
        ("\u202e \u200b\u3164", "(no name)"),
        ("a" * 200 + ".pdf", "a" * 49 + "…" + "a" * 26 + ".pdf"),
        ("a" * 200 + "\u0301" * 40 + ".pdf", "a" * 49 + "….pdf"),
    ],
)
def test_a_name_is_shown_as_it_is_but_for_what_misleads_and_for_its_length(name: str, shown: str) -> None:
    assert short_name(name) == shown


@given(
    st.one_of(hostile, st.text(max_size=200), st.text(alphabet="a \u202e\u0301\u3164\u200d", max_size=200))
)
def test_a_name_in_a_sentence_is_seen_short_on_one_line_and_turns_nothing_round(name: str) -> None:
    shown = short_name(name)
    assert 0 < len(shown) <= NAME_SHOWN and shown == shown.strip()
    assert not re.search("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    assert short_name(shown) == shown
    shown.encode()
