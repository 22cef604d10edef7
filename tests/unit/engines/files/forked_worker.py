"""Parse each file in a fork of a process that has imported the libraries, because imports take most of a small file's
time. The fork runs the worker's own `main` with its limits. `test_subprocess_runner` tests the real start of a worker.
"""

from __future__ import annotations

import atexit
import functools
import struct
import subprocess
import sys
from pathlib import Path

import msgspec

import vademecum
from vademecum.engines.files.result import Limits, Parsed, Unreadable
from vademecum.engines.files.subprocess_runner import GRACE_S, interpret_exit
from vademecum.engines.files.worker import Task

HOME = str(Path(vademecum.__file__).parents[1])
HEAD = struct.Struct("<dQ")  # time limit in seconds, length of the task that follows
END = struct.Struct("<qQ")  # exit code (LATE after a timeout), length of the output that follows
LATE = 1000
PROGRAM = f"""
import os, select, signal, struct, sys, time
sys.path.insert(0, {HOME!r})
sys.modules["numpy"] = None  # as the worker's `main` does, before a library imports it
from vademecum.engines.files import file_type, worker
from vademecum.engines.files.charset import detect
from vademecum.engines.files.formats import html_epub, odt, pdf, text
from vademecum.engines.files.formats.ooxml import docx, pptx, xlsx
import charset_normalizer, striprtf.striprtf
HEAD, END = struct.Struct({HEAD.format!r}), struct.Struct({END.format!r})

def reader(task, tell):
    os.dup2(task, 0), os.dup2(tell, 1)
    os.closerange(3, 64)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    try:
        worker.main()
    except BaseException:
        os._exit(1)
    os._exit(0)

def heard(told, until):
    said = bytearray()
    while select.select([told], [], [], max(0.0, until - time.monotonic()))[0]:
        if not (piece := os.read(told, 2**20)):
            return said
        said += piece
    return None

while len(head := sys.stdin.buffer.read(HEAD.size)) == HEAD.size:
    seconds, length = HEAD.unpack(head)
    task = os.memfd_create("task")
    with open(task, "wb", closefd=False) as file:
        file.write(sys.stdin.buffer.read(length))
    os.lseek(task, 0, os.SEEK_SET)
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        reader(task, tell)
    os.close(task), os.close(tell)
    said = heard(told, time.monotonic() + seconds)
    if said is None:
        os.kill(child, signal.SIGKILL)
    os.close(told)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.stdout.buffer.write(END.pack({LATE} if said is None else ended, len(said or b"")) + (said or b""))
    sys.stdout.buffer.flush()
"""


@functools.cache
def reader() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
    )
    atexit.register(process.communicate)  # closing its input ends the process
    return process


def parsed(data: bytes, filename: str, limits: Limits) -> Parsed:
    """Parse like `subprocess_runner.parse`. Raises Unreadable."""
    process = reader()
    assert process.stdin and process.stdout
    task = msgspec.msgpack.encode(Task(filename, limits, data))
    process.stdin.write(HEAD.pack(limits.seconds + GRACE_S, len(task)))
    process.stdin.write(task)
    process.stdin.flush()
    ended, length = END.unpack(process.stdout.read(END.size))
    said = process.stdout.read(length)
    if ended == LATE:
        raise Unreadable("PARSE_TIMEOUT")
    return interpret_exit(ended, said)
