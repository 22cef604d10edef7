"""What is nested too deeply is cut out of JSON, and what is no JSON takes no longer to be looked at."""

import pytest

from vademecum.model.schema.lenient_json import DEEPEST, without_depths

DEEP = b"[" * (DEEPEST + 6)


def test_what_lies_deeper_is_null_and_brackets_in_strings_are_letters():
    cut = without_depths(DEEP + b"1" + b"]" * len(DEEP))
    assert cut == b"[" * DEEPEST + b"null" + b"]" * DEEPEST
    said = b'["' + DEEP + b'", "\\"' + DEEP + b'"]'
    assert without_depths(said) == said


@pytest.mark.parametrize("end", [b"", b"\\", b"\\u", b'\\"'])
def test_a_string_that_does_not_end_goes_to_the_end(end):
    """Else each quote in it would be tried for the beginning of one: of four megabytes, for a day."""
    said = b'["' + b'\\"' * 1_000_000 + DEEP + end
    assert without_depths(said) == said
