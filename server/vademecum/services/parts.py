"""The parts a running server is made of, put together by `open_parts` and handed to routes and services.

Nothing here reaches a user's rows without naming the user: `users.open(user_id)` is the only door.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vademecum.engines.duckdb.accounts import Account, Accounts
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.users import Users
from vademecum.model.collections import Registry
from vademecum.model.limits import Limits
from vademecum.services.answer import Answers
from vademecum.services.backstage import Backstage
from vademecum.services.context import Asker, Contexts
from vademecum.services.erase import Eraser
from vademecum.services.follow import Hub
from vademecum.services.foreground import Foreground
from vademecum.services.index import Indexer, Indexes
from vademecum.services.models import Inference
from vademecum.services.places import UploadPlaces
from vademecum.services.rates import Limiter
from vademecum.services.recall import Recall
from vademecum.services.reembed import Reembedding
from vademecum.services.remember import Memories
from vademecum.services.search import Searcher
from vademecum.services.spool import Spool
from vademecum.services.summarise import Summaries
from vademecum.settings import Settings


@dataclass(slots=True)
class Parts:
    settings: Settings
    registry: Registry
    instance: Instance
    accounts: Accounts
    users: Users
    hub: Hub
    foreground: Foreground
    inference: Inference
    indexes: Indexes
    indexer: Indexer
    backstage: Backstage
    eraser: Eraser
    reembedding: Reembedding
    searcher: Searcher
    recall: Recall
    contexts: Contexts
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

    def asker(self, account: Account) -> Asker:
        return Asker(account.id, account.tier, self.limits(account))
