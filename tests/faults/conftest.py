"""Fixtures of the fault tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.failing_disk import FailingDisk, build_shim


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def disk(tmp_path: Path, shim: Path) -> FailingDisk:
    return FailingDisk(shim, tmp_path / "control")
