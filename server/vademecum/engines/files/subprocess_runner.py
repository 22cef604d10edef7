"""Parse each file in its own process.

If the process crashes, hangs or is killed, only one request fails, with Unreadable.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from vademecum.engines.files.result import Limits, Parsed, Unreadable
from vademecum.engines.files.worker import Order, Outcome
from vademecum.fair_queue import FairSlots, current_user

_PACKAGE = str(Path(__file__).parents[3])
CORES = os.cpu_count() or 2
SLOTS = 2 * CORES  # more slots than cores, so that slow files of several users leave slots for others
PER_USER = max(1, CORES - 1)
_slots: dict[int, FairSlots] = {}
_threads = ThreadPoolExecutor(SLOTS, "reading")  # one thread waits for each process
GRACE_S = 1.0
# Exit codes of a crashed library. Any other exit without output means out of memory, because the worker reports
# exceptions.
_CRASHES = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE}


async def parse(file: int, filename: str, limits: Limits | None = None) -> Parsed:
    """Return the text of an open file, given by its descriptor. Raises only Unreadable.

    The process reads the file itself, so that the server's memory holds no copy of it.
    Users share the slots fairly. At most `PER_USER` files of a user are parsed at a time.
    """
    limits = limits or Limits()
    async with _fair_slots().hold(current_user.get()):
        order = Order(filename, limits, file)
        code, output = await _run(order, limits.seconds + GRACE_S)
    return interpret_exit(code, output)


def interpret_exit(code: int, output: bytes) -> Parsed:
    """Return the result of a process from its exit code and output. Raises Unreadable."""
    if code == -signal.SIGXCPU:
        raise Unreadable("PARSE_TIMEOUT")
    try:
        outcome = msgspec.msgpack.decode(output, type=Outcome)
    except msgspec.DecodeError as error:  # the process ended before it could report an error code
        raise Unreadable("DAMAGED" if code in _CRASHES else "PARSE_MEMORY") from error
    if outcome.parsed is None:
        raise Unreadable(outcome.code)
    return outcome.parsed


def _fair_slots() -> FairSlots:
    """Return the parser slots of the running event loop."""
    loop = asyncio.get_running_loop()
    slots = _slots.get(id(loop))
    if slots is None:
        _slots.clear()
        slots = _slots[id(loop)] = FairSlots(SLOTS, PER_USER)
    return slots


async def _run(order: Order, seconds: float) -> tuple[int, bytes]:
    process = _start(order.file)
    task = msgspec.msgpack.encode(order)
    communication = asyncio.get_running_loop().run_in_executor(_threads, _communicate, process, task, seconds)
    try:
        output = await asyncio.shield(communication)
    finally:
        if not communication.done():  # the caller was cancelled, so nobody needs the result
            process.kill()
            await asyncio.wait([communication])
    if output is None:
        raise Unreadable("PARSE_TIMEOUT")
    return process.returncode, output


def _start(file: int) -> subprocess.Popen[bytes]:
    """Start the worker with `subprocess`, which uses vfork, instead of the event loop.

    uvloop uses fork, which runs the at-fork handlers of libraries such as LanceDB and may hang. vfork shares memory
    until exec, so a start does not take longer when the server uses more memory.
    """
    return subprocess.Popen(  # noqa: S603 - nothing of the file or its name is in the command
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {_PACKAGE!r}); from vademecum.engines.files.worker import main; main()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=[file],
        env={"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
    )


def _communicate(process: subprocess.Popen[bytes], task: bytes, seconds: float) -> bytes | None:
    """Return the process's output, or None on timeout. When this function returns, the process has ended."""
    with process:
        try:
            return process.communicate(task, seconds)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return None
