"""The command `vademecum` in processes of its own, forked from one that has imported the program already (`preloaded_app`):
importing is most of what a command and the start of a server cost."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

import vademecum

ROOT = Path(__file__).parents[1]
PREPARED = multiprocessing.get_context("forkserver")
PREPARED.set_forkserver_preload(["preloaded_app"])
PREPARING = threading.Lock()


def _command(
    words: list[str],
    environment: dict[str, str],
    streams: list[Path],
    cwd: Path,
    first: Callable[[], None] | None,
) -> None:
    """What the new process does."""
    for number, path in enumerate(streams):  # pipes with a name, too: their ends are one-way
        descriptor = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND)
        os.dup2(descriptor, number)
        os.close(descriptor)
    assert "preloaded_app" in sys.modules, "it was not imported, so each process imports the program"
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - multiprocessing has put another in its place
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    importlib.reload(vademecum)  # what it does to the environment first of all
    from vademecum.cli.main import main

    if first is not None:
        first()
    main(words, prog_name="vademecum")


def forked(
    words: list[str],
    environment: dict[str, str],
    streams: list[Path],
    cwd: Path,
    first: Callable[[], None] | None = None,
) -> BaseProcess:
    """The command in a process of its own, from the one that is prepared. `streams`: files or pipes with a name.
    `first`: what that process does to itself before."""
    return begun(_command, words, environment, streams, cwd, first)


def begun(does: Callable[..., None], *given: object) -> BaseProcess:
    """A process, from the one that is prepared, that does this."""
    with PREPARING:
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(str(ROOT / name) for name in ("server", "tests"))
        try:
            forkserver.ensure_running()
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before
    process = PREPARED.Process(target=does, args=given)
    process.start()
    return process


class Forked:
    """A forked process with the methods of one that was started."""

    def __init__(self, process: BaseProcess) -> None:
        assert process.pid is not None
        self._process = process
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        assert code is not None, f"it does not end within {timeout} s"
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
