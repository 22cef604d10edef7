"""Which model this data folder uses: the one it was begun with, until a command changes it.

While a change is under way there are two: users whose rows hold the vectors of the one before are served by that one
(`for_user`), the others by the new one. Vectors of two models are never compared.
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
SOON_S = 0.5  # after which the model is opened though nobody waits for it
OPENING_S = 10.0  # the longest that a person waits for the model to be opened, at the start of the server
PREFERRED = ("e5-small-v2", "all-minilm-l6-v2")


def chosen_file(settings: Settings) -> Path:
    return settings.data / "model"


def chosen(settings: Settings) -> str:
    """The name of the model that was chosen; empty when none was. Raises Broken."""
    path = chosen_file(settings)
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise Broken(
            f"{path} cannot be read: it names the model in use. Nothing was changed. Write the name of that folder of "
            f"{settings.models_folder} into it, or remove it: then the server chooses, and what another model has "
            "embedded is embedded again."
        ) from error


def current(settings: Settings) -> Path | None:
    """The folder of the model in use, or None: words-only search. Remembers the choice of the first time."""
    if remembered := chosen(settings):
        folder = settings.model_folder(remembered)
        return folder if (folder / "manifest.json").exists() else None
    for name in PREFERRED:
        folder = settings.model_folder(name)
        if (folder / "manifest.json").exists():
            choose(settings, name)
            return folder
    return None


def advice(settings: Settings) -> str:
    """Return how this server gets a model."""
    where = f" --data {shlex.quote(str(settings.data))}" if settings.data != default_data() else ""
    command = f"vademecum models pull{where}"
    if settings.models is not None:
        command = f"VADEMECUM_MODELS={shlex.quote(str(settings.models))} {command}"
    return f"`{command}` brings one"


def choose(settings: Settings, name: str) -> None:
    _replace(chosen_file(settings), name.encode() + b"\n")


class ModelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the model that is under way, kept in `<data>/reembed.json`. `model`: the new one's hash. `users` and
    `blocks`: how many are done."""

    before: str
    target: str
    model: str
    paused: bool = False
    users: int = 0
    blocks: int = 0


def plan_file(settings: Settings) -> Path:
    return settings.data / "reembed.json"


