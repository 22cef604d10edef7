"""Extract entities, relationships, memories and proposed facts from a turn, with a language model.

One transaction stores the rows from the model's reply and completes the job. Row ids are derived from the content, so
nothing is stored twice. If the rows cannot be stored now, the job keeps the reply as its pending answer, and the model
is not asked again. After a crash before the reply is stored, the request is repeated. Extraction never restores rows
that the user deleted and never changes confirmed facts.
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
from vademecum.services.sync import row_operations
from vademecum.services.sync.batches import list_live_keys, read_batches

if TYPE_CHECKING:
    from vademecum.engines.llm.client import Endpoint

TEMPERATURE = 0.1
# In tokens: enough for entities, relationships, memories and facts. docs/original-descriptions.md lists the original's
# 200 tokens, which cut the reply off.
MAX_REPLY_TOKENS = 1500
UNREADABLE = (
    "The model's reply could not be read, because it contains no JSON. Another model may work better."
)


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
_decode_extraction = msgspec.json.Decoder(ValidatedExtraction)


@dataclass(frozen=True)
class Extraction:
    """Runs extraction jobs. `limits`: returns the limits of an account. `timeout_s`: the longest time for a reply."""

    users: UserStores
    endpoint: Endpoint
    limits: Callable[[str], Limits]
    memories: Memories
    timeout_s: float

    async def work(self, user_id: str, job: Job) -> None:
        """Run a job. Raises VademecumError if it should be retried."""
        found = _decode_extraction.decode(job.found) if job.found else await self._ask_model(user_id, job)
        if found is None:
            return
        try:
            await self._store_extraction(user_id, job, found)
        except BaseException:  # also CancelledError, to keep the answer if a server stop cancels the job
            await self._store_answer(user_id, job, found)
            raise

    async def _ask_model(self, user_id: str, job: Job) -> ValidatedExtraction | None:
        """Ask the model. Return None if the turn has changed. The user's file is closed during the request."""
        async with self.users.open(user_id) as store:
            turn = await _read_turn(store, job)
            if turn is None:
                await _delete_job(store, job)
                return None
            entity_names = await _latest_entities(
                store, find_session_home(store.row_index.rows.get, turn.session_id)
            )
        text = await asyncio.to_thread(extraction.turn_input, turn.user_message, turn.ai_response)
        return (
            await self._request(text, [entity.name for entity in entity_names])
            if text
            else ValidatedExtraction()
        )

    async def _store_answer(self, user_id: str, job: Job, found: ValidatedExtraction) -> None:
        """Store the pending answer in the job, unless the job has changed.

        An error here is only logged, so that it does not hide the error that prevented storing the rows.
        """
        job_with_answer = jobs.with_answer(job, msgspec.json.encode(found).decode())
        try:
            async with self.users.open(user_id) as store:
                await store.write(lambda tx: tx.jobs.replace(job, job_with_answer))
        except Exception as error:
            _log.error("the model will be asked again", kind=job.kind, exc_info=error)

    async def _request(self, text: str, entity_names: list[str]) -> ValidatedExtraction:
        reply = await self.endpoint.answer(
            extraction.system_prompt([secrets.redact(name) for name in entity_names]),
            secrets.redact(text),
            MAX_REPLY_TOKENS,
            temperature=TEMPERATURE,
            within_s=self.timeout_s,
        )
        found = await asyncio.to_thread(extraction.parse_reply, reply)
        if found is None:
            raise ReplyNotJson(UNREADABLE)
        return _without_secrets(found)

    async def _store_extraction(self, user_id: str, job: Job, found: ValidatedExtraction) -> None:
        normalized = await asyncio.to_thread(lambda: [normalize_and_redact(text) for text in found.memories])
        texts = [text for spoken, text in normalized if text and text == spoken]
        while not await self._try_store(user_id, job, found, texts):
            pass  # try again: the session has changed project, or the account was restored

    async def _try_store(self, user_id: str, job: Job, found: ValidatedExtraction, texts: list[str]) -> bool:
        """Return False, storing nothing, if the session has changed project since the lookup."""
        async with self.users.open(user_id) as store:
            turn = await _read_turn(store, job)
            if turn is None:
                await _delete_job(store, job)
                return True
            epoch, partition = store.epoch, find_session_home(store.row_index.rows.get, turn.session_id)
        memories = await self.memories.look_up(user_id, partition, texts, turn.session_id)
        async with self.users.open(user_id) as store:
            entities = await _latest_entities(store, partition)
            facts = await _find_facts(store, {fact.key for fact in found.facts})
            writer = _ExtractionWriter(
                self.limits(user_id), turn.session_id, epoch, partition, entities, facts, memories
            )
            return await store.write(lambda tx: writer.write(tx, job, found))


