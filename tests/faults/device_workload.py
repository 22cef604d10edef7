"""Devices of one user that write continuously, and a record of the writes that the server has acknowledged.

A write is recorded only after its 200 response. A write without a response stays in `unanswered`. After a crash, the
server must have stored such a write completely or not at all. Each writer changes only its own rows, so the record is
exactly the set of rows that the server must have.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx
import numpy as np

from property.rows import sync_path, version_of
from vademecum.model.schema import vector_codec

Json = dict[str, Any]
T = "2026-01-01T00:00:00.000Z"
COLLECTIONS = ("documents", "vectorEmbeddings", "sessions", "episodes")
PARENT = {"vectorEmbeddings": ("documents", "documentId"), "episodes": ("sessions", "sessionId")}
READING_SESSION = "reading"  # the session that borrows all documents
PAGE = 200


def unique_word(rng: Random) -> str:
    """Return a word that occurs nowhere else."""
    return f"zq{rng.getrandbits(48):012x}"


def common_fields(row_id: str) -> Json:
    return {"id": row_id, "createdAt": T, "updatedAt": T, "_deleted": False}


def document(user_id: str, row_id: str, rng: Random, chunks: int, session: str = READING_SESSION) -> Json:
    return {**common_fields(row_id), "userId": user_id, "originSessionId": session, "activeSessions": [session],
            "accessCount": 1, "lastAccessedAt": T, "filename": f"{unique_word(rng)}.txt", "mimeType": "text/plain",
            "size": 1000, "contentHash": f"{rng.getrandbits(256):064x}", "chunkCount": chunks, "status": "ready",
            "textHash": "", "original": "none", "fileRevision": 1}  # fmt: skip


def block(document_id: str, number: int, rng: Random, model: str, dims: int) -> Json:
    texts = [
        f"The {unique_word(rng)} lies beneath the oak, said {unique_word(rng)}."
        for _ in range(rng.randint(1, 4))
    ]
    matrix = np.random.default_rng(rng.getrandbits(32)).standard_normal((len(texts), dims))
    chunks = [
        {"index": number * 16 + i, "start": i * 60, "text": t, "tokens": 12} for i, t in enumerate(texts)
    ]
    return {**common_fields(f"{document_id}.{number}"), "documentId": document_id, "block": number, "textHash": "", "model": model,
            "dims": dims, "chunks": chunks, "embedding": vector_codec.encode(matrix.astype(np.float32))}  # fmt: skip


def session(row_id: str, rng: Random) -> Json:
    return {**common_fields(row_id), "title": unique_word(rng), "mode": "analysis",
            "documentScope": "chosen", "memory": "on"}  # fmt: skip


def episode(session_id: str, rng: Random) -> Json:
    return {**common_fields(f"e{rng.getrandbits(60):015x}"), "sessionId": session_id, "citations": [], "status": "done",
            "userMessage": f"What of {unique_word(rng)}?", "aiResponse": " ".join(unique_word(rng) for _ in range(rng.randint(1, 30)))}  # fmt: skip


def parent_of(key: str, row: Json) -> str | None:
    """Return the key of the row's parent, if its collection has parents."""
    parent = PARENT.get(key.partition("/")[0])
    return f"{parent[0]}/{row[parent[1]]}" if parent else None


@dataclass
class Push:
    """A batch with its assumed states. `effects` maps each changed key to its new row, or to None if deleted."""

    collection: str
    rows: list[Json]
    effects: dict[str, Json | None]
    assumed: list[Json | None] = field(default_factory=list)

    def body(self) -> list[Json]:
        assumed = self.assumed or [None] * len(self.rows)
        return [
            {"newDocumentState": row} | ({"assumedMasterState": a} if a else {})
            for row, a in zip(self.rows, assumed, strict=True)
        ]


@dataclass
class Upload:
    text: str

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass
class Deletion:
    """A DELETE request for an uploaded document."""

    hash: str
    document_id: str


Request = Push | Upload | Deletion


@dataclass
class Acknowledged:
    """The state after all acknowledged writes.

    `rows` and `deleted` map keys to rows. `uploads` maps a content hash to the document's id and text.
    """

    rows: dict[str, Json] = field(default_factory=dict)
    deleted: dict[str, Json] = field(default_factory=dict)  # values: the last content before the deletion
    uploads: dict[str, tuple[str, str]] = field(default_factory=dict)
    deleted_uploads: dict[str, str] = field(default_factory=dict)

    def apply(self, effects: dict[str, Json | None]) -> None:
        for key, row in effects.items():
            old = self.rows.pop(key, None)
            if row is not None:
                self.rows[key] = row
            if old is not None and old != row:
                self.deleted[key if row is None else f"{key}#{len(self.deleted)}"] = old

    def visible(self, effects: dict[str, Json | None] | None = None) -> dict[str, Json]:
        """Return the rows that a pull must return, after `effects` if given. Waiting rows are not among them."""
        rows = dict(self.rows)
        for key, row in (effects or {}).items():
            rows.pop(key, None)
            if row is not None:
                rows[key] = row
        return {k: r for k, r in rows.items() if (p := parent_of(k, r)) is None or p in rows}

    def children(self, key: str) -> list[str]:
        return [k for k, r in self.rows.items() if parent_of(k, r) == key]

    def of(self, collection: str, prefix: str = "") -> list[str]:
        return [k for k in self.rows if k.startswith(f"{collection}/{prefix}")]


