"""Run the server in its own process, so that a test can kill it.

By default, a start forks a process that has already imported the program. A start with `in_new_process` is measured as
a user experiences it: from the start of the process to the first answered pull, and to /ready. The measured time
excludes waits of the main thread for a free processor, because they depend on other programs.
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

from forked_command import ForkedProcess, fork_command
from no_rate_limits import RATES_JSON
from property.rows import sync_path
from vademecum.services.accounts import local_auth
from vademecum.services.accounts.local_auth import ServerInfo

ROOT = Path(__file__).parents[2]
START_S = 60.0
Process = subprocess.Popen[bytes] | ForkedProcess
# Without it, each client would load all system certificates, which takes time.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def cpu_wait_s(pid: int) -> float:
    """Return the total time in seconds for which the main thread has waited for a free processor."""
    schedstat = Path(f"/proc/{pid}/task/{pid}/schedstat")
    return int(schedstat.read_text().split()[1]) / 1e9 if schedstat.exists() else 0.0


@dataclass
class ServerProcess:
    """A data folder and, between `start` and `kill`, the process that serves it.

    `program`: the command to run in a new process. `before_serving`: a function that a forked process calls first.
    `first_answer_s` and `ready_s`: the measured times of all starts in a new process. `wall_s`: the same as `ready_s`,
    but including the waits for a processor.
    """

    data: Path
    models: Path
    settings: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ("-m", "vademecum.cli.main")
    before_serving: Callable[[], None] | None = None
    process: Process | None = None
    door: ServerInfo | None = None
    first_answer_s: list[float] = field(default_factory=list)
    ready_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.data.with_name(self.data.name + ".log")

    def spawn(self, *, in_new_process: bool = False) -> Process:
        """Start the process and return at once. `in_new_process`: start it as a user does, not by a fork."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("VADEMECUM_")}
        environment |= {
            "VADEMECUM_MODELS": str(self.models),
            "VADEMECUM_RATES": RATES_JSON,
            "PYTHONPATH": str(ROOT / "server"),
        }
        environment |= {f"VADEMECUM_{k.upper()}": v for k, v in self.settings.items()}
        environment |= self.environment
        words = ["serve", "--port", "0", "--data", str(self.data)]
        if not in_new_process:
            self.log.touch()
            streams = [Path(os.devnull), self.log, self.log]
            self.process = fork_command(words, environment, streams, Path.cwd(), self.before_serving)
            return self.process
        with self.log.open("ab") as log:
            command = [sys.executable, *self.program, *words]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        return self.process

    async def start(
        self, token: str = "", collection: str = "documents", *, in_new_process: bool = False
    ) -> httpx.AsyncClient:
        """Start the process, wait for its address, a first pull with `token` and readiness. Return a client."""
        began = time.monotonic()
        process = self.spawn(in_new_process=in_new_process)
        while (door := local_auth.read(self.data)) is None or door.pid != process.pid:
            assert process.poll() is None, f"the server exited with {process.returncode}\n{self.log_tail()}"
            assert time.monotonic() - began < START_S, f"the server did not start\n{self.log_tail()}"
            await asyncio.sleep(0.01)
        self.door = door
        client = httpx.AsyncClient(base_url=door.url, timeout=30, verify=NO_TLS)
        if token:
            path = f"{sync_path(collection)}/pull?lwt=0&id=&limit=100"
            response = await client.get(path, headers={"Authorization": f"Bearer {token}"})
            assert response.status_code == 200, f"{response.text}\n{self.log_tail()}"
            if in_new_process:
                self.first_answer_s.append(time.monotonic() - began - cpu_wait_s(process.pid))
        while (await client.get("/ready")).status_code != 200:
            assert time.monotonic() - began < START_S, f"the server did not become ready\n{self.log_tail()}"
            await asyncio.sleep(0.02)
        if in_new_process:
            self.ready_s.append(time.monotonic() - began - cpu_wait_s(process.pid))
            self.wall_s.append(time.monotonic() - began)
        return client

    def kill(self) -> None:
        """Kill the process with SIGKILL, so that no handler runs, and wait for its end."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the process with SIGTERM and wait for its end."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(60)
            self.process = None

    def log_tail(self, size: int = 4000) -> str:
        return self.log.read_bytes()[-size:].decode(errors="replace") if self.log.exists() else ""

    async def admin(
        self, method: str, path: str, email: str = "", *, allowed: tuple[int, ...] = (), **options: Any
    ) -> Any:
        """Call a route with the local secret and return the JSON. `allowed`: statuses that do not fail the test."""
        assert self.door is not None
        headers = {"Authorization": f"Local {self.door.secret}"} | (
            {"X-Vademecum-User": email} if email else {}
        )
        async with httpx.AsyncClient(
            base_url=self.door.url, timeout=30, headers=headers, verify=NO_TLS
        ) as client:
            response = await client.request(method, path, **options)
        assert response.status_code < 300 or response.status_code in allowed, response.text
        return response.json()

    async def add_user(self, email: str) -> tuple[str, str]:
        """Create a JIGGA account. Return its id and a token."""
        account = await self.admin("POST", "/v1/accounts", json={"email": email, "tier": "JIGGA"})
        token = await self.admin("POST", "/v1/tokens", email, json={"name": "test"})
        return account["userId"], token["secret"]
