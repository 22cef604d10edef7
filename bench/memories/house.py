"""Configure our server for the memory benchmarks: with all background jobs of turns, or without any of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memories.scripted import MODEL as SCRIPTED
from targets.ours import Ours

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / ".cache" / "models" / "all-minilm-l6-v2"


@contextmanager
def endpoint() -> Iterator[str]:
    """Run a scripted language model and yield its base URL."""
    paths = os.pathsep.join(str(ROOT / part) for part in ("bench", "server"))
    process = subprocess.Popen(
        [sys.executable, "-m", "memories.scripted"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.terminate()
        process.communicate()


def with_jobs(address: str) -> Ours:
    """Return a server that indexes every turn and extracts memories with the language model at `address`."""
    ours = Ours(ROOT)
    ours.environment = {
        "VADEMECUM_MODELS": str(MODEL.parent),
        "VADEMECUM_ASSISTANT_URL": address,
        "VADEMECUM_ASSISTANT_MODEL": SCRIPTED,
        "VADEMECUM_EXTRACTION_DAILY": "1000000",
    }
    return ours


def without_jobs() -> Ours:
    ours = Ours(ROOT)
    ours.command = [sys.executable, str(Path(__file__).with_name("without_jobs.py"))]
    return ours
