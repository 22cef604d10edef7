"""Vector search is exact, keyword search supports many scripts, both respect scopes, and cache and disk agree."""

import os
import threading

import numpy as np
import pytest

from unit.engines.lance.conftest import Opener
from unit.engines.lance.sample_blocks import DIMS, block, embedded, vectors
from vademecum.engines.lance import MatrixCache, VectorIndex
from vademecum.model.text.fusion import FOREIGN_PENALTY, is_foreign_script


@pytest.fixture(params=["memory", "disk"])
def either(request: pytest.FixtureRequest, opened: Opener) -> VectorIndex:
    """Return an index whose rows fit into the cache, or one whose rows never do."""
    return opened(shared=MatrixCache(1 if request.param == "disk" else 1 << 28))


def test_search_in_empty_scope_finds_nothing(either: VectorIndex) -> None:
    either.apply([embedded("a", 0, 3)], [], [], ("e", 1))
    for scope in ([], set(), ["unknown"]):
        assert either.vector_search(vectors(1, 1)[0], scope, 10) == []
        assert either.keyword_search("plain", scope, 10) == []
    assert either.keyword_search("plain", ["a"], 0) == []
    assert either.vector_search(vectors(1, 1)[0], ["a"], 0) == []


@pytest.mark.parametrize("scope_size", [1, 5, 40])
def test_vector_search_is_exact(either: VectorIndex, scope_size: int) -> None:
    """The hits are those of a brute-force search, in a few documents and in all."""
    block_vectors = {f"d{n:02}": vectors(n, 20) * (n + 1) for n in range(40)}
    either.apply([block(name, 0, ["x"] * 20, some) for name, some in block_vectors.items()], [], [], ("e", 1))
    scope = sorted(block_vectors)[:scope_size]
    matrix = np.concatenate([block_vectors[name] for name in scope]).astype(np.float64)
    places = [(name, at) for name in scope for at in range(20)]
    for seed in range(100, 110):
        query_vector = vectors(seed, 1)[0]
        cosines = matrix @ query_vector / np.linalg.norm(matrix, axis=1) / np.linalg.norm(query_vector)
        expected = [places[at] for at in np.argsort(-cosines)[:10]]
        hits = either.vector_search(query_vector, scope, 10)
        assert [(hit.document_id, hit.chunk_index) for hit in hits] == expected
        assert np.allclose([hit.score for hit in hits], np.sort(cosines)[::-1][:10], atol=2e-6)


def test_vector_search_refuses_wrong_dimensions(index: VectorIndex) -> None:
    with pytest.raises(ValueError, match="dimensions"):
        index.vector_search(vectors(1, 1, DIMS + 1)[0], ["a"], 3)
    assert index.vector_search(np.zeros(DIMS, np.float32), ["a"], 3) == []


def test_foreign_scripts_follow_all_other_chunks(either: VectorIndex) -> None:
    texts = ["المستأجر", "rent 租金", "租金", "👍", "“–” …", "Hafenstraße", "", "👍 nice"]
    order = [text for text in texts if not is_foreign_script(text)] + list(filter(is_foreign_script, texts))
    assert order != texts
    query_vector = vectors(1, 1)[0]
    # Each vector is farther from the question than the one before.
    block_vectors = query_vector + vectors(2, 1) * np.linspace(0, 0.5, len(texts), dtype=np.float32)[:, None]
    for at, text in enumerate(texts):  # one document in each segment
        either.apply([block(f"d{at}", 0, [text], block_vectors[at : at + 1])], [], [], ("e", at + 1))
    scope = [f"d{at}" for at in range(len(texts))]
    plain = either.vector_search(query_vector, scope, len(texts))
    assert [hit.text for hit in plain] == texts
    hits = either.vector_search(query_vector, scope, len(texts), foreign_last=True)
    assert [hit.text for hit in hits] == order
    cosine = {hit.place: hit.score for hit in plain}
    penalties = [cosine[hit.place] - hit.score for hit in hits]
    assert np.allclose(penalties, [FOREIGN_PENALTY * is_foreign_script(hit.text) for hit in hits], atol=2e-6)
    assert either.vector_search(query_vector, scope, 3, foreign_last=True) == hits[:3]


def test_blocks_without_vectors_are_found_by_keywords_only(either: VectorIndex) -> None:
    either.apply([block("a", 0, ["waiting text"]), embedded("a", 1, 2)], [], [], ("e", 1))
    assert len(either.keyword_search("waiting", ["a"], 10)) == 1
    assert [hit.block for hit in either.vector_search(vectors(1, 1)[0], ["a"], 10)] == [1, 1]
    either.apply([block("a", 0, ["waiting text"], vectors(4, 1))], [], [], ("e", 2))
    assert len(either.vector_search(vectors(1, 1)[0], ["a"], 10)) == 3


