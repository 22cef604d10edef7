"""Open parts: the one place where the parts of a server meet, and where each job behind the answers gets its name."""

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
from vademecum.model.records.store_interface import AccountStore, StoreHooks, UserStores
from vademecum.model.schema.collections import Registry
from vademecum.model.sync.quotas import Limits
from vademecum.services.accounts import local_auth
from vademecum.services.accounts.rate_limiter import Limiter
from vademecum.services.agents.retention import START_DELAY_S, Retention
from vademecum.services.agents.spool import Spool
from vademecum.services.chat.answer import create_endpoint, open_answers
from vademecum.services.chat.prompt_context import ContextBuilder
from vademecum.services.chat.prompt_memory import PromptMemory
from vademecum.services.data.erase import Eraser
from vademecum.services.memory.extract import Extraction
from vademecum.services.memory.memory_index import FOLDER, MemoryBlockSource, MemoryVectorizer
from vademecum.services.memory.recall import Recall
from vademecum.services.memory.remember import Memories
from vademecum.services.memory.summarize import Summaries
from vademecum.services.memory.turn_jobs import set_extraction
from vademecum.services.models import model_change as model_changes
from vademecum.services.models.active_model import Inference, ModelPlan
from vademecum.services.models.embed_blocks import EmbedJob
from vademecum.services.models.embed_progress import EmbedProgress
from vademecum.services.models.model_change import ModelChange
from vademecum.services.runtime.background_jobs import BackgroundJobs
from vademecum.services.runtime.clock import now_iso
from vademecum.services.runtime.concurrency_limits import QuestionPlaces, UploadPlaces
from vademecum.services.runtime.container import Services
from vademecum.services.runtime.job_queue import JobQueue
from vademecum.services.runtime.llm_worker import Doer, Worker
from vademecum.services.runtime.request_priority import Foreground
from vademecum.services.search.document_search import DocumentSearch
from vademecum.services.search.hybrid_search import HybridSearch
from vademecum.services.search.indexing import DocumentBlockSource, Indexer, Indexes
from vademecum.services.sync.stream import Hub, StreamLimits
from vademecum.settings import Settings

_log = structlog.get_logger("vademecum")


def say_repaired(notice: str) -> None:
    """Somebody's log was damaged and cut: an operator must hear of it."""
    _log.warning("log repaired", detail=notice)


def migrations_folder() -> Path:
    """Inside the installed package, or at the top of a checkout."""
    packaged = Path(__file__).parents[2] / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[4] / "migrations"


def open_users(
    settings: Settings,
    instance: Instance,
    migrations: Path,
    registry: Registry,
    accounts: AccountStore,
    clock: Callable[[], str],
    background_jobs: BackgroundJobs,
) -> DuckDBUserStores:
    """Open the stores of all users."""
    hooks = StoreHooks(
        on_attach=partial(set_extraction, extracts=settings.extracts),
        before_commit=job_triggers.update_jobs,
        on_commit=background_jobs.on_commit,
        on_notice=say_repaired,
        on_erasure_due=background_jobs.on_erasure_due,
        on_new_epoch=background_jobs.on_new_epoch,
        on_fence=background_jobs.on_fence,
    )
    bounds = settings.attached_max, settings.attached_rows_max
    return open_user_stores(settings.data, instance, migrations, registry, accounts, clock, hooks, *bounds)


def open_accounts(settings: Settings, instance: Instance, migrations: Path) -> DuckDBAccountStore:
    path = settings.data / "accounts.duckdb"
    if not path.exists() and (lost := missing_accounts_message(settings.data)):
        raise Broken(lost)
    return DuckDBAccountStore.open(instance, path, migrations / "accounts", migrations, say_repaired)


@asynccontextmanager
async def open_worker(
    settings: Settings,
    accounts: AccountStore,
    users: UserStores,
    known: Memories,
    places: QuestionPlaces,
    clock: Callable[[], str],
    background_jobs: BackgroundJobs,
    *,
    works: bool,
) -> AsyncIterator[Summaries]:
    """Who does the jobs that need a language model, if there is one, and if this process `works` at them."""

    def again(user_id: str, delay_s: float) -> None:
        background_jobs.schedule("work", user_id, delay_s)

    def limits(user_id: str) -> Limits:
        return settings.tiers[accounts.accounts[user_id].tier]

    longest_s = settings.assistant_whole_s
    endpoint = create_endpoint(settings, settings.extraction_model)
    summaries = Summaries(users, endpoint, limits, longest_s, places, again)
    doers: dict[Kind, Doer] = {}
    if endpoint is not None:
        extraction = Extraction(users, endpoint, limits, known, longest_s)
        doers = {"extract": extraction.work, "summarise": summaries.work}
    worker = Worker(users, doers, settings.extraction_daily, clock, again, lambda: background_jobs.is_closing)
    paused = not (doers and works)
    background_jobs.add("work", worker.work, parallel=2, paused=paused)
    try:
        yield summaries
    finally:
        if endpoint is not None:
            await endpoint.close()


def open_inference(
    settings: Settings, knows: Callable[[str], bool], foreground: Foreground
) -> tuple[ModelPlan | None, Inference]:
    """The model, and the change of it that a stop has cut off."""
    plan, behind, swapping = model_changes.resume(settings)
    before = settings.model_folder(plan.before) if plan is not None else None
    return plan, Inference(settings, before, filter(knows, behind), filter(knows, swapping), foreground.alone)