@dataclass
class ReadingDevice:
    """A device that only reads. It keeps its rows and checkpoints across all crashes of the server."""

    seen: dict[str, Json] = field(default_factory=dict)
    checkpoints: dict[str, Json] = field(default_factory=dict)

    def apply_page(self, collection: str, page: Json) -> None:
        """Store the rows of a page, then its checkpoint."""
        self.seen.update((f"{collection}/{row['id']}", row) for row in page["documents"])
        self.checkpoints[collection] = page["checkpoint"]

    async def catch_up(self, user: User) -> None:
        """Pull all rows after the saved checkpoints."""
        for name in COLLECTIONS:
            async for page in user.pages(name, self.checkpoints.get(name, {"lwt": 0, "id": ""}), PAGE):
                self.apply_page(name, page)

    async def read_stream(self, user: User) -> None:
        """Open the stream, pull missed rows, then apply the events of the stream until it ends."""
        versions = ",".join(f"{name}:{version_of(name)}" for name in COLLECTIONS)
        async with user.stream(f"/v1/sync/stream?versions={versions}") as response:
            assert response.status_code == 200
            await self.catch_up(user)
            pulled = {name: checkpoint["lwt"] for name, checkpoint in self.checkpoints.items()}
            lines = response.aiter_lines()
            async for line in lines:
                if line.startswith("event: "):
                    assert line == "event: progress", line
                    await anext(lines)  # skip the data of the progress event, which contains no rows
                elif line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    name, after = event["collection"], event["checkpoint"]["lwt"]
                    # Skip events that the pull already covered: it returned these rows or newer versions.
                    if after > pulled[name]:
                        assert after > self.checkpoints[name]["lwt"], "the stream went backwards"
                        self.apply_page(name, event)


