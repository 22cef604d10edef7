"""Backstage: the jobs that follow a commit. One place decides which commit causes which work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from vademecum.engines.duckdb.paths import RECORDS_FILE, user_folder
from vademecum.engines.duckdb.user_store import UserStore
from vademecum.model.memory import job_triggers
from vademecum.model.sync.transaction import Change, deletes_content, replaces_text
from vademecum.services.agents import retention
from vademecum.services.memory import memory_index
from vademecum.services.models import embed_blocks
from vademecum.services.models.active_model import Inference
from vademecum.services.runtime.job_queue import UserQueue
from vademecum.services.sync.stream import Hub
from vademecum.settings import Settings

RETRY_S = 60.0
MANY = 10  # rows of a commit: a device brings what it has, and more is to come; a turn is a few
# So long the index waits for the end of that, and at most. A search does not wait.
QUIET_S, MOST_S = 1.0, 10.0
# The answer to the write goes out first; then the index is least in the way of the next one.
INDEX_DELAY_S = 0.05
INDEX_APART_S = 5.0  # each time takes cores and the disk from who writes; a search does not wait for it
Work = Callable[[str], Awaitable[None]]  # of a user
_log = structlog.get_logger("vademecum.jobs")


class Backstage:
    """`on_commit` tells the streams first, then asks for what the change needs."""

    def __init__(self, settings: Settings, hub: Hub, inference: Inference) -> None:
        self._folder = settings.data / "jobs"
        self._hub = hub
        self._inference = inference
        self._tidy_delay_s = settings.tidy_delay_s
        self._extracts = settings.extracts
        self.jobs: dict[str, UserQueue] = {}
        self.leaving: UserQueue | None = None
        self.closing = False

    def add(
        self,
        name: str,
        work: Work,
        *,
        delay_s: float = 0.0,
        apart_s: float = 0.0,
        parallel: int = 1,
        idle: bool = False,
    ) -> UserQueue:
        """A job, with the arguments of `UserQueue`."""
        self.jobs[name] = job = UserQueue(
            name, self._folder, work, delay_s=delay_s, apart_s=apart_s, parallel=parallel, idle=idle
        )
        return job

    def add_index(self, name: str, work: Work, parallel: int = 1) -> UserQueue:
        """A job that brings an index up to the records."""
        return self.add(name, work, delay_s=INDEX_DELAY_S, apart_s=INDEX_APART_S, parallel=parallel)

    def add_leaving(self, work: Work, delay_s: float) -> UserQueue:
        """The job that erases accounts that have left. It is not one of `jobs`, which are asked for users who are here."""
        self.leaving = UserQueue("leave", self._folder, work, delay_s=delay_s)
        return self.leaving

    def ask(self, job: str, user_id: str, delay_s: float | None = None) -> None:
        self.jobs[job].ask(user_id, delay_s)

    def hurry(self, job: str, user_id: str) -> None:
        self.jobs[job].hurry(user_id)

    def on_commit(self, store: UserStore, changes: list[Change]) -> None:
        self._hub.publish(store, changes)
        user_id = store.user_id
        if any(c.key.startswith("vectorEmbeddings/") for c in changes):
            self._inference.cancel(user_id, embed_blocks.gone(changes))
            self._ask_index("index", user_id, changes)
        if memory_index.has_recallable_changes(changes):
            self._inference.cancel(user_id, memory_index.list_deleted_blocks(changes))
            self._ask_index("recall", user_id, changes)
            self._ask_index("recall_vectors", user_id, changes)
        if embed_blocks.needs_work(changes):
            self.jobs["embed"].ask(user_id)
        if self._extracts and job_triggers.may_cause_jobs(changes):
            self.jobs["work"].ask(user_id)
        if retention.is_news(changes):
            self.jobs["retain"].ask(user_id, retention.EVERY_S)
        if deletes_content(changes):
            self.jobs["erase"].ask(user_id)
        elif replaces_text(
            changes
        ):  # one job for both: a delete's erasure takes away what edits have left, too
            self.jobs["erase"].ask(user_id, self._tidy_delay_s)

    def on_fence(self, user_id: str) -> None:
        """End the live streams of an account that was just fenced: its clients reconnect and get the reason."""
        self._hub.close_user(user_id)

    def on_erasure_due(self, user_id: str) -> None:
        """A file that was opened says that an erasure is due: a crash may have cost its marker."""
        if not self.jobs["erase"].is_asked(user_id):
            self.jobs["erase"].ask(user_id)

    def on_new_epoch(self, user_id: str) -> None:
        """Close the streams of a user, whose RxDB would store a checkpoint of the new epoch and skip what was lost, and have
        all jobs look again: the indexes may be of later rows."""
        self._hub.close_user(user_id)
        for job in self.jobs.values():
            job.ask(user_id)

    def _ask_index(self, job: str, user_id: str, changes: list[Change]) -> None:
        if len(changes) < MANY:
            self.jobs[job].ask(user_id)
        else:
            self.jobs[job].ask_when_quiet(user_id, QUIET_S, MOST_S)

    def start(self, data: Path) -> None:
        """Take up what was left undone. A leftover log means a crash: whoever was open then is looked at again."""
        for job in self.jobs.values():
            job.start()
        for wal in (data / "users").glob(f"*/*/{RECORDS_FILE}.wal"):
            for name, job in self.jobs.items():
                if name != "erase":  # `on_erasure_due` asks for it, if the file says that it is due
                    job.ask(wal.parent.name)

    async def begin_anew(self, data: Path, user_ids: list[str]) -> None:
        """At the start: a model that was not here before, or another one, has work to do in every folder."""
        while True:
            try:
                return await self._begin_anew(data, user_ids)
            except Exception as error:
                _log.error("the work of a new model is not begun", retry_s=RETRY_S, exc_info=error)
                await asyncio.sleep(RETRY_S)

    async def _begin_anew(self, data: Path, user_ids: list[str]) -> None:
        embedder = await self._inference.get()
        known = data / "embedded"
        if embedder is None or (known.exists() and known.read_text(encoding="utf-8") == embedder.model):
            return
        for user_id in user_ids:
            if (user_folder(data, user_id) / RECORDS_FILE).exists():
                self.jobs["embed"].ask(user_id)
                self.jobs["index"].ask(user_id)
                self.jobs["recall"].ask(user_id)
        known.write_text(embedder.model, encoding="utf-8")

    def forget_user(self, user_id: str) -> None:
        for job in self.jobs.values():
            job.forget(user_id)

    async def close(self) -> None:
        self.closing = True
        for job in (*self.jobs.values(), *filter(None, [self.leaving])):
            await job.close()
