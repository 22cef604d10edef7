"""Documents as people see them: list, get, look up by name, what to delete; and making the rows of a new one."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable

import msgspec

from vademecum.engines.duckdb.userstore import UserStore
from vademecum.errors import NotFound
from vademecum.model.collections import Json
from vademecum.model.draft import Draft
from vademecum.model.ids import uuid7
from vademecum.model.lookup import match
from vademecum.model.suggest import cleanup


def new_id() -> str:
    return uuid7(time.time_ns() // 1_000_000, secrets.token_bytes(10))


async def list_documents(store: UserStore) -> list[Json]:
    """All live documents, newest first."""
    keys = [k for k in list(store.heads.rows) if k.startswith("documents/") and store.live(k)]
    rows = [msgspec.json.decode(body) for body in (await store.bodies(keys)).values()]
    return sorted(
        (r for r in rows if not r.get("_deleted")), key=lambda r: (r["createdAt"], r["id"]), reverse=True
    )


async def get_document(store: UserStore, document_id: str) -> Json:
    """Raises NotFound for an id that is unknown, deleted, or another user's: all the same answer."""
    key = f"documents/{document_id}"
    if not store.live(key):
        raise NotFound("There is no such document.")
    found = await store.bodies([key])
    if key not in found:
        raise NotFound("There is no such document.")
    row: Json = msgspec.json.decode(found[key])
    return row


async def look_up(store: UserStore, name: str, session_id: str) -> list[Json]:
    """Documents of the pool that `name` (a name, or a whole message) names and that are not active in the session."""
    pool = [d for d in await list_documents(store) if session_id not in d["activeSessions"]]
    by_id = {d["id"]: d for d in pool}
    return [by_id[i] for i in match(name, ((d["id"], d["filename"]) for d in pool))]


async def suggestions(store: UserStore, count: int) -> list[Json]:
    return cleanup(await list_documents(store), count)


def live_row(draft: Draft, document_id: str) -> Json:
    """The document inside a transaction. Raises NotFound."""
    key = f"documents/{document_id}"
    if draft.life(key) != "live":
        raise NotFound("There is no such document.")
    return draft.row(key)


def same_bytes(draft: Draft, content_hash: str) -> Json | None:
    """The live document that was made from the very same file."""
    keys = [k for k in draft.keys("documents") if draft.life(k) == "live"]
    draft.prefetch(keys)
    rows: Iterable[Json] = (draft.row(k) for k in keys)
    return next((row for row in rows if row["contentHash"] == content_hash), None)
