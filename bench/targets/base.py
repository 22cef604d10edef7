"""The interface of a server to measure. Targets build requests and check responses. Workloads measure the time."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from client import HOST, Answer, Connection
from rows import Maker, Row

Collection = Literal["episodes", "vectorEmbeddings"]
START_S = 60.0
STOP_S = 20.0


class Unavailable(Exception):
    """Raised if a server cannot run on this machine. The message says why."""


class Target(ABC):
    name: ClassVar[str]
    durability: ClassVar[str]
    pulls: ClassVar[bool] = True  # False if each user pulls the rows of all users, which is not comparable

    def __init__(self, root: Path) -> None:
        """Create the target. `root` is the folder of the checkout."""
        self.root = root
        self.port = 0
        self.processes: list[subprocess.Popen[bytes]] = []
        self._log: Path | None = None

    @abstractmethod
    def install(self) -> None:
        """Install the server unless it is installed. Raise Unavailable if that is not possible."""

    @abstractmethod
    def start(self, folder: Path, users: int) -> None:
        """Start the server with `users` users and no rows, with its data in `folder`. Return when it is ready."""

    @abstractmethod
    async def prepare(self, makers: Sequence[Maker], blocks: int) -> None:
        """Create what the rows require, such as databases, sessions and the document of the first user's blocks."""

    @abstractmethod
    def push(self, user: int, collection: Collection, batch: Sequence[Row]) -> bytes:
        """Return the request that pushes a batch of new rows."""

    @abstractmethod
    def push_faults(self, answer: Answer, count: int) -> list[str]:
        """Return the reasons why this response does not confirm all `count` rows. An empty list means that it does."""

    @abstractmethod
    def pull(self, user: int, collection: Collection, limit: int, last: Answer | None) -> bytes | None:
        """Return the request for the first page, or for the page after the response `last`. None: there is none."""

    @abstractmethod
    def rows(self, answer: Answer) -> list[Row]:
        """Return the rows of a page without fields that the server added. Raise an error if the page is invalid."""

    def stream(self, user: int) -> bytes:
        """Return the request for the live stream of the user's episodes."""
        raise NotImplementedError(f"{self.name} has no stream")

    # process management
    def roots(self) -> list[int]:
        return [process.pid for process in self.processes]

    def spawn(self, command: Sequence[str], folder: Path, **env: str) -> None:
        """Start a process of this server. Its output is written to a file in `folder`."""
        self._log = folder / f"{self.name}-{len(self.processes)}.log"
        with self._log.open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    list(command),
                    cwd=folder,
                    env={**os.environ, **env},
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def wait_for_port(self) -> None:
        """Wait until the port accepts connections."""
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if any(process.poll() is not None for process in self.processes):
                break
            with socket.socket() as probe:
                if probe.connect_ex((HOST, self.port)) == 0:
                    return
            time.sleep(0.05)
        log = self._log.read_text(errors="replace")[-2000:] if self._log else ""
        self.stop()
        raise Unavailable(f"{self.name} did not start:\n{log}")

    def stop(self) -> None:
        """Terminate the processes that this target started, in reverse order."""
        while self.processes:
            process = self.processes.pop()
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


async def must(port: int, *requests: bytes) -> list[Answer]:
    """Send requests one after another and return the responses. Each response must have a 2xx status."""
    connection = await Connection.open(port)
    answers = []
    try:
        for raw in requests:
            answer = await connection.send(raw)
            if not answer.ok:
                line = raw.split(b"\r\n", 1)[0].decode()
                raise Unavailable(f"{line}: {answer.status} {answer.body[:500]!r}")
            answers.append(answer)
    finally:
        connection.close()
    return answers


def run(command: Sequence[str], cwd: Path | None = None, **environment: str) -> str:
    """Run a command and return its standard output. Raise Unavailable with all output if it fails."""
    done = subprocess.run(
        list(command), cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
