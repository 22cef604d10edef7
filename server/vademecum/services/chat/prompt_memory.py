"""Remind: what memory has for a question, as lines of its prompt.

The session's own summary and its project's overview come first, then what recall finds where the session is at home.
Each line says when and in which session it was said. A question never waits for memory longer than a search waits for
its index, and never fails with it: what is not recalled in time is missing, and the person is told so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import structlog

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.engines.duckdb.user_stores import UserStores
from vademecum.errors import VademecumError
from vademecum.model import secrets
from vademecum.model.chat.prompt import Recalled
from vademecum.model.memory.indexable_text import Kind, kind_of
from vademecum.model.memory.scope import PROJECTS, SESSIONS, Home, InProject, sees
from vademecum.services.memory.recall import Recall, Recollection
from vademecum.services.memory.scope import find_project_id
from vademecum.services.sync.batches import list_live_children

KINDS: frozenset[Kind] = frozenset({"episodes", "memories", "entities"})
MOST = 20  # of one question; more would crowd out each other, not fit better
READING_S = 2.0  # for what an index has, once it has been waited for
NOTICE = "What is remembered could not be looked up in time: the context was made without it."
_log = structlog.get_logger("vademecum.remind")

TurnPosition = tuple[str, str]  # of a turn: when it was begun, and its id


class Source(msgspec.Struct, frozen=True):
    """A row of memory that is in the prompt."""

    kind: Kind
    id: str


class MemoryQuery(NamedTuple):
    """A question, and where its session is at home. `end`: the turn that is being answered; what the session said from
    then on is not recalled."""

    query: str
    session_id: str
    home: Home
    end: TurnPosition | None


class PromptMemoryResult(NamedTuple):
    lines: Sequence[Recalled]
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
    """`wait_s`: the longest wait of a search for its index."""

    def __init__(self, users: UserStores, recall: Recall, wait_s: float) -> None:
        self._users = users
        self._recall = recall
        self._longest_s = wait_s + READING_S

    async def recall_for_prompt(self, user_id: str, asking: MemoryQuery) -> PromptMemoryResult:
        """Never raises but for being cancelled."""
        try:
            async with asyncio.timeout(self._longest_s):
                return PromptMemoryResult(await self._recalled(user_id, asking))
        except (TimeoutError, VademecumError):
            _log.warning("nothing recalled")
        except Exception as error:  # the answer is worth more than what memory adds to it
            _log.error("defect", exc_info=error)
        return PromptMemoryResult([], NOTICE)

    async def _recalled(self, user_id: str, asking: MemoryQuery) -> list[Recalled]:
        found = await self._recall.search(user_id, asking.home, asking.query, KINDS, MOST, for_prompt=True)
        found = [one for one in found if not _is_to_come(one, asking)]
        async with self._users.open(user_id) as store:
            places = [_place(store, asking.home, one) for one in found]
            names = await _names(store, places)
        called = [names.get(place, "memory") for place in places]
        return await asyncio.to_thread(lambda: list(map(_line, found, called)))


async def read_summaries(store: UserStore, session_id: str, home: Home) -> list[Recalled]:
    """The session's own summary, then its project's overview; of several the newest."""
    places = [SESSIONS + session_id, *([PROJECTS + home.project_id] if isinstance(home, InProject) else [])]
    names = await _names(store, places)
    found: list[Recalled] = []
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
            found.append(Recalled(newest, row.updated_at[:10], names[place], row.content))
    return found


def parse_source(key: str) -> Source:
    """The row that a line of the prompt is about: its id is the row's key."""
    return Source(msgspec.convert(kind_of(key), Kind), key.partition("/")[2])


def _is_to_come(one: Recollection, asking: MemoryQuery) -> bool:
    """Is it a turn of this conversation that comes after the question, or the question itself?"""
    if one.session_id != asking.session_id or asking.end is None:
        return False
    return (one.created_at, one.id) >= asking.end


def _place(store: UserStore, home: Home, one: Recollection) -> str:
    """The key of the session where it was said, or of the project. A memory's session may have moved: where it is now is
    no business of this scope."""
    if one.session_id is not None:
        return SESSIONS + one.session_id
    head = store.row_index.rows.get(f"{one.kind}/{one.id}")
    named = [name for name in head.references if name.startswith(SESSIONS)] if head is not None else []
    said_in = [name for name in named if _is_within(store, home, name)]
    return said_in[-1] if said_in else PROJECTS + (one.project_id or "")


def _is_within(store: UserStore, home: Home, session: str) -> bool:
    return store.is_live(session) and sees(home, find_project_id(store.row_index.rows[session].references))


async def _names(store: UserStore, places: Iterable[str]) -> Mapping[str, str]:
    """What each session or project is called in a prompt, of those that are there."""
    bodies = await store.read_bodies(list(dict.fromkeys(place for place in places if store.is_live(place))))
    return {place: _called(place, _named.decode(body)) for place, body in bodies.items()}


def _called(place: str, named: _Titled) -> str:
    return f'session "{named.title}"' if place.startswith(SESSIONS) else f'project "{named.name}"'


def _line(one: Recollection, place: str) -> Recalled:
    """Without secrets: a device may have stored some, and another conversation is not where they were told."""
    turn = one.id if one.kind == "episodes" else None
    said, where = secrets.redact(one.text), secrets.redact(place)
    return Recalled(f"{one.kind}/{one.id}", one.updated_at[:10], where, said, turn)
