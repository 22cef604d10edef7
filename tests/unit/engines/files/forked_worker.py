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
from vademecum.engines.files.worker import Order

HOME = str(Path(vademecum.__file__).parents[1])
HEAD = struct.Struct("<dQQ")  # time limit in seconds, lengths of the order and the file that follow
FILE = 3  # file descriptor of the file in the fork
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

def stored(length):
    found = os.memfd_create("input")
    with open(found, "wb", closefd=False) as file:
        file.write(sys.stdin.buffer.read(length))
    os.lseek(found, 0, os.SEEK_SET)
    return found

def reader(order, file, tell):
    os.dup2(order, 0), os.dup2(tell, 1), os.dup2(file, {FILE})
    os.closerange({FILE} + 1, 64)
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
    seconds, *lengths = HEAD.unpack(head)
    order, file = map(stored, lengths)
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        reader(order, file, tell)
    os.close(order), os.close(file), os.close(tell)
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
    order = msgspec.msgpack.encode(Order(filename, limits, FILE))
    process.stdin.write(HEAD.pack(limits.seconds + GRACE_S, len(order), len(data)))
    process.stdin.write(order)
    process.stdin.write(data)
    process.stdin.flush()
    ended, length = END.unpack(process.stdout.read(END.size))
    said = process.stdout.read(length)
    if ended == LATE:
        raise Unreadable("PARSE_TIMEOUT")
    return interpret_exit(ended, said)
