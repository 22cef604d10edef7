"""Reembed: change the model of the data folder while it is in use.

For each user in turn new vectors are staged beside the rows (`staged_vectors`), while the old ones serve; when a user's are
whole they are swapped into the rows in one transaction, which carries them to the devices, and the index follows.
What is staged survives a stop, a crash costs one block, and going back costs only the users that were swapped.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import msgspec
import structlog

from vademecum.engines import lance
from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.errors import ModelError
from vademecum.errors import BadRequest, Broken, Busy, Conflict, NotFound
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema import vector_codec
from vademecum.model.schema.vector_codec import Vectors
from vademecum.model.sync.transaction import WAITING, Transaction
from vademecum.services.documents.blocks import list_blocks_without_vectors
from vademecum.services.models import active_model, staged_vectors
from vademecum.services.models.active_model import Inference, ModelPlan
from vademecum.services.models.staged_vectors import Staging
from vademecum.services.search.indexing import Indexer
from vademecum.settings import Settings

if TYPE_CHECKING:
    from vademecum.engines.onnx.embedder import Embedder

COLLECTION = "vectorEmbeddings"
LOOK_EVERY_S = 3.0
ATTEMPTS = 3

_log = structlog.get_logger("vademecum.reembed")


class Progress(msgspec.Struct, frozen=True):
    """`done` blocks of `of` have vectors of the new model."""

    done: int
    of: int


class Status(msgspec.Struct, rename="camel"):
    """`current`: the model that new vectors are made by. `before`: the one that is being replaced, if any, which
    serves the accounts that are not done (`behind`; those that have been counted). `paused`: nothing is being made."""

    current: str | None
    before: str | None
    paused: bool
    users: Progress
    blocks: Progress
    behind: dict[str, Progress]


def resume(settings: Settings) -> tuple[ModelPlan | None, set[str], set[str]]:
    """At the start: the change that is under way, who is behind, and who of them was being swapped. Takes away what is
    left of others."""
    plan = active_model.load_plan(settings)
    staged_vectors.sweep(settings.data, plan.model if plan is not None else None)
    if plan is None:
        return None, set(), set()
    if active_model.chosen(settings) != plan.target:  # a stop came between the plan and the choice
        active_model.choose(settings, plan.target)
    return (
        plan,
        staged_vectors.behind(settings.data, plan.model),
        staged_vectors.swapping(settings.data, plan.model),
    )


class Reembedding:
    """`ask(job, user_id)`: have that job done for the user."""

    def __init__(
        self,
        settings: Settings,
        plan: ModelPlan | None,
        users: UserStores,
        inference: Inference,
        indexer: Indexer,
        ask: Callable[[str, str], None],
    ) -> None:
        self._settings = settings
        self._plan = plan
        self._users = users
        self._inference = inference
        self._indexer = indexer
        self._ask = ask
        self._sizes: dict[str, Progress] = {}
        self._failures: Counter[tuple[str, str, int]] = Counter()  # (user, block, its seq)
        self._changing = asyncio.Lock()  # one user is swapped, or the plan is changed
        self._files = asyncio.Lock()  # staged files are written, or pruned

    async def start(self) -> None:
        if self._plan is not None:
            await self._go_on()

    async def use(self, name: str, accounts: Collection[str]) -> None:
        """Make `name` the model of the data folder. `accounts`: all there are, also when some come meanwhile. Raises
        Conflict."""
        folder = self._settings.model_folder(name)
        if folder.parent not in self._settings.model_folders or name in ("", ".", ".."):
            raise BadRequest(f"{name!r} is no name of a model.")
        try:
            manifest = await asyncio.to_thread(manifests.verify, folder)
        except ModelError as error:
            raise Conflict(f"{error.message} Nothing was changed.") from error
        async with self._indexer.foreground.ahead(self._changing):
            now = await self._inference.get()
            if now is not None and now.model == manifest.hash:
                return
            if self._plan is not None and name != self._plan.before:
                raise Conflict(
                    f"The change from {self._plan.before} to {self._plan.target} is under way. Let it finish, or go "
                    f"back with `vademecum models use {self._plan.before}`. Nothing was changed."
                )
            before = now.manifest.id if now is not None else name
            behind: set[str] = set()
            if now is not None:  # else there is nothing to go on with: the ordinary embedding does it
                behind = await self._with_rows(accounts) - (self._inference.behind - self._inference.swapping)
            await self._begin(ModelPlan(before=before, target=name, model=manifest.hash), behind)
            for user_id in await self._with_rows(accounts) - behind:  # some had no rows when that began
                self._indexer.forget(user_id)
                self._ask("embed", user_id)
                self._ask("index", user_id)
            for user_id in await self._with_rows(accounts):
                self._ask("recall", user_id)  # its vectors are in no row: it is rebuilt after the documents
            await self._go_on()

    async def find_model(self, accounts: Callable[[], Collection[str]]) -> None:
        """Wait while there is no model, and use the first one that is installed meanwhile."""
        failure = ""
        while await self._inference.get() is None:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                folder = await asyncio.to_thread(active_model.current, self._settings)
                if folder is not None:
                    await self.use(folder.name, accounts())
            except Exception as error:  # it may be half copied; say so once
                if str(error) != failure:
                    _log.error("an installed model cannot be used", exc_info=error)
                failure = str(error)

    async def _with_rows(self, accounts: Collection[str]) -> set[str]:
        user_ids = list(accounts)
        return await asyncio.to_thread(lambda: set(filter(self._users.has_records, user_ids)))

    async def _begin(self, plan: ModelPlan, behind: set[str]) -> None:
        """On disk first: folders of those behind, then the plan, which makes them count."""
        try:
            prepared = await self._inference.prepare(self._settings.model_folder(plan.target), plan.model)
        except ModelError as error:
            raise Conflict(f"{error.message} Nothing was changed.") from error
        try:
            await asyncio.to_thread(self._write_down, plan, behind)
        except OSError as error:
            await self._inference.drop(prepared)
            raise Broken(
                f"The change could not be written down: {error.strerror}. Nothing was changed."
            ) from error
        self._inference.change(prepared, behind)
        self._plan = plan
        self._sizes.clear()
        self._failures.clear()
        async with self._files:
            await asyncio.to_thread(staged_vectors.sweep, self._settings.data, plan.model)

    def _write_down(self, plan: ModelPlan, behind: set[str]) -> None:
        staged_vectors.begin(self._settings.data, behind, plan.model)
        active_model.save_plan(self._settings, plan)
        try:
            active_model.choose(self._settings, plan.target)
        except OSError:
            if self._plan is None:
                active_model.plan_file(self._settings).unlink()
            else:
                active_model.save_plan(self._settings, self._plan)
            raise

    async def _go_on(self) -> None:
        for user_id in self._inference.behind if not self._paused() else self._inference.swapping:
            self._ask("reembed", user_id)
        await self._end_if_done()

    def _paused(self) -> bool:
        return self._plan is not None and self._plan.paused

    async def pause(self, paused: bool) -> None:
        """Stop after the block that is under way, or go on."""
        async with self._indexer.foreground.ahead(self._changing):
            if self._plan is None:
                raise Conflict("No change of the model is under way.")
            self._keep(msgspec.structs.replace(self._plan, paused=paused))
            await self._go_on()

    def _keep(self, plan: ModelPlan) -> None:
        active_model.save_plan(self._settings, plan)
        self._plan = plan

    async def work(self, user_id: str) -> None:
        """Stage what is missing, and swap when all is there. Raises Broken when blocks failed that are worth another
        attempt."""
        try:
            while (target := await self._target(user_id)) is not None:
                stage = Staging(self._settings.data, user_id, target.model)
                if await self._stage_all(user_id, target, stage):
                    await self._finish(user_id, target, stage)
        except NotFound:
            await self.forget(user_id)

    async def forget(self, user_id: str) -> None:
        """The user has left, and holds up nobody."""
        async with self._indexer.foreground.ahead(self._changing):
            self._inference.caught_up(user_id)
            self._sizes.pop(user_id, None)
            await self._end_if_done()

    async def _target(self, user_id: str) -> Embedder | None:
        """The model to embed this user's blocks with, or None when there is nothing to do now."""
        if self._plan is None or user_id not in self._inference.behind:
            return None
        if (
            self._plan.paused and user_id not in self._inference.swapping
        ):  # what is half-way is finished all the same
            return None
        return await self._inference.get()

    async def _stage_all(self, user_id: str, target: Embedder, stage: Staging) -> bool:
        """False when the plan was changed meanwhile."""
        failed = 0
        async with self._users.open(user_id) as store:
            missing, size = await self._missing(store, target.model, stage)
        for number, (block_id, seq) in enumerate(missing):
            self._sizes[user_id] = Progress(size - len(missing) + number, size)
            try:
                await self._stage(user_id, block_id, seq, target, stage)
            except Exception as error:
                if await self._target(user_id) is not target:
                    return False
                if isinstance(error, NotFound | Busy | OSError):  # a full disk, say: no fault of the block's
                    raise
                self._failures[user_id, block_id, seq] += 1
                failed += self._failures[user_id, block_id, seq] < ATTEMPTS
                _log.error("block not embedded", exc_info=error)
            if await self._target(user_id) is not target:
                return False
        if failed:
            raise Broken(f"{failed} blocks could not be embedded.")
        return True

    async def _missing(
        self, store: UserStore, model: str, stage: Staging
    ) -> tuple[list[tuple[str, int]], int]:
        """The blocks (id, seq) that are neither swapped nor staged, the oldest first, and how many there are in all."""
        staged = await asyncio.to_thread(stage.seqs)
        wanted = [
            (i, store.row_index.rows[f"{COLLECTION}/{i}"].seq)
            for i in list_blocks_without_vectors(store, model)
        ]
        size = sum(1 for head in store.row_index.rows.values() if head.chunks and head.seq != WAITING)
        missing = [
            (i, seq)
            for i, seq in wanted
            if staged.get(i) != seq and self._failures[store.user_id, i, seq] < ATTEMPTS
        ]
        self._sizes[store.user_id] = Progress(size - len(missing), size)
        return missing, size

    async def _stage(self, user_id: str, block_id: str, seq: int, target: Embedder, stage: Staging) -> None:
        key = f"{COLLECTION}/{block_id}"
        async with self._users.open(user_id) as store:
            body = (await store.read_bodies([key])).get(key)
        if body is None or not await self._stands(user_id, block_id, seq):
            return
        texts = [chunk["text"] for chunk in msgspec.json.decode(body)["chunks"]]
        made = await self._inference.passages(target, user_id, block_id, texts)
        async with self._files:
            if made is not None and await self._stands(user_id, block_id, seq):
                await asyncio.to_thread(stage.put, block_id, seq, made)

    async def _stands(self, user_id: str, block_id: str, seq: int) -> bool:
        async with self._users.open(user_id) as store:
            return _stands(store, block_id, seq)

    async def _finish(self, user_id: str, target: Embedder, stage: Staging) -> None:
        """Swap, if all is there by now: what came in since is staged first."""
        async with self._changing:
            if await self._target(user_id) is not target:
                return
            made = stage.index, target.model, target.dims
            index = await asyncio.to_thread(lambda: lance.VectorIndex.open(*made, cache=lance.MatrixCache(0)))
            try:
                await self._indexer.rebuild_with_model(
                    user_id,
                    lambda: self._swap(user_id, target, stage),
                    index,
                    stage.index,
                    lambda: self._inference.caught_up(user_id),
                )
            finally:
                await asyncio.to_thread(index.drop)
            if user_id not in self._inference.behind:
                await self._count_done(user_id, stage)

    async def _swap(self, user_id: str, target: Embedder, stage: Staging) -> bool:
        async with self._users.open(user_id) as store:
            missing, _ = await self._missing(store, target.model, stage)
            if missing:
                return False
            staged = await asyncio.to_thread(stage.seqs)
            wanted = {i: seq for i, seq in staged.items() if _stands(store, i, seq)}
            made = await asyncio.to_thread(stage.read, wanted, target.dims)
            if len(made) < len(wanted):
                return False
            skipped = {
                (i, seq) for (u, i, seq), n in self._failures.items() if u == user_id and n >= ATTEMPTS
            }
            # Noted before the rows are changed: after a stop it tells that they may have been.
            await asyncio.to_thread(stage.begin_swap)
            self._inference.swapping.add(user_id)
            swapped = await store.write(lambda tx: _put_all(tx, wanted, made, target, skipped))
            if not swapped:
                self._inference.swapping.discard(user_id)
                await asyncio.to_thread(stage.cancel_swap)
            return swapped

    async def _count_done(self, user_id: str, stage: Staging) -> None:
        await asyncio.to_thread(stage.end)
        self._ask("embed", user_id)  # for what came with other vectors, or while the rows were swapped
        self._ask("index", user_id)
        if self._plan is not None:
            blocks = self._plan.blocks + self._sizes.pop(user_id, Progress(0, 0)).of
            self._plan = msgspec.structs.replace(self._plan, users=self._plan.users + 1, blocks=blocks)
            try:
                active_model.save_plan(self._settings, self._plan)
            except OSError as error:  # after a restart the count is too low, and that is all
                _log.error("the count of the change is not kept", exc_info=error)
        await self._end_if_done()

    async def _end_if_done(self) -> None:
        if self._plan is not None and not self._inference.behind:
            self._plan = None
            active_model.plan_file(self._settings).unlink(missing_ok=True)
            await self._inference.end_change()

    async def prune(self, user_id: str) -> None:
        """Erase the staged vectors of blocks that are gone or have changed."""
        async with self._files, self._users.open(user_id) as store:
            await asyncio.to_thread(
                staged_vectors.prune, self._settings.data, user_id, lambda i, seq: _stands(store, i, seq)
            )

    async def progress(self, user_id: str) -> Progress | None:
        """How far this user is; None when the user is not behind."""
        if self._plan is None or user_id not in self._inference.behind:
            return None
        if user_id not in self._sizes:
            async with self._users.open(user_id) as store:
                await self._missing(
                    store, self._plan.model, Staging(self._settings.data, user_id, self._plan.model)
                )
        return self._sizes.get(user_id)

    def status(self) -> Status:
        plan, now = self._plan, self._inference.now()
        current = now.manifest.id if now is not None else None
        if plan is None:
            return Status(current, None, False, Progress(0, 0), Progress(0, 0), {})
        behind = {u: self._sizes[u] for u in self._inference.behind if u in self._sizes}
        done = plan.blocks + sum(progress.done for progress in behind.values())
        of = plan.blocks + sum(progress.of for progress in behind.values())
        users = Progress(plan.users, plan.users + len(self._inference.behind))
        return Status(plan.target, plan.before, plan.paused, users, Progress(done, of), behind)


