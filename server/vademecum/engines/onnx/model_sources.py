"""Install a model from the first source that has it: an installed Python package, the model hub, or Maven."""

from __future__ import annotations

from pathlib import Path

from vademecum.engines.onnx import download
from vademecum.engines.onnx.download import Progress
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.pinned_models import ALL_MINILM, PinnedModel

# After these errors, no other source is tried: the disk cannot be used, or another process is installing the model.
FINAL_CODES = {"MODEL_DISK", "MODEL_BUSY"}


def install_model(known: PinnedModel, models_dir: Path, *, progress: Progress | None = None) -> str:
    """Install the model and return the name of its source. If all sources fail, raise ModelError with all reasons."""
    package = download.find_offline_weights() if known is ALL_MINILM else None
    if package is not None:
        download.prepare_from_folder(known, package, models_dir, progress)
        return "its package"
    try:
        download.pull(known, models_dir, progress=progress)
        return "the hub"
    except ModelError as hub_error:
        if known.maven is None or hub_error.code in FINAL_CODES:
            raise
        from vademecum.engines.onnx import maven  # deferred: imports onnx

        try:
            maven.pull(known, models_dir, progress=progress)
        except ModelError as maven_error:
            code = hub_error.code if maven_error.code == "MODEL_MAVEN" else maven_error.code
            raise ModelError(f"{hub_error} {maven_error}", code=code) from maven_error
        return "Maven"
