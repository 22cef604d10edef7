"""Schedule the background jobs of a commit: embedding, indexing, language model, retention and erasure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from vademecum.model.memory import job_triggers
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.sync.transaction import Change
from vademecum.services.agents import retention
from vademecum.services.data.erase import erasure_delay
from vademecum.services.memory import memory_index
from vademecum.services.models import embed_blocks
from vademecum.services.models.active_model import Inference
from vademecum.services.runtime.job_queue import JobQueue
from vademecum.services.sync.stream import Hub
from vademecum.settings import Settings

RETRY_S = 60.0
# A commit of at least this many rows counts as bulk: it is probably part of a device's first sync, and more commits will
# follow. A chat turn commits only a few rows.
BULK_ROWS = 10
# After a bulk commit, indexing waits until no commit has arrived for BULK_QUIET_S, but at most for BULK_MAX_DELAY_S. A
# search starts the indexing at once.
BULK_QUIET_S, BULK_MAX_DELAY_S = 1.0, 10.0
INDEX_DELAY_S = 0.05  # lets the response to the write be sent before indexing begins
# The minimum time between index updates, which slow down writers. A search does not wait for it.
INDEX_MIN_INTERVAL_S = 5.0
Work = Callable[[str], Awaitable[None]]  # the work of a job, which gets a user id
_log = structlog.get_logger("vademecum.jobs")


class BackgroundJobs:
    """Owns the queue of each job. `on_commit` notifies the streams, then schedules the jobs that the changes need."""

    def __init__(self, settings: Settings, hub: Hub, inference: Inference) -> None:
        self._folder = settings.data / "jobs"
        self._hub = hub
        self._inference = inference
        self._settings = settings
        self.jobs: dict[str, JobQueue] = {}
        self.is_closing = False

    def add(
        self,
        name: str,
        work: Work,
        *,
        delay_s: float = 0.0,
        min_interval_s: float = 0.0,
        parallel: int = 1,
        paused: bool = False,
    ) -> JobQueue:
        """Add a job, with the arguments of `JobQueue`."""
        self.jobs[name] = job = JobQueue(
            name,
            self._folder,
            work,
            delay_s=delay_s,
            min_interval_s=min_interval_s,
            parallel=parallel,
            paused=paused,
        )
        return job

    def add_index(self, name: str, work: Work, parallel: int = 1) -> JobQueue:
        """Add a job that updates an index."""
        return self.add(
            name, work, delay_s=INDEX_DELAY_S, min_interval_s=INDEX_MIN_INTERVAL_S, parallel=parallel
        )

    def schedule(self, job: str, user_id: str, delay_s: float | None = None) -> None:
        self.jobs[job].schedule(user_id, delay_s)

    def run_now(self, job: str, user_id: str) -> None:
        self.jobs[job].run_now(user_id)

    def schedule_all(self, user_id: str) -> None:
        for job in self.jobs.values():
            job.schedule(user_id)

    def on_commit(self, store: UserStore, changes: list[Change]) -> None:
        self._hub.publish(store, changes)
        user_id = store.user_id
        if any(c.key.startswith("vectorEmbeddings/") for c in changes):
            self._inference.cancel(user_id, embed_blocks.deleted_block_ids(changes))
            self._schedule_index("index", user_id, changes)
        if memory_index.has_recallable_changes(changes):
            self._inference.cancel(user_id, memory_index.list_deleted_blocks(changes))
            self._schedule_index("recall", user_id, changes)
            self._schedule_index("recall_vectors", user_id, changes)
        if embed_blocks.needs_embedding(changes):
            self.schedule("embed", user_id)
        if self._settings.extracts and job_triggers.may_cause_jobs(changes):
            self.schedule("work", user_id)
        if retention.adds_observations(changes):
            self.schedule("retain", user_id, retention.INTERVAL_S)
        if (delay_s := erasure_delay(changes, self._settings)) is not None:
            self.schedule("erase", user_id, delay_s)

    def on_fence(self, user_id: str) -> None:
        """Close the streams of a newly fenced account, so that its clients reconnect and receive the reason."""
        self._hub.close_user(user_id)

    def on_erasure_due(self, user_id: str) -> None:
        """Schedule the pending erasure that a newly opened file lists. After a crash its job marker may be missing."""
        if not self.jobs["erase"].is_pending(user_id):
            self.schedule("erase", user_id)

    def on_new_epoch(self, user_id: str) -> None:
        """Close the streams of the user, and schedule all jobs, because the indexes may contain rows that are lost now.

        From an open stream RxDB would store a checkpoint of the new epoch, and never push the lost rows again.
        """
        self._hub.close_user(user_id)
        self.schedule_all(user_id)

    def _schedule_index(self, job: str, user_id: str, changes: list[Change]) -> None:
        if len(changes) < BULK_ROWS:
            self.schedule(job, user_id)
        else:
            self.jobs[job].schedule_when_quiet(user_id, BULK_QUIET_S, BULK_MAX_DELAY_S)

    def start(self, users: UserStores) -> None:
        """Resume unfinished work. Schedule all jobs of users whose stores were open during a crash."""
        for job in self.jobs.values():
            job.start()
        for user_id in users.list_unclean():
            for name, job in self.jobs.items():
                if name != "erase":  # `on_erasure_due` schedules it if the file lists a pending erasure
                    job.schedule(user_id)

    async def start_new_model(self, data: Path, users: UserStores, user_ids: list[str]) -> None:
        """Schedule embedding and indexing for all users if the model is new since the last start."""
        while True:
            try:
                return await self._start_new_model(data, users, user_ids)
            except Exception as error:
                _log.error("cannot start jobs for a new model", retry_s=RETRY_S, exc_info=error)
                await asyncio.sleep(RETRY_S)

    async def _start_new_model(self, data: Path, users: UserStores, user_ids: list[str]) -> None:
        embedder = await self._inference.get()
        last_model = data / "embedded"
        if embedder is None or (
            last_model.exists() and last_model.read_text(encoding="utf-8") == embedder.model
        ):
            return
        for user_id in user_ids:
            if users.has_records(user_id):
                for job in ("embed", "index", "recall"):
                    self.schedule(job, user_id)
        last_model.write_text(embedder.model, encoding="utf-8")

    def cancel_all(self, user_id: str) -> None:
        for job in self.jobs.values():
            job.cancel(user_id)

    async def close(self) -> None:
        self.is_closing = True
        for job in self.jobs.values():
            await job.close()
