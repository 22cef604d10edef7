"""Values that are nested too deeply become null, and invalid JSON is scanned as quickly as valid JSON."""

import pytest

from vademecum.model.schema.lenient_json import MAX_DEPTH, truncate_depth

DEEP = b"[" * (MAX_DEPTH + 6)


def test_too_deep_values_become_null_outside_strings():
    cut = truncate_depth(DEEP + b"1" + b"]" * len(DEEP))
    assert cut == b"[" * MAX_DEPTH + b"null" + b"]" * MAX_DEPTH
    said = b'["' + DEEP + b'", "\\"' + DEEP + b'"]'
    assert truncate_depth(said) == said


@pytest.mark.parametrize("end", [b"", b"\\", b"\\u", b'\\"'])
def test_unterminated_string_extends_to_the_end(end):
    """Guards against quadratic time.

    Trying every quote as the start of a string would take a day for 4 MB, the largest body that is repaired.
    """
    said = b'["' + b'\\"' * 1_000_000 + DEEP + end
    assert truncate_depth(said) == said