@dataclass
class User:
    """An account with several devices that write, one device that only pulls, and one that reads the stream."""

    email: str
    id: str
    token: str
    model: str
    dims: int
    acknowledged: Acknowledged = field(default_factory=Acknowledged)
    unanswered: list[Request] = field(default_factory=list)
    pull_device: ReadingDevice = field(default_factory=ReadingDevice)
    stream_device: ReadingDevice = field(default_factory=ReadingDevice)
    client: httpx.AsyncClient | None = None
    errors: list[str] = field(default_factory=list)

    async def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        assert self.client is not None
        return await self.client.request(
            method, path, headers={"Authorization": f"Bearer {self.token}"}, **options
        )

    def stream(self, path: str) -> AbstractAsyncContextManager[httpx.Response]:
        assert self.client is not None
        headers = {"Authorization": f"Bearer {self.token}"}
        return self.client.stream("GET", path, headers=headers, timeout=None)

    # -- writing ------------------------------------------------------------------------------------------------

    async def send(self, request: Request) -> None:
        """Send a request and record it once it is acknowledged. Raises TransportError without a response."""
        self.unanswered.append(request)
        match request:
            case Push():
                response = await self.call(
                    "POST", f"{sync_path(request.collection)}/push", json=request.body()
                )
                if response.status_code == 200 and response.json() == []:
                    self.acknowledged.apply(request.effects)
                else:
                    self.errors.append(f"push of {request.rows[0]['id']}: {response.text[:300]}")
            case Upload():
                files = {"file": (f"{unique_word(Random(request.hash))}.txt", request.text.encode())}
                response = await self.call(
                    "POST", "/v1/documents", files=files, data={"sessionId": READING_SESSION}
                )
                if response.status_code == 201:
                    self.acknowledged.uploads[request.hash] = (
                        response.json()["document"]["id"],
                        request.text,
                    )
                else:
                    self.errors.append(f"upload: {response.status_code} {response.text[:300]}")
            case Deletion():
                response = await self.call("DELETE", f"/v1/documents/{request.document_id}")
                if response.status_code in (200, 404):
                    _, text = self.acknowledged.uploads.pop(request.hash)
                    self.acknowledged.deleted_uploads[request.hash] = text
                else:
                    self.errors.append(f"delete: {response.status_code} {response.text[:300]}")
        self.unanswered.remove(request)

    async def store(self, collection: str, *rows: Json, assumed: list[Json | None] | None = None) -> None:
        effects: dict[str, Json | None] = {f"{collection}/{row['id']}": row for row in rows}
        await self.send(Push(collection, list(rows), effects, assumed or []))

    def deletion_effects(self, key: str) -> dict[str, Json | None]:
        """Return the effects of deleting a row, which deletes the row and its children."""
        return {key: None, **dict.fromkeys(self.acknowledged.children(key))}

    # -- the writers --------------------------------------------------------------------------------------------

    async def write_sessions(self, rng: Random) -> None:
        """Create sessions and episodes in either order, edit episodes, or delete a session."""
        live = self.acknowledged.of("sessions", "s")
        chance = rng.random()
        if chance < 0.2 or not live:
            new = session(f"s{rng.getrandbits(60):015x}", rng)
            turns = [episode(new["id"], rng) for _ in range(rng.randint(1, 8))]
            children_first = rng.random() < 0.5
            if children_first:
                await self.store("episodes", *turns)
            await self.store("sessions", new)
            if not children_first:
                await self.store("episodes", *turns)
        elif chance < 0.7:
            name = rng.choice(live).partition("/")[2]
            await self.store("episodes", *(episode(name, rng) for _ in range(rng.randint(1, 20))))
        elif chance < 0.85:
            turns = [self.acknowledged.rows[k] for k in self.acknowledged.children(rng.choice(live))][:3]
            if turns:
                edited = [{**row, "aiResponse": unique_word(rng)} for row in turns]
                await self.store("episodes", *edited, assumed=list(turns))
        elif len(live) > 6:
            key = rng.choice(live)
            row = {**self.acknowledged.rows[key], "_deleted": True}
            await self.send(Push("sessions", [row], self.deletion_effects(key)))

    async def write_documents(self, rng: Random) -> None:
        """Create documents and blocks in either order, delete and create in one batch, or change a block."""
        live = self.acknowledged.of("documents", "c")
        chance = rng.random()
        if chance < 0.2 and live:
            blocks = self.acknowledged.children(rng.choice(live))
            if blocks:
                old = self.acknowledged.rows[rng.choice(blocks)]
                new = block(old["documentId"], old["block"], rng, self.model, self.dims)
                await self.store("vectorEmbeddings", new, assumed=[old])
            return
        rows, effects = [], {}
        if len(live) > 25 or (chance < 0.5 and len(live) > 5):
            key = rng.choice(live)
            rows.append({**self.acknowledged.rows[key], "_deleted": True})
            effects |= self.deletion_effects(key)
        name = f"c{rng.getrandbits(60):015x}"
        blocks = [block(name, number, rng, self.model, self.dims) for number in range(rng.randint(1, 5))]
        new = document(self.id, name, rng, sum(len(b["chunks"]) for b in blocks))
        children_first = rng.random() < 0.5
        if children_first:
            await self.store("vectorEmbeddings", *blocks)
        await self.send(Push("documents", [new, *rows], {f"documents/{name}": new, **effects}))
        if not children_first:
            await self.store("vectorEmbeddings", *blocks)

    async def borrow_document(self, rng: Random) -> None:
        """Borrow the same document again. Each borrow must count once despite crashes."""
        key = f"documents/b{self.id}"
        old = self.acknowledged.rows.get(key)
        if old is None:
            await self.store("documents", document(self.id, f"b{self.id}", rng, 1, "own"))
            return
        await self.store("documents", with_borrow(old, f"r{rng.getrandbits(60):015x}"), assumed=[old])

    async def upload_files(self, rng: Random) -> None:
        """Upload a file, or delete one when there are many."""
        if len(self.acknowledged.uploads) > 8:
            content_hash = rng.choice(list(self.acknowledged.uploads))
            await self.send(Deletion(content_hash, self.acknowledged.uploads[content_hash][0]))
            return
        await self.send(Upload(" ".join(unique_word(rng) for _ in range(rng.randint(1, 12)))))

    async def pull(self, rng: Random) -> None:
        await self.pull_device.catch_up(self)

    async def stream_changes(self, rng: Random) -> None:
        await self.stream_device.read_stream(self)

    async def run_until_killed(self, activity: str, seed: str, pause_s: float) -> None:
        """Repeat the method named `activity` until the server stops responding."""
        rng = Random(seed)
        try:
            while True:
                await getattr(self, activity)(rng)
                await asyncio.sleep(rng.uniform(0, pause_s))
        except httpx.TransportError:
            return

    # -- reading ------------------------------------------------------------------------------------------------

    async def pages(self, collection: str, start: Json, limit: int) -> AsyncIterator[Json]:
        """Yield the pages after a checkpoint. `seq` must increase from page to page."""
        while True:
            query = f"lwt={start['lwt']}&id={start['id']}&limit={limit}"
            response = await self.call("GET", f"{sync_path(collection)}/pull?{query}")
            assert response.status_code == 200, response.text
            page = response.json()
            after = page["checkpoint"]
            assert (after["lwt"] > start["lwt"]) == bool(page["documents"]), (start, after)
            yield page
            if len(page["documents"]) < limit:
                return
            start = after

    async def full_pull(self) -> dict[str, Json]:
        """Pull everything from zero, tombstones included. No id may occur twice."""
        rows: dict[str, Json] = {}
        for name in COLLECTIONS:
            async for page in self.pages(name, {"lwt": 0, "id": ""}, 1000):
                for row in page["documents"]:
                    key = f"{name}/{row['id']}"
                    assert key not in rows, f"{key} occurs twice in one full pull"
                    rows[key] = row
        return rows


def with_borrow(row: Json, session_id: str) -> Json:
    return {
        **row,
        "activeSessions": [*row["activeSessions"][-4:], session_id],
        "accessCount": row["accessCount"] + 1,
    }
