"""Which model this data folder uses: the one it was begun with, until a command changes it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import structlog

from vademecum.engines.onnx.embedder import Embedder
from vademecum.engines.onnx.errors import ModelError
from vademecum.errors import Busy
from vademecum.settings import Settings

_log = structlog.get_logger("vademecum.models")
OPENING_S = 10.0  # the longest that a person waits for the model to be opened, at the start of the server
PREFERRED = ("e5-small-v2", "all-minilm-l6-v2")


def chosen_file(settings: Settings) -> Path:
    return settings.data / "model"


def current(settings: Settings) -> Path | None:
    """The folder of the model in use, or None: words-only search. Remembers the choice of the first time."""
    remembered = chosen_file(settings)
    if remembered.exists():
        folder = settings.models_folder / remembered.read_text(encoding="utf-8").strip()
        return folder if (folder / "manifest.json").exists() else None
    for name in PREFERRED:
        if (settings.models_folder / name / "manifest.json").exists():
            choose(settings, name)
            return settings.models_folder / name
    return None


def choose(settings: Settings, name: str) -> None:
    chosen_file(settings).write_text(name + "\n", encoding="utf-8")


class Inference:
    """The embedder, opened in the background so that the first sync need not wait for it."""

    def __init__(self, settings: Settings) -> None:
        self._opening = asyncio.create_task(asyncio.to_thread(_open, settings))

    async def get(self, patience_s: float | None = None) -> Embedder | None:
        """The embedder once it is open; None when no model is installed, or it is damaged: /ready tells which.

        Raises Busy if it is not open within `patience_s`.
        """
        opened, _ = await asyncio.wait([self._opening], timeout=patience_s)
        if not opened:
            raise Busy("The model is still being opened. Try again in 5 seconds.", retry_after_s=5)
        return self.now()

    def settled(self) -> bool:
        """Is it known which model there is, if any?"""
        return self._opening.done() and self._opening.exception() is None

    def now(self) -> Embedder | None:
        """The embedder if it is open already."""
        done = self._opening.done() and not self._opening.cancelled() and self._opening.exception() is None
        return self._opening.result() if done else None

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text by the model's tokenizer, or, without a model, a guess: four bytes a token."""
        embedder = await self.get(OPENING_S)
        if embedder is None:
            return [-(-len(text.encode(errors="replace")) // 4) for text in texts]
        return await asyncio.to_thread(lambda: [embedder.count_tokens(text) for text in texts])

    async def close(self) -> None:
        embedder = await self.get()
        if embedder is not None:
            await embedder.aclose()


def _open(settings: Settings) -> Embedder | None:
    folder = current(settings)
    if folder is None:
        _log.warning("no model: search by words only; `vademecum models pull` brings one")
        return None
    try:
        embedder = Embedder(folder)
    except ModelError as error:
        _log.error("the model is damaged: search by words only; `vademecum models verify`", exc_info=error)
        raise
    _log.info("model", id=embedder.manifest.id, hash=embedder.model[:12], dims=embedder.dims)
    return embedder
