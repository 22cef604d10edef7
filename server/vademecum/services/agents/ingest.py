"""Store events of agents as observations, each once, and list, read, pin and delete observations within a scope.

The ids of ingested events are written in the transaction that writes the rows. So an event that is sent again after a
crash is recognized and ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from vademecum.errors import LimitReached, no_such
from vademecum.model import secrets
from vademecum.model.agents.observations import CONTENT_MAX, Event, add_event
from vademecum.model.memory.scope import MemoryScope
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema import derived_ids
from vademecum.model.schema.collections import PATH_MAX, Json
from vademecum.model.sync.quotas import Limits, check_quota
from vademecum.model.sync.transaction import Transaction
from vademecum.services.agents import folder_check, project_claims
from vademecum.services.memory.scope import is_within, list_scoped_keys
from vademecum.services.sync import row_operations
from vademecum.services.sync.pagination import ListEntry, Page, PageRequest, list_newest, sort_by_time

OBSERVATIONS = "observations"
NAME_MAX = 255  # maximum length in characters of a session's name and of a tool's name


class FoundRows(msgspec.Struct, frozen=True):
    """Stored rows, and the ids without a visible row."""

    rows: list[bytes]
    missing: list[str]


def observation_key(observation_id: str) -> str:
    return f"{OBSERVATIONS}/{observation_id}"


def redact_event(event: Event) -> Event:
    """Hide secrets that the sender has not hidden."""
    content, in_content = secrets.hide(event.content, CONTENT_MAX)
    path, in_path = secrets.hide_in_path(event.path or "", PATH_MAX)
    session, in_session = secrets.hide_in_path(event.session, NAME_MAX)
    tool, in_tool = secrets.hide(event.tool or "", NAME_MAX)
    return msgspec.structs.replace(
        event,
        content=content[:CONTENT_MAX],
        path=path[:PATH_MAX] or None,
        session=session[:NAME_MAX],
        tool=tool[:NAME_MAX] or None,
        redactions=event.redactions + in_content + in_path + in_session + in_tool,
    )


async def ingest_events(
    users: UserStores,
    user_id: str,
    events: Sequence[Event],
    limits: Limits,
    access: folder_check.FolderAccess,
) -> int:
    """Store events in one transaction. Return the number of new events. Raises LimitReached, storing none of them."""
    redacted = await asyncio.to_thread(lambda: [redact_event(event) for event in events])
    async with users.open(user_id) as store:
        access = await project_claims.check_folders(store, access, (event.project for event in redacted))
        return await store.write(lambda tx: store_events(tx, redacted, limits, access))


def store_events(
    tx: Transaction, events: Sequence[Event], limits: Limits, access: folder_check.FolderAccess
) -> int:
    """Store redacted events within a transaction, as `ingest_events` does."""
    ingested = tx.ingested_events.find([event.id for event in events])
    new_by_id: dict[str, Event] = {}
    for event in events:
        if event.id not in ingested:
            # Limit the time to now. Otherwise an event from a fast clock would count as the newest for a long time.
            new_by_id.setdefault(event.id, msgspec.structs.replace(event, at=min(event.at, tx.now)))
    claims = project_claims.Claims(tx, limits, access)
    # Drop events from before the user forgot everything. Their ids need not be stored, because they are always dropped.
    new_events = [event for event in new_by_id.values() if event.at > tx.meta.forgotten_at]
    for event in sorted(new_events, key=lambda event: (event.at, event.id)):
        _store_event(tx, event, claims.resolve_project(event.project), limits)
    tx.ingested_events.added_ids += [event.id for event in new_events]
    return len(new_events)


def _store_event(tx: Transaction, event: Event, project_id: str, limits: Limits) -> None:
    dedup_key = derived_ids.dedup_key(event.path, event.content)
    row_id = derived_ids.observation_id(tx.meta.id_key, project_id, event.session, event.kind, dedup_key)
    key = observation_key(row_id)
    before = tx.row(key) if tx.row_state(key) == "live" else None
    put_observation(tx, before, add_event(before, event, row_id, project_id), limits)


def put_observation(tx: Transaction, before: Json | None, row: Json, limits: Limits) -> None:
    """Store the observation `row` in place of `before`. Raises LimitReached if `row` exceeds the account's limits."""
    key, body = observation_key(row["id"]), msgspec.json.encode(row)
    growth = tx.measure_growth(key, row, body)
    violation = check_quota(OBSERVATIONS, before, row, growth, len(body), tx.totals.usage, limits)
    if violation is not None:
        raise LimitReached(violation.message_for_api, code=violation.code)
    # After a repetition with the same content, there is no old text to erase from the disk.
    same_text = before is not None and before["content"] == row["content"]
    tx.put(key, row, body, same_text=same_text)


async def list_observations(
    store: UserStore, scope: MemoryScope, page: PageRequest, matches: Callable[[ListEntry], bool]
) -> Page:
    return await list_newest(store, await list_scoped_keys(store, scope, OBSERVATIONS), page, matches)


async def read_observations(store: UserStore, scope: MemoryScope, ids: Sequence[str]) -> FoundRows:
    """Return the rows in the requested order. Ids outside the scope are reported as missing, like unknown ids."""
    heads = store.row_index.rows
    keys = {i: observation_key(i) for i in dict.fromkeys(ids)}
    visible = [i for i, key in keys.items() if is_within(scope, heads.get(key))]
    bodies = await store.read_bodies([keys[i] for i in visible])
    found = {
        i: bodies[keys[i]] for i in visible if keys[i] in bodies and is_within(scope, heads.get(keys[i]))
    }
    return FoundRows(list(found.values()), [i for i in keys if i not in found])


async def read_timeline(
    store: UserStore, scope: MemoryScope, observation_id: str, before: int, after: int
) -> list[bytes]:
    """Return an observation with its neighbors in the project, oldest first.

    Raises NotFound if it is not in the scope.
    """
    key = observation_key(observation_id)
    head = store.row_index.rows.get(key)
    if head is None or not is_within(scope, head):
        raise no_such(OBSERVATIONS)
    siblings = store.row_index.dependents.get(head.parents[0], ())
    keys = [k for k in siblings if k.startswith(f"{OBSERVATIONS}/") and store.is_live(k)]
    ordered = await sort_by_time(store, keys)
    if key not in ordered:
        raise no_such(OBSERVATIONS)
    position = ordered.index(key)
    window = ordered[max(0, position - before) : position + after + 1]
    bodies = await store.read_bodies(window)
    return [bodies[k] for k in window if k in bodies and is_within(scope, store.row_index.rows.get(k))]


def set_pinned(
    tx: Transaction, scope: MemoryScope, observation_id: str, pinned: bool, limits: Limits
) -> Json:
    """Pin or unpin an observation. Return its row. Raises NotFound for an observation outside the scope."""
    row_operations.check_within(tx, scope, OBSERVATIONS, observation_id)
    return row_operations.change_keeping_updated_at(
        tx, OBSERVATIONS, observation_id, {"pinned": pinned}, limits
    )
