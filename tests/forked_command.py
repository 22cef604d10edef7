"""Run the command `vademecum` in processes forked from one that has already imported the program (`preloaded_app`).

Without this, imports would take most of the time of each command and server start.
"""

from __future__ import annotations

import importlib
import multiprocessing
import multiprocessing.connection
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
FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["preloaded_app"])
PROCESS_LOCK = threading.Lock()


def _run_command(
    words: list[str],
    environment: dict[str, str],
    streams: list[Path],
    cwd: Path,
    before_command: Callable[[], None] | None,
) -> None:
    """Run the command in the new process."""
    for number, path in enumerate(streams):  # open for reading or for writing only, as named pipes require
        descriptor = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND)
        os.dup2(descriptor, number)
        os.close(descriptor)
    assert "preloaded_app" in sys.modules, (
        "`preloaded_app` was not preloaded, so each process would import the program"
    )
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - multiprocessing has replaced it
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    importlib.reload(vademecum)  # its import sets environment variables, which were just cleared
    from vademecum.cli.main import main

    if before_command is not None:
        before_command()
    main(words, prog_name="vademecum")


class ForkedProcess:
    """A forked process with the interface of subprocess.Popen. Threads may start and poll processes at the same time.

    Python can read the exit status of a forked process only once, and starting any process polls all others. If two
    threads polled at the same time, the second poll would find no status and return 255.
    """

    def __init__(self, process: BaseProcess) -> None:
        assert process.pid is not None
        self._process = process
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        with PROCESS_LOCK:
            return self._process.exitcode

    def wait(self, timeout: float) -> int:
        multiprocessing.connection.wait([self._process.sentinel], timeout)
        code = self.poll()
        assert code is not None, f"the process did not end within {timeout} s"
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork_command(
    words: list[str],
    environment: dict[str, str],
    streams: list[Path],
    cwd: Path,
    before_command: Callable[[], None] | None = None,
) -> ForkedProcess:
    """Run the command in a forked process. `streams`: files or named pipes for standard input, output and error."""
    return start_process(_run_command, words, environment, streams, cwd, before_command)


def start_process(target: Callable[..., None], *arguments: object) -> ForkedProcess:
    """Call `target` in a process forked from the one that has imported the program."""
    with PROCESS_LOCK:
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(str(ROOT / name) for name in ("server", "tests"))
        try:
            forkserver.ensure_running()
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before
        process = FORKSERVER.Process(target=target, args=arguments)
        process.start()
        return ForkedProcess(process)
