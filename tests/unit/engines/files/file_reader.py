"""Parse a file as the server does, and check what remains in the system.

`read` forks a prepared process. `read_in_new_process` starts a worker as the server does, for tests of the start and of
memory limits.
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

import vademecum
from unit.engines.files import forked_worker
from vademecum.engines.files import subprocess_runner
from vademecum.engines.files.result import MESSAGES, Limits, Unreadable
from vademecum.engines.files.worker import Order, Outcome

# Technical details, which a message for users must not contain.
_INNARDS = re.compile(r"Error|Exception|Traceback|errno|0x[0-9a-f]+|[/\\]\w+|\w\.\w|<|_|None|\bNULL\b", re.I)


def read(data, filename="file.txt", **limits):
    return forked_worker.parsed(data, filename, Limits(**limits))


async def parse(data, filename, limits=None):
    """Parse in a new process, from an open file as the server does."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return await subprocess_runner.parse(file.fileno(), filename, limits)


def read_in_new_process(data, filename="file.txt", **limits):
    return asyncio.run(parse(data, filename, Limits(**limits)))


def text_of(data, filename="file.txt", **limits):
    return "\n".join(part.text for part in read(data, filename, **limits).parts)


def sections(parsed):
    return [(part.section, part.text) for part in parsed.parts]


def in_order(text, *pieces):
    """Check that the pieces occur in this order."""
    at = 0
    for piece in pieces:
        found = text.find(piece, at)
        assert found >= 0, f"{piece!r} is missing, or too early, in {text[:2000]!r}"
        at = found + len(piece)
    return True


def refused(data, filename="file.txt", by=read, **limits):
    """Parse a file that must be refused. Check the error message and return the error code."""
    with pytest.raises(Unreadable) as caught:
        by(data, filename, **limits)
    return code_of(caught.value)


def code_of(error):
    assert error.message == MESSAGES[error.code], "the message does not belong to the code"
    assert is_a_sentence(error.message)
    return error.code


def is_a_sentence(message):
    return message[:1].isupper() and message.endswith(".") and " " in message and not _INNARDS.search(message)


def children(parent=None):
    """Return the child processes of a process, including zombies."""
    parent = parent or os.getpid()
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except OSError:  # the process has ended since the listing
                continue
            if int(stat.rpartition(")")[2].split()[1]) == parent:
                found.add(int(folder.name))
    return found


def readers():
    """Return the running worker processes."""
    found = set()
    for child in children():
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if b"engines.files.worker" in command:
            found.add(child)
    return found


def run_alone(data, folder, filename="file.txt", **limits):
    """Run the worker without a time limit, with temporary files in `folder`. Return its exit code and outcome."""
    home = str(Path(vademecum.__file__).parents[1])
    program = (
        f"import sys; sys.path.insert(0, {home!r}); from vademecum.engines.files.worker import main; main()"
    )
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        done = subprocess.run(
            [sys.executable, "-I", "-c", program],
            input=msgspec.msgpack.encode(Order(filename, Limits(**limits), file.fileno())),
            capture_output=True,
            env={"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(folder)},
            cwd=folder,
            check=False,
            pass_fds=[file.fileno()],
        )
    return done.returncode, msgspec.msgpack.decode(done.stdout, type=Outcome) if done.stdout else None
