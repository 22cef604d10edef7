"""Devices of one user that write without pause, and the book of what the server has acknowledged.

The book is the promise under test: a row enters it only after its 200. A write that was not answered stays in
`unanswered` with what was there before and what it would make of it: after a crash it must be one or the other,
whole. Each writer keeps to rows of its own, so the book always knows what the server must hold, byte for byte.
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

from vademecum.model.schema import vector_codec

Json = dict[str, Any]
T = "2026-01-01T00:00:00.000Z"
COLLECTIONS = ("documents", "vectorEmbeddings", "sessions", "episodes")
PARENT = {"vectorEmbeddings": ("documents", "documentId"), "episodes": ("sessions", "sessionId")}
READING = "reading"  # the session that has borrowed all collected documents
PAGE = 200


def word(rng: Random) -> str:
    """A word that stands nowhere else."""
    return f"zq{rng.getrandbits(48):012x}"


def base(row_id: str) -> Json:
    return {"id": row_id, "createdAt": T, "updatedAt": T, "_deleted": False}


def document(user_id: str, row_id: str, rng: Random, chunks: int, session: str = READING) -> Json:
    return {**base(row_id), "userId": user_id, "originSessionId": session, "activeSessions": [session],
            "accessCount": 1, "lastAccessedAt": T, "filename": f"{word(rng)}.txt", "mimeType": "text/plain",
            "size": 1000, "contentHash": f"{rng.getrandbits(256):064x}", "chunkCount": chunks, "status": "ready"}  # fmt: skip


def block(document_id: str, number: int, rng: Random, model: str, dims: int) -> Json:
    texts = [f"The {word(rng)} lies beneath the oak, said {word(rng)}." for _ in range(rng.randint(1, 4))]
    matrix = np.random.default_rng(rng.getrandbits(32)).standard_normal((len(texts), dims))
    chunks = [
        {"index": number * 16 + i, "start": i * 60, "text": t, "tokens": 12} for i, t in enumerate(texts)
    ]
    return {**base(f"{document_id}.{number}"), "documentId": document_id, "block": number, "model": model,
            "dims": dims, "chunks": chunks, "embedding": vector_codec.encode(matrix.astype(np.float32))}  # fmt: skip


def session(row_id: str, rng: Random) -> Json:
    return {**base(row_id), "title": word(rng), "mode": "analysis"}


def episode(session_id: str, rng: Random) -> Json:
    return {**base(f"e{rng.getrandbits(60):015x}"), "sessionId": session_id, "citations": [], "status": "done",
            "userMessage": f"What of {word(rng)}?", "aiResponse": " ".join(word(rng) for _ in range(rng.randint(1, 30)))}  # fmt: skip


def parent_of(key: str, row: Json) -> str | None:
    found = PARENT.get(key.partition("/")[0])
    return f"{found[0]}/{row[found[1]]}" if found else None


@dataclass
class Push:
    """A batch and what becomes of each key by it: the row, or None for death. `assumed`: the states it builds on."""

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
class Removal:
    """DELETE of an uploaded document."""

    hash: str
    document_id: str


Attempt = Push | Upload | Removal


@dataclass
class Book:
    """What was acknowledged: rows as sent, keys that died, uploads (hash -> id and text) and those that died."""

    rows: dict[str, Json] = field(default_factory=dict)
    gone: dict[str, Json] = field(default_factory=dict)  # with what they held last
    uploads: dict[str, tuple[str, str]] = field(default_factory=dict)
    gone_uploads: dict[str, str] = field(default_factory=dict)

    def apply(self, effects: dict[str, Json | None]) -> None:
        for key, row in effects.items():
            old = self.rows.pop(key, None)
            if row is not None:
                self.rows[key] = row
            if old is not None and old != row:
                self.gone[key if row is None else f"{key}#{len(self.gone)}"] = old

    def visible(self, effects: dict[str, Json | None] | None = None) -> dict[str, Json]:
        """What a pull must show (rows whose parent is not here yet wait), now or after `effects`."""
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
class Reader:
    """A device that only reads and remembers over all crashes what it has seen, and up to where."""

    seen: dict[str, Json] = field(default_factory=dict)
    checkpoints: dict[str, Json] = field(default_factory=dict)

    def take(self, collection: str, page: Json) -> None:
        """Rows first, then the checkpoint: whoever is interrupted between two pages has neither of the second."""
        self.seen.update((f"{collection}/{row['id']}", row) for row in page["documents"])
        self.checkpoints[collection] = page["checkpoint"]

    async def catch_up(self, user: User) -> None:
        """Pull what is new, as a device does that was here before."""
        for name in COLLECTIONS:
            async for page in user.pages(name, self.checkpoints.get(name, {"lwt": 0, "id": ""}), PAGE):
                self.take(name, page)

    async def follow(self, user: User) -> None:
        """Open the stream, pull what was missed, then live from what the stream brings, until it ends."""
        versions = ",".join(f"{name}:0" for name in COLLECTIONS)
        async with user.stream(f"/v1/sync/stream?versions={versions}") as answer:
            assert answer.status_code == 200
            await self.catch_up(user)
            pulled = {name: checkpoint["lwt"] for name, checkpoint in self.checkpoints.items()}
            lines = answer.aiter_lines()
            async for line in lines:
                if line.startswith("event: "):
                    assert line == "event: progress", line
                    await anext(lines)  # its data, which is no row
                elif line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    name, after = event["collection"], event["checkpoint"]["lwt"]
                    if after > pulled[name]:  # else the pull has brought it, or something newer
                        assert after > self.checkpoints[name]["lwt"], "the stream went back"
                        self.take(name, event)


@dataclass
class User:
    """One account and its devices: those that write, one that pulls and one that follows the stream."""

    email: str
    id: str
    token: str
    model: str
    dims: int
    book: Book = field(default_factory=Book)
    unanswered: list[Attempt] = field(default_factory=list)
    puller: Reader = field(default_factory=Reader)
    follower: Reader = field(default_factory=Reader)
    client: httpx.AsyncClient | None = None
    wrong: list[str] = field(default_factory=list)

    async def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        assert self.client is not None
        return await self.client.request(
            method, path, headers={"Authorization": f"Bearer {self.token}"}, **more
        )

    def stream(self, path: str) -> AbstractAsyncContextManager[httpx.Response]:
        assert self.client is not None
        headers = {"Authorization": f"Bearer {self.token}"}
        return self.client.stream("GET", path, headers=headers, timeout=None)

    # -- writing ------------------------------------------------------------------------------------------------

    async def do(self, attempt: Attempt) -> None:
        """Send it; enter it in the book once it is acknowledged. Raises TransportError when nobody answers."""
        self.unanswered.append(attempt)
        match attempt:
            case Push():
                answer = await self.call("POST", f"/v1/sync/{attempt.collection}/0/push", json=attempt.body())
                if answer.status_code == 200 and answer.json() == []:
                    self.book.apply(attempt.effects)
                else:
                    self.wrong.append(f"push of {attempt.rows[0]['id']}: {answer.text[:300]}")
            case Upload():
                files = {"file": (f"{word(Random(attempt.hash))}.txt", attempt.text.encode())}
                answer = await self.call("POST", "/v1/documents", files=files, data={"sessionId": READING})
                if answer.status_code == 201:
                    self.book.uploads[attempt.hash] = (answer.json()["document"]["id"], attempt.text)
                else:
                    self.wrong.append(f"upload: {answer.status_code} {answer.text[:300]}")
            case Removal():
                answer = await self.call("DELETE", f"/v1/documents/{attempt.document_id}")
                if answer.status_code in (200, 404):
                    _, text = self.book.uploads.pop(attempt.hash)
                    self.book.gone_uploads[attempt.hash] = text
                else:
                    self.wrong.append(f"delete: {answer.status_code} {answer.text[:300]}")
        self.unanswered.remove(attempt)

    async def store(self, collection: str, *rows: Json, assumed: list[Json | None] | None = None) -> None:
        effects: dict[str, Json | None] = {f"{collection}/{row['id']}": row for row in rows}
        await self.do(Push(collection, list(rows), effects, assumed or []))

    def death(self, key: str) -> dict[str, Json | None]:
        """What dies with a row."""
        return {key: None, **dict.fromkeys(self.book.children(key))}

    # -- the writers --------------------------------------------------------------------------------------------

    async def talk(self, rng: Random) -> None:
        """Sessions and their episodes; sometimes the episodes come first."""
        live = self.book.of("sessions", "s")
        chance = rng.random()
        if chance < 0.2 or not live:
            new = session(f"s{rng.getrandbits(60):015x}", rng)
            turns = [episode(new["id"], rng) for _ in range(rng.randint(1, 8))]
            early = rng.random() < 0.5
            if early:
                await self.store("episodes", *turns)
            await self.store("sessions", new)
            if not early:
                await self.store("episodes", *turns)
        elif chance < 0.7:
            name = rng.choice(live).partition("/")[2]
            await self.store("episodes", *(episode(name, rng) for _ in range(rng.randint(1, 20))))
        elif chance < 0.85:
            turns = [self.book.rows[k] for k in self.book.children(rng.choice(live))][:3]
            if turns:
                edited = [{**row, "aiResponse": word(rng)} for row in turns]
                await self.store("episodes", *edited, assumed=list(turns))
        elif len(live) > 6:
            key = rng.choice(live)
            row = {**self.book.rows[key], "_deleted": True}
            await self.do(Push("sessions", [row], self.death(key)))

    async def collect(self, rng: Random) -> None:
        """Documents and their blocks; a delete and an addition in one batch; blocks that change."""
        live = self.book.of("documents", "c")
        chance = rng.random()
        if chance < 0.2 and live:
            blocks = self.book.children(rng.choice(live))
            if blocks:
                old = self.book.rows[rng.choice(blocks)]
                new = block(old["documentId"], old["block"], rng, self.model, self.dims)
                await self.store("vectorEmbeddings", new, assumed=[old])
            return
        rows, effects = [], {}
        if len(live) > 25 or (chance < 0.5 and len(live) > 5):
            key = rng.choice(live)
            rows.append({**self.book.rows[key], "_deleted": True})
            effects |= self.death(key)
        name = f"c{rng.getrandbits(60):015x}"
        blocks = [block(name, number, rng, self.model, self.dims) for number in range(rng.randint(1, 5))]
        new = document(self.id, name, rng, sum(len(b["chunks"]) for b in blocks))
        early = rng.random() < 0.5
        if early:
            await self.store("vectorEmbeddings", *blocks)
        await self.do(Push("documents", [new, *rows], {f"documents/{name}": new, **effects}))
        if not early:
            await self.store("vectorEmbeddings", *blocks)

    async def borrow(self, rng: Random) -> None:
        """One document borrowed again and again: each borrow counts once, whatever crashes."""
        key = f"documents/b{self.id}"
        old = self.book.rows.get(key)
        if old is None:
            await self.store("documents", document(self.id, f"b{self.id}", rng, 1, "own"))
            return
        await self.store("documents", borrowed(old, f"r{rng.getrandbits(60):015x}"), assumed=[old])

    async def upload(self, rng: Random) -> None:
        """Files in and out."""
        if len(self.book.uploads) > 8:
            content_hash = rng.choice(list(self.book.uploads))
            await self.do(Removal(content_hash, self.book.uploads[content_hash][0]))
            return
        await self.do(Upload(" ".join(word(rng) for _ in range(rng.randint(1, 12)))))

    async def pull(self, rng: Random) -> None:
        await self.puller.catch_up(self)

    async def follow(self, rng: Random) -> None:
        await self.follower.follow(self)

    async def go_on(self, writer: str, seed: str, pause_s: float) -> None:
        """Write until nobody answers any more."""
        rng = Random(seed)
        try:
            while True:
                await getattr(self, writer)(rng)
                await asyncio.sleep(rng.uniform(0, pause_s))
        except httpx.TransportError:
            return

    # -- reading ------------------------------------------------------------------------------------------------

    async def pages(self, collection: str, start: Json, limit: int) -> AsyncIterator[Json]:
        """The pages after a checkpoint, to the end; `seq` must rise from page to page."""
        while True:
            where = f"lwt={start['lwt']}&id={start['id']}&limit={limit}"
            answer = await self.call("GET", f"/v1/sync/{collection}/0/pull?{where}")
            assert answer.status_code == 200, answer.text
            page = answer.json()
            after = page["checkpoint"]
            assert (after["lwt"] > start["lwt"]) == bool(page["documents"]), (start, after)
            yield page
            if len(page["documents"]) < limit:
                return
            start = after

    async def full_pull(self) -> dict[str, Json]:
        """Everything from zero, tombstones too; no id may come twice."""
        found: dict[str, Json] = {}
        for name in COLLECTIONS:
            async for page in self.pages(name, {"lwt": 0, "id": ""}, 1000):
                for row in page["documents"]:
                    key = f"{name}/{row['id']}"
                    assert key not in found, f"{key} came twice in one full pull"
                    found[key] = row
        return found


def borrowed(row: Json, by: str) -> Json:
    return {**row, "activeSessions": [*row["activeSessions"][-4:], by], "accessCount": row["accessCount"] + 1}
