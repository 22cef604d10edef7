"""Errors of models and embedding. Each message says what happened, what is safe and what to do."""

from __future__ import annotations

from vademecum.errors import Broken, Busy


class ModelError(Broken):
    """No usable model: codes MODEL (broken or of another kind), MODEL_OFFLINE, MODEL_HUB, MODEL_CHECKSUM, MODEL_DISK."""

    code = "MODEL"


class EmbedderBusy(Busy):
    """The queue is full and the call was rejected as a whole. Retry after `retry_after_s` seconds."""

    code = "EMBEDDER_BUSY"


class EmbedderClosed(Busy):
    """The embedder is closing and dropped all texts that it had not started."""

    code = "EMBEDDER_CLOSED"
