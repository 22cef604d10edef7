"""Summarize a session from its turns, and a project from its sessions' summaries or, without any, from their turns.

A session has one summary and a project has one overview. A new text replaces the old text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

import msgspec

from vademecum.errors import NoAssistant, NotFound, NothingToSummarise, VademecumError
from vademecum.model import secrets
from vademecum.model.chat.answers import enters_prompts
from vademecum.model.memory import jobs, summary_input
from vademecum.model.memory.jobs import Job
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema.collections import Json
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.services.runtime.concurrency_limits import QuestionLimit
from vademecum.services.runtime.llm_worker import unasked
from vademecum.services.sync import row_operations
from vademecum.services.sync.batches import read_batches

if TYPE_CHECKING:
    from vademecum.engines.llm.client import Endpoint

# Both values come from the original memory service (docs/original-descriptions.md). Like that service,
# model/memory/summary_input.py cuts the input to the newest 30,000 characters, so the number of episodes needs no
# limit.
TEMPERATURE = 0.2
MAX_REPLY_TOKENS = 1200
OWNER_FIELDS = {"sessions": "sessionId", "projects": "projectId"}
NO_MODEL = (
    "No assistant is set up on this server, and only a language model can write summaries. The administrator can set "
    "one up (VADEMECUM_ASSISTANT_URL)."
)


class _Turn(msgspec.Struct, rename="camel"):
    created_at: str
    user_message: str
    ai_response: str
    model: str = ""


class _Summary(msgspec.Struct, rename="camel"):
    created_at: str
    content: str


Row = TypeVar("Row", _Turn, _Summary)
_turn = msgspec.json.Decoder(_Turn)
_summary = msgspec.json.Decoder(_Summary)


@dataclass(frozen=True)
class Summaries:
    """Writes summaries with the language model.

    `timeout_s`: the longest time for a reply. `schedule_again`: schedules a user's jobs after a delay in seconds.
    """

    users: UserStores
    endpoint: Endpoint | None
    limits: Callable[[str], Limits]
    timeout_s: float
    question_limit: QuestionLimit
    schedule_again: Callable[[str, float], None]

    async def summarize_now(self, user_id: str, subject: str) -> Json:
        """Write, store and return a new summary of the `subject`, which is "sessions/id" or "projects/id".

        Raises NotFound, NothingToSummarise, NoAssistant, AssistantError, LimitReached, RateLimited, Busy.
        """
        with self.question_limit.hold(user_id):
            text = await self._read(user_id, subject)
            return await self._write_and_store(self._model(), user_id, subject, text)

    async def _write_and_store(self, model: Endpoint, user_id: str, subject: str, text: str) -> Json:
        await self._count_requests(user_id, 1)
        try:
            content = await self._write_summary(model, subject, text)
        except VademecumError as error:
            if unasked(error):
                await self._count_requests(user_id, -1)
            raise
        limits = self.limits(user_id)
        async with self.users.open(user_id) as store:
            return await store.write(lambda tx: _store_summary(tx, subject, content, limits))

    async def schedule(self, user_id: str, subject: str) -> Job:
        """Queue the summary as a job. Return the new job, or the job that is already queued for this subject.

        Raises NotFound, NothingToSummarise and NoAssistant.
        """
        async with self.users.open(user_id) as store:
            await self._input_text(store, subject)
            self._model()
            job = await store.write(lambda tx: _create_job(tx, subject))
        self.schedule_again(user_id, 0)
        return job

    async def work(self, user_id: str, job: Job) -> None:
        text = await self._read(user_id, job.subject)
        content = await self._write_summary(self._model(), job.subject, text)
        limits = self.limits(user_id)

        def finish(tx: Transaction) -> None:
            if tx.jobs.replace(job, jobs.complete(job)):
                _store_summary(tx, job.subject, content, limits)

        async with self.users.open(user_id) as store:
            await store.write(finish)

    async def _read(self, user_id: str, subject: str) -> str:
        async with self.users.open(user_id) as store:
            return await self._input_text(store, subject)

    async def _count_requests(self, user_id: str, questions: int) -> None:
        """Add to the account's daily count of LLM requests."""

        def count(tx: Transaction) -> None:
            tx.jobs.llm_request_count += questions

        async with self.users.open(user_id) as store:
            await store.write(count)

    async def _write_summary(self, model: Endpoint, subject: str, text: str) -> str:
        prompt = summary_input.PROJECT if subject.startswith("projects/") else summary_input.SESSION
        redacted = await asyncio.to_thread(secrets.redact, text)
        reply = await model.answer(
            prompt,
            redacted,
            MAX_REPLY_TOKENS,
            temperature=TEMPERATURE,
            within_s=self.timeout_s,
        )
        return await asyncio.to_thread(_clean_reply, reply)

    async def _input_text(self, store: UserStore, subject: str) -> str:
        noun = "project" if subject.startswith("projects/") else "session"
        if not store.is_live(subject):
            raise NotFound(f"There is no such {noun}.")
        text = summary_input.keep_newest(await _input_parts(store, subject))
        if not text:
            raise NothingToSummarise(f"This {noun} has no messages yet, so there is nothing to summarize.")
        return text

    def _model(self) -> Endpoint:
        if self.endpoint is None:
            raise NoAssistant(NO_MODEL)
        return self.endpoint


