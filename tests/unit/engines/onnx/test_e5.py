"""E5-small-v2 with its real weights, which `make test` installs under .cache/e5, gives the published model's vectors."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from vademecum.engines.onnx import manifest, pinned_models
from vademecum.engines.onnx.embedder import Embedder

ROOT = Path(__file__).parents[4]
FOLDER = Path(os.environ.get("VADEMECUM_TEST_E5") or ROOT / ".cache" / "e5") / pinned_models.E5_SMALL.id
MANIFEST_HASH = "78a50de470ddb6c07850785c42cdef31fe812b492e93c35e7dd782d4fa1ed6f2"
GOLDEN = json.loads((Path(__file__).parent / "golden" / "e5-small-v2.json").read_bytes())


@pytest.fixture(scope="module")
def e5() -> Iterator[Embedder]:
    assert FOLDER.is_dir(), f"{FOLDER} is missing: `make .cache/stamps/e5` installs it"
    embedder = Embedder(FOLDER)
    yield embedder
    embedder.close()


def test_manifest_hash_is_the_same_on_every_machine() -> None:
    """The hash covers the built files, so the same weights must give the same bytes on every machine."""
    assert manifest.verify(FOLDER).hash == MANIFEST_HASH


def test_token_ids_equal_the_published_tokenizer(e5: Embedder) -> None:
    assert [e5.token_ids(text) for text in GOLDEN["texts"]] == GOLDEN["ids"]


def test_vectors_equal_the_published_model(e5: Embedder) -> None:
    async def embed(text: str) -> np.ndarray:
        if text.startswith("query: "):
            return await e5.embed_query(text.removeprefix("query: "))
        return (await e5.embed_passages([text.removeprefix("passage: ")]))[0]

    async def embed_all() -> list[np.ndarray]:
        return [await embed(text) for text in GOLDEN["texts"]]

    cosines = [
        float(found @ np.array(expected))
        for found, expected in zip(asyncio.run(embed_all()), GOLDEN["vectors"], strict=True)
    ]
    assert min(cosines) >= 0.9999, cosines


def test_vector_does_not_depend_on_the_batch(e5: Embedder) -> None:
    passages = [t.removeprefix("passage: ") for t in GOLDEN["texts"] if t.startswith("passage: ")]

    async def embed() -> tuple[np.ndarray, list[np.ndarray]]:
        return await e5.embed_passages(passages), [(await e5.embed_passages([p]))[0] for p in passages]

    together, alone = asyncio.run(embed())
    assert np.array_equal(together, np.stack(alone))
