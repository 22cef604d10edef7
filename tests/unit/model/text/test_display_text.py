"""External names are shortened and cleaned before a message shows them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model.text.display_text import MAX_NAME_LENGTH, short_name


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
def test_short_name_removes_invisible_characters_and_truncates(name: str, shown: str) -> None:
    assert short_name(name) == shown


@given(st.one_of(st.text(max_size=200), st.text(alphabet="a \n\u2028\u202e\u0301\u3164\u200d", max_size=200)))
def test_short_name_is_one_visible_line(name: str) -> None:
    shown = short_name(name)
    assert 0 < len(shown) <= MAX_NAME_LENGTH and shown == shown.strip()
    assert not re.search("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    assert short_name(shown) == shown
    shown.encode()
