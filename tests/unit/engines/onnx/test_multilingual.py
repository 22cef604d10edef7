"""multilingual-e5-small, with its weights in 4 bits (tests/multilingual_stand_in.py): its word pieces and vectors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from multilingual_stand_in import find_stand_in
from vademecum.engines.onnx import manifest
from vademecum.engines.onnx.embedder import Embedder
from vademecum.engines.onnx.manifest import GRAPH
from vademecum.engines.onnx.pinned_models import E5_SMALL, MULTILINGUAL_E5_SMALL

MANIFEST_HASH = "294974613f6c1b4a4b8c4b9b68536ea2bac1d3f35d9b34910c0c2f0709ef864a"
GOLDEN = json.loads((Path(__file__).parent / "golden" / "multilingual-e5-small-4bit.json").read_bytes())
PASSAGES = {
    "en": "The rent of the flat is 940 euros a month.",
    "de": "Die Katze schläft auf dem Teppich am Fenster.",
    "es": "El tren sale a las seis de la mañana.",
    "ar": "يبدأ الدرس في الساعة التاسعة صباحا.",
    "hi": "डॉक्टर ने मरीज को दवा दी।",
    "zh": "他去年在柏林买了一辆自行车。",
}


@pytest.fixture(scope="module")
def multilingual() -> Iterator[Embedder]:
    embedder = Embedder(find_stand_in())
    yield embedder
    embedder.close()


def embed(embedder: Embedder, texts: list[str]) -> np.ndarray:
    async def embed_all() -> list[np.ndarray]:
        return [
            await embedder.embed_query(text.removeprefix("query: "))
            if text.startswith("query: ")
            else (await embedder.embed_passages([text.removeprefix("passage: ")]))[0]
            for text in texts
        ]

    return np.stack(asyncio.run(embed_all()))


def test_manifest_hash_is_the_same_on_every_machine() -> None:
    """The hash covers the built files, so the same weights must give the same bytes on every machine."""
    assert manifest.verify(find_stand_in()).hash == MANIFEST_HASH


def test_token_ids_equal_the_independent_tokenizer(multilingual: Embedder) -> None:
    assert [multilingual.token_ids(text) for text in GOLDEN["texts"]] == GOLDEN["ids"]


def test_vectors_with_words_in_int8_equal_the_reference(multilingual: Embedder) -> None:
    tensors = {t.name: t.data_type for t in onnx.load(find_stand_in() / GRAPH).graph.initializer}
    assert tensors["embeddings.words.int8"] == TensorProto.INT8
    cosines = (embed(multilingual, GOLDEN["texts"]) * np.array(GOLDEN["vectors"])).sum(axis=1)
    assert cosines.min() >= 0.9999, cosines


def test_vector_does_not_depend_on_the_batch(multilingual: Embedder) -> None:
    passages = list(PASSAGES.values())
    together = asyncio.run(multilingual.embed_passages(passages))
    assert np.array_equal(together, embed(multilingual, [f"passage: {text}" for text in passages]))


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("What does housing cost?", "en"),
        ("Where is the cat?", "de"),
        ("Wann fährt der Zug?", "es"),
        ("¿A qué hora es la clase?", "ar"),
        ("病人得到了什么？", "hi"),
        ("أين اشترى الدراجة؟", "zh"),
    ],
)
def test_question_finds_passage_in_another_language(
    multilingual: Embedder, question: str, language: str
) -> None:
    passages = embed(multilingual, [f"passage: {text}" for text in PASSAGES.values()])
    (vector,) = embed(multilingual, [f"query: {question}"])
    assert list(PASSAGES)[int(np.argmax(passages @ vector))] == language


def test_model_counts_as_multilingual(multilingual: Embedder) -> None:
    assert multilingual.is_multilingual


def test_pinned_size_of_the_weights_fits_their_shape(multilingual: Embedder) -> None:
    """The pin was not checked against a download. Both models differ only in the number of words."""
    extra_words = multilingual._tokenizer.get_vocab_size() + 35 - 30_522  # 35 unused rows at the end
    header = MULTILINGUAL_E5_SMALL.weights.bytes - E5_SMALL.weights.bytes - 4 * 384 * extra_words
    assert 0 <= header < 1024
