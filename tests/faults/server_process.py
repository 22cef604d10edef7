"""The real server as a process of its own, so that it can be killed; one that dies takes nothing of the test along.

Starts are forked from a process that has imported the program, but for those that are to begin `in_new_process`. Of these `start`
measures what a person waits for: from the start of the process to the first answered pull, and to /ready. What other
programs of the machine cost is taken out: the time in which the server's main thread could have run but had no
processor. (Its own other threads cost it the interpreter's lock, which is not such a time, so that stays in.)
"""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from forked_command import Forked, forked
from no_rate_limits import RATES_JSON
from vademecum.services.accounts import local_auth
from vademecum.services.accounts.local_auth import Door

ROOT = Path(__file__).parents[2]
START_S = 60.0
Process = subprocess.Popen[bytes] | Forked
PLAIN = ssl.SSLContext(
    ssl.PROTOCOL_TLS_CLIENT
)  # without it each client reads all the system's certificates, for HTTP


def queued_s(pid: int) -> float:
    """How long the main thread has waited for a processor."""
    figures = Path(f"/proc/{pid}/task/{pid}/schedstat")
    return int(figures.read_text().split()[1]) / 1e9 if figures.exists() else 0.0


@dataclass
class Served:
    """A data folder and, between `start` and `kill`, the process that serves it."""

    data: Path
    models: Path
    settings: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ("-m", "vademecum.cli.main")  # of a start `in_new_process`
    first: Callable[[], None] | None = None  # what a forked process does to itself before it serves
    process: Process | None = None
    door: Door | None = None
    first_answer_s: list[float] = field(default_factory=list)
    ready_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)  # to /ready by the clock on the wall

    @property
    def log(self) -> Path:
        return self.data.with_name(self.data.name + ".log")

    def spawn(self, *, in_new_process: bool = False) -> Process:
        """Start the process without waiting. `in_new_process`: as a user does, with all imports, instead of by a fork."""
        ours = {k: v for k, v in os.environ.items() if not k.startswith("VADEMECUM_")}
        theirs = {f"VADEMECUM_{k.upper()}": v for k, v in self.settings.items()}
        where = {
            "VADEMECUM_MODELS": str(self.models),
            "VADEMECUM_RATES": RATES_JSON,
            "PYTHONPATH": str(ROOT / "server"),
        }
        environment = {**ours, **where, **theirs, **self.environment}
        words = ["serve", "--port", "0", "--data", str(self.data)]
        if not in_new_process:
            self.log.touch()
            streams = [Path(os.devnull), self.log, self.log]
            self.process = Forked(forked(words, environment, streams, Path.cwd(), self.first))
            return self.process
        with self.log.open("ab") as log:
            command = [sys.executable, *self.program, *words]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        return self.process

    async def start(
        self, token: str = "", collection: str = "documents", *, in_new_process: bool = False
    ) -> httpx.AsyncClient:
        """Spawn; wait for the door, then for the first pull of `token`'s user, then until ready. Returns a client. What
        that takes is kept of a start `in_new_process`."""
        began = time.monotonic()
        process = self.spawn(in_new_process=in_new_process)
        while (door := local_auth.read(self.data)) is None or door.pid != process.pid:
            assert process.poll() is None, f"the server ended with {process.returncode}\n{self.tail()}"
            assert time.monotonic() - began < START_S, f"the server does not come up\n{self.tail()}"
            await asyncio.sleep(0.01)
        self.door = door
        client = httpx.AsyncClient(base_url=door.url, timeout=30, verify=PLAIN)
        if token:
            path = f"/v1/sync/{collection}/0/pull?lwt=0&id=&limit=100"
            answer = await client.get(path, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200, f"{answer.text}\n{self.tail()}"
            if in_new_process:
                self.first_answer_s.append(time.monotonic() - began - queued_s(process.pid))
        while (await client.get("/ready")).status_code != 200:
            assert time.monotonic() - began < START_S, f"never ready\n{self.tail()}"
            await asyncio.sleep(0.02)
        if in_new_process:
            self.ready_s.append(time.monotonic() - began - queued_s(process.pid))
            self.wall_s.append(time.monotonic() - began)
        return client

    def kill(self) -> None:
        """As the power does it to a process: no handler runs."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to stop, and wait."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(60)
            self.process = None

    def tail(self, size: int = 4000) -> str:
        return self.log.read_bytes()[-size:].decode(errors="replace") if self.log.exists() else ""

    async def admin(
        self, method: str, path: str, email: str = "", *, allowed: tuple[int, ...] = (), **more: Any
    ) -> Any:
        """Call as the commands on this machine do. `allowed`: refusals that are no failure."""
        assert self.door is not None
        headers = {"Authorization": f"Local {self.door.secret}"} | (
            {"X-Vademecum-User": email} if email else {}
        )
        async with httpx.AsyncClient(
            base_url=self.door.url, timeout=30, headers=headers, verify=PLAIN
        ) as client:
            answer = await client.request(method, path, **more)
        assert answer.status_code < 300 or answer.status_code in allowed, answer.text
        return answer.json()

    async def add_user(self, email: str) -> tuple[str, str]:
        """A new JIGGA account: its id and a token."""
        account = await self.admin("POST", "/v1/accounts", json={"email": email, "tier": "JIGGA"})
        token = await self.admin("POST", "/v1/tokens", email, json={"name": "test"})
        return account["userId"], token["secret"]
