"""Observe: events of agents become rows, each once, and the rows are listed, pinned and deleted within a scope.

The ids of the events that were taken up are written in the transaction that writes their rows, so a crash between that
and whoever sent them costs nothing: what comes again is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.engines.duckdb.user_stores import UserStores
from vademecum.errors import LimitReached, no_such
from vademecum.model import secrets
from vademecum.model.agents.observations import CONTENT_MAX, Event, fold
from vademecum.model.memory.scope import MemoryScope
from vademecum.model.schema import derived_ids
from vademecum.model.schema.collections import PATH_MAX, Json
from vademecum.model.sync.quotas import Limits, check_quota, message_for_api_client
from vademecum.model.sync.transaction import Transaction
from vademecum.services.agents import folder_check, project_claims
from vademecum.services.memory.scope import is_within, list_scoped_keys
from vademecum.services.sync import write_row
from vademecum.services.sync.pagination import ListEntry, Page, PageRequest, list_newest, sort_by_time

OBSERVATIONS = "observations"
NAMED_MAX = 255  # characters of a session and of a tool


class ReadRows(msgspec.Struct, frozen=True):
    """Rows as they are stored, and the ids of which nothing is to be seen here."""

    rows: list[bytes]
    missing: list[str]


def key_of(observation_id: str) -> str:
    return f"{OBSERVATIONS}/{observation_id}"


def without_secrets(event: Event) -> Event:
    """Whoever sent it should have hidden them; what slipped through is hidden here."""
    content, hidden = secrets.hide(event.content, CONTENT_MAX)
    path, in_path = secrets.hide_in_path(event.path or "", PATH_MAX)
    session, in_session = secrets.hide_in_path(event.session, NAMED_MAX)
    tool, in_tool = secrets.hide(event.tool or "", NAMED_MAX)
    return msgspec.structs.replace(
        event,
        content=content[:CONTENT_MAX],
        path=path[:PATH_MAX] or None,
        session=session[:NAMED_MAX],
        tool=tool[:NAMED_MAX] or None,
        redactions=event.redactions + hidden + in_path + in_session + in_tool,
    )


async def receive(
    users: UserStores, user_id: str, events: Sequence[Event], limits: Limits, view: folder_check.View
) -> int:
    """Take these events up, in one transaction. Returns how many were new."""
    clean = await asyncio.to_thread(lambda: [without_secrets(event) for event in events])
    async with users.open(user_id) as store:
        view = await project_claims.checked(store, view, (event.project for event in clean))
        return await store.write(lambda tx: take_up(tx, clean, limits, view))


def take_up(tx: Transaction, events: Sequence[Event], limits: Limits, view: folder_check.View) -> int:
    """Store what these events say. Returns how many were new. Raises LimitReached, and then none is stored."""
    known = tx.ingested_events.find([event.id for event in events])
    fresh: dict[str, Event] = {}
    for event in events:
        if event.id not in known:
            # Not after now: a clock that is ahead would have the last word for good.
            fresh.setdefault(event.id, msgspec.structs.replace(event, at=min(event.at, tx.now)))
    claimed = project_claims.Claims(tx, limits, view)
    # What was forgotten does not come back from a spool; not even the id stays of what is refused whenever it comes.
    news = [event for event in fresh.values() if event.at > tx.meta.forgotten_at]
    for event in sorted(news, key=lambda event: (event.at, event.id)):
        _store(tx, event, claimed.project_of(event.project), limits)
    tx.ingested_events.added_ids += [event.id for event in news]
    return len(news)


def _store(tx: Transaction, event: Event, project_id: str, limits: Limits) -> None:
    told_by = derived_ids.dedup_key(event.path, event.content)
    row_id = derived_ids.observation_id(tx.meta.id_key, project_id, event.session, event.kind, told_by)
    lives = tx.row_state(key_of(row_id)) == "live"
    before = tx.row(key_of(row_id)) if lives else None
    put(tx, before, fold(before, event, row_id, project_id), limits)


def put(tx: Transaction, before: Json | None, row: Json, limits: Limits) -> None:
    """Store the row within the account's limits. Raises LimitReached."""
    key, body = key_of(row["id"]), msgspec.json.encode(row)
    growth = tx.measure_growth(key, row, body)
    no = check_quota(OBSERVATIONS, before, row, growth, len(body), tx.totals.usage, limits)
    if no is not None:
        raise LimitReached(message_for_api_client(no.message), code=no.code)
    # A repeat that says nothing new leaves no other text behind, of which the disk would have to be rid.
    same = before is not None and before["content"] == row["content"]
    tx.put(key, row, body, same_text=same)


async def listed(
    store: UserStore,
    scope: MemoryScope,
    asked: PageRequest,
    fits: Callable[[ListEntry], bool] = lambda _: True,
) -> Page:
    return await list_newest(store, await list_scoped_keys(store, scope, OBSERVATIONS), asked, fits)


async def read(store: UserStore, scope: MemoryScope, ids: Sequence[str]) -> ReadRows:
    """Those within the scope, in the order asked for. Another project's id is missing as an unknown one is."""
    heads = store.row_index.rows
    seen = [i for i in dict.fromkeys(ids) if is_within(scope, heads.get(key_of(i)))]
    bodies = await store.read_bodies([key_of(i) for i in seen])
    found = [i for i in seen if key_of(i) in bodies and is_within(scope, heads.get(key_of(i)))]
    return ReadRows([bodies[key_of(i)] for i in found], [i for i in dict.fromkeys(ids) if i not in found])


async def timeline(
    store: UserStore, scope: MemoryScope, observation_id: str, before: int, after: int
) -> list[bytes]:
    """The row among those of its project that came just before and after it, from old to new. Raises NotFound."""
    key = key_of(observation_id)
    head = store.row_index.rows.get(key)
    if head is None or not is_within(scope, head):
        raise no_such(OBSERVATIONS)
    beside = [
        k for k in store.row_index.dependents.get(head.parents[0], ()) if k.startswith(f"{OBSERVATIONS}/")
    ]
    order = await sort_by_time(store, [k for k in beside if store.is_live(k)])
    if key not in order:
        raise no_such(OBSERVATIONS)
    at = order.index(key)
    around = order[max(0, at - before) : at + after + 1]
    bodies = await store.read_bodies(around)
    return [bodies[k] for k in around if k in bodies and is_within(scope, store.row_index.rows.get(k))]


def pin(tx: Transaction, scope: MemoryScope, observation_id: str, pinned: bool, limits: Limits) -> Json:
    """Raises NotFound."""
    write_row.check_within(tx, scope, OBSERVATIONS, observation_id)
    return write_row.change_keeping_updated_at(tx, OBSERVATIONS, observation_id, {"pinned": pinned}, limits)
