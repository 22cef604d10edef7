"""Hostile RTF is parsed in a time that is proportional to its length."""

import os
import time

import pytest

from vademecum.engines.files.formats.text import parse_rtf
from vademecum.engines.files.result import Limits

LENGTH = 2**20 if os.environ.get("SOAK") else 2**18
PIECES = [
    "\\f1",
    "\\f1\\fcharset0",
    "\\f1 a;",
    "{\\field{\\*\\fldinst{",
    "{\\field{\\*\\fldinst{HYPERLINK ",
    '{\\field{\\*\\fldinst{HYPERLINK "a"}}{',
    "\\fldinst",
]


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("start", ["{\\rtf1{\\fonttbl", "{\\rtf1 "])
def test_repetitive_rtf_is_parsed_quickly(start, piece):
    data = (start + piece * (LENGTH // len(piece)) + "}Words.}").encode()
    before = time.process_time()
    parse_rtf(data, Limits())
    # The loop of the RTF library needs two seconds for a megabyte, in proportion to the length.
    assert time.process_time() - before < 4 * LENGTH / 2**20 + 1
