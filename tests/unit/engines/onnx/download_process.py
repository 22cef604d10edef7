"""Pull a model in a separate process."""

from __future__ import annotations

import multiprocessing
import resource
from pathlib import Path

from vademecum.engines.onnx import download
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.pinned_models import PinnedModel

SPAWN = multiprocessing.get_context("spawn")
DONE_S = 60


def pull(
    pinned: PinnedModel, models: Path, hub: str, answers: multiprocessing.Queue[str], largest: int = 0
) -> None:
    """Pull and report the result in `answers`. `largest`: the file size limit of the process in bytes, 0 for none."""
    if largest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    try:
        download.pull(pinned, models, hub=hub)
        answers.put("installed")
    except ModelError as error:
        answers.put(f"{error.code}: {error}")
