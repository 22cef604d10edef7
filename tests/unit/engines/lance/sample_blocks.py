"""Small documents to index, with vectors from a seed."""

import os
import signal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forked_command import start_process
from vademecum.engines.lance import Block, Chunk

DIMS = 24
MODEL = "model-a"


def vectors(seed: int, count: int, dims: int = DIMS) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, dims)).astype(np.float32)


def block(document: str, at: int, texts: list[str], given: NDArray[np.float32] | None = None) -> Block:
    """Return the block `at` of a document. Chunk indexes continue across blocks as if each had 16 chunks."""
    chunks = [Chunk(at * 16 + i, i + 1, f"section {at}", text) for i, text in enumerate(texts)]
    return Block(f"{document}.{at}", document, at, chunks, given)


def embedded(document: str, at: int, count: int, seed: int = 0, word: str = "plain") -> Block:
    texts = [f"{word} chunk {at * 16 + i} of {document}" for i in range(count)]
    return block(document, at, texts, vectors(seed + at * 1000 + sum(map(ord, document)), count))


def kill_at(program: str, folder: Path, places: list[str]) -> None:
    """Run the program once per place, in a process that kills itself there, with a `folder` named after the place."""
    for place in places:
        process = start_process(_run, program, folder / place, place)
        assert process.wait(120) == -signal.SIGKILL, place


def _run(program: str, folder: Path, place: str) -> None:
    """Run the program in the forked process, which has Lance imported but no threads or pending work."""
    from vademecum.engines.lance import MatrixCache, VectorIndex

    names = {
        "MatrixCache": MatrixCache,
        "VectorIndex": VectorIndex,
        "DIMS": DIMS,
        "MODEL": MODEL,
        "Path": Path,
    }
    exec(
        program, names | {"embedded": embedded, "os": os, "signal": signal, "folder": folder, "place": place}
    )
