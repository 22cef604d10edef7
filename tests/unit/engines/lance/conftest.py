"""Fixtures: an index in an empty folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from unit.engines.lance.sample_blocks import DIMS, MODEL
from vademecum.engines.lance import MatrixCache, VectorIndex

Opener = Callable[..., VectorIndex]


@pytest.fixture
def cache() -> MatrixCache:
    return MatrixCache()


@pytest.fixture
def opened(tmp_path: Path, cache: MatrixCache) -> Iterator[Opener]:
    """Return a function that opens the index in `vectors/`. All its indexes are closed after the test."""
    made: list[VectorIndex] = []

    def make(
        model: str | None = MODEL, dims: int | None = DIMS, *, shared: MatrixCache | None = None
    ) -> VectorIndex:
        made.append(
            VectorIndex.open(
                tmp_path / "user" / "vectors", model, dims, cache=cache if shared is None else shared
            )
        )
        return made[-1]

    yield make
    for index in made:
        index.close()


@pytest.fixture
def index(opened: Opener) -> VectorIndex:
    return opened()
