"""express-pouchdb on leveldb: the CouchDB protocol, one database per user and collection, on disk without fsync."""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from client import Answer, request
from rows import Maker, Row
from targets.base import Collection, Target, free_port, must
from targets.install import node_peers


class Change(msgspec.Struct):
    doc: Row


class Changes(msgspec.Struct):
    results: list[msgspec.Raw]
    last_seq: Any


class ChangedRows(msgspec.Struct):
    results: list[Change]


_changes = msgspec.json.Decoder(Changes).decode
_rows = msgspec.json.Decoder(ChangedRows).decode
_bulk = msgspec.json.Decoder(list[dict[str, Any]]).decode


class Pouch(Target):
    """express-pouchdb with its default options. Like Vademecum, it has accounts, validates rows and logs requests."""

    name = "express-pouchdb"
    durability = "disk, no fsync"

    def install(self) -> None:
        node_peers(self.root)

    def start(self, folder: Path, users: int) -> None:
        self.port = free_port()
        script = self.root / "bench" / "peers" / "pouch_server.js"
        databases = folder / "databases"
        databases.mkdir()
        modules = str(node_peers(self.root))
        self.spawn(
            ["node", str(script), str(self.port), str(databases)],
            folder,
            BENCH_PEERS=modules,
            NODE_ENV="production",
        )
        self.wait_for_port()

    async def prepare(self, makers: Sequence[Maker], blocks: int) -> None:
        paths = [self._base(maker.user, "episodes") for maker in makers]
        paths += [self._base(maker.user, "vectorEmbeddings") for maker in makers]
        await must(self.port, *(request("PUT", path) for path in paths))

    def _base(self, user: int, collection: Collection) -> str:
        return f"/{'e' if collection == 'episodes' else 'v'}{user}"

    def push(self, user: int, collection: Collection, batch: Sequence[Row]) -> bytes:
        body = msgspec.json.encode({"docs": [_as_document(row) for row in batch]})
        return request("POST", f"{self._base(user, collection)}/_bulk_docs", body=body)

    def push_faults(self, answer: Answer, count: int) -> list[str]:
        if not answer.ok:
            return [f"{answer.status} {answer.body[:300]!r}"]
        taken = _bulk(answer.body)
        faults = [f"refused: {row}" for row in taken if not row.get("ok")]
        return faults if faults or len(taken) == count else [f"{len(taken)} answers to {count} rows"]

    def pull(self, user: int, collection: Collection, limit: int, last: Answer | None) -> bytes | None:
        since = "0"
        if last is not None:
            page = _changes(last.body)
            if len(page.results) < limit:
                return None
            since = urllib.parse.quote(str(page.last_seq))
        query = f"include_docs=true&since={since}&limit={limit}"
        return request("GET", f"{self._base(user, collection)}/_changes?{query}")

    def rows(self, answer: Answer) -> list[Row]:
        return [_as_row(change.doc) for change in _rows(answer.body).results]

    def stream(self, user: int) -> bytes:
        query = "feed=continuous&include_docs=true&since=now&heartbeat=10000"
        return request("GET", f"{self._base(user, 'episodes')}/_changes?{query}")


def _as_document(row: Row) -> Row:
    rest = {name: value for name, value in row.items() if name not in ("id", "_deleted")}
    return {"_id": row["id"], **rest}


def _as_row(document: Row) -> Row:
    rest = {name: value for name, value in document.items() if name not in ("_id", "_rev")}
    return {"id": document["_id"], **rest, "_deleted": False}
