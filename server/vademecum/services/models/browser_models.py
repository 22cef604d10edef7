"""The models that a browser may run: all that are installed here, with the one that this server's vectors are of."""

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
class Offer:
    """A model and where its files are."""

    manifest: Manifest
    folder: Path


def offers(settings: Settings) -> dict[str, Offer]:
    """The installed models by their hash. One that this program cannot use is not offered to browsers either."""
    found: dict[str, Offer] = {}
    for folder in settings.model_folders:
        for path in sorted(folder.glob("[!.]*/manifest.json")):
            with suppress(ModelError):
                manifest = manifests.load(path.parent)
                found.setdefault(manifest.hash, Offer(manifest, path.parent))
    return found


def dimensions(settings: Settings) -> dict[str, int]:
    """How many numbers a vector of each installed model has, by the model's hash."""
    return {digest: offer.manifest.dims for digest, offer in offers(settings).items()}


def file_of(settings: Settings, model: str, path: str) -> tuple[Path, File]:
    """A file of a model: of those that its manifest lists and no other. Raises NotFound."""
    offer = offers(settings).get(model)
    listed = next((file for file in offer.manifest.files if file.path == path), None) if offer else None
    if offer is None or listed is None:
        raise NotFound("There is no such file of a model here. `GET /v1/models` lists them all.")
    place = offer.folder / listed.path
    if not place.is_file() or place.stat().st_size != listed.bytes:
        raise NotFound(
            f"{listed.path} of {offer.manifest.id} is damaged here. `vademecum models verify` says more."
        )
    return place, listed
