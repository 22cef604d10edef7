"""Extract: what a turn says becomes entities, relationships, memories and proposed facts, by a language model.

The model is asked; then what it answered is stored, in one transaction with the end of the job and by ids that are
derived from what is stored. What cannot be stored now is kept with the job, and nobody is asked again; a crash in
between costs a question, and nothing is stored twice. Nothing that a person deleted comes back, and nothing that they
confirmed is touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import structlog

from vademecum.errors import ReplyNotJson
from vademecum.model import secrets
from vademecum.model.chat.answers import enters_prompts
from vademecum.model.memory import extraction, jobs
from vademecum.model.memory.extraction import ValidatedExtraction
from vademecum.model.memory.jobs import Job
from vademecum.model.memory.scope import InProject, MemoryPartition
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema import derived_ids
from vademecum.model.schema.collections import Json
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.model.text.tokenize import fold
from vademecum.services.memory.remember import (
    Memories,
    MemoryLookup,
    Statement,
    normalize_and_redact,
    store_extracted_memory,
)
from vademecum.services.memory.scope import find_session_home, is_within
from vademecum.services.sync import write_row
from vademecum.services.sync.batches import list_live_keys, read_batches

if TYPE_CHECKING:
    from vademecum.engines.llm.client import Endpoint

TEMPERATURE = 0.1
# The original has 200 for a list of entities; this reply also has relationships, memories and facts.
TOKENS = 1500
UNREADABLE = "The model's reply could not be read: there is no JSON in it. Another model may do better."


class _NewTurn(msgspec.Struct, rename="camel"):
    session_id: str
    user_message: str
    ai_response: str
    model: str = ""


class _Entity(msgspec.Struct):
    id: str
    name: str


class _Key(msgspec.Struct):
    key: str


_log = structlog.get_logger("vademecum.work")
_turn = msgspec.json.Decoder(_NewTurn)
_entity = msgspec.json.Decoder(_Entity)
_key = msgspec.json.Decoder(_Key)
_found = msgspec.json.Decoder(ValidatedExtraction)


@dataclass(frozen=True)
class Extraction:
    """`limits`: of an account. `longest_s`: of a reply."""

    users: UserStores
    endpoint: Endpoint
    limits: Callable[[str], Limits]
    memories: Memories
    longest_s: float

    async def work(self, user_id: str, job: Job) -> None:
        """Raises VademecumError when it is to be tried again."""
        found = _found.decode(job.found) if job.found else await self._ask(user_id, job)
        if found is None:
            return
        try:
            await self._store(user_id, job, found)
        except BaseException:  # also a stop
            await self._keep_answer(user_id, job, found)
            raise

    async def _ask(self, user_id: str, job: Job) -> ValidatedExtraction | None:
        """What the model has found; None if the turn is another by now. The file is not held open meanwhile."""
        async with self.users.open(user_id) as store:
            turn = await _read(store, job)
            if turn is None:
                await _drop(store, job)
                return None
            known = await _known(store, find_session_home(store.row_index.rows.get, turn.session_id))
        text = await asyncio.to_thread(extraction.turn_input, turn.user_message, turn.ai_response)
        return await self._found(text, [entity.name for entity in known]) if text else ValidatedExtraction()

    async def _keep_answer(self, user_id: str, job: Job, found: ValidatedExtraction) -> None:
        """With the job, if that is still under way. A failure here must not take the place of what led to it."""
        heard = jobs.with_answer(job, msgspec.json.encode(found).decode())
        try:
            async with self.users.open(user_id) as store:
                await store.write(lambda tx: tx.jobs.replace(job, heard))
        except Exception as error:
            _log.error("the model will be asked again", kind=job.kind, exc_info=error)

    async def _found(self, text: str, known: list[str]) -> ValidatedExtraction:
        reply = await self.endpoint.answer(
            extraction.system_prompt([secrets.redact(name) for name in known]),
            secrets.redact(text),
            TOKENS,
            temperature=TEMPERATURE,
            within_s=self.longest_s,
        )
        found = await asyncio.to_thread(extraction.parse_reply, reply)
        if found is None:
            raise ReplyNotJson(UNREADABLE)
        return _clean(found)

    async def _store(self, user_id: str, job: Job, found: ValidatedExtraction) -> None:
        said = await asyncio.to_thread(lambda: [normalize_and_redact(text) for text in found.memories])
        texts = [text for spoken, text in said if text and text == spoken]
        while not await self._stored(user_id, job, found, texts):
            pass  # the session went to another project meanwhile, or a backup took the file's place

    async def _stored(self, user_id: str, job: Job, found: ValidatedExtraction, texts: list[str]) -> bool:
        """False, and nothing was stored, if what was looked up is not of where the session is now."""
        async with self.users.open(user_id) as store:
            turn = await _read(store, job)
            if turn is None:
                await _drop(store, job)
                return True
            epoch, home = store.epoch, find_session_home(store.row_index.rows.get, turn.session_id)
        memories = await self.memories.look_up(user_id, home, texts, turn.session_id)
        async with self.users.open(user_id) as store:
            entities = await _known(store, home)
            facts = await _facts(store, {fact.key for fact in found.facts})
            keep = _Keep(self.limits(user_id), turn.session_id, epoch, home, entities, facts, memories)
            return await store.write(lambda tx: keep.all(tx, job, found))


@dataclass(frozen=True)
class _Keep:
    """Stores what was found. What was known of it, in this `epoch`, in the session's `home`: the latest entities; keys of
    the rows that have the facts' `key`s; each memory."""

    limits: Limits
    session_id: str
    epoch: str
    home: MemoryPartition
    entities: list[_Entity]
    facts: Mapping[str, list[str]]
    memories: list[MemoryLookup]

    def all(self, tx: Transaction, job: Job, found: ValidatedExtraction) -> bool:
        """And the job is done, or it is another's by now. False if the session has left `home`. Raises LimitReached: then
        nothing of it is stored."""
        if tx.meta.epoch != self.epoch or find_session_home(tx.head, self.session_id) != self.home:
            return False
        if not tx.jobs.replace(job, jobs.complete(job)):
            return True
        if isinstance(self.home, InProject):
            self._entities(tx, self.home, found)
        for memory in self.memories:
            said = Statement(memory.text, self.session_id, source="extracted")
            store_extracted_memory(tx, said, memory, self.limits)
        for fact in found.facts:
            self._propose(tx, fact)
        return True

    def _entities(self, tx: Transaction, home: InProject, found: ValidatedExtraction) -> None:
        ids = {fold(entity.name): entity.id for entity in self.entities}
        for entity in found.entities:
            row_id = derived_ids.entity_id(home.project_id, entity.type, entity.name)
            ids[fold(entity.name)] = row_id
            fields = {"name": entity.name, "type": entity.type, "projectId": home.project_id}
            fields |= {"notes": entity.notes} if entity.notes else {}
            self._put(tx, "entities", row_id, fields, fills="notes")
        for one in found.relationships:
            ends = [ids.get(fold(name)) for name in (one.source, one.target)]
            source, target = ends
            if source is None or target is None or source == target:
                continue
            # A device may have given the id of one entity to another one, of another project.
            keys = [f"entities/{end}" for end in ends]
            if all(tx.row_state(key) == "live" and is_within(home, tx.head(key)) for key in keys):
                row_id = derived_ids.relationship_id(source, target, one.label)
                fields = {"fromId": source, "toId": target, "label": one.label}
                self._put(tx, "relationships", row_id, fields)

    def _propose(self, tx: Transaction, fact: extraction.Fact) -> None:
        """A fact for a person to confirm, unless they have confirmed one with this key. Another value is another proposal,
        under an id of its own, so that one that was deleted is not made again."""
        known = [tx.row(key) for key in self.facts.get(fact.key, ()) if tx.row_state(key) == "live"]
        if any(row["confirmed"] or fold(row["value"]) == fold(fact.value) for row in known):
            return
        row_id = derived_ids.fact_id(tx.meta.id_key, fact.key, fold(fact.value))
        said = {"key": fact.key, "value": fact.value, "confidence": fact.confidence}
        self._put(tx, "facts", row_id, {**said, "confirmed": False, "sourceRemoved": False})

    def _put(self, tx: Transaction, collection: str, row_id: str, fields: Json, fills: str = "") -> None:
        """A row under a derived id, if there is none; of a live one without the field `fills`, that field."""
        key = f"{collection}/{row_id}"
        if tx.head(key) is None:
            write_row.add(tx, collection, fields, self.limits, row_id)
        elif fills in fields and tx.row_state(key) == "live" and not tx.row(key).get(fills):
            write_row.change(tx, collection, row_id, {fills: fields[fills]}, self.limits)


