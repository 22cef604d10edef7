"""Change the embedding model of the data folder while the server runs.

The accounts are changed one after another. New vectors are staged beside an account's rows (`staged_vectors`) while
searches use the old ones. When the new vectors are complete, one transaction swaps them into the rows, sync sends them
to devices, and the index is replaced. Staged vectors survive a stop, and after a crash at most one block is embedded
again. A change back to the old model recomputes only the vectors of accounts that were already swapped.
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
from vademecum.engines.onnx.pinned_models import PINNED_MODELS
from vademecum.errors import BadRequest, Broken, Busy, Conflict, NotFound
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema.vector_codec import Vectors
from vademecum.model.sync.transaction import WAITING, Transaction
from vademecum.services.documents.blocks import list_blocks_without_vectors
from vademecum.services.models import active_model, staged_vectors
from vademecum.services.models.active_model import Inference, ModelPlan
from vademecum.services.models.embed_blocks import COLLECTION, MAX_ATTEMPTS, Block, with_vectors
from vademecum.services.models.staged_vectors import StagedVectors
from vademecum.services.search.indexing import Indexer
from vademecum.settings import Settings

if TYPE_CHECKING:
    from vademecum.engines.onnx.embedder import Embedder

POLL_INTERVAL_S = 3.0

_log = structlog.get_logger("vademecum.reembed")


class Progress(msgspec.Struct, frozen=True):
    """The progress of a model change: `done` of `of` blocks have vectors of the new model."""

    done: int
    of: int


class Status(msgspec.Struct, rename="camel"):
    """The state of a model change.

    `current`: the model that computes new vectors. `before`: the model that is being replaced, if any. `behind`: the
    progress of the accounts that `before` still serves; accounts that were not counted yet are missing. `paused`: no
    vectors are computed.
    """

    current: str | None
    before: str | None
    paused: bool
    users: Progress
    blocks: Progress
    behind: dict[str, Progress]


def resume(settings: Settings) -> tuple[ModelPlan | None, set[str], set[str]]:
    """Return three values: the interrupted model change, the users on the old model, and the users being swapped.

    Delete the staged vectors of all other model changes.
    """
    plan = active_model.load_plan(settings)
    staged_vectors.delete_others(settings.data, plan.model if plan is not None else None)
    if plan is None:
        return None, set(), set()
    # Write the choice again, because the server may have stopped after writing the plan and before writing the choice.
    if active_model.read_choice(settings) != plan.target:
        active_model.write_choice(settings, plan.target)
    return (
        plan,
        staged_vectors.users_on_old_model(settings.data, plan.model),
        staged_vectors.users_being_swapped(settings.data, plan.model),
    )


class ModelChange:
    """Runs a model change. `schedule(job, user_id)`: schedules a background job."""

    def __init__(
        self,
        settings: Settings,
        plan: ModelPlan | None,
        users: UserStores,
        inference: Inference,
        indexer: Indexer,
        schedule: Callable[[str, str], None],
    ) -> None:
        self._settings = settings
        self._plan = plan
        self._users = users
        self._inference = inference
        self._indexer = indexer
        self._schedule = schedule
        self._progress: dict[str, Progress] = {}
        self._failures: Counter[tuple[str, Block]] = Counter()  # keys: user and block
        self._changing = asyncio.Lock()  # held while a user is swapped or the plan is changed
        self._files = asyncio.Lock()  # held while staged files are written or pruned

    async def start(self) -> None:
        if self._plan is not None:
            await self._schedule_remaining()

    async def use(self, name: str, accounts: Collection[str]) -> None:
        """Make `name` the model of the data folder. `accounts`: a live view of all account ids.

        Raises BadRequest for an invalid name, and Conflict if the model is damaged or another change is in progress.
        """
        folder = self._settings.model_folder(name)
        if folder.parent not in self._settings.model_folders or name in ("", ".", ".."):
            raise BadRequest(f"{name!r} is not the name of a model.")
        try:
            manifest = await asyncio.to_thread(manifests.verify, folder)
        except ModelError as error:
            raise Conflict(f"{error.message} Nothing was changed.") from error
        if name not in PINNED_MODELS and manifest.fitted is None:
            raise Conflict(
                f"{name} has no fitted search weights. Run `vademecum models fit {name}`. Nothing was changed."
            )
        async with self._indexer.request_priority.priority_lock(self._changing):
            current = await self._inference.get()
            if current is not None and current.model == manifest.hash:
                return
            if self._plan is not None and name != self._plan.before:
                raise Conflict(
                    f"The change from {self._plan.before} to {self._plan.target} is in progress. Wait until it is "
                    f"complete, or go back with `vademecum models use {self._plan.before}`. Nothing was changed."
                )
            on_old_model: set[str] = set()
            if current is not None:  # without a current model there are no old vectors to replace
                inference = self._inference
                swapped_back = inference.users_on_old_model - inference.users_being_swapped
                on_old_model = await self._with_records(accounts) - swapped_back
            before = current.manifest.id if current is not None else name
            await self._begin(ModelPlan(before=before, target=name, model=manifest.hash), on_old_model)
            with_records = await self._with_records(accounts)
            # Read the users again, to include those who had no records when the change began.
            for user_id in with_records - on_old_model:
                self._indexer.forget(user_id)
                self._schedule_document_jobs(user_id)
            for user_id in with_records:
                self._schedule("recall", user_id)  # rebuilds the memory index; rows do not store its vectors
            await self._schedule_remaining()

    async def use_first_installed(self, accounts: Callable[[], Collection[str]]) -> None:
        """Wait until a model is installed, and use it. Return at once if a model is already in use."""
        last_error = ""
        while await self._inference.get() is None:
            await asyncio.sleep(POLL_INTERVAL_S)
            try:
                folder = await asyncio.to_thread(active_model.find_folder, self._settings)
                if folder is not None:
                    await self.use(folder.name, accounts())
            except Exception as error:  # try again: the copying of the model may not be complete yet
                if str(error) != last_error:
                    _log.error("an installed model cannot be used", exc_info=error)
                last_error = str(error)

    def _schedule_document_jobs(self, user_id: str) -> None:
        self._schedule("embed", user_id)
        self._schedule("index", user_id)

    async def _with_records(self, accounts: Collection[str]) -> set[str]:
        user_ids = list(accounts)
        return await asyncio.to_thread(lambda: set(filter(self._users.has_records, user_ids)))

    async def _begin(self, plan: ModelPlan, on_old_model: set[str]) -> None:
        """Store the change on disk, then switch to the new model."""
        try:
            prepared = await self._inference.prepare(self._settings.model_folder(plan.target), plan.model)
        except ModelError as error:
            raise Conflict(f"{error.message} Nothing was changed.") from error
        try:
            await asyncio.to_thread(self._store_change, plan, on_old_model)
        except OSError as error:
            await self._inference.discard(prepared)
            raise Broken(f"The change could not be stored: {error.strerror}. Nothing was changed.") from error
        self._inference.switch(prepared, on_old_model)
        self._plan = plan
        self._progress.clear()
        self._failures.clear()
        async with self._files:
            await asyncio.to_thread(staged_vectors.delete_others, self._settings.data, plan.model)

    def _store_change(self, plan: ModelPlan, on_old_model: set[str]) -> None:
        """Write the change to disk. Create the folders first, because without a plan they have no effect."""
        staged_vectors.create_folders(self._settings.data, on_old_model, plan.model)
        active_model.save_plan(self._settings, plan)
        try:
            active_model.write_choice(self._settings, plan.target)
        except OSError:
            if self._plan is None:
                active_model.plan_file(self._settings).unlink()
            else:
                active_model.save_plan(self._settings, self._plan)
            raise

    async def _schedule_remaining(self) -> None:
        """Schedule the users on the old model or, while the change is paused, only those with an interrupted swap."""
        inference, is_paused = self._inference, self._plan is not None and self._plan.paused
        for user_id in inference.users_being_swapped if is_paused else inference.users_on_old_model:
            self._schedule("reembed", user_id)
        await self._end_if_done()

    async def set_paused(self, paused: bool) -> None:
        """Pause after the current block, or resume."""
        async with self._indexer.request_priority.priority_lock(self._changing):
            if self._plan is None:
                raise Conflict("No model change is in progress.")
            plan = msgspec.structs.replace(self._plan, paused=paused)
            active_model.save_plan(self._settings, plan)
            self._plan = plan
            await self._schedule_remaining()

    async def work(self, user_id: str) -> None:
        """Stage missing vectors, and swap when all are staged. Raises Broken if failed blocks should be retried."""
        try:
            while (target := await self._target(user_id)) is not None:
                staged = StagedVectors(self._settings.data, user_id, target.model)
                if await self._stage_missing(user_id, target, staged):
                    await self._swap_if_complete(user_id, target, staged)
        except NotFound:
            await self.forget(user_id)

    async def forget(self, user_id: str) -> None:
        """Remove a deleted account from the change."""
        async with self._indexer.request_priority.priority_lock(self._changing):
            self._inference.finish_user(user_id)
            self._progress.pop(user_id, None)
            await self._end_if_done()

    async def _target(self, user_id: str) -> Embedder | None:
        """Return the model to embed this user's blocks with, or None if there is nothing to do now."""
        if self._plan is None or user_id not in self._inference.users_on_old_model:
            return None
        if self._plan.paused and user_id not in self._inference.users_being_swapped:
            return None
        return await self._inference.get()

    async def _stage_missing(self, user_id: str, target: Embedder, staged: StagedVectors) -> bool:
        """Stage the missing vectors. Stop and return False if the model change is paused or gets another target."""
        retries = 0
        async with self._users.open(user_id) as store:
            missing, total = await self._list_missing(store, target.model, staged)
        for number, block in enumerate(missing):
            self._progress[user_id] = Progress(total - len(missing) + number, total)
            try:
                await self._stage(user_id, block, target, staged)
            except Exception as error:
                if await self._target(user_id) is not target:
                    return False
                # Do not count these errors as failures of the block. For example, the disk may be full.
                if isinstance(error, NotFound | Busy | OSError):
                    raise
                self._failures[user_id, block] += 1
                retries += self._failures[user_id, block] < MAX_ATTEMPTS
                _log.error("block not embedded", exc_info=error)
            if await self._target(user_id) is not target:
                return False
        if retries:
            raise Broken(f"{retries} blocks could not be embedded.")
        return True

    async def _list_missing(
        self, store: UserStore, model: str, staged: StagedVectors
    ) -> tuple[list[Block], int]:
        """Return the blocks that are neither swapped nor staged, oldest first, and the number of all blocks.

        The list does not include blocks that failed too often.
        """
        seqs = await asyncio.to_thread(staged.seqs)
        rows = store.row_index.rows
        on_old_model = (
            Block(block_id, rows[f"{COLLECTION}/{block_id}"].seq)
            for block_id in list_blocks_without_vectors(store, model)
        )
        missing = [
            block
            for block in on_old_model
            if seqs.get(block.id) != block.seq and self._failures[store.user_id, block] < MAX_ATTEMPTS
        ]
        total = sum(1 for head in rows.values() if head.chunks and head.seq != WAITING)
        self._progress[store.user_id] = Progress(total - len(missing), total)
        return missing, total

    async def _stage(self, user_id: str, block: Block, target: Embedder, staged: StagedVectors) -> None:
        key = f"{COLLECTION}/{block.id}"
        async with self._users.open(user_id) as store:
            body = (await store.read_bodies([key])).get(key)
            if body is None or not _is_unchanged(store, *block):
                return
        texts = [chunk["text"] for chunk in msgspec.json.decode(body)["chunks"]]
        vectors = await self._inference.embed_block(target, user_id, block.id, texts)
        if vectors is None:
            return
        async with self._files:
            async with self._users.open(user_id) as store:
                is_unchanged = _is_unchanged(store, *block)
            if is_unchanged:
                await asyncio.to_thread(staged.put, *block, vectors)

    async def _swap_if_complete(self, user_id: str, target: Embedder, staged: StagedVectors) -> None:
        """Swap the staged vectors into the rows. Change nothing if new blocks have arrived, which are staged first."""
        async with self._changing:
            if await self._target(user_id) is not target:
                return
            index = await asyncio.to_thread(
                lambda: lance.VectorIndex.open(
                    staged.index, target.model, target.dims, cache=lance.MatrixCache(0)
                )
            )
            try:
                await self._indexer.rebuild_with_model(
                    user_id,
                    lambda: self._swap(user_id, target, staged),
                    index,
                    staged.index,
                    lambda: self._inference.finish_user(user_id),
                )
            finally:
                await asyncio.to_thread(index.drop)
            if user_id not in self._inference.users_on_old_model:
                await self._finish_user(user_id, staged)

    async def _swap(self, user_id: str, target: Embedder, staged: StagedVectors) -> bool:
        """Write the staged vectors into the rows. Return False, changing nothing, if vectors are missing."""
        async with self._users.open(user_id) as store:
            missing, _ = await self._list_missing(store, target.model, staged)
            if missing:
                return False
            seqs = await asyncio.to_thread(staged.seqs)
            current = {block_id: seq for block_id, seq in seqs.items() if _is_unchanged(store, block_id, seq)}
            vectors = await asyncio.to_thread(staged.read, current, target.dims)
            if len(vectors) < len(current):
                return False
            skipped = {
                block
                for (owner, block), count in self._failures.items()
                if owner == user_id and count >= MAX_ATTEMPTS
            }
            # Mark the swap before the rows change. After a server stop, the mark on disk shows that the rows may have
            # new vectors.
            await asyncio.to_thread(staged.begin_swap)
            self._inference.users_being_swapped.add(user_id)
            is_swapped = await store.write(lambda tx: _put_all(tx, current, vectors, target, skipped))
            if not is_swapped:
                self._inference.users_being_swapped.discard(user_id)
                await asyncio.to_thread(staged.cancel_swap)
            return is_swapped

    async def _finish_user(self, user_id: str, staged: StagedVectors) -> None:
        await asyncio.to_thread(staged.delete)
        # Process rows that arrived during the swap or have vectors of another model.
        self._schedule_document_jobs(user_id)
        if self._plan is not None:
            blocks = self._plan.blocks + self._progress.pop(user_id, Progress(0, 0)).of
            self._plan = msgspec.structs.replace(self._plan, users=self._plan.users + 1, blocks=blocks)
            try:
                active_model.save_plan(self._settings, self._plan)
            except OSError as error:  # only log it: after a restart, just the shown count is too low
                _log.error("the progress of the model change was not stored", exc_info=error)
        await self._end_if_done()

    async def _end_if_done(self) -> None:
        if self._plan is not None and not self._inference.users_on_old_model:
            self._plan = None
            active_model.plan_file(self._settings).unlink(missing_ok=True)
            await self._inference.close_previous()

    async def prune(self, user_id: str) -> None:
        """Erase the staged vectors of blocks that were deleted or changed."""
        async with self._files, self._users.open(user_id) as store:
            await asyncio.to_thread(
                staged_vectors.prune,
                self._settings.data,
                user_id,
                lambda i, seq: _is_unchanged(store, i, seq),
            )

    async def progress(self, user_id: str) -> Progress | None:
        """Return the progress of the model change for a user, or None if the user is not on the old model."""
        if self._plan is None or user_id not in self._inference.users_on_old_model:
            return None
        if user_id not in self._progress:
            staged = StagedVectors(self._settings.data, user_id, self._plan.model)
            async with self._users.open(user_id) as store:
                await self._list_missing(store, self._plan.model, staged)
        return self._progress.get(user_id)

    def status(self) -> Status:
        plan, embedder = self._plan, self._inference.opened()
        if plan is None:
            current = embedder.manifest.id if embedder is not None else None
            return Status(current, None, False, Progress(0, 0), Progress(0, 0), {})
        on_old_model = self._inference.users_on_old_model
        behind = {user_id: self._progress[user_id] for user_id in on_old_model if user_id in self._progress}
        done = plan.blocks + sum(progress.done for progress in behind.values())
        of = plan.blocks + sum(progress.of for progress in behind.values())
        users = Progress(plan.users, plan.users + len(on_old_model))
        return Status(plan.target, plan.before, plan.paused, users, Progress(done, of), behind)


def _is_unchanged(store: UserStore, block_id: str, seq: int) -> bool:
    """Return whether the block exists and still has this `seq`."""
    head = store.row_index.rows.get(f"{COLLECTION}/{block_id}")
    return head is not None and not head.deleted and head.seq == seq


def _put_all(
    tx: Transaction,
    staged_seqs: dict[str, int],
    vectors: dict[str, Vectors],
    target: Embedder,
    skipped: set[Block],
) -> bool:
    """Write all staged vectors into their rows. Return False, writing nothing, if one is missing or outdated."""
    ready: list[tuple[str, str]] = []
    for key in tx.keys(COLLECTION):
        head = tx.head(key)
        if head is None or not head.chunks or head.seq == WAITING or head.model == target.model:
            continue
        block = Block(key.partition("/")[2], head.seq)
        if staged_seqs.get(block.id) == block.seq:
            ready.append((key, block.id))
        elif block not in skipped:
            return False
    tx.prefetch([key for key, _ in ready])
    for key, block_id in ready:
        filled = with_vectors(tx.row(key), target, vectors[block_id])
        tx.put(key, filled, msgspec.json.encode(filled), same_text=True)
    return True
