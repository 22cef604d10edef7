"""A process that has imported the program and forks servers from itself: most of a start's processor time is imports.

What a fork serves is the real command in a process of its own, which can be killed like any other. It is told by lines on
its standard input: one of JSON starts a server, a number waits for the one with that id to end.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NoReturn

import vademecum

ROOT = Path(__file__).parents[2]
# Of lancedb what it imports itself: its own module starts a thread, and a thread does not live through a fork.
IMPORTED = (
    "vademecum.cli.group",
    "onnxruntime",
    "pyarrow.dataset",
    "tokenizers",
    "uvloop",
    "lance_namespace",
)


@cache
def forker() -> Forker:
    """One for all tests of a process."""
    return Forker()


class Forker:
    def __init__(self) -> None:
        command = [sys.executable, "-m", "faults.prepared"]
        folders = os.pathsep.join(str(ROOT / name) for name in ("server", "tests"))
        self._process = subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": folders}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        atexit.register(self._close)

    def _close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def start(self, words: list[str], environment: dict[str, str], log: Path) -> Forked:
        said = json.dumps({"words": words, "environment": environment, "log": str(log)})
        return Forked(self, self._ask(said))

    def ended(self, pid: int, *, wait: bool) -> int | None:
        """The code with which that server has ended; None if it has not."""
        code = self._ask(str(pid if wait else -pid))
        return None if code == RUNS else code

    def _ask(self, line: str) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


class Forked:
    """As much of `subprocess.Popen` as a test needs."""

    def __init__(self, forker: Forker, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._forker = forker

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._forker.ended(self.pid, wait=False)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, _timeout: float) -> int:
        if self.returncode is None:
            self.returncode = self._forker.ended(self.pid, wait=True)
        assert self.returncode is not None
        return self.returncode


# -- what the process itself does ------------------------------------------------------------------------------------

RUNS = 1000  # no code of a process


def fork_on_demand() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    from vademecum.app import create_app
    from vademecum.settings import Settings

    create_app(Settings(data=Path(os.devnull)))  # never served: for what is imported on the way
    for line in sys.stdin.buffer:
        said = json.loads(line)
        if isinstance(said, int):
            pid, status = os.waitpid(abs(said), os.WNOHANG if said < 0 else 0)
            answer = os.waitstatus_to_exitcode(status) if pid else RUNS
        else:
            answer = os.fork()
            if answer == 0:
                serve(**said)
        print(answer, flush=True)


def serve(words: list[str], environment: dict[str, str], log: str) -> NoReturn:
    """In the fork."""
    nothing, file = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number, stream in enumerate((nothing, file, file)):
        os.dup2(stream, number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the one of before has read ahead
    os.environ.clear()
    os.environ.update(environment)
    importlib.reload(vademecum)  # what it does to the environment first of all
    from vademecum.cli.main import main

    main(words, prog_name="vademecum")
    raise SystemExit


if __name__ == "__main__":
    fork_on_demand()
