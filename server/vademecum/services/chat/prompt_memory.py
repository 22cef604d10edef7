"""Select the rows of memory that enter the prompt of a question.

The session's summary and its project's overview come first, then the results of a memory search in the session's scope.
Each line names its date and session. A question waits for memory only for a bounded time and never fails because of it:
if the search is too slow or fails, the prompt has no results and the user gets a notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import structlog

from vademecum.errors import VademecumError
from vademecum.model import secrets
from vademecum.model.chat.prompt import RecalledMemory
from vademecum.model.memory.indexable_text import Kind, kind_of
from vademecum.model.memory.scope import PROJECTS, SESSIONS, InProject, MemoryPartition, sees
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.services.memory.recall import Recall, Recollection
from vademecum.services.memory.scope import find_project_id
from vademecum.services.sync.batches import list_live_children

KINDS: frozenset[Kind] = frozenset({"episodes", "memories", "entities"})
MAX_ROWS = 20  # the number of rows to recall; further rows would match the question less well
SEARCH_TIMEOUT_S = 2.0  # time limit for the search itself, after the wait for the index
TIMEOUT_NOTICE = "The memory search took too long, so the prompt contains no memories."
_log = structlog.get_logger("vademecum.remind")

TurnPosition = tuple[str, str]  # the creation time of a turn, and its id


class Source(msgspec.Struct, frozen=True):
    """A row of memory that is in the prompt."""

    kind: Kind
    id: str


class MemoryQuery(NamedTuple):
    """A question and the project or pool of its session.

    `end`: the turn that is being answered; this and later turns of the session are not recalled.
    """

    query: str
    session_id: str
    partition: MemoryPartition
    end: TurnPosition | None


class PromptMemoryResult(NamedTuple):
    lines: Sequence[RecalledMemory]
    notice: str | None = None


class _Container(msgspec.Struct):
    """A session or a project."""

    title: str = ""
    name: str = ""


class _Summary(msgspec.Struct, rename="camel"):
    id: str
    updated_at: str
    content: str


_container = msgspec.json.Decoder(_Container)
_summary = msgspec.json.Decoder(_Summary)


class PromptMemory:
    """Searches memory for prompts. `wait_s`: the longest wait for the index, in seconds."""

    def __init__(self, users: UserStores, recall: Recall, wait_s: float) -> None:
        self._users = users
        self._recall = recall
        self._longest_s = wait_s + SEARCH_TIMEOUT_S

    async def recall_for_prompt(self, user_id: str, memory_query: MemoryQuery) -> PromptMemoryResult:
        """Return the memory lines for the prompt. Raises no errors except CancelledError."""
        try:
            async with asyncio.timeout(self._longest_s):
                return PromptMemoryResult(await self._search(user_id, memory_query))
        except (TimeoutError, VademecumError):
            _log.warning("nothing recalled")
        except Exception as error:  # an answer without memory is better than no answer
            _log.error("defect", exc_info=error)
        return PromptMemoryResult([], TIMEOUT_NOTICE)

    async def _search(self, user_id: str, memory_query: MemoryQuery) -> list[RecalledMemory]:
        found = await self._recall.search(
            user_id, memory_query.partition, memory_query.query, KINDS, MAX_ROWS, for_prompt=True
        )
        found = [one for one in found if not _is_after_question(one, memory_query)]
        async with self._users.open(user_id) as store:
            places = [_container_key(store, memory_query.partition, one) for one in found]
            names = await _read_labels(store, places)
        called = [names.get(place, "memory") for place in places]
        return await asyncio.to_thread(lambda: list(map(_prompt_line, found, called)))


async def read_summaries(
    store: UserStore, session_id: str, partition: MemoryPartition
) -> list[RecalledMemory]:
    """Return the newest summary of the session, then the newest overview of its project."""
    places = [
        SESSIONS + session_id,
        *([PROJECTS + partition.project_id] if isinstance(partition, InProject) else []),
    ]
    names = await _read_labels(store, places)
    found: list[RecalledMemory] = []
    for place in places:
        keys = [
            key
            for key in list_live_children(store, place, "summaries")
            if store.row_index.rows[key].parents[0] == place
        ]
        newest = max(keys, key=lambda key: store.row_index.rows[key].seq, default="")
        body = (await store.read_bodies([newest])).get(newest)
        if body is not None and place in names:
            row = _summary.decode(body)
            found.append(RecalledMemory(newest, row.updated_at[:10], names[place], row.content))
    return found


def parse_source(key: str) -> Source:
    """Return the source of a prompt line from the line's id, which is the key of its row."""
    return Source(msgspec.convert(kind_of(key), Kind), key.partition("/")[2])


def _is_after_question(one: Recollection, memory_query: MemoryQuery) -> bool:
    """Return whether the row is the turn being answered, or a later turn of its session."""
    if one.session_id != memory_query.session_id or memory_query.end is None:
        return False
    return (one.created_at, one.id) >= memory_query.end


def _container_key(store: UserStore, partition: MemoryPartition, one: Recollection) -> str:
    """Return the key of the row's session or, if no session is visible, of its project.

    A memory's session may have moved to another project, and a prompt of this scope must not name that session.
    """
    if one.session_id is not None:
        return SESSIONS + one.session_id
    head = store.row_index.rows.get(f"{one.kind}/{one.id}")
    sessions = [name for name in head.references if name.startswith(SESSIONS)] if head is not None else []
    visible_sessions = [name for name in sessions if _is_within(store, partition, name)]
    return visible_sessions[-1] if visible_sessions else PROJECTS + (one.project_id or "")


def _is_within(store: UserStore, partition: MemoryPartition, session: str) -> bool:
    return store.is_live(session) and sees(
        partition, find_project_id(store.row_index.rows[session].references)
    )


async def _read_labels(store: UserStore, places: Iterable[str]) -> Mapping[str, str]:
    """Map the keys of the live sessions and projects among `places` to their labels in a prompt."""
    bodies = await store.read_bodies(list(dict.fromkeys(place for place in places if store.is_live(place))))
    return {place: _label(place, _container.decode(body)) for place, body in bodies.items()}


def _label(place: str, container: _Container) -> str:
    if not place.startswith(SESSIONS):
        return f'project "{container.name}"'
    return f'session "{container.title}"' if container.title else "untitled session"


def _prompt_line(one: Recollection, place: str) -> RecalledMemory:
    """Return a row as a prompt line. Secrets are redacted, because a device may have stored them in another session."""
    turn = one.id if one.kind == "episodes" else None
    text, label = secrets.redact(one.text), secrets.redact(place)
    return RecalledMemory(f"{one.kind}/{one.id}", one.updated_at[:10], label, text, turn)
