"""Pull models in a process whose models folder is a small disk that becomes full.

    unshare --mount python -m unit.engines.onnx.full_disk FOLDER HUB KNOWN

The mount is private and ends with the process. The result is printed as one line of JSON.
"""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from vademecum.engines.onnx import download
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.pinned_models import E5_SMALL, PinnedModel

SIZE = 24 << 20  # bytes: slightly more than a pull requires before it starts


def fill(disk: Path) -> None:
    with (disk / "somebody else's").open("wb", buffering=0) as file:
        for length in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(length))
            except OSError as error:
                assert error.errno == errno.ENOSPC, error


def pull(pinned: PinnedModel, models: Path, hub: str, full_when: Callable[[int, int], bool]) -> str:
    """Pull while the disk becomes full when `full_when` is true, then free the disk. Return the result of the pull."""
    filled: list[bool] = []

    def progress(done: int, total: int) -> None:
        if not filled and full_when(done, total):
            filled.append(True)
            fill(models)

    try:
        download.pull(pinned, models, hub=hub, progress=progress)
        return "installed"
    except ModelError as error:
        return f"{error.code}: {error}"
    finally:
        (models / "somebody else's").unlink(missing_ok=True)


def main() -> None:
    models, hub = Path(sys.argv[1]), sys.argv[2]
    pinned = msgspec.json.decode(sys.argv[3], type=PinnedModel)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", models], check=True)
    whole = models / f".{pinned.id}.download" / "model.safetensors"
    empty = {f".{E5_SMALL.id}.download", f".{E5_SMALL.id}.lock", f".{pinned.id}.lock"}
    said, left = [], []
    for one, full_when in (
        (E5_SMALL, lambda done, total: False),
        (pinned, lambda done, total: done > total // 2),
        (pinned, lambda done, total: whole.exists()),
        (pinned, lambda done, total: False),
    ):
        said.append(pull(one, models, hub, full_when))
        left.append(sorted({path.name for path in models.iterdir()} - empty))
    print(json.dumps({"said": said, "left": left, "installed": download.is_installed(pinned, models)}))


if __name__ == "__main__":
    main()
