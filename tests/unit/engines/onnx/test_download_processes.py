"""Pulls in separate processes: two at the same time, and with a file size limit or a full disk."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from unit.engines.onnx.download_process import DONE_S, SPAWN, pull
from unit.engines.onnx.local_hub import Hub
from vademecum.engines.onnx import download
from vademecum.engines.onnx.pinned_models import PinnedModel
from wait_until import soon_outside

ROOT = Path(__file__).parents[4]
NAMESPACES = (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"])
NO_DISK = (
    "This test needs a small disk of its own, and this system lets nobody mount one. As root in a container: start it "
    "with `--cap-add SYS_ADMIN --security-opt apparmor=unconfined`; else let users have namespaces: "
    "`sysctl -w kernel.unprivileged_userns_clone=1`, or `kernel.apparmor_restrict_unprivileged_userns=0`."
)


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def test_second_concurrent_model_download_is_refused(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub
) -> None:
    hub.drop_after, hub.drops = 1000, 1
    hub.silence.clear()
    answers: multiprocessing.Queue[str] = SPAWN.Queue()
    first, second = (SPAWN.Process(target=pull, args=(tiny[0], tmp_path, hub.url, answers)) for _ in range(2))
    first.start()
    soon_outside(lambda: hub.sent >= 1000)  # wait until the first process is downloading
    second.start()
    said = answers.get(timeout=DONE_S)
    assert said.startswith("MODEL_BUSY: tiny-e5 is being downloaded by another process"), said
    hub.silence.set()
    assert answers.get(timeout=DONE_S) == "installed"
    for process in (first, second):
        process.join(DONE_S)
    assert download.is_installed(tiny[0], tmp_path)


def test_model_download_beyond_file_size_limit_can_be_resumed(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub
) -> None:
    answers: multiprocessing.Queue[str] = SPAWN.Queue()
    process = SPAWN.Process(target=pull, args=(tiny[0], tmp_path, hub.url, answers, 20_000))
    process.start()
    said = answers.get(timeout=DONE_S)
    process.join(DONE_S)
    assert said.startswith("MODEL_DISK") and "Nothing was installed" in said, said
    assert not download.is_installed(tiny[0], tmp_path)
    hub.log.clear()
    download.pull(tiny[0], tmp_path, hub=hub.url)
    assert download.is_installed(tiny[0], tmp_path)
    assert ("model.safetensors", "bytes=20000-") in hub.log, "the received part was not kept"


def namespace() -> list[str]:
    """Return the command that gives a process private mounts; skip the test if the system refuses them."""
    for words in NAMESPACES:
        if (
            subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode
            == 0
        ):
            return words
    pytest.skip(NO_DISK)  # the reason names the missing permission


def test_full_disk_installs_no_model_and_keeps_parts(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub
) -> None:
    arguments = [str(tmp_path), hub.url, msgspec.json.encode(tiny[0]).decode()]
    path = os.pathsep.join(str(ROOT / name) for name in ("server", "tests"))
    done = subprocess.run(
        [*namespace(), sys.executable, "-m", "unit.engines.onnx.full_disk", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=DONE_S,
    )
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    before, downloading, building, at_last = output["said"]
    assert before.startswith("MODEL_DISK: e5-small-v2 needs ") and before.endswith(
        "MB are free. Nothing was downloaded."
    )
    for said, what in ((downloading, "downloaded"), (building, "written")):
        start = f"MODEL_DISK: tiny-e5 could not be {what} to {tmp_path}: the disk is full."
        assert said.startswith(start) and said.endswith("Nothing was installed."), said
    assert (at_last, output["installed"]) == ("installed", True)
    assert output["left"] == [[], [".tiny-e5.download"], [".tiny-e5.download"], ["tiny-e5"]]
    asked = [wanted for name, wanted in hub.log if name == "model.safetensors"]
    assert len(asked) == 2 and asked[0] is None and asked[1], (
        "the second request resumes, and there is no third"
    )
