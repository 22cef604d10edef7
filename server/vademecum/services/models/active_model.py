"""Open the embedding model of the data folder.

The model is chosen at the first start and can be changed with a command.

During a model change two models are open: the old one serves users whose rows still have its vectors, and the new one
serves all other users (`for_user`). Vectors of two models are never compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
from collections.abc import Callable, Iterable, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog

from vademecum.engines.onnx.errors import EmbedderBusy, ModelError
from vademecum.errors import Broken, Busy
from vademecum.settings import Settings, default_data

if TYPE_CHECKING:
    from vademecum.engines.onnx.embedder import Embedder
    from vademecum.model.schema.vector_codec import Vectors

_log = structlog.get_logger("vademecum.models")
OPEN_DELAY_S = 0.5  # seconds after startup until the model is opened, unless a request needs it sooner
OPEN_TIMEOUT_S = 10.0  # the longest time in seconds that a request waits for the model to be opened
PREFERRED = ("e5-small-v2", "all-minilm-l6-v2", "multilingual-e5-small")


def choice_file(settings: Settings) -> Path:
    return settings.data / "model"


def read_choice(settings: Settings) -> str:
    """Return the name of the chosen model, or "" if none was chosen. Raises Broken if the file cannot be read."""
    path = choice_file(settings)
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise Broken(
            f"{path} cannot be read. It names the model in use. Nothing was changed. Write the name of the model's "
            f"folder in {settings.models_folder} into it. If you remove it instead, the server chooses a model and "
            "embeds the texts of any other model again."
        ) from error


def find_folder(settings: Settings) -> Path | None:
    """Return the folder of the model in use, or None for keyword search only. The first call stores a choice."""
    choice = read_choice(settings)
    for name in [choice] if choice else PREFERRED:
        folder = settings.model_folder(name)
        if (folder / "manifest.json").exists():
            if not choice:
                write_choice(settings, name)
            return folder
    return None


def install_hint(settings: Settings) -> str:
    """Return a phrase that names the command that installs a model."""
    where = f" --data {shlex.quote(str(settings.data))}" if settings.data != default_data() else ""
    command = f"vademecum models pull{where}"
    if settings.models is not None:
        command = f"VADEMECUM_MODELS={shlex.quote(str(settings.models))} {command}"
    return f"`{command}` installs one"


def write_choice(settings: Settings, name: str) -> None:
    _replace(choice_file(settings), name.encode() + b"\n")


class ModelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A model change in progress, stored in `<data>/reembed.json`.

    `before` and `target`: the names of the old and the new model. `model`: the hash of the new model. `users` and
    `blocks`: the numbers of users and blocks that are completely changed.
    """

    before: str
    target: str
    model: str
    paused: bool = False
    users: int = 0
    blocks: int = 0


def plan_file(settings: Settings) -> Path:
    return settings.data / "reembed.json"


def load_plan(settings: Settings) -> ModelPlan | None:
    """Return the model change in progress, or None. Raises Broken if its file cannot be read."""
    path = plan_file(settings)
    try:
        return msgspec.json.decode(path.read_bytes(), type=ModelPlan)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Broken(
            f"{path} cannot be read. It describes the model change in progress. Nothing was changed. Remove the file: then the "
            "new model embeds the remaining documents in the background."
        ) from error


def save_plan(settings: Settings, plan: ModelPlan) -> None:
    _replace(plan_file(settings), msgspec.json.encode(plan))


def _replace(path: Path, data: bytes) -> None:
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


