"""What is nested too deeply is cut out of JSON, and what is no JSON takes no longer to be looked at."""

import pytest

from vademecum.model.schema.lenient_json import MAX_DEPTH, truncate_depth

DEEP = b"[" * (MAX_DEPTH + 6)


def test_what_lies_deeper_is_null_and_brackets_in_strings_are_letters():
    cut = truncate_depth(DEEP + b"1" + b"]" * len(DEEP))
    assert cut == b"[" * MAX_DEPTH + b"null" + b"]" * MAX_DEPTH
    said = b'["' + DEEP + b'", "\\"' + DEEP + b'"]'
    assert truncate_depth(said) == said


@pytest.mark.parametrize("end", [b"", b"\\", b"\\u", b'\\"'])
def test_a_string_that_does_not_end_goes_to_the_end(end):
    """Else each quote in it would be tried for the beginning of one: of four megabytes, for a day."""
    said = b'["' + b'\\"' * 1_000_000 + DEEP + end
    assert truncate_depth(said) == said
