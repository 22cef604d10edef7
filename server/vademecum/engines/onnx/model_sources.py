"""Install a model from the first source that has it: an installed Python package, the model hub, or Maven.

On a machine without access to these, `add_model` installs a model from files that were copied to it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vademecum.engines.onnx import download
from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.download import Progress
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.pinned_models import ALL_MINILM, PINNED_MODELS, PinnedModel, SourceFile

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


def add_model(path: Path, folder_of: Callable[[str], Path]) -> PinnedModel:
    """Install the model whose published files are at `path`, and return it. The hashes of the files identify the model.

    `path` is `model.safetensors` with `config.json` and `tokenizer.json` beside it, the jar of a Maven artifact, the ONNX
    export from that jar with its tokenizer beside it, or a folder with these files. `folder_of`: returns the folder of a
    model by its id. Raises ModelError.
    """
    if not path.is_dir() and path.suffix == ".jar":
        return _add_jar(path, folder_of)
    folder = path if path.is_dir() else path.parent
    problems: list[str] = []
    with download.disk_errors(f"{path} could not be installed"):
        for known in PINNED_MODELS.values():
            if _is_published(folder, known.weights, problems):
                download.prepare_from_folder(known, folder, folder_of(known.id).parent)
                return known
            artifact = known.maven
            if artifact is not None and _is_published(folder, artifact.weights, problems):
                if not _is_published(folder, artifact.tokenizer, problems):
                    problems.append(f"{artifact.tokenizer.path} must be in the same folder.")
                    break
                weights, tokenizer = (
                    (folder / f.path).read_bytes() for f in (artifact.weights, artifact.tokenizer)
                )
                _install_export(known, weights, tokenizer, folder_of)
                return known
    reason = " ".join(dict.fromkeys(problems)) or (
        "Expected: config.json, tokenizer.json and model.safetensors, or the jar of the Maven artifact."
    )
    raise ModelError(
        f"{path} does not contain the published files of {' or '.join(PINNED_MODELS)}. {reason} Nothing was installed.",
        code="MODEL_CHECKSUM" if problems else "MODEL_UNKNOWN",
    )


def _is_published(folder: Path, file: SourceFile, problems: list[str]) -> bool:
    """Return whether the folder has the published file. Add a sentence to `problems` if it has another one of this name."""
    path = folder / file.path
    if not path.is_file():
        return False
    if path.stat().st_size == file.bytes and manifests.sha256(path) == file.sha256:
        return True
    problems.append(f"{file.path} is not the published file: its size or SHA-256 differs.")
    return False


def _add_jar(jar: Path, folder_of: Callable[[str], Path]) -> PinnedModel:
    from vademecum.engines.onnx import maven  # deferred: it imports onnx, which is slow

    (known,) = (known for known in PINNED_MODELS.values() if known.maven is not None)
    assert known.maven is not None
    weights, tokenizer = maven.read_jar(known.maven, jar)
    _install_export(known, weights, tokenizer, folder_of)
    return known


def _install_export(
    known: PinnedModel, weights: bytes, tokenizer: bytes, folder_of: Callable[[str], Path]
) -> None:
    from vademecum.engines.onnx import maven  # deferred: it imports onnx, which is slow

    assert known.maven is not None
    maven.install_export(known, known.maven, weights, tokenizer, folder_of(known.id).parent)
