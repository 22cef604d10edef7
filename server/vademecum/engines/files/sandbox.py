"""A process a file. It may be killed, crash or hang: each is one clear refusal for one request."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec

from vademecum.engines.files.parsed import Limits, Parsed, Unreadable
from vademecum.engines.files.worker import Outcome, Task

_PACKAGE = str(Path(__file__).parents[3])
_slots: dict[int, asyncio.Semaphore] = {}
GRACE_S = 1.0


async def parse(data: bytes, filename: str, limits: Limits | None = None) -> Parsed:
    """The text of a file. Raises Unreadable and nothing else. As many files are read at once as there are cores."""
    limits = limits or Limits()
    async with _slot():
        task = msgspec.msgpack.encode(Task(filename, limits, data))
        code, output = await _run(task, limits.seconds + GRACE_S)
    if code == -signal.SIGXCPU:
        raise Unreadable("PARSE_TIMEOUT")
    try:
        outcome = msgspec.msgpack.decode(output, type=Outcome)
    except msgspec.DecodeError as error:  # it died before it could say why
        raise Unreadable("PARSE_MEMORY" if code == -signal.SIGKILL else "DAMAGED") from error
    if outcome.parsed is None:
        raise Unreadable(outcome.code)
    return outcome.parsed


def _slot() -> asyncio.Semaphore:
    """One semaphore an event loop."""
    loop = asyncio.get_running_loop()
    found = _slots.get(id(loop))
    if found is None:
        _slots.clear()
        found = _slots[id(loop)] = asyncio.Semaphore(os.cpu_count() or 2)
    return found


async def _run(task: bytes, seconds: float) -> tuple[int, bytes]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-c",
        f"import sys; sys.path.insert(0, {_PACKAGE!r}); from vademecum.engines.files.worker import main; main()",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(task), seconds)
    except TimeoutError as error:
        raise Unreadable("PARSE_TIMEOUT") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output