def _clean(found: ValidatedExtraction) -> ValidatedExtraction:
    """What holds one is left out; of notes, the secret alone."""

    def clean(*texts: str) -> bool:
        return not secrets.find(": ".join(texts))

    return ValidatedExtraction(
        [
            msgspec.structs.replace(entity, notes=secrets.redact(entity.notes))
            for entity in found.entities
            if clean(entity.name)
        ],
        [one for one in found.relationships if clean(one.source, one.label, one.target)],
        [text for text in found.memories if clean(text)],
        [fact for fact in found.facts if clean(fact.key, fact.value)],
    )


async def _read(store: UserStore, job: Job) -> _NewTurn | None:
    """Return the turn if it is still what the job is about and a model may read it."""
    body = (await store.read_bodies([job.subject])).get(job.subject)
    if body is None or not store.is_live(job.subject):
        return None
    turn = _turn.decode(body)
    if not enters_prompts(turn.model, turn.ai_response):
        return None
    return turn if jobs.digest(turn.user_message, turn.ai_response) == job.text else None


async def _drop(store: UserStore, job: Job) -> None:
    """Its text is no more. A new one causes a job of its own when it is whole."""
    await store.write(lambda tx: tx.jobs.replace(job, None))


async def _known(store: UserStore, home: MemoryPartition) -> list[_Entity]:
    """The latest entities of the project; the pool has none."""
    if not isinstance(home, InProject):
        return []
    heads = store.row_index.rows
    named = store.row_index.dependents.get(f"projects/{home.project_id}", ())
    keys = sorted((k for k in named if k.startswith("entities/")), key=lambda k: heads[k].seq, reverse=True)
    bodies = await store.read_bodies(keys[: extraction.KNOWN_MAX])
    return [_entity.decode(body) for body in bodies.values()]


async def _facts(store: UserStore, wanted: set[str]) -> dict[str, list[str]]:
    """`key` of a fact -> keys of the rows that have it, of those wanted."""
    found: dict[str, list[str]] = {}
    async for portion in read_batches(store, await list_live_keys(store, "facts") if wanted else ()):
        for key, name in await asyncio.to_thread(_keys_of, portion):
            if name in wanted:
                found.setdefault(name, []).append(key)
    return found


def _keys_of(portion: Iterable[tuple[str, bytes]]) -> list[tuple[str, str]]:
    return [(key, _key.decode(body).key) for key, body in portion]