def load_plan(settings: Settings) -> ModelPlan | None:
    """Raises Broken."""
    path = plan_file(settings)
    try:
        return msgspec.json.decode(path.read_bytes(), type=ModelPlan)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Broken(
            f"{path} cannot be read: it says that the model is being changed, and how far that is. Nothing was changed. "
            "Remove it: then what the new model has not embedded yet is embedded by it in the background."
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
    """The embedder, opened in the background, when a person asks for it or soon: the first sync comes before it.

    `before`: the folder of the model that is being replaced, `behind`: the users it still serves. Of those, the rows
    of the `swapping` may have the new vectors already, which their index has not: it must not follow the rows now.
    `alone`: is nobody there who wants a core?
    """

    def __init__(
        self,
        settings: Settings,
        before: Path | None = None,
        behind: Iterable[str] = (),
        swapping: Iterable[str] = (),
        alone: Callable[[], bool] = lambda: True,
    ) -> None:
        self._alone = alone
        self.behind = set(behind)
        self.swapping = set(swapping)
        folder = current(settings)
        if folder is None:
            _log.warning(f"no model: search by words only; {advice(settings)}")
        self._wanted = asyncio.Event()
        self._over = False
        self._opening = asyncio.create_task(self._open_soon(folder))
        self._before: asyncio.Task[Embedder | None] | None = None
        if before is not None:
            self._before = asyncio.create_task(self._open_soon(before))
        self._running: dict[tuple[str, str, str], asyncio.Task[Vectors]] = {}  # (user, block, model)

    async def get(self, patience_s: float | None = None) -> Embedder | None:
        """The embedder once it is open; None when no model is installed, or it is damaged: /ready tells which.

        Raises Busy if it is not open within `patience_s`: then somebody waits, and it is opened at once.
        """
        return await self._opened(self._opening, patience_s)

    async def for_user(self, user_id: str, patience_s: float | None = None) -> Embedder | None:
        """The embedder of the model whose vectors this user's rows and index hold. Otherwise as `get`."""
        opening = self._serving(user_id)
        return None if opening is None else await self._opened(opening, patience_s)

    async def for_anyone(self, user_id: str, patience_s: float | None = None) -> Embedder | None:
        """Return the embedder for vectors that are remade at once when the model changes. Otherwise as `get`."""
        return await self.get(patience_s)

    def may_follow(self, user_id: str) -> bool:
        """May the document index follow the rows? Not while they are given the vectors of another model."""
        return user_id not in self.swapping

    def _serving(self, user_id: str) -> asyncio.Task[Embedder | None] | None:
        return self._before if user_id in self.behind else self._opening

    def serves(self, embedder: Embedder, user_id: str) -> bool:
        """Are vectors of this embedder, which `for_user` gave, still what the user's rows should get?"""
        return user_id not in self.swapping and _result(self._serving(user_id)) is embedder

    def models(self, user_id: str) -> set[str]:
        """The models, by their hashes, of which this user's rows may have vectors that are searched or will be at once:
        two while the rows are given those of another."""
        serving = {self._serving(user_id), self._opening if user_id in self.swapping else None}
        return {embedder.model for opening in serving if (embedder := _result(opening)) is not None}

    def settled(self) -> bool:
        """Is it known which model there is, if any? Who asks waits for it."""
        self._wanted.set()
        return self._opening.done() and self._opening.exception() is None

    def now(self) -> Embedder | None:
        """The embedder if it is open already."""
        return _result(self._opening)

    async def passages(
        self, embedder: Embedder, user_id: str, block_id: str, texts: Sequence[str]
    ) -> Vectors | None:
        """The vectors of a block's texts; None when `cancel` was called for it meanwhile."""
        place = user_id, block_id, embedder.model
        self._running[place] = task = asyncio.create_task(_passages(embedder, texts))
        try:
            await asyncio.wait([task])
            return None if task.cancelled() else task.result()
        finally:
            task.cancel()  # nothing, unless who waits was cancelled
            if self._running.get(place) is task:
                del self._running[place]

    def cancel(self, user_id: str, block_ids: Set[str]) -> None:
        """These blocks are gone: their texts leave the embedder's queue at once."""
        for (owner, block_id, _), task in self._running.items():
            if owner == user_id and block_id in block_ids:
                task.cancel()

    async def prepare(self, folder: Path, model: str) -> asyncio.Task[Embedder | None]:
        """Open the model in `folder`, whose hash is `model`, for `change` or `drop`. Raises ModelError."""
        back = _result(self._before)
        if self._before is not None and back is not None and back.model == model:
            return self._before
        opening = asyncio.create_task(asyncio.to_thread(_open, folder, self._alone))
        await opening
        return opening

    async def drop(self, prepared: asyncio.Task[Embedder | None]) -> None:
        """It is not wanted after all."""
        if prepared is not self._before and (embedder := _result(prepared)) is not None:
            await embedder.aclose()

    def change(self, prepared: asyncio.Task[Embedder | None], behind: Iterable[str]) -> None:
        """Use this model from now on; `behind` go on with the one in use until now."""
        self._opening, self._before = prepared, self._opening
        self.behind = set(behind)
        self.swapping.clear()

    def caught_up(self, user_id: str) -> None:
        """The user's rows and index hold the vectors of the new model, or there are none any more."""
        self.behind.discard(user_id)
        self.swapping.discard(user_id)

    async def end_change(self) -> None:
        """Nobody is behind any more: let go of the model before, after the questions it has by now."""
        before, self._before = self._before, None
        if before is not None and (embedder := _result(before)) is not None:
            await embedder.aclose(finish=True)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text by the model's tokenizer, or, without a model, a guess: four bytes a token."""
        embedder = await self.get(OPENING_S)
        if embedder is None:
            return [-(-len(text.encode(errors="replace")) // 4) for text in texts]
        return await asyncio.to_thread(lambda: [embedder.count_tokens(text) for text in texts])

    async def close(self) -> None:
        self._over = True
        self._wanted.set()
        opened = [opening for opening in (self._opening, self._before) if opening is not None]
        await asyncio.wait(opened)
        for opening in opened:
            if (embedder := _result(opening)) is not None:
                await embedder.aclose()

    async def _open_soon(self, folder: Path | None) -> Embedder | None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wanted.wait(), 0 if folder is None else SOON_S)
        return None if self._over else await asyncio.to_thread(_open, folder, self._alone)

    async def _opened(
        self, opening: asyncio.Task[Embedder | None], patience_s: float | None
    ) -> Embedder | None:
        if patience_s is not None:
            self._wanted.set()
        done, _ = await asyncio.wait([opening], timeout=patience_s)
        if not done:
            raise Busy("The model is still being opened. Try again in 5 seconds.", retry_after_s=5)
        return _result(opening)


async def _passages(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Jobs can wait: that the queue is full is no fault of the block's."""
    while True:
        try:
            return await embedder.embed_passages(texts)
        except EmbedderBusy as busy:
            await asyncio.sleep(busy.retry_after_s or 1)


def _result(opening: asyncio.Task[Embedder | None] | None) -> Embedder | None:
    if opening is None or not opening.done() or opening.cancelled() or opening.exception() is not None:
        return None
    return opening.result()


def _open(folder: Path | None, alone: Callable[[], bool]) -> Embedder | None:
    if folder is None:
        return None
    from vademecum.engines.onnx.embedder import Embedder  # onnxruntime: not before the first sync

    try:
        embedder = Embedder(folder, is_idle=alone)
    except ModelError as error:
        _log.error("the model is damaged: search by words only; `vademecum models verify`", exc_info=error)
        raise
    _log.info("model", id=embedder.manifest.id, hash=embedder.model[:12], dims=embedder.dims)
    return embedder
