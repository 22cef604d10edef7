"""The services of a running server, opened by `open_services`.

A user's rows are reached only by `users.open(user_id)`, which names the user.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vademecum.engines.duckdb.instance import Instance
from vademecum.model.records.accounts import Account
from vademecum.model.records.store_interface import AccountStore, UserStores
from vademecum.model.schema.collections import Registry
from vademecum.model.sync.quotas import Limits
from vademecum.services.accounts.rate_limiter import Limiter
from vademecum.services.agents.spool import Spool
from vademecum.services.chat.answer import Answers
from vademecum.services.chat.prompt_context import ContextBuilder, Requester
from vademecum.services.data.erase import Eraser
from vademecum.services.memory.recall import Recall
from vademecum.services.memory.remember import Memories
from vademecum.services.memory.summarize import Summaries
from vademecum.services.models.active_model import Inference
from vademecum.services.models.model_change import ModelChange
from vademecum.services.runtime.background_jobs import BackgroundJobs
from vademecum.services.runtime.concurrency_limits import UploadPlaces
from vademecum.services.runtime.request_priority import Foreground
from vademecum.services.search.document_search import DocumentSearch
from vademecum.services.search.indexing import Indexer, Indexes
from vademecum.services.sync.stream import Hub
from vademecum.settings import Settings


@dataclass(slots=True)
class Services:
    settings: Settings
    registry: Registry
    instance: Instance
    accounts: AccountStore
    users: UserStores
    hub: Hub
    foreground: Foreground
    inference: Inference
    indexes: Indexes
    indexer: Indexer
    background_jobs: BackgroundJobs
    eraser: Eraser
    model_change: ModelChange
    searcher: DocumentSearch
    recall: Recall
    contexts: ContextBuilder
    answers: Answers
    summaries: Summaries
    memories: Memories
    spool: Spool
    limiter: Limiter
    places: UploadPlaces
    local_secret: str
    clock: Callable[[], str]

    def limits(self, account: Account) -> Limits:
        return self.settings.tiers[account.tier]

    def asker(self, account: Account) -> Requester:
        return Requester(account.id, account.tier, self.limits(account))
