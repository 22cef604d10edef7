"""Open the services of a server and connect them with each other. No other module connects services."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import structlog

from vademecum.engines.duckdb.account_store import DuckDBAccountStore
from vademecum.engines.duckdb.cursor import Deadlines
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.maintenance import maintain
from vademecum.engines.duckdb.opening import open_user_stores
from vademecum.engines.duckdb.paths import missing_accounts_message
from vademecum.engines.duckdb.user_stores import DuckDBUserStores
from vademecum.engines.lance import MatrixCache
from vademecum.errors import Broken
from vademecum.model.memory import job_triggers
from vademecum.model.memory.jobs import Kind
from vademecum.model.records.accounts import Account
from vademecum.model.records.store_interface import StoreHooks
from vademecum.model.schema.collections import Registry
from vademecum.model.sync.quotas import Limits
from vademecum.services.accounts import local_auth
from vademecum.services.accounts.account_deletion import AccountDeletion
from vademecum.services.accounts.accounts import AccountService
from vademecum.services.accounts.rate_limiter import RateLimiter
from vademecum.services.accounts.sign_in import SignIn
from vademecum.services.accounts.tokens import TokenService
from vademecum.services.agents.retention import START_DELAY_S, Retention
from vademecum.services.agents.spool import Spool
from vademecum.services.chat.answer import Answers, create_endpoint
from vademecum.services.chat.prompt_context import ContextBuilder, Requester
from vademecum.services.chat.prompt_memory import PromptMemory
from vademecum.services.data.backup import BackupService
from vademecum.services.data.erase import Eraser
from vademecum.services.data.restore import RestoreService
from vademecum.services.documents.upload import UploadService
from vademecum.services.memory.extract import Extraction
from vademecum.services.memory.memory_index import FOLDER, MemoryBlockSource, MemoryVectorizer
from vademecum.services.memory.recall import Recall
from vademecum.services.memory.remember import Memories
from vademecum.services.memory.summarize import Summaries
from vademecum.services.memory.turn_jobs import set_extraction
from vademecum.services.models import model_change
from vademecum.services.models.active_model import Inference
from vademecum.services.models.embed_blocks import EmbedJob
from vademecum.services.models.embed_progress import EmbedProgress
from vademecum.services.models.model_change import ModelChange
from vademecum.services.runtime.background_jobs import BackgroundJobs
from vademecum.services.runtime.clock import now_iso
from vademecum.services.runtime.concurrency_limits import QuestionLimit, endpoint_slots
from vademecum.services.runtime.llm_worker import Handler, LlmJobs
from vademecum.services.runtime.request_priority import RequestPriority
from vademecum.services.search.document_search import DocumentSearch
from vademecum.services.search.hybrid_search import HybridSearch
from vademecum.services.search.indexing import DocumentBlockSource, Indexer, Indexes
from vademecum.services.sync.stream import Hub, StreamLimits
from vademecum.settings import Settings

_log = structlog.get_logger("vademecum")


def migrations_folder() -> Path:
    """Return the folder of the migrations: inside the installed package, or at the top of a checkout."""
    packaged = Path(__file__).parents[2] / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[4] / "migrations"


def _log_repair(notice: str) -> None:
    """Tell the operator that the damaged write-ahead log of an account was truncated."""
    _log.warning("log repaired", detail=notice)


class Services:
    """The services of a running server, for routes and commands. Each service receives the services that it uses.

    All access to a user's rows goes through `users.open(user_id)`.
    """

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        clock: Callable[[], str],
        migrations: Path,
        stack: AsyncExitStack,
        *,
        run_llm_jobs: bool,
    ) -> None:
        """Open all services in order. `stack` closes them in reverse order, even if this constructor fails."""
        self._run_llm_jobs = run_llm_jobs
        self.settings = settings
        self.registry = registry
        self.clock = clock
        self.local_secret = local_auth.new_secret()
        self.rate_limiter = RateLimiter(settings.rates, time.monotonic)
        self.request_priority = RequestPriority()
        self.question_limit = QuestionLimit()
        self.instance = Instance(deadlines=Deadlines(settings.statement_read_s, settings.statement_write_s))
        stack.callback(self.instance.close)
        self.accounts = self._open_accounts(migrations)
        self._open_inference(stack)
        self.hub = Hub(StreamLimits(settings.streams_max, settings.stream_queue, settings.stream_queue_bytes))
        self.background_jobs = BackgroundJobs(settings, self.hub, self.inference)
        self.users = self._open_users(migrations)
        stack.push_async_callback(self.users.close)
        self._open_search(stack)
        self._open_data_services()
        self._open_chat(stack)
        self._open_account_services()

    def _open_accounts(self, migrations: Path) -> DuckDBAccountStore:
        path = self.settings.data / "accounts.duckdb"
        if not path.exists() and (message := missing_accounts_message(self.settings.data)):
            raise Broken(message)
        return DuckDBAccountStore.open(self.instance, path, migrations / "accounts", migrations, _log_repair)

    def _open_inference(self, stack: AsyncExitStack) -> None:
        """Open the model, and the model change that a stop interrupted."""
        self._model_plan, behind, swapping = model_change.resume(self.settings)
        plan, exists = self._model_plan, self.accounts.exists
        old_model = self.settings.model_folder(plan.before) if plan is not None else None
        self.inference = Inference(
            self.settings,
            old_model,
            filter(exists, behind),
            filter(exists, swapping),
            self.request_priority.is_idle,
        )
        stack.push_async_callback(self.inference.close)

    def _open_users(self, migrations: Path) -> DuckDBUserStores:
        settings, jobs = self.settings, self.background_jobs
        hooks = StoreHooks(
            on_attach=partial(set_extraction, extracts=settings.extracts),
            before_commit=job_triggers.update_jobs,
            on_commit=jobs.on_commit,
            on_notice=_log_repair,
            on_erasure_due=jobs.on_erasure_due,
            on_new_epoch=jobs.on_new_epoch,
            on_fence=jobs.on_fence,
        )
        return open_user_stores(
            settings.data,
            self.instance,
            migrations,
            self.registry,
            self.accounts,
            self.clock,
            hooks,
            settings.attached_max,
            settings.attached_rows_max,
        )

    def _open_search(self, stack: AsyncExitStack) -> None:
        """Open the document index and the memory index, with the jobs that update them."""
        settings, users, inference, jobs = self.settings, self.users, self.inference, self.background_jobs
        cache, exists = MatrixCache(settings.index_cache_bytes), self.accounts.exists
        priority, wait_s = self.request_priority, settings.search_wait_s
        self.indexes = Indexes(settings.data, "vectors", cache, inference.for_user, exists, priority)
        stack.push_async_callback(self.indexes.close)
        self.indexer = Indexer(
            users, self.indexes, DocumentBlockSource(), inference.may_update_index, priority
        )
        index_queue = jobs.add_index("index", self.indexer.work, parallel=2)
        self.document_search = DocumentSearch(
            users, HybridSearch(self.indexes, self.indexer, index_queue, wait_s), inference
        )
        indexes = Indexes(settings.data, FOLDER, cache, inference.for_memory, exists, priority)
        stack.push_async_callback(indexes.close)
        indexer = Indexer(users, indexes, MemoryBlockSource(indexes), lambda user_id: True, priority)
        vectorizer = MemoryVectorizer(
            users, indexes, indexer, inference, partial(jobs.run_now, "recall_vectors")
        )
        text_queue = jobs.add_index("recall", vectorizer.update_words, parallel=2)
        vector_queue = jobs.add_index("recall_vectors", vectorizer.work)
        memory_search = HybridSearch(indexes, indexer, text_queue, wait_s)
        self.recall = Recall(users, indexes, indexer, memory_search, vector_queue, wait_s, self.clock)
        self.memories = Memories(users, self.recall, self.clock)

    def _open_data_services(self) -> None:
        settings, users, jobs = self.settings, self.users, self.background_jobs
        indexers = (self.indexer, self.recall.indexer)
        embedding = EmbedJob(users, self.inference, EmbedProgress(self.hub), partial(jobs.schedule, "embed"))
        jobs.add("embed", embedding.work, parallel=2)
        self.model_change = ModelChange(
            settings, self._model_plan, users, self.inference, self.indexer, jobs.schedule
        )
        jobs.add("reembed", self.model_change.work)
        self.eraser = Eraser(settings.data, users, indexers, self.model_change.prune)
        erase_queue = jobs.add("erase", self.eraser.work, delay_s=settings.erase_delay_s)
        self.spool = Spool(settings.data, self.accounts, users, self.limits)
        retention = Retention(
            users,
            self.spool,
            settings.observation_retention_days,
            self.clock,
            self.recall.indexer.work,
            partial(jobs.schedule, "retain"),
        )
        jobs.add("retain", retention.run, delay_s=START_DELAY_S)
        self.backup = BackupService(settings.data, self.accounts, users, erase_queue, self.clock)
        self.restore = RestoreService(settings.data, self.accounts, users, indexers, self.hub, jobs)
        self.uploads = UploadService(users, self.inference)

    def _open_chat(self, stack: AsyncExitStack) -> None:
        settings, users, jobs = self.settings, self.users, self.background_jobs

        def limits(user_id: str) -> Limits:
            return self.limits(self.accounts.accounts[user_id])

        prompt_memory = PromptMemory(users, self.recall, settings.search_wait_s)
        self.context_builder = ContextBuilder(
            users, self.document_search, prompt_memory, self.inference, settings.prompt_score_share
        )
        timeout_s, schedule = settings.assistant_timeout_s, partial(jobs.schedule, "work")
        slots = endpoint_slots(settings.assistant_parallel)
        assistant = create_endpoint(settings, slots=slots)
        self.answers = Answers(assistant, self.context_builder, users, self.question_limit, timeout_s)
        endpoint = create_endpoint(settings, settings.extraction_model, slots)
        self.summaries = Summaries(users, endpoint, limits, timeout_s, self.question_limit, schedule)
        handlers: dict[Kind, Handler] = {}
        if endpoint is not None:
            stack.push_async_callback(endpoint.close)
            extraction = Extraction(users, endpoint, limits, self.memories, timeout_s)
            handlers = {"extract": extraction.work, "summarise": self.summaries.work}
        self.llm_jobs = LlmJobs(
            users, handlers, settings.extraction_daily, self.clock, schedule, lambda: jobs.is_closing
        )
        jobs.add("work", self.llm_jobs.run, parallel=2, paused=not (handlers and self._run_llm_jobs))

    def _open_account_services(self) -> None:
        accounts, users, hub, clock = self.accounts, self.users, self.hub, self.clock
        self.tokens = TokenService(accounts, hub, clock)
        self.sign_in = SignIn(accounts, self.tokens, self.rate_limiter, hub, clock)
        self.account_service = AccountService(
            self.settings, accounts, users, self.tokens, self.sign_in, self.spool, self.model_change, clock
        )
        self.account_deletion = AccountDeletion(
            self.settings,
            accounts,
            users,
            (self.indexes, self.recall.indexes),
            self.spool,
            hub,
            self.model_change,
            self.background_jobs,
        )

    async def start(self, stack: AsyncExitStack) -> None:
        """Start the background jobs."""
        jobs = self.background_jobs
        jobs.start(self.users)
        stack.push_async_callback(self.account_deletion.queue.close)
        stack.push_async_callback(jobs.close)
        await self.model_change.start()
        await stack.enter_async_context(maintain(self.users, self.accounts))
        stack.push_async_callback(self.answers.close)
        stack.callback(self.hub.close)

    def limits(self, account: Account) -> Limits:
        return self.settings.tiers[account.tier]

    def requester(self, account: Account) -> Requester:
        return Requester(account.id, account.tier, self.limits(account))


@asynccontextmanager
async def open_services(
    settings: Settings,
    registry: Registry,
    clock: Callable[[], str] = now_iso,
    migrations: Path | None = None,
    *,
    run_llm_jobs: bool = True,
) -> AsyncIterator[Services]:
    """Open and start the services of a server. `run_llm_jobs`: as in `create_app`."""
    settings.data.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        migrations = migrations or migrations_folder()
        services = Services(settings, registry, clock, migrations, stack, run_llm_jobs=run_llm_jobs)
        await services.start(stack)
        yield services
