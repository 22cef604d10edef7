"""A model with E5's shape and size is downloaded over an unreliable connection and computes correct vectors."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from unit.engines.onnx import numpy_bert, random_e5
from unit.engines.onnx.download_process import DONE_S, SPAWN, pull
from unit.engines.onnx.local_hub import Hub, start_hub
from vademecum.engines.onnx import download
from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.embedder import Embedder
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.pinned_models import E5_SMALL, PinnedModel
from wait_until import soon_outside

PART = 30_000_000
WEIGHTS = "model.safetensors"
TEXTS = (
    "query: Who mends the boiler?",
    "passage: The landlord mends the boiler within two weeks of a letter, and pays for it.",
    "passage: " + "This one is longer than its neighbours. " * 8,
    "passage: Größe, naïveté, Ελλάδα and 日本語 are words, too.",
    "passage: " + "A long one has more tokens than the model takes. " * 60,
)


@pytest.fixture(scope="module")
def published(minilm_source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[PinnedModel, Path]:
    source = tmp_path_factory.mktemp("e5-source")
    return random_e5.write_source(source, minilm_source), source


@dataclass
class Pulled:
    hub: Hub
    models: Path
    folder: Path


@pytest.fixture(scope="module")
def pulled(published: tuple[PinnedModel, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulled]:
    """The model, downloaded over a connection that drops four times."""
    models = tmp_path_factory.mktemp("e5")
    with pytest.MonkeyPatch.context() as patch, start_hub(*published) as hub:
        patch.delenv("HF_HUB_OFFLINE", raising=False)
        hub.drop_after, hub.drops = PART, 4
        yield Pulled(hub, models, download.pull(published[0], models, hub=hub.url, pause=lambda _: None))


def asked_for_weights(hub: Hub) -> list[str | None]:
    return [wanted for name, wanted in hub.log if name == WEIGHTS]


def test_resumed_download_fetches_no_byte_twice(published: tuple[PinnedModel, Path], pulled: Pulled) -> None:
    known, hub = published[0], pulled.hub
    assert asked_for_weights(hub) == [None, *(f"bytes={n * PART}-" for n in range(1, 5))]
    assert hub.sent == sum(file.bytes for file in known.files)
    manifest = manifests.verify(pulled.folder)
    assert (manifest.id, manifest.revision, manifest.dims, manifest.layers, manifest.max_tokens) == (
        "e5-small-v2",
        E5_SMALL.revision,
        384,
        12,
        512,
    )
    assert download.is_installed(E5_SMALL, pulled.models), (
        "the model is not recognized as E5-small, although only its weights differ"
    )


def test_killed_pull_releases_lock_and_is_resumed(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    source = tmp_path_factory.mktemp("narrow")
    known = numpy_bert.write_source(
        source, name=E5_SMALL.id, vocab_size=2**16
    )  # only 9 MB, because the outcome does not depend on the size
    with start_hub(known, source) as hub:
        kill_a_pull(known, tmp_path, hub)


def kill_a_pull(known: PinnedModel, tmp_path: Path, hub: Hub) -> None:
    some = 2**21
    hub.drop_after, hub.drops = some, 1
    hub.silence.clear()
    answers: multiprocessing.Queue[str] = SPAWN.Queue()
    process = SPAWN.Process(target=pull, args=(known, tmp_path, hub.url, answers))
    process.start()
    part = tmp_path / ".e5-small-v2.download" / f"{WEIGHTS}.part"
    soon_outside(lambda: part.exists() and part.stat().st_size == some)
    with pytest.raises(ModelError, match="is being downloaded by another process"):
        download.pull(known, tmp_path, hub=hub.url)
    process.kill()
    process.join(DONE_S)
    assert not download.is_installed(known, tmp_path)
    hub.log.clear()
    download.pull(known, tmp_path, hub=hub.url)
    assert hub.log == [(WEIGHTS, f"bytes={some}-")]
    assert download.is_installed(known, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"e5-small-v2", ".e5-small-v2.lock"}


def test_vectors_equal_reference_alone_and_in_a_batch(pulled: Pulled) -> None:
    embedder = Embedder(pulled.folder, workers=1)
    embedder.close()
    ids = [embedder.token_ids(text) for text in TEXTS]
    assert [len(row) for row in ids][-1] == 512, "the long text is not truncated to the maximum of the model"
    weights = {name: value.astype(np.float64) for name, value in random_e5.weights().items()}
    expected = np.array([numpy_bert.forward(random_e5.SHAPE, weights, row) for row in ids])
    assert (expected @ expected.T)[~np.eye(len(ids), dtype=bool)].max() < 0.99, (
        "the vectors differ too little for this test"
    )
    session = embedder._session
    alone = np.array([run(session, [row])[0] for row in ids])
    assert (alone * expected).sum(axis=1).min() >= 0.9999
    batch = run(session, ids[:-1])
    assert (alone[:-1] * batch).sum(axis=1).min() >= 0.999999, "padding to a longer text changes a vector"


def run(session: ort.InferenceSession, rows: list[list[int]]) -> np.ndarray:
    """Return the vectors of a batch, in which shorter rows are padded to the longest."""
    longest = max(map(len, rows))
    tokens = np.array([row + [0] * (longest - len(row)) for row in rows])
    mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    vectors: np.ndarray = session.run(["embedding"], {"input_ids": tokens, "attention_mask": mask})[0]
    return vectors