@dataclass(frozen=True)
class _ExtractionWriter:
    """Stores an extraction, using rows that were looked up before the transaction.

    `entities`: the latest entities of the `partition`. `facts`: maps the `key` field of facts to the row keys of all
    facts with it. `memories`: the lookups of the extracted memories.
    """

    limits: Limits
    session_id: str
    epoch: str
    partition: MemoryPartition
    entities: list[_Entity]
    facts: Mapping[str, list[str]]
    memories: list[MemoryLookup]

    def write(self, tx: Transaction, job: Job, found: ValidatedExtraction) -> bool:
        """Store everything and complete the job, unless the job has changed.

        Return False, storing nothing, if the session has left the partition. Raises LimitReached, storing nothing.
        """
        if tx.meta.epoch != self.epoch or find_session_home(tx.head, self.session_id) != self.partition:
            return False
        if not tx.jobs.replace(job, jobs.complete(job)):
            return True
        if isinstance(self.partition, InProject):
            self._entities(tx, self.partition, found)
        for memory in self.memories:
            statement = Statement(memory.text, self.session_id, source="extracted")
            store_extracted_memory(tx, statement, memory, self.limits)
        for fact in found.facts:
            self._propose_fact(tx, fact)
        return True

    def _entities(self, tx: Transaction, partition: InProject, found: ValidatedExtraction) -> None:
        ids = {fold(entity.name): entity.id for entity in self.entities}
        for entity in found.entities:
            row_id = derived_ids.entity_id(partition.project_id, entity.type, entity.name)
            ids[fold(entity.name)] = row_id
            fields = {"name": entity.name, "type": entity.type, "projectId": partition.project_id}
            fields |= {"notes": entity.notes} if entity.notes else {}
            self._put_row(tx, "entities", row_id, fields, fills="notes")
        for one in found.relationships:
            ends = [ids.get(fold(name)) for name in (one.source, one.target)]
            source, target = ends
            if source is None or target is None or source == target:
                continue
            # Check the project, because a device may have written an entity of another project under this id.
            keys = [f"entities/{end}" for end in ends]
            if all(tx.row_state(key) == "live" and is_within(partition, tx.head(key)) for key in keys):
                row_id = derived_ids.relationship_id(source, target, one.label)
                fields = {"fromId": source, "toId": target, "label": one.label}
                self._put_row(tx, "relationships", row_id, fields)

    def _propose_fact(self, tx: Transaction, fact: extraction.Fact) -> None:
        """Propose a fact, unless the user has confirmed one with this key.

        Each value has its own id, so a proposal that the user deleted is not repeated.
        """
        facts_with_key = [tx.row(key) for key in self.facts.get(fact.key, ()) if tx.row_state(key) == "live"]
        if any(row["confirmed"] or fold(row["value"]) == fold(fact.value) for row in facts_with_key):
            return
        row_id = derived_ids.fact_id(tx.meta.id_key, fact.key, fold(fact.value))
        fields = {"key": fact.key, "value": fact.value, "confidence": fact.confidence}
        self._put_row(tx, "facts", row_id, {**fields, "confirmed": False, "sourceRemoved": False})

    def _put_row(self, tx: Transaction, collection: str, row_id: str, fields: Json, fills: str = "") -> None:
        """Add a row under a derived id, or set the field `fills` of a live row that lacks it."""
        key = f"{collection}/{row_id}"
        if tx.head(key) is None:
            row_operations.add(tx, collection, fields, self.limits, row_id)
        elif fills in fields and tx.row_state(key) == "live" and not tx.row(key).get(fills):
            row_operations.change(tx, collection, row_id, {fills: fields[fills]}, self.limits)


def _without_secrets(found: ValidatedExtraction) -> ValidatedExtraction:
    """Drop everything that contains a secret. In notes only the secret is redacted."""

    def is_clean(*texts: str) -> bool:
        return not secrets.find(": ".join(texts))

    return ValidatedExtraction(
        [
            msgspec.structs.replace(entity, notes=secrets.redact(entity.notes))
            for entity in found.entities
            if is_clean(entity.name)
        ],
        [one for one in found.relationships if is_clean(one.source, one.label, one.target)],
        [text for text in found.memories if is_clean(text)],
        [fact for fact in found.facts if is_clean(fact.key, fact.value)],
    )


async def _read_turn(store: UserStore, job: Job) -> _NewTurn | None:
    """Return the turn of a job, or None if it was deleted or changed, or if a model must not read it."""
    body = (await store.read_bodies([job.subject])).get(job.subject)
    if body is None or not store.is_live(job.subject):
        return None
    turn = _turn.decode(body)
    if not enters_prompts(turn.model, turn.ai_response):
        return None
    return turn if jobs.digest(turn.user_message, turn.ai_response) == job.text else None


async def _delete_job(store: UserStore, job: Job) -> None:
    """Delete the job of a changed turn. The new text gets its own job when the turn is finished."""
    await store.write(lambda tx: tx.jobs.replace(job, None))


async def _latest_entities(store: UserStore, partition: MemoryPartition) -> list[_Entity]:
    """Return the latest entities of the project. Sessions without a project have none."""
    if not isinstance(partition, InProject):
        return []
    heads = store.row_index.rows
    dependents = store.row_index.dependents.get(f"projects/{partition.project_id}", ())
    keys = sorted(
        (k for k in dependents if k.startswith("entities/")), key=lambda k: heads[k].seq, reverse=True
    )
    bodies = await store.read_bodies(keys[: extraction.KNOWN_MAX])
    return [_entity.decode(body) for body in bodies.values()]


async def _find_facts(store: UserStore, fact_keys: set[str]) -> dict[str, list[str]]:
    """Map each `key` field in `fact_keys` to the row keys of all facts with it."""
    found: dict[str, list[str]] = {}
    async for batch in read_batches(store, await list_live_keys(store, "facts") if fact_keys else ()):
        for key, name in await asyncio.to_thread(_fact_keys, batch):
            if name in fact_keys:
                found.setdefault(name, []).append(key)
    return found


def _fact_keys(batch: Iterable[tuple[str, bytes]]) -> list[tuple[str, str]]:
    return [(key, _key.decode(body).key) for key, body in batch]
