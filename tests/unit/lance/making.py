"""Small libraries to index, with vectors from a seed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vademecum.engines.lance import Block, Chunk

DIMS = 24
MODEL = "model-a"


def vectors(seed: int, count: int, dims: int = DIMS) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, dims)).astype(np.float32)


def block(document: str, at: int, texts: list[str], given: NDArray[np.float32] | None = None) -> Block:
    """The block `at` of a document; chunk indexes go on from block to block as if each held 16."""
    chunks = [Chunk(at * 16 + i, i + 1, f"section {at}", text) for i, text in enumerate(texts)]
    return Block(f"{document}.{at}", document, at, chunks, given)


def embedded(document: str, at: int, count: int, seed: int = 0, word: str = "plain") -> Block:
    texts = [f"{word} chunk {at * 16 + i} of {document}" for i in range(count)]
    return block(document, at, texts, vectors(seed + at * 1000 + sum(map(ord, document)), count))


# Lance is loaded once: its threads begin anew in each copy, and here nothing is under way.
_COPIES = """
import os, signal, sys, warnings
from pathlib import Path
from unit.lance.making import DIMS, MODEL, embedded
from vademecum.engines.lance import MatrixCache, VectorIndex
from vademecum.engines.lance.table import _lancedb
_lancedb()
warnings.simplefilter("ignore", RuntimeWarning)
for place in sys.argv[3:]:
    if copy := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)
        continue
    folder = Path(sys.argv[2], place)
    exec(sys.argv[1])
    os._exit(0)
"""


def kill_at(program: str, folder: Path, places: list[str]) -> None:
    """Run this for each place, in a process of its own that kill -9 ends. Each has a `folder` by the place's name."""
    ended = subprocess.run(
        [sys.executable, "-c", _COPIES, program, str(folder), *places],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.stdout.split() == [str(-signal.SIGKILL)] * len(places), ended.stderr
