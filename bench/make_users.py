"""Create a data folder with many user folders for bench/folders.py.

A running server creates the active users: their accounts, tokens and rows. All other user folders are copies of one
active user's folder. They stand for the folders of inactive users, but belong to no account.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
import uuid
from pathlib import Path

from rows import Maker
from targets.base import Unavailable, must
from targets.ours import Ours

SEED_BATCHES = 4
BATCH = 50


def make_users(data: Path, count: int, active: int, ours: Ours) -> list[str]:
    """Create `count` user folders in `data`. Return the API tokens of the first `active` users.

    Each active user has a session (`Maker(n).session()`) and `SEED_BATCHES` batches of episodes.
    """
    emails = [f"user{number}@bench.invalid" for number in range(active)]
    with tempfile.TemporaryDirectory(prefix="vademecum-bench-seed-") as folder:
        ours.serve(data, Path(folder))
        try:
            ours.tokens = tokens = asyncio.run(ours.add_users(data, emails))
            asyncio.run(_seed(ours, active))
        finally:
            ours.stop()
    fill(data, count)
    return tokens


async def _seed(ours: Ours, active: int) -> None:
    makers = [Maker(user) for user in range(active)]
    await ours.prepare_sessions(makers)
    for maker in makers:
        batches = maker.episodes(SEED_BATCHES, BATCH)
        await must(ours.port, *(ours.push(maker.user, "episodes", batch) for batch in batches))


def folders(data: Path) -> list[Path]:
    """Return the paths of the user folders, which are <data>/users/<2 hex digits>/<user id>."""
    return sorted(path for path in (data / "users").glob("??/*") if (path / "records.duckdb").is_file())


def fill(data: Path, count: int) -> None:
    """Copy the folder of one user until there are `count` user folders."""
    there = folders(data)
    if not there:
        raise Unavailable(f"no user's folder under {data / 'users'}")
    for _ in range(count - len(there)):
        identity = str(uuid.uuid4())
        short = hashlib.sha256(identity.encode()).hexdigest()[:2]
        shutil.copytree(there[0], data / "users" / short / identity)
