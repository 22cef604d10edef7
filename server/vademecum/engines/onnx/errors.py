"""Errors of models and embedding. Each message says what happened, what is safe and what to do."""

from __future__ import annotations

from vademecum.errors import Broken, Busy


class ModelError(Broken):
    """The model cannot be used or installed.

    The codes are MODEL (damaged or unsupported), MODEL_OFFLINE, MODEL_HUB, MODEL_CHECKSUM and MODEL_DISK.
    """

    code = "MODEL"


class EmbedderBusy(Busy):
    """The queue is full and the call was rejected as a whole. Retry after `retry_after_s` seconds."""

    code = "EMBEDDER_BUSY"


class EmbedderClosed(Busy):
    """The embedder is closing and has dropped all queued texts."""

    code = "EMBEDDER_CLOSED"
