"""Does the harness notice? Servers that lose, change, repeat, refuse or hang up must be counted as failures.

A stand-in server speaks the wire of ours and misbehaves on demand; an honest one must pass without a failure.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

import workloads
from client import HOST, Answer
from measure import percentile
from rows import Maker, Row
from targets.base import Collection, Target
from targets.kinto import Kinto
from targets.pouch import Pouch
from targets.wire import RxWire

FAULTS = {
    "honest": "",
    "push answers 500": "push",
    "push answers a conflict": "push",
    "push is answered with no HTTP": "push",
    "hangs up at the third push": "push",
    "loses the last row of a batch": "pull",
    "changes a text": "pull",
    "gives a row twice": "pull",
    "ends the pull early": "pull",
    "pull answers 500": "pull",
    "pull answers another JSON": "pull",
    "stream stays silent": "live",
    "stream answers 401": "live",
}


class StandIn(RxWire):
    """A server inside this process, with one fault."""

    name = "stand-in"
    durability = "none"

    def __init__(self, root: Path, fault: str) -> None:
        super().__init__(root)
        self.fault = fault
        self.stored: list[Row] = []
        self.streams_open: list[asyncio.StreamWriter] = []
        self.pushes = 0

    def install(self) -> None: ...

    def start(self, folder: Path, users: int) -> None: ...

    async def prepare(self, makers: Sequence[Maker], blocks: int) -> None: ...

    def roots(self) -> list[int]:
        return [os.getpid()]

    def base(self, user: int, collection: Collection) -> str:
        return ""

    async def serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connection, HOST, 0, limit=2**22)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    (int(ln[15:]) for ln in head.splitlines() if ln.startswith("Content-Length")), 0
                )
                body = await reader.readexactly(length)
                self._answer(head.split()[1], body, writer)
        writer.close()

    def _answer(self, target: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        url = urlsplit(target)
        if url.path == "/pullStream":
            status = b"401" if self.fault == "stream answers 401" else b"200"
            writer.write(b"HTTP/1.1 " + status + b" X\r\nTransfer-Encoding: chunked\r\n\r\n")
            self.streams_open.append(writer)
        elif url.path == "/push":
            self._push(msgspec.json.decode(body), writer)
        else:
            self._pull({name: values[0] for name, values in parse_qs(url.query).items()}, writer)

    def _push(self, batch: list[dict[str, Row]], writer: asyncio.StreamWriter) -> None:
        self.pushes += 1
        rows = [entry["newDocumentState"] for entry in batch]
        if self.fault == "hangs up at the third push" and self.pushes == 3:
            writer.transport.abort()
        elif self.fault == "push is answered with no HTTP":
            writer.write(b"hello\r\n\r\n")
        elif self.fault == "push answers a conflict":
            _reply(writer, msgspec.json.encode(rows[:1]))
        elif self.fault == "push answers 500":
            _reply(writer, b"[]", status=500)
        else:
            self.stored += rows[:-1] if self.fault.startswith("loses") else rows
            self._publish(rows)
            _reply(writer, b"[]")

    def _publish(self, rows: list[Row]) -> None:
        event = b"data: " + msgspec.json.encode({"documents": rows}) + b"\n\n"
        if self.fault not in ("stream stays silent", "stream answers 401"):
            for stream in self.streams_open:
                stream.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")

    def _pull(self, query: dict[str, str], writer: asyncio.StreamWriter) -> None:
        after, limit = int(query["lwt"]), int(query["limit"])
        if self.fault == "ends the pull early" and after:
            limit = 1
        rows = self.stored[after : after + limit]
        checkpoint = {"id": "e", "lwt": after + len(rows)}
        if self.fault == "changes a text" and rows:
            rows = [{**rows[0], "aiResponse": "?"}, *rows[1:]]
        if self.fault == "gives a row twice" and rows:
            rows = [rows[0], *rows]
        if self.fault == "pull answers another JSON":
            _reply(writer, b'{"rows": []}')
        else:
            body = msgspec.json.encode({"documents": rows, "checkpoint": checkpoint})
            _reply(writer, body, status=500 if self.fault == "pull answers 500" else 200)


def _reply(writer: asyncio.StreamWriter, body: bytes, status: int = 200) -> None:
    writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


async def _failures(fault: str) -> dict[str, int]:
    """How many failures each workload saw."""
    target = StandIn(Path(), fault)
    server = await target.serve()
    maker = Maker(0)
    batches = {0: maker.episodes(6, 50)}
    found = {
        "push": await workloads.push(target, "episodes", batches),
        "pull": await workloads.pull(target, "episodes", 100, batches),
        "live": await workloads.live(target, 0, maker.episodes(25, 1)),
    }
    server.close()
    return {name: sum(result.failures.values()) for name, result in found.items()}


def _judges() -> list[str]:
    """The wires of the other peers, judged on answers that refuse a row."""
    refusals: list[tuple[Target, int, bytes]] = [
        (Pouch(Path()), 201, b'[{"ok":true,"id":"a","rev":"1"},{"id":"b","error":"conflict"}]'),
        (Pouch(Path()), 201, b'[{"ok":true,"id":"a","rev":"1"}]'),
        (Pouch(Path()), 500, b"[]"),
        (Kinto(Path()), 200, b'{"responses":[{"status":201},{"status":412,"body":{}}]}'),
        (Kinto(Path()), 200, b'{"responses":[{"status":201}]}'),
        (Kinto(Path()), 503, b"{}"),
    ]
    return [
        f"{target.name}: {status} {body!r} passes for two rows taken"
        for target, status, body in refusals
        if not target.push_faults(Answer(status, {}, body), 2)
    ]


def check() -> int:
    workloads.PULL_S, workloads.EVENT_S = 0.05, 0.5
    problems = _judges()
    if percentile([3, 1, 2, 4], 0.5) != 2 or percentile(list(range(1, 101)), 0.99) != 99:
        problems.append("percentile is wrong")
    for fault, where in FAULTS.items():
        found = asyncio.run(_failures(fault))
        noticed = found[where] > 0 if where else not any(found.values())
        print(f"{'ok    ' if noticed else 'MISSED'} {fault}: {found}")
        if not noticed:
            problems.append(fault)
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if problems else 0