def _clean_reply(reply: str) -> str:
    """Return the summary text of a reply. The function may take long, so call it in a thread."""
    return secrets.redact(summary_input.strip_markup(reply))[: summary_input.CONTENT_MAX]


def _create_job(tx: Transaction, subject: str) -> Job:
    earlier = tx.jobs.get(jobs.id_of(subject))
    if earlier is not None and earlier.state in ("waiting", "running"):
        return earlier
    if tx.row_state(subject) != "live":
        raise NotFound("It was deleted in the meantime.")
    job = jobs.create(subject, tx.seq, "", tx.now)
    tx.jobs.put(job)
    return job


async def _input_parts(store: UserStore, subject: str) -> list[str]:
    """Return the texts to summarize, in order of time."""
    if subject.startswith("sessions/"):
        return await _turn_texts(store, _list_dependents(store, [subject], "episodes/"))
    sessions = _list_dependents(store, [subject], "sessions/")
    latest = await _read_latest(store, _list_dependents(store, sessions, "summaries/"), _summary)
    if latest:
        return await asyncio.to_thread(lambda: [summary_input.strip_markup(row.content) for row in latest])
    return await _turn_texts(store, _list_dependents(store, sessions, "episodes/"))


async def _turn_texts(store: UserStore, keys: list[str]) -> list[str]:
    latest = await _read_latest(store, keys, _turn)
    return await asyncio.to_thread(
        lambda: [
            summary_input.turn_input(row.user_message, row.ai_response)
            for row in latest
            if enters_prompts(row.model, row.ai_response)
        ]
    )


def _list_dependents(store: UserStore, keys: Iterable[str], prefix: str) -> list[str]:
    """Return the keys of the live rows of a collection that refer to one of `keys`."""
    dependents = store.row_index.dependents
    return [
        key
        for name in keys
        for key in dependents.get(name, ())
        if key.startswith(prefix) and store.is_live(key)
    ]


async def _read_latest(store: UserStore, keys: list[str], decoder: msgspec.json.Decoder[Row]) -> list[Row]:
    """Return the latest rows, at least as many as fit into the prompt, in order of time."""
    heads = store.row_index.rows
    found: list[Row] = []
    size = 0
    async for batch in read_batches(store, sorted(keys, key=lambda key: heads[key].seq, reverse=True)):
        found += [decoder.decode(body) for _, body in batch]
        size += sum(len(body) for _, body in batch)
        if size > 10 * summary_input.MAX_INPUT_CHARS:
            break
    return sorted(found, key=attrgetter("created_at"))


def _store_summary(tx: Transaction, subject: str, content: str, limits: Limits) -> Json:
    """Store the summary, replacing an existing one, and return its row."""
    collection, _, owner_id = subject.partition("/")
    if tx.row_state(subject) != "live":
        raise NotFound("It was deleted while its summary was written. Nothing was stored.")
    summary_keys = [key for key in tx.dependents(subject) if key.startswith("summaries/")]
    own = [key for key in summary_keys if tx.row_state(key) == "live" and _belongs_only_to(tx, key, subject)]
    if own:
        newest = max((tx.row(key) for key in own), key=lambda row: (row["createdAt"], row["id"]))
        return row_operations.change(tx, "summaries", newest["id"], {"content": content}, limits)
    return row_operations.add(
        tx, "summaries", {"content": content, OWNER_FIELDS[collection]: owner_id}, limits
    )


def _belongs_only_to(tx: Transaction, key: str, subject: str) -> bool:
    """Return whether the row refers only to `subject`. Other programs may write rows with a session and a project."""
    head = tx.head(key)
    return head is not None and head.parents == (subject,)