SCRIPTS = {
    "german": "Die Ärzte prüfen die Straße",
    "french": "Son résumé, l’œuvre d’été",
    "polish": "Łódź leży w Polsce",
    "greek": "ΟΔΟΣ Αθήνα",
    "russian": "Ёлка стоит в Москве",
    "arabic": "مُحَمَّد في المكتبة",
    "hindi": "हिन्दी भाषा की किताब",
    "japanese": "東京都の図書館で本を借りる",
    "chinese": "北京大学图书馆的规定",
    "korean": "도서관에서 책을 빌렸다",
    "thai": "ห้องสมุดแห่งชาติ",
    "code": "def read_user_name(self): return HTTP2.parse('3.14')",
}


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("arzte", "german"),
        ("STRASSE", "german"),
        ("resume", "french"),
        ("OEUVRE ÉTÉ", "french"),
        ("lodz", "polish"),
        ("οδός", "greek"),
        ("елка", "russian"),
        ("محمد", "arabic"),
        ("किताब", "hindi"),
        ("図書館", "japanese"),
        ("本", "japanese"),
        ("图书馆", "chinese"),
        ("도서관", "korean"),
        ("ห้องสมุด", "thai"),
        ("user name", "code"),
        ("http2 3.14", "code"),
    ],
)
def test_keyword_search_ignores_case_and_accents_across_scripts(
    either: VectorIndex, query: str, name: str
) -> None:
    either.apply([block(key, 0, [text]) for key, text in SCRIPTS.items()], [], [], ("e", 1))
    assert either.keyword_search(query, list(SCRIPTS), 1)[0].document_id == name


HOSTILE = [
    '"unbalanced',
    "needle AND (",
    "needle* ~2 ^3 [a TO b] {x}",
    "' OR 1=1; DROP TABLE chunks; --",
    "\\",
    "\x00needle",
    "\ud800 needle",
    "needle" * 5000,
    "-needle +other text:needle",
    "%_%",
    "🙂 needle",
    " ".join(f"w{n}" for n in range(2000)),
]


@pytest.mark.parametrize("query", HOSTILE)
def test_special_characters_in_a_query_are_not_syntax(either: VectorIndex, query: str) -> None:
    either.apply(
        [block("a", 0, ["the needle in the hay"]), block("b", 0, ["text or else"])], [], [], ("e", 1)
    )
    hits = either.keyword_search(query, ["a", "b"], 10)
    spelt = "needle" in query.replace("needle" * 5000, "")
    assert any(hit.document_id == "a" for hit in hits) == spelt
    assert either.keyword_search("?!… —", ["a", "b"], 10) == []


def test_documents_outside_the_scope_do_not_change_keyword_scores(either: VectorIndex) -> None:
    """Documents outside the scope do not change scores or appear in results."""
    either.apply([block("a", 0, ["red apple", "red pear"]), block("b", 0, ["green apple"])], [], [], ("e", 1))
    alone = either.keyword_search("red apple", ["a"], 10)
    either.apply([block("c", 0, ["apple"] * 16)], [], [], ("e", 2))
    assert either.keyword_search("red apple", ["a"], 10) == alone
    assert alone[0].text == "red apple"


def test_cached_and_uncached_searches_agree(opened: Opener) -> None:
    blocks = [embedded(f"d{n}", at, 16, seed=n) for n in range(8) for at in range(4)]
    opened().apply(blocks, [], [], ("e", 1))
    memory, disk = opened(shared=MatrixCache()), opened(shared=MatrixCache(1))
    scope = [f"d{n}" for n in range(0, 8, 2)]
    for n in range(5):
        query, query_vector = f"chunk {n} of d{n}", vectors(n, 1)[0]
        assert memory.keyword_search(query, scope, 12) == disk.keyword_search(query, scope, 12)
        warm, cold = (
            memory.vector_search(query_vector, scope, 12),
            disk.vector_search(query_vector, scope, 12),
        )
        assert [hit.place for hit in warm] == [hit.place for hit in cold]
        assert np.allclose([hit.score for hit in warm], [hit.score for hit in cold], atol=2e-6)


def test_equal_scores_are_ordered_by_chunk_position(index: VectorIndex) -> None:
    same = np.repeat(vectors(1, 1), 16, axis=0)
    for name in "dacb":
        index.apply([block(name, 0, ["twin text"] * 16, same)], [], [], ("e", 1))
    for hits in (
        index.vector_search(same[0], list("abcd"), 20),
        index.keyword_search("twin", list("abcd"), 20),
    ):
        assert [hit.place for hit in hits] == [(n, 0, at) for n in "ab" for at in range(16)][:20]


def test_concurrent_searches_see_whole_blocks(index: VectorIndex) -> None:
    """A block alternates between two sizes. Each search finds one version, never a mixture."""
    index.apply([embedded("a", 0, 4, word="v4")], [], [], ("e", 1))
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                hits = index.keyword_search("chunk", ["a"], 100)
                if {f"v{len(hits)}"} != {hit.text.split()[0] for hit in hits}:
                    wrong.append(hits)
                index.vector_search(vectors(1, 1)[0], ["a"], 5)
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for step in range(25 if os.environ.get("SOAK") else 13):
        count = (4, 9)[step % 2]
        index.apply([embedded("a", 0, count, seed=step, word=f"v{count}")], [], [], ("e", step))
        if step % 8 == 7:
            index.optimise(1)
        if step % 12 == 11:
            index.erase()
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