def _stands(store: UserStore, block_id: str, seq: int) -> bool:
    """Is the block as it was at that seq?"""
    head = store.row_index.rows.get(f"{COLLECTION}/{block_id}")
    return head is not None and not head.deleted and head.seq == seq


def _put_all(
    tx: Transaction,
    staged: dict[str, int],
    made: dict[str, Vectors],
    target: Embedder,
    skipped: set[tuple[str, int]],
) -> bool:
    """All staged vectors into their rows, or, when a block has come or changed since the look, nothing."""
    heads = {key: tx.head(key) for key in tx.keys(COLLECTION)}
    todo = {
        key: head.seq
        for key, head in heads.items()
        if head is not None and head.chunks and head.seq != WAITING and head.model != target.model
    }
    ids = {key: key.partition("/")[2] for key in todo}
    ready = [key for key, seq in todo.items() if staged.get(ids[key]) == seq]
    if any((ids[key], seq) not in skipped for key, seq in todo.items() if staged.get(ids[key]) != seq):
        return False
    tx.prefetch(ready)
    for key in ready:
        row = tx.row(key)
        filled = {
            **row,
            "model": target.model,
            "dims": target.dims,
            "embedding": vector_codec.encode(made[ids[key]]),
        }
        tx.put(key, filled, msgspec.json.encode(filled), same_text=True)
    return True
