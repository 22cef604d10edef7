"""What can go wrong with a model. Every message says what happened, what is safe and what to do."""

from __future__ import annotations

from vademecum.errors import Broken, Busy


class ModelError(Broken):
    """No usable model: codes MODEL (broken or of another kind), MODEL_OFFLINE, MODEL_HUB, MODEL_CHECKSUM, MODEL_DISK."""

    code = "MODEL"


class EmbedderBusy(Busy):
    """The queue is full: nothing of the call was taken. Try again after `retry_after_s`."""

    code = "EMBEDDER_BUSY"


class EmbedderClosed(Busy):
    """The embedder is closing: what was not begun was dropped."""

    code = "EMBEDDER_CLOSED"
