"""Fixtures that check after a test that the parsing had no side effects."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from unit.engines.files import forked_worker
from unit.engines.files.file_reader import children, read, read_in_new_process


@contextmanager
def harmless(reading):
    """Check at the end that no process or file remains and that the next file can be parsed."""
    ready = forked_worker.reader().pid
    before, root = (children(), children(ready)), set(Path("/").iterdir())
    yield
    assert (children(), children(ready)) == before, "a process was left"
    assert set(Path("/").iterdir()) == root, "a file was left"
    assert reading(b"the next file").parts[0].text == "the next file"


@pytest.fixture
def unharmed():
    with harmless(read):
        yield


@pytest.fixture
def unharmed_anew():
    with harmless(read_in_new_process):
        yield
