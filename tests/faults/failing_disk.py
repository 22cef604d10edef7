"""Make chosen disk calls fail in a server process, by a preloaded library whose source is `failing_disk.c`."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ALL_CALLS = 1_000_000_000


def build_shim(folder: Path) -> Path:
    """Compile the library to preload. Skip the test if that is impossible on this machine."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler")
    library, source = folder / "shim.so", Path(__file__).with_suffix(".c")
    command = [compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


class FailingDisk:
    """Choose which disk calls fail in processes that run with `environment`."""

    def __init__(self, shim: Path, control: Path) -> None:
        self._control = control
        self.environment = {"LD_PRELOAD": str(shim), "SHIM_CTL": str(control)}
        self.recover()

    def fail(self, call: str, index: int, path_part: str) -> None:
        """Make the future call number `index` fail, counted over calls of this kind on matching files.

        `call`: "fsync" or "write". `path_part`: text that the paths of matching files contain.
        """
        self._set(f"{call} {errno.EIO} {index} 1 {path_part}")

    def fill(self, path_part: str) -> None:
        """Make every write to files whose path contains `path_part` fail, as on a full disk."""
        self._set(f"write {errno.ENOSPC} 0 {ALL_CALLS} {path_part}")

    def recover(self) -> None:
        """Let all calls succeed."""
        self._set("none 0 0 0 zz")

    def _set(self, rule: str) -> None:
        self._control.write_text(f"{rule} {time.time_ns()}")
