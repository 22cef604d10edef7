"""Vademecum, run as a user would run it: with `vademecum serve`, one API token per user, and fsync at every commit.

The server has no embedding model. Otherwise it would treat the pushed vectors as those of another model and recompute
them during the measurement.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from client import request
from rows import Maker, sync_path
from targets.base import Collection, Unavailable, free_port, must, run
from targets.wire import RxWire, push_body

COMMAND = "VADEMECUM_COMMAND"
BEFORE_COMMAND = "VADEMECUM_BEFORE_COMMAND"
# Very high rate limits, because the benchmark sends more requests than the default limits allow.
RATES = json.dumps(
    dict.fromkeys(["sign_in", "push", "write", "read", "upload", "search", "answer"], 100_000_000)
)


class Me(msgspec.Struct, rename="camel"):
    user_id: str


class Ours(RxWire):
    name = "ours"
    durability = "disk, fsync"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.command = shlex.split(os.environ.get(COMMAND, str(root / ".venv" / "bin" / "vademecum")))
        self.tokens: list[str] = []
        self.environment: Mapping[str, str] = {}  # additional settings of the server
        self._template: tempfile.TemporaryDirectory[str] | None = None

    def install(self) -> None:
        if shutil.which(self.command[0]) is None:
            raise Unavailable(f"{self.command[0]} is not here: make install (or set the command)")

    def start(self, folder: Path, users: int) -> None:
        data = folder / "data"
        shutil.copytree(self._accounts(users), data)
        self.serve(data, folder)

    def serve(self, data: Path, folder: Path) -> None:
        self.port = free_port()
        command = [*self.command, "serve", "--data", str(data), "--port", str(self.port)]
        self.spawn(
            command,
            folder,
            **{"VADEMECUM_MODELS": str(folder / "no-models"), "VADEMECUM_RATES": RATES, **self.environment},
        )
        self.wait_for_port()
        while not (data / "server.json").exists():  # the server writes this file after it opens the port
            time.sleep(0.01)

    def add_user(self, data: Path, email: str) -> str:
        """Create an account and return an API token."""
        add = [*self.command, "user", "add", email, "--tier", "JIGGA", "--data", str(data)]
        run(add, **self.environment)  # the first command chooses the model of the data folder
        create = [*self.command, "token", "create", email, "--data", str(data)]
        return run(create, **self.environment).strip()

    async def add_users(self, data: Path, emails: Sequence[str]) -> list[str]:
        """Create accounts through the running server, with its secret for local commands. Return their API tokens."""
        secret = json.loads((data / "server.json").read_text())["secret"]
        tokens = []
        for email in emails:
            head = {"Authorization": f"Local {secret}"}
            account = json.dumps({"email": email, "tier": "JIGGA"}).encode()
            token = json.dumps({"name": "bench"}).encode()
            made = await must(
                self.port,
                request("POST", "/v1/accounts", head, account),
                request("POST", "/v1/tokens", head | {"X-Vademecum-User": email}, token),
            )
            tokens.append(json.loads(made[1].body)["secret"])
        return tokens

    def _accounts(self, users: int) -> Path:
        """Return a data folder with at least `users` accounts and no rows. It is created once; callers copy it."""
        if self._template is None or len(self.tokens) < users:
            self._template = tempfile.TemporaryDirectory(prefix="vademecum-bench-accounts-")
            data = Path(self._template.name) / "data"
            self.tokens = [self.add_user(data, f"user{n}@bench.invalid") for n in range(users)]
        return Path(self._template.name) / "data"

    async def prepare_sessions(self, makers: Sequence[Maker]) -> None:
        for maker in makers:
            body = push_body([maker.session()])
            raw = request("POST", "/v1/sync/sessions/1/push", self.headers(maker.user), body)
            taken = await must(self.port, raw)
            if taken[0].body != b"[]":
                raise Unavailable(f"a session was refused: {taken[0].body[:500]!r}")

    async def prepare(self, makers: Sequence[Maker], blocks: int) -> None:
        await self.prepare_sessions(makers)
        first = makers[0]
        headers = self.headers(first.user)
        me = (await must(self.port, request("GET", "/v1/me", headers)))[0]
        user_id = msgspec.json.decode(me.body, type=Me).user_id
        body = push_body([first.document(user_id, blocks)])
        taken = await must(self.port, request("POST", "/v1/sync/documents/1/push", headers, body))
        if taken[0].body != b"[]":
            raise Unavailable(f"the document was refused: {taken[0].body[:500]!r}")

    def base(self, user: int, collection: Collection) -> str:
        return sync_path(collection)

    def headers(self, user: int) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.tokens[user]}"}


class Before(Ours):
    """An earlier version of Vademecum, installed elsewhere, to compare a change with its parent."""

    name = "before"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.command = shlex.split(os.environ.get(BEFORE_COMMAND, ""))

    def install(self) -> None:
        if not self.command:
            raise Unavailable(f"set {BEFORE_COMMAND} to the command of an earlier version")
        super().install()
