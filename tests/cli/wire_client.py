"""A sync client that implements docs/wire.md. It keeps rows in memory; each device of an account is one instance."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx

Row = dict[str, Any]
COLLECTIONS = [
    "documents",
    "vectorEmbeddings",
    "projects",
    "sessions",
    "episodes",
    "facts",
    "memories",
    "entities",
    "relationships",
    "summaries",
]
SETS = ("activeSessions", "sessionIds", "documentIds", "tags")
PUSH_ROWS = 100
VERSION_1 = ("documents", "vectorEmbeddings", "projects", "sessions", "episodes")  # the others have version 0


class EpochChanged(Exception):
    """The server has begun a new epoch, for example after a restore."""


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Collection:
    """The rows of a collection on this device.

    `rows`: the rows as the user sees them. `master`: each row in the last state received from the server.
    `dirty`: ids of rows with changes that are not pushed yet.
    """

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.master: dict[str, Row] = {}
        self.dirty: set[str] = set()
        self.checkpoint: Row = {"lwt": 0, "id": ""}


class Client:
    def __init__(self, url: str, token: str, names: Sequence[str] = COLLECTIONS) -> None:
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        self.collections = {name: Collection() for name in names}

    def move_to(self, url: str) -> None:
        """Continue with a server at another address."""
        self._http.base_url = url

    def close(self) -> None:
        self._http.close()

    def put(self, name: str, **fields: Any) -> Row:
        """Create a row, or change these fields of an existing row."""
        mine = self.collections[name]
        before = mine.rows.get(fields.get("id", ""), {"id": str(uuid.uuid4()), "createdAt": now()})
        row = {**before, **fields, "updatedAt": now()}
        mine.rows[row["id"]] = row
        mine.dirty.add(row["id"])
        return row

    def delete(self, name: str, row_id: str) -> None:
        self.put(name, id=row_id, _deleted=True)

    def live(self, name: str) -> dict[str, Row]:
        return {i: row for i, row in self.collections[name].rows.items() if not row.get("_deleted")}

    def sync(self) -> None:
        try:
            for name in self.collections:
                self._pull(name)
            for name in self.collections:
                self._push(name)
        except EpochChanged:
            self._begin_again()
            self.sync()

    def _pull(self, name: str) -> None:
        mine = self.collections[name]
        while True:
            page = self._ask("GET", name, "pull", params={**mine.checkpoint, "limit": 1000})
            self._take(name, page["documents"])
            mine.checkpoint = page["checkpoint"]
            if len(page["documents"]) < 1000:
                return

    def _take(self, name: str, documents: list[Row]) -> None:
        mine = self.collections[name]
        for row in documents:
            if row["id"] not in mine.dirty:  # leave pending edits to the server, which merges them
                mine.rows[row["id"]] = mine.master[row["id"]] = row

    def _push(self, name: str) -> None:
        mine = self.collections[name]
        while ids := sorted(mine.dirty)[:PUSH_ROWS]:
            sent = {i: mine.rows[i] for i in ids}
            batch = [
                {"newDocumentState": row}
                | ({"assumedMasterState": mine.master[i]} if i in mine.master else {})
                for i, row in sent.items()
            ]
            epoch = mine.checkpoint["id"].partition(".")[0]
            answered = {
                r["id"]: r for r in self._ask("POST", name, "push", params={"epoch": epoch}, json=batch)
            }
            for row_id, row in sent.items():
                mine.rows[row_id] = mine.master[row_id] = answered.get(row_id, row)
                mine.dirty.discard(row_id)

    def _begin_again(self) -> None:
        """Pull all rows from zero, merge them with the local rows, and use the pulled rows as the assumed states."""
        held = {name: mine.rows for name, mine in self.collections.items()}
        self.collections = {name: Collection() for name in held}
        for name, rows in held.items():
            self._pull(name)
            mine = self.collections[name]
            for row_id, row in rows.items():
                theirs = mine.rows.get(row_id)
                united = row if theirs is None else _united(row, theirs)
                if united != theirs:
                    mine.rows[row_id] = united
                    mine.dirty.add(row_id)

    def _ask(self, method: str, name: str, what: str, **more: Any) -> Any:
        while True:
            answer = self._http.request(method, f"/v1/sync/{name}/{int(name in VERSION_1)}/{what}", **more)
            if answer.status_code in (429, 503):
                time.sleep(int(answer.headers["Retry-After"]))
                continue
            if answer.status_code == 409 and answer.json()["code"] == "EPOCH":
                raise EpochChanged
            answer.raise_for_status()
            return answer.json()

    def follow(self, name: str) -> Iterator[Row]:
        """Sync, then apply the events of a collection as they arrive. Yield their rows until the stream ends."""
        path = f"/v1/sync/{name}/{int(name in VERSION_1)}/pullStream"
        with self._http.stream("GET", path) as answer:
            self.sync()  # only now, so that no commit between pull and stream is missed
            event = "message"
            for line in answer.iter_lines():
                if line.startswith("event:"):
                    event = line.removeprefix("event:").strip()
                elif line.startswith("data:") and event == "message":
                    yield self._apply(name, json.loads(line.removeprefix("data:")))
                elif not line:
                    event = "message"

    def _apply(self, name: str, event: Row) -> Row:
        mine = self.collections[name]
        if event["checkpoint"]["lwt"] > mine.checkpoint["lwt"]:
            self._take(name, event["documents"])
            mine.checkpoint = event["checkpoint"]
        return event


def _united(mine: Row, theirs: Row) -> Row:
    if mine.get("_deleted") or theirs.get("_deleted"):
        return mine if mine.get("_deleted") and not theirs.get("_deleted") else theirs
    united = dict(max(mine, theirs, key=lambda row: str(row["updatedAt"])))
    for field in SETS:
        if field in mine and field in theirs:
            united[field] = list(dict.fromkeys([*theirs[field], *mine[field]]))
    if "accessCount" in united:
        united["accessCount"] = max(mine["accessCount"], theirs["accessCount"])
    return united
