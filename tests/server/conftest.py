"""Fixtures shared by several test files."""

from pathlib import Path

import pytest

from unit.engines.onnx.numpy_bert import write_source
from vademecum.engines.onnx import download


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a models folder with three tiny models of equal size whose vectors are not comparable."""
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(("old", "new", "third")):
        source = tmp_path_factory.mktemp(name)
        download.prepare_from_folder(write_source(source, name, seed), source, folder)
    return folder
