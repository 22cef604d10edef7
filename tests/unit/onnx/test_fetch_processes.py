"""Pulls in processes of their own: two at once, and one whose disk takes no more."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.onnx.hub import Hub, running
from vademecum.engines.onnx import fetch
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.known import Known

SPAWN = multiprocessing.get_context("spawn")
DONE_S = 60


@pytest.fixture
def hub(tiny: tuple[Known, Path]) -> Iterator[Hub]:
    with running(*tiny) as server:
        yield server


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def pull(known: Known, models: Path, hub: str, answers: multiprocessing.Queue[str], largest: int = 0) -> None:
    """What the other process does. `largest`: bytes of a file that its system lets it write."""
    if largest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    try:
        fetch.pull(known, models, hub=hub)
        answers.put("installed")
    except ModelError as error:
        answers.put(f"{error.code}: {error}")


def test_of_two_processes_that_pull_at_once_one_is_told_so(
    tiny: tuple[Known, Path], tmp_path: Path, hub: Hub
) -> None:
    hub.drop_after, hub.drops, hub.stall_s = 1000, 1, 8.0  # long enough for the other to come
    answers: multiprocessing.Queue[str] = SPAWN.Queue()
    both = [SPAWN.Process(target=pull, args=(tiny[0], tmp_path, hub.url, answers)) for _ in range(2)]
    for process in both:
        process.start()
    said = sorted(answers.get(timeout=DONE_S) for _ in both)
    for process in both:
        process.join(DONE_S)
    assert said[0].startswith("MODEL_BUSY: tiny-e5 is being downloaded by another process"), said
    assert said[1] == "installed" and fetch.installed(tiny[0], tmp_path)


def test_a_file_that_the_system_cuts_off_installs_nothing_and_is_gone_on_with(
    tiny: tuple[Known, Path], tmp_path: Path, hub: Hub
) -> None:
    answers: multiprocessing.Queue[str] = SPAWN.Queue()
    process = SPAWN.Process(target=pull, args=(tiny[0], tmp_path, hub.url, answers, 20_000))
    process.start()
    said = answers.get(timeout=DONE_S)
    process.join(DONE_S)
    assert said.startswith("MODEL_DISK") and "Nothing was installed" in said, said
    assert not fetch.installed(tiny[0], tmp_path)
    hub.log.clear()
    fetch.pull(tiny[0], tmp_path, hub=hub.url)
    assert fetch.installed(tiny[0], tmp_path)
    assert ("model.safetensors", "bytes=20000-") in hub.log, "what had come is kept"
