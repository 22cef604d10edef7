"""List the models that a browser may download: all installed models that the server itself can use."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.manifest import File, Manifest
from vademecum.errors import NotFound
from vademecum.settings import Settings


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model and the folder of its files."""

    manifest: Manifest
    folder: Path


def list_models(settings: Settings) -> dict[str, InstalledModel]:
    """Map the hashes of the installed models to the models. Leave out models that the server itself cannot use."""
    models: dict[str, InstalledModel] = {}
    for folder in settings.model_folders:
        for path in sorted(folder.glob("[!.]*/manifest.json")):
            with suppress(ModelError):
                manifest = manifests.load(path.parent)
                models.setdefault(manifest.hash, InstalledModel(manifest, path.parent))
    return models


def dimensions(settings: Settings) -> dict[str, int]:
    """Map the hashes of the installed models to the dimensions of their vectors."""
    return {digest: model.manifest.dims for digest, model in list_models(settings).items()}


def find_file(settings: Settings, model: str, path: str) -> tuple[Path, File]:
    """Return a file that a model's manifest lists. Raises NotFound for a missing or damaged file."""
    installed = list_models(settings).get(model)
    listed = (
        next((file for file in installed.manifest.files if file.path == path), None) if installed else None
    )
    if installed is None or listed is None:
        raise NotFound("The server has no such model file. `GET /v1/models` lists them all.")
    file = installed.folder / listed.path
    if not file.is_file() or file.stat().st_size != listed.bytes:
        raise NotFound(
            f"{listed.path} of {installed.manifest.id} is damaged on the server. Run `vademecum models verify` there "
            "for details."
        )
    return file, listed
