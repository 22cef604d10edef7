"""Fixtures of the model tests."""

from pathlib import Path

import pytest

from unit.engines.onnx.numpy_bert import write_source
from vademecum.engines.onnx import download


@pytest.fixture(scope="module")
def single_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a models folder with one tiny model that has the name of one of the server's default models."""
    folder, source = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("source")
    download.prepare_from_folder(write_source(source, "all-minilm-l6-v2"), source, folder)
    return folder
