"""What has to be true after any file, however bad."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from unit.engines.files import forked_worker
from unit.engines.files.file_reader import anew, children, read


@contextmanager
def harmless(reading):
    """No process stays, nothing is written where the reader runs, and the next file is read."""
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
    with harmless(anew):
        yield
