"""What has to be true after any file, however bad."""

from pathlib import Path

import pytest

from unit.files.reading import children, read


@pytest.fixture
def unharmed():
    """No process stays, nothing is written where the reader runs, and the next file is read."""
    before, root = children(), set(Path("/").iterdir())
    yield
    assert children() == before, "a process was left"
    assert set(Path("/").iterdir()) == root, "a file was left"
    assert read(b"the next file").parts[0].text == "the next file"
