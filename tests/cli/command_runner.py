"""Run the real `vademecum` command on a data folder, with or without a real server.

Each command runs in its own process with its own streams, environment and exit code. Commands and servers are forked
from a process that has already imported the program (see `forked_command`), because imports take most of a command's
time. Only tests of the server start use a new process.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from forked_command import ForkedProcess, fork_command
from no_rate_limits import RATES_JSON
from property.rows import sync_path
from vademecum.services.accounts import local_auth

ROOT = Path(__file__).parents[2]
MODELS = Path(os.environ.get("VADEMECUM_TEST_MODELS", ROOT / ".cache" / "models"))
COMMAND = [sys.executable, "-m", "vademecum.cli.main"]
START_S = 60.0
TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out.strip(), f"no output, code {self.code}: {self.err}"
        return json.loads(self.out)

    def refusal(self) -> str:
        """Check that the command failed with one sentence on standard error, and return it. Log lines are ignored."""
        assert self.code != 0, f"the command succeeded: {self.out}"
        assert self.out == "", f"an error must go to standard error only: {self.out}"
        assert "Traceback" not in self.err and "ExceptionGroup" not in self.err, self.err
        lines = [
            line for line in self.err.splitlines() if not line.startswith(("Usage:", "Try ", '{"event"'))
        ]
        lines = [line for line in lines if line.strip()]
        assert len(lines) == 1, f"the error is not exactly one line: {self.err}"
        assert re.fullmatch(r"Error: .+[.?)'\"]", lines[0]), f"the error is not a sentence: {lines[0]}"
        return lines[0].removeprefix("Error: ")


@dataclass
class RunningServer:
    """A running server process."""

    url: str
    process: subprocess.Popen[bytes] | ForkedProcess
    log: Path
    flags: tuple[str, ...] = ()

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def client(self, token: str = "", **more: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **more)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Send a signal to the server. Return its exit code and the seconds until it ended."""
        began = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(60)
        return code, time.monotonic() - began


@dataclass
class Home:
    """A data folder, and the commands and servers that use it.

    `settings`: environment variables for all of them, without the prefix VADEMECUM_.
    """

    data: Path
    settings: dict[str, str] = field(default_factory=dict)
    running: RunningServer | None = None

    def environment(self) -> dict[str, str]:
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("VADEMECUM_", "PYTEST_"))}
        models = {"MODELS": str(self.data.with_name("no-models")), "MVN": "", "RATES": RATES_JSON}
        theirs = {f"VADEMECUM_{k.upper()}": v for k, v in (models | self.settings).items()}
        more = {"PYTHONPATH": str(ROOT / "server"), "HF_HUB_OFFLINE": "1", "COLUMNS": "100"}
        return {**ours, **theirs, **more}

    def run(self, *words: object, data: object = None, stdin: str = "", **settings: str) -> CommandResult:
        """Run a command on this folder in its own process."""
        environment = self.environment() | {f"VADEMECUM_{k.upper()}": v for k, v in settings.items()}
        with tempfile.TemporaryDirectory() as folder:
            streams = [Path(folder) / name for name in ("stdin", "stdout", "stderr")]
            for stream in streams:
                stream.write_text(stdin if stream.name == "stdin" else "")
            arguments = [*map(str, words), "--data", str(data or self.data)]
            process = fork_command(arguments, environment, streams, Path.cwd())
            return CommandResult(process.wait(120), streams[1].read_text(), streams[2].read_text())

    def ok(self, *words: object, **more: Any) -> CommandResult:
        done = self.run(*words, **more)
        assert done.code == 0, f"{words}: {done.code}\n{done.out}\n{done.err}"
        return done

    def add(self, email: str, tier: str = "JIGGA") -> str:
        """Create an account and return its id."""
        return self.ok("user", "add", email, "--tier", tier, "--json").json["userId"]

    def add_with_document(self, email: str) -> str:
        """Create an account with a document and return its id."""
        account = self.add(email)
        note = self.data.with_name("note.txt")
        note.write_text("The orchard has forty apple trees.")
        self.ok("import", note, "--user", email, "--session", "s1")
        return account

    def token(self, email: str) -> str:
        return self.ok("token", "create", email).out.strip()

    def spawn(
        self, *flags: str, in_new_process: bool = False
    ) -> tuple[subprocess.Popen[bytes] | ForkedProcess, Path]:
        log = self.data.with_name(f"{self.data.name}.{time.monotonic_ns()}.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        words = ["serve", "--port", "0", "--data", str(self.data), *flags]
        if not in_new_process:
            streams = [Path(os.devnull), log, log]
            return fork_command(words, self.environment(), streams, Path.cwd()), log
        with log.open("wb") as file:
            command = [*COMMAND, *words]
            return subprocess.Popen(command, env=self.environment(), stdout=file, stderr=file), log

    def start(self, *flags: str, in_new_process: bool = False) -> RunningServer:
        """Start a server and wait until it is ready. `in_new_process`: start it as a user does, not by a fork."""
        process, log = self.spawn(*flags, in_new_process=in_new_process)
        began = time.monotonic()
        while (address := local_auth.read(self.data)) is None or address.pid != process.pid:
            output = log.read_text(errors="replace")
            assert process.poll() is None, f"the server ended with {process.returncode}\n{output}"
            assert time.monotonic() - began < START_S, f"the server did not start in time\n{output}"
            time.sleep(0.02)
        server = RunningServer(address.url, process, log, flags)
        while "listens on" not in server.output():
            assert time.monotonic() - began < START_S, "the server did not print its address in time"
            time.sleep(0.02)
        return server

    @contextmanager
    def serve(self, *flags: str, in_new_process: bool = False) -> Iterator[RunningServer]:
        self.running = server = self.start(*flags, in_new_process=in_new_process)
        try:
            yield server
        finally:
            self.running = None
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait(60)


def small_model(folder: Path) -> Path:
    """Create a models folder with a random model of 200 kB."""
    from unit.engines.onnx.numpy_bert import write_source
    from vademecum.engines.onnx import download

    with tempfile.TemporaryDirectory() as source:
        pinned = write_source(Path(source), name="e5-small-v2", vocab_size=2**10)
        download.prepare_from_folder(pinned, Path(source), folder)
    return folder


def rows(client: httpx.Client, collection: str, **query: Any) -> list[dict[str, Any]]:
    """Return all rows of a collection, including tombstones."""
    answer = client.get(f"{sync_path(collection)}/pull", params={"lwt": 0, "limit": 1000, **query})
    assert answer.status_code == 200, answer.text
    return answer.json()["documents"]


def live(client: httpx.Client, collection: str) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in rows(client, collection) if not row.get("_deleted")}


def upload(client: httpx.Client, name: str, text: str | bytes, session: str = "s1") -> dict[str, Any]:
    """Upload a file and return its document."""
    content = text.encode() if isinstance(text, str) else text
    answer = client.post("/v1/documents", files={"file": (name, content)}, data={"sessionId": session})
    assert answer.status_code == 201, answer.text
    return answer.json()["document"]
