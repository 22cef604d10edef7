"""Brings the peers onto this machine, pinned by the locks in bench/peers/, into bench/.peers/ (not committed)."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from targets.base import Unavailable, run


def _once(folder: Path, locks: list[Path], work: Callable[[], None]) -> Path:
    """Do the work unless it was done to its end with these very locks."""
    wanted = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()
    mark = folder / ".installed"
    if not mark.is_file() or mark.read_text() != wanted:
        print(f"installing {folder.name} peers into {folder} …", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        work()
        mark.write_text(wanted)
    return folder


def node_peers(root: Path) -> Path:
    """rxdb-server, express-pouchdb and what they need. The folder that holds node_modules."""
    locks = [root / "bench" / "peers" / name for name in ("package.json", "package-lock.json")]
    folder = root / "bench" / ".peers" / "node"
    if shutil.which("npm") is None:
        raise Unavailable("npm is not here: install Node.js 20")

    def work() -> None:
        for lock in locks:
            shutil.copy(lock, folder)
        # Without install scripts: leveldown brings its binary in the package.
        run(["npm", "ci", "--ignore-scripts", "--omit=dev", "--omit=optional", "--no-audit"], cwd=folder)

    return _once(folder, locks, work)


def kinto_peer(root: Path) -> Path:
    """Kinto in an environment of its own. The folder of its commands."""
    return _python_peer(root, "kinto")


def search_peers(root: Path) -> Path:
    """Chroma, Qdrant's client and sqlite-vec in an environment of their own. The folder of its commands."""
    return _python_peer(root, "search")


def _python_peer(root: Path, name: str) -> Path:
    lock = root / "bench" / "peers" / f"{name}.lock"
    folder = root / "bench" / ".peers" / name

    def work() -> None:
        run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(lock)])

    return _once(folder, [lock], work) / "bin"


def sentence_transformers_peer(root: Path) -> Path:
    """sentence-transformers in an environment of its own. Its Python.

    Pinned by version alone: torch has another wheel for every machine, with and without a graphics card.
    """
    pins = root / "bench" / "peers" / "sentence-transformers.txt"
    folder = root / "bench" / ".peers" / "sentence-transformers"

    def work() -> None:
        run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", "-r", str(pins)])

    return _once(folder, [pins], work) / "bin" / "python"


def mem0_peer(root: Path) -> Path:
    """mem0 in an environment of its own, with what our model needs to run there. Its Python."""
    pins = root / "bench" / "peers" / "mem0.txt"
    folder = root / ".cache" / "mem0"

    def work() -> None:
        run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", "-r", str(pins)])

    return _once(folder, [pins], work) / "bin" / "python"


def postgres_commands() -> Path:
    """The folder of initdb and postgres of the Debian package."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not versions:
        raise Unavailable("PostgreSQL is not here: apt-get install -y postgresql")
    return versions[-1].parent
