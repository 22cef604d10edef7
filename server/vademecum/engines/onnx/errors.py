"""Errors of models and embedding. Each message says what happened, what is safe and what to do."""

from __future__ import annotations

from vademecum.errors import Broken, Busy


class ModelError(Broken):
    """The model cannot be used or installed.

    The codes are MODEL (damaged or unsupported), MODEL_UNKNOWN, MODEL_OFFLINE, MODEL_HUB, MODEL_MAVEN, MODEL_CHECKSUM,
    MODEL_DISK and MODEL_BUSY.
    """

    code = "MODEL"


class EmbedderBusy(Busy):
    """The texts of a call do not fit into the queue, or a query waited too long.

    Retry after `retry_after_s` seconds.
    """

    code = "EMBEDDER_BUSY"


class EmbedderClosed(Busy):
    """The embedder is closing. The call was rejected, or its queued texts were dropped."""

    code = "EMBEDDER_CLOSED"
