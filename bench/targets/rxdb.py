"""rxdb-server on RxDB's memory storage, which does not write to disk.

rxdb-server has the SSPL license: it is only installed as a peer, and none of its code is in this repository.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from client import Answer
from rows import Maker, Row
from targets.base import Collection, free_port
from targets.install import node_peers
from targets.wire import RxWire


class RxdbServer(RxWire):
    """rxdb-server in its fastest configuration: one collection per user (at most 16 collections), no accounts."""

    name = "rxdb-server"
    durability = "none (memory)"
    mode: ClassVar[str] = "bare"

    def install(self) -> None:
        node_peers(self.root)

    def start(self, folder: Path, users: int) -> None:
        self.port = free_port()
        script = self.root / "bench" / "peers" / "rxdb_server.js"
        modules = str(node_peers(self.root))
        self.spawn(
            ["node", str(script), str(self.port), str(users), self.mode],
            folder,
            BENCH_PEERS=modules,
            NODE_ENV="production",
        )
        self.wait_for_port()

    async def prepare(self, makers: Sequence[Maker], blocks: int) -> None:
        """Do nothing: the server creates the collections when it starts, and accepts rows without their parents."""

    def base(self, user: int, collection: Collection) -> str:
        return f"/episodes{user}/0" if collection == "episodes" else "/vectors/0"


class RxdbServerShared(RxdbServer):
    """rxdb-server as documented: one collection, no accounts. Each user sees the rows of all users."""

    name = "rxdb-server-shared"
    pulls = False
    mode = "shared"

    def base(self, user: int, collection: Collection) -> str:
        return super().base(0, collection)


class RxdbServerAccounts(RxdbServerShared):
    """rxdb-server for many users: one collection whose rows have an owner. Each user sees only their own rows."""

    name = "rxdb-server-accounts"
    pulls = True
    mode = "accounts"

    def headers(self, user: int) -> Mapping[str, str]:
        return {"X-User": str(user)}

    def push(self, user: int, collection: Collection, batch: Sequence[Row]) -> bytes:
        return super().push(user, collection, [{**row, "owner": str(user)} for row in batch])

    def rows(self, answer: Answer) -> list[Row]:
        return [{name: row[name] for name in row if name != "owner"} for row in super().rows(answer)]