def open_recall(
    settings: Settings,
    users: UserStores,
    inference: Inference,
    cache: MatrixCache,
    knows: Callable[[str], bool],
    background_jobs: BackgroundJobs,
    foreground: Foreground,
    clock: Callable[[], str],
) -> Recall:
    """The search of memory, its index, and its jobs: one for the words of new rows, one for their vectors."""
    indexes = Indexes(settings.data, FOLDER, cache, inference.for_memory, knows, foreground)
    indexer = Indexer(users, indexes, MemoryBlockSource(indexes), lambda user_id: True, foreground)
    vectoriser = MemoryVectorizer(
        users,
        indexes,
        indexer,
        inference,
        partial(background_jobs.run_now, "recall_vectors"),
    )
    words = background_jobs.add_index("recall", vectoriser.update_words, parallel=2)
    vectors = background_jobs.add_index("recall_vectors", vectoriser.work)
    wait_s = settings.search_wait_s
    return Recall(
        users, indexes, indexer, HybridSearch(indexes, indexer, words, wait_s), vectors, wait_s, clock
    )


def add_jobs(
    background_jobs: BackgroundJobs,
    settings: Settings,
    indexer: Indexer,
    embedding: EmbedJob,
    model_change: ModelChange,
    eraser: Eraser,
) -> JobQueue:
    """What follows a commit of documents. Returns the job of their index, for which a search waits."""
    index_job = background_jobs.add_index("index", indexer.work, parallel=2)
    background_jobs.add("embed", embedding.work, parallel=2)
    background_jobs.add("reembed", model_change.work)
    background_jobs.add("erase", eraser.work, delay_s=settings.erase_delay_s)
    return index_job


def open_spool(
    settings: Settings,
    accounts: AccountStore,
    users: UserStores,
    recalling: Recall,
    clock: Callable[[], str],
    background_jobs: BackgroundJobs,
) -> Spool:
    """What takes up events of agents, and the job that lets old ones go."""
    spool = Spool(settings.data, accounts, users, lambda account: settings.tiers[account.tier])
    follow = recalling.indexer.work
    again = partial(background_jobs.schedule, "retain")
    retention = Retention(users, spool, settings.observations_days, clock, follow, again)
    background_jobs.add("retain", retention.run, delay_s=START_DELAY_S)
    return spool


@asynccontextmanager
async def open_services(
    settings: Settings,
    registry: Registry,
    clock: Callable[[], str] = now_iso,
    migrations: Path | None = None,
    works: bool = True,
) -> AsyncIterator[Services]:
    """Everything a server needs, opened in order and closed in reverse. `works`: as in `create_app`."""
    migrations = migrations or migrations_folder()
    settings.data.mkdir(parents=True, exist_ok=True)
    instance = Instance(deadlines=Deadlines(settings.statement_read_s, settings.statement_write_s))
    async with AsyncExitStack() as stack:
        stack.callback(instance.close)
        accounts = open_accounts(settings, instance, migrations)
        foreground, knows, wait_s = Foreground(), accounts.exists, settings.search_wait_s
        plan, inference = open_inference(settings, knows, foreground)
        stack.push_async_callback(inference.close)
        hub = Hub(StreamLimits(settings.streams_max, settings.stream_queue, settings.stream_queue_bytes))
        background_jobs = BackgroundJobs(settings, hub, inference)
        users = open_users(settings, instance, migrations, registry, accounts, clock, background_jobs)
        stack.push_async_callback(users.close)
        cache = MatrixCache(settings.index_cache_bytes)
        indexes = Indexes(settings.data, "vectors", cache, inference.for_user, knows, foreground)
        stack.push_async_callback(indexes.close)
        indexer = Indexer(users, indexes, DocumentBlockSource(), inference.may_update_index, foreground)
        recalling = open_recall(settings, users, inference, cache, knows, background_jobs, foreground, clock)
        stack.push_async_callback(recalling.indexes.close)
        known = Memories(users, recalling, clock)
        model_change = ModelChange(settings, plan, users, inference, indexer, background_jobs.schedule)
        eraser = Eraser(settings.data, users, (indexer, recalling.indexer), model_change.prune)
        embedding = EmbedJob(users, inference, EmbedProgress(hub), partial(background_jobs.schedule, "embed"))
        index_job = add_jobs(background_jobs, settings, indexer, embedding, model_change, eraser)
        spool = open_spool(settings, accounts, users, recalling, clock, background_jobs)
        questions = QuestionPlaces()
        worker = open_worker(settings, accounts, users, known, questions, clock, background_jobs, works=works)
        summaries = await stack.enter_async_context(worker)
        background_jobs.start(users)
        stack.push_async_callback(background_jobs.close)
        await model_change.start()
        await stack.enter_async_context(maintain(users, accounts))
        searcher = DocumentSearch(users, HybridSearch(indexes, indexer, index_job, wait_s), inference)
        contexts = ContextBuilder(users, searcher, PromptMemory(users, recalling, wait_s), inference)
        answers = await stack.enter_async_context(open_answers(settings, contexts, users, questions))
        stack.callback(hub.close)
        yield Services(
            settings=settings,
            registry=registry,
            instance=instance,
            accounts=accounts,
            users=users,
            hub=hub,
            foreground=foreground,
            inference=inference,
            indexes=indexes,
            indexer=indexer,
            background_jobs=background_jobs,
            eraser=eraser,
            model_change=model_change,
            searcher=searcher,
            recall=recalling,
            contexts=contexts,
            answers=answers,
            summaries=summaries,
            memories=known,
            spool=spool,
            local_secret=local_auth.new_secret(),
            limiter=Limiter(settings.rates, time.monotonic),
            places=UploadPlaces(),
            clock=clock,
        )
