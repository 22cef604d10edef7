"""Select the rows of memory that enter the prompt of a question.

The session's summary and its project's overview come first, then the results of a memory search in the session's scope.
Each line names its date and session. A question waits for memory only for a bounded time and never fails because of it:
if the search is late or fails, the prompt has no results and the user gets a notice.
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
MOST = 20  # rows per question; more rows would not match better
READING_S = 2.0  # seconds for the search itself, after the wait for the index
NOTICE = "What is remembered could not be looked up in time: the context was made without it."
_log = structlog.get_logger("vademecum.remind")

TurnPosition = tuple[str, str]  # of a turn: when it was begun, and its id


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
    home: MemoryPartition
    end: TurnPosition | None


class PromptMemoryResult(NamedTuple):
    lines: Sequence[RecalledMemory]
    notice: str | None = None


class _Titled(msgspec.Struct):
    """A session or a project."""

    title: str = ""
    name: str = ""


class _ToldSummary(msgspec.Struct, rename="camel"):
    id: str
    updated_at: str
    content: str


_named = msgspec.json.Decoder(_Titled)
_summary = msgspec.json.Decoder(_ToldSummary)


class PromptMemory:
    """Searches memory for prompts. `wait_s`: the longest wait for the index, in seconds."""

    def __init__(self, users: UserStores, recall: Recall, wait_s: float) -> None:
        self._users = users
        self._recall = recall
        self._longest_s = wait_s + READING_S

    async def recall_for_prompt(self, user_id: str, asking: MemoryQuery) -> PromptMemoryResult:
        """Return the lines for the prompt. Raises only CancelledError."""
        try:
            async with asyncio.timeout(self._longest_s):
                return PromptMemoryResult(await self._recalled(user_id, asking))
        except (TimeoutError, VademecumError):
            _log.warning("nothing recalled")
        except Exception as error:  # an answer without memory is better than no answer
            _log.error("defect", exc_info=error)
        return PromptMemoryResult([], NOTICE)

    async def _recalled(self, user_id: str, asking: MemoryQuery) -> list[RecalledMemory]:
        found = await self._recall.search(user_id, asking.home, asking.query, KINDS, MOST, for_prompt=True)
        found = [one for one in found if not _is_to_come(one, asking)]
        async with self._users.open(user_id) as store:
            places = [_place(store, asking.home, one) for one in found]
            names = await _names(store, places)
        called = [names.get(place, "memory") for place in places]
        return await asyncio.to_thread(lambda: list(map(_line, found, called)))


async def read_summaries(store: UserStore, session_id: str, home: MemoryPartition) -> list[RecalledMemory]:
    """Return the newest summary of the session, then the newest overview of its project."""
    places = [SESSIONS + session_id, *([PROJECTS + home.project_id] if isinstance(home, InProject) else [])]
    names = await _names(store, places)
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
    """Return the source of a prompt line, whose id is the key of its row."""
    return Source(msgspec.convert(kind_of(key), Kind), key.partition("/")[2])


def _is_to_come(one: Recollection, asking: MemoryQuery) -> bool:
    """Return whether the row is the turn being answered, or a later turn of its session."""
    if one.session_id != asking.session_id or asking.end is None:
        return False
    return (one.created_at, one.id) >= asking.end


def _place(store: UserStore, home: MemoryPartition, one: Recollection) -> str:
    """Return the key of the row's session, or of its project.

    A memory's session may have moved to another project. This scope must not reveal it, so it is skipped.
    """
    if one.session_id is not None:
        return SESSIONS + one.session_id
    head = store.row_index.rows.get(f"{one.kind}/{one.id}")
    named = [name for name in head.references if name.startswith(SESSIONS)] if head is not None else []
    said_in = [name for name in named if _is_within(store, home, name)]
    return said_in[-1] if said_in else PROJECTS + (one.project_id or "")


def _is_within(store: UserStore, home: MemoryPartition, session: str) -> bool:
    return store.is_live(session) and sees(home, find_project_id(store.row_index.rows[session].references))


async def _names(store: UserStore, places: Iterable[str]) -> Mapping[str, str]:
    """Return the label of each live session or project in a prompt."""
    bodies = await store.read_bodies(list(dict.fromkeys(place for place in places if store.is_live(place))))
    return {place: _called(place, _named.decode(body)) for place, body in bodies.items()}


def _called(place: str, named: _Titled) -> str:
    return f'session "{named.title}"' if place.startswith(SESSIONS) else f'project "{named.name}"'


def _line(one: Recollection, place: str) -> RecalledMemory:
    """Return a row as a prompt line, with secrets redacted: a device may have stored some in another session."""
    turn = one.id if one.kind == "episodes" else None
    said, where = secrets.redact(one.text), secrets.redact(place)
    return RecalledMemory(f"{one.kind}/{one.id}", one.updated_at[:10], where, said, turn)
