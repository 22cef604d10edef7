"""Install the peers into bench/.peers/, which is not committed. bench/peers/ pins their versions."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from targets.base import Unavailable, run


def _once(folder: Path, locks: list[Path], install: Callable[[], None]) -> Path:
    """Call `install` unless it has already completed for the same lock files. Return `folder`."""
    digest = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()
    marker = folder / ".installed"
    if not marker.is_file() or marker.read_text() != digest:
        print(f"installing {folder.name} peers into {folder} …", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install()
        marker.write_text(digest)
    return folder


def node_peers(root: Path) -> Path:
    """Install rxdb-server, express-pouchdb and their dependencies. Return the folder with node_modules."""
    locks = [root / "bench" / "peers" / name for name in ("package.json", "package-lock.json")]
    folder = root / "bench" / ".peers" / "node"
    if shutil.which("npm") is None:
        raise Unavailable("npm is missing: install Node.js 20")

    def install() -> None:
        for lock in locks:
            shutil.copy(lock, folder)
        # Without install scripts, which are not needed: the package of leveldown contains its binary.
        run(["npm", "ci", "--ignore-scripts", "--omit=dev", "--omit=optional", "--no-audit"], cwd=folder)

    return _once(folder, locks, install)


def python_peer(root: Path, requirements: str) -> Path:
    """Install requirements from bench/peers/ into a separate virtual environment. Return the path of its Python.

    `search.lock` pins hashes. The .txt files pin only versions, because torch has a different wheel for each machine.
    """
    pins = root / "bench" / "peers" / requirements
    folder = root / "bench" / ".peers" / pins.stem
    options = ["--no-deps", "--require-hashes"] if pins.suffix == ".lock" else []

    def install() -> None:
        run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", *options, "-r", str(pins)])

    return _once(folder, [pins], install) / "bin" / "python"