class Inference:
    """Opens and provides the embedder.

    The embedder opens in the background shortly after startup, because the first sync has priority, or earlier if a
    request needs it.

    `previous`: the folder of the model that is being replaced. `users_on_old_model`: the users whom that model still
    serves. `users_being_swapped`: users whose rows may already have new vectors while their index has the old ones.
    Their index must not be updated. `is_idle`: returns whether no request needs a core.
    """

    def __init__(
        self,
        settings: Settings,
        previous: Path | None = None,
        users_on_old_model: Iterable[str] = (),
        users_being_swapped: Iterable[str] = (),
        is_idle: Callable[[], bool] = lambda: True,
    ) -> None:
        self._is_idle = is_idle
        self.users_on_old_model = set(users_on_old_model)
        self.users_being_swapped = set(users_being_swapped)
        folder = find_folder(settings)
        if folder is None:
            _log.warning(f"no model: search by words only; {install_hint(settings)}")
        self._open_now = asyncio.Event()
        self._is_closing = False
        self._opening = asyncio.create_task(self._open_soon(folder))
        self._previous: asyncio.Task[Embedder | None] | None = None
        if previous is not None:
            self._previous = asyncio.create_task(self._open_soon(previous))
        self._running: dict[tuple[str, str, str], asyncio.Task[Vectors]] = {}  # keys: user, block and model

    async def get(self, timeout_s: float | None = None) -> Embedder | None:
        """Wait until the embedder is open and return it, or None if no model is installed or the model is damaged.

        The /ready route distinguishes the two cases. With `timeout_s` the embedder is opened at once, and Busy is
        raised if that takes longer.
        """
        return await self._wait_open(self._opening, timeout_s)

    async def for_user(self, user_id: str, timeout_s: float | None = None) -> Embedder | None:
        """Return the embedder whose vectors the user's rows and index have, as `get` does."""
        opening = self._serving(user_id)
        return None if opening is None else await self._wait_open(opening, timeout_s)

    async def for_memory(self, user_id: str, timeout_s: float | None = None) -> Embedder | None:
        """Return the embedder of the memory index, as `get` does. A model change rebuilds that index at once."""
        return await self.get(timeout_s)

    def may_update_index(self, user_id: str) -> bool:
        """Return False while the user's rows receive the vectors of another model."""
        return user_id not in self.users_being_swapped

    def _serving(self, user_id: str) -> asyncio.Task[Embedder | None] | None:
        return self._previous if user_id in self.users_on_old_model else self._opening

    def serves(self, embedder: Embedder, user_id: str) -> bool:
        """Return whether the user's rows should still get vectors of this embedder."""
        return user_id not in self.users_being_swapped and _result(self._serving(user_id)) is embedder

    def searched_models(self, user_id: str) -> set[str]:
        """Return the hashes of the models whose vectors are searched for the user now or after the swap in progress."""
        tasks = {self._serving(user_id), self._opening if user_id in self.users_being_swapped else None}
        return {embedder.model for opening in tasks if (embedder := _result(opening)) is not None}

    def is_opened(self) -> bool:
        """Return whether the model has been opened without an error, or none is installed.

        If the opening is still delayed, start it now.
        """
        self._open_now.set()
        return self._opening.done() and self._opening.exception() is None

    def opened(self) -> Embedder | None:
        """Return the embedder if it is already open, else None."""
        return _result(self._opening)

    async def embed_block(
        self, embedder: Embedder, user_id: str, block_id: str, texts: Sequence[str]
    ) -> Vectors | None:
        """Return the vectors of a block's texts, or None if `cancel` was called for the block in the meantime."""
        key = user_id, block_id, embedder.model
        self._running[key] = task = asyncio.create_task(_embed_when_free(embedder, texts))
        try:
            await asyncio.wait([task])
            return None if task.cancelled() else task.result()
        finally:
            task.cancel()  # stop the task if this call was cancelled; a finished task is not affected
            if self._running.get(key) is task:
                del self._running[key]

    def cancel(self, user_id: str, block_ids: Set[str]) -> None:
        """Remove the texts of deleted blocks from the embedder's queue at once."""
        for (owner, block_id, _), task in self._running.items():
            if owner == user_id and block_id in block_ids:
                task.cancel()

    async def prepare(self, folder: Path, model: str) -> asyncio.Task[Embedder | None]:
        """Open the model in `folder`, whose hash is `model`, for `switch` or `discard`. Raises ModelError."""
        previous = _result(self._previous)
        if self._previous is not None and previous is not None and previous.model == model:
            return self._previous
        opening = asyncio.create_task(asyncio.to_thread(_open, folder, self._is_idle))
        await opening
        return opening

    async def discard(self, prepared: asyncio.Task[Embedder | None]) -> None:
        """Close a prepared model that will not be used."""
        if prepared is not self._previous and (embedder := _result(prepared)) is not None:
            await embedder.aclose()

    def switch(self, prepared: asyncio.Task[Embedder | None], users_on_old_model: Iterable[str]) -> None:
        """Use the prepared model from now on, except for `users_on_old_model`."""
        self._opening, self._previous = prepared, self._opening
        self.users_on_old_model = set(users_on_old_model)
        self.users_being_swapped.clear()

    def finish_user(self, user_id: str) -> None:
        """Serve the user with the new model. The user's rows and index must have no vectors of the old model."""
        self.users_on_old_model.discard(user_id)
        self.users_being_swapped.discard(user_id)

    async def close_previous(self) -> None:
        """Close the old model after its pending queries. Call this when the old model serves no user any more."""
        previous, self._previous = self._previous, None
        if (embedder := _result(previous)) is not None:
            await embedder.aclose(finish=True)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text. Without a model, estimate it as a quarter of the bytes."""
        embedder = await self.get(OPEN_TIMEOUT_S)
        if embedder is None:
            return [-(-len(text.encode(errors="replace")) // 4) for text in texts]
        return await asyncio.to_thread(lambda: [embedder.count_tokens(text) for text in texts])

    async def close(self) -> None:
        self._is_closing = True
        self._open_now.set()
        tasks = [opening for opening in (self._opening, self._previous) if opening is not None]
        await asyncio.wait(tasks)
        for opening in tasks:
            if (embedder := _result(opening)) is not None:
                await embedder.aclose()

    async def _open_soon(self, folder: Path | None) -> Embedder | None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._open_now.wait(), 0 if folder is None else OPEN_DELAY_S)
        return None if self._is_closing else await asyncio.to_thread(_open, folder, self._is_idle)

    async def _wait_open(
        self, opening: asyncio.Task[Embedder | None], timeout_s: float | None
    ) -> Embedder | None:
        if timeout_s is not None:
            self._open_now.set()
        done, _ = await asyncio.wait([opening], timeout=timeout_s)
        if not done:
            raise Busy("The model is still being opened. Try again in 5 seconds.", retry_after_s=5)
        return _result(opening)


async def _embed_when_free(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Embed texts, waiting while the embedder's queue is full.

    Background jobs can wait, and a full queue must not count as a failure of the block.
    """
    while True:
        try:
            return await embedder.embed_passages(texts)
        except EmbedderBusy as busy:
            await asyncio.sleep(busy.retry_after_s or 1)


def _result(opening: asyncio.Task[Embedder | None] | None) -> Embedder | None:
    if opening is None or not opening.done() or opening.cancelled() or opening.exception() is not None:
        return None
    return opening.result()


def _open(folder: Path | None, is_idle: Callable[[], bool]) -> Embedder | None:
    if folder is None:
        return None
    # Imported here, because it imports onnxruntime, which the first sync does not need.
    from vademecum.engines.onnx.embedder import Embedder

    try:
        embedder = Embedder(folder, is_idle=is_idle)
    except ModelError as error:
        _log.error("the model is damaged: search by words only; `vademecum models verify`", exc_info=error)
        raise
    _log.info("model", id=embedder.manifest.id, hash=embedder.model[:12], dims=embedder.dims)
    return embedder
