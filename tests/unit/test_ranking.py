"""The pure part of ranking: folding, terms, BM25, fusion."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model.ranking import (
    Postings,
    best,
    bm25,
    count_terms,
    fold,
    fuse,
    query_terms,
    term_key,
    terms,
)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Résumé ÄRZTE", "resume arzte"),
        ("Straße ΟΔΟΣ Œuvre", "strasse οδοσ oeuvre"),
        ("İstanbul ısı", "istanbul isi"),
        ("ﬁne Ｆｕｌｌ ²", "fine full 2"),
        ("soft\u00adhyphen ve\u0301lo", "softhyphen velo"),
        ("が か", "が か"),
        ("한국어", "한국어"),
        ("हिन्दी", "हिन्दी"),
        ("Ёлка йод", "елка иод"),
        ("مُحَمَّد", "محمد"),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    ("text", "indexed", "asked"),
    [
        ("Don't panic: 3.14!", ["don", "t", "panic", "3", "14"], ["don", "t", "panic", "3", "14"]),
        ("snake_case a-b", ["snake", "case", "a", "b"], ["snake", "case", "a", "b"]),
        ("to be or to be", ["to", "be", "or", "to", "be"], ["to", "be", "or"]),
        ("猫", ["猫"], ["猫"]),
        ("図書館", ["図", "書", "館", "図書", "書館"], ["図書", "書館"]),
        ("東京tower", ["東", "京", "東京", "tower"], ["東京", "tower"]),
        ("हिन्दी", ["हिन्दी"], ["हिन्दी"]),
        ("🙂❤️ …", [], []),
        ("x" * 100, ["x" * 64], ["x" * 64]),
    ],
)
def test_terms(text: str, indexed: list[str], asked: list[str]) -> None:
    assert terms(text) == indexed
    assert query_terms(text) == asked


@given(st.text())
def test_every_word_asked_for_is_one_that_is_indexed(text: str) -> None:
    assert set(query_terms(text)) <= set(terms(text))
    assert int(count_terms(text)["count"].sum()) == len(terms(text))


@given(st.text())
def test_folding_twice_changes_no_terms(text: str) -> None:
    assert terms(fold(text)) == terms(text)


def test_term_keys_are_for_ever() -> None:
    """They are kept on disk: another hash is another layout."""
    assert term_key("lease") == 8432223190212403530


def plain_bm25(texts: list[str], query: str) -> list[float]:
    """The formula as it is written in books."""
    rows = [terms(text) for text in texts]
    average = sum(map(len, rows)) / len(rows) or 1
    scores = []
    for row in rows:
        score = 0.0
        for term in query_terms(query):
            n, f = sum(term in other for other in rows), row.count(term)
            idf = math.log(1 + (len(rows) - n + 0.5) / (n + 0.5))
            score += idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * len(row) / average))
        scores.append(score)
    return scores


WORDS = st.lists(st.sampled_from(["red", "green", "blue", "猫犬", "é"]), max_size=12).map(" ".join)


@given(st.lists(WORDS, min_size=1, max_size=8), WORDS, st.integers(0, 8))
def test_bm25_is_the_formula_however_the_rows_are_split(texts: list[str], query: str, cut: int) -> None:
    parts = [Postings.of_texts(some) for some in (texts[:cut], texts[cut:])]
    masks = [np.ones(len(part.lengths), np.bool_) for part in parts]
    got = np.concatenate(bm25(list(zip(parts, masks, strict=True)), query_terms(query)))
    assert np.allclose(got, plain_bm25(texts, query))


@given(st.lists(st.tuples(WORDS, st.booleans()), min_size=1, max_size=8), WORDS)
def test_masked_rows_neither_score_nor_count(rows: list[tuple[str, bool]], query: str) -> None:
    mask = np.array([seen for _, seen in rows])
    (got,) = bm25([(Postings.of_texts([text for text, _ in rows]), mask)], query_terms(query))
    seen = [text for text, shown in rows if shown]
    assert not got[~mask].any()
    assert np.allclose(got[mask], plain_bm25(seen, query) if seen else [])


def test_postings_survive_being_taken_apart() -> None:
    texts = ["a b a", "", "b c", "a"]
    once = Postings.of_texts(texts)
    again = Postings.build(*once.entries(), once.lengths)
    for name in ("keys", "starts", "rows", "counts", "lengths"):
        assert np.array_equal(getattr(once, name), getattr(again, name))
    assert once.lengths.tolist() == [3, 0, 2, 1]
    assert [part.tolist() for part in once.find(term_key("a"))] == [[0, 3], [2, 1]]
    assert once.find(term_key("unknown"))[0].size == 0
    assert Postings.of_texts([]).find(term_key("a"))[0].size == 0


def test_best_keeps_all_that_tie_with_the_last() -> None:
    scores = np.array([0.5, 0.9, 0.7, 0.7 + 1e-9, 0.0])
    assert sorted(best(scores, 2).tolist()) == [1, 2, 3]
    assert sorted(best(scores, 9, 0.0).tolist()) == [0, 1, 2, 3]
    assert best(np.full(3, -np.inf), 2).size == 0


def test_fuse_ranks_by_weighted_reciprocal_rank() -> None:
    assert fuse([["a", "b"], ["b", "c"]], [1, 1], 3) == [
        ("b", 1 / 62 + 1 / 61),
        ("a", 1 / 61),
        ("c", 1 / 62),
    ]
    assert [key for key, _ in fuse([["a", "b"], ["c"]], [1, 2], 2)] == ["c", "a"]


def test_fuse_breaks_ties_by_where_a_key_is_first_met() -> None:
    assert [key for key, _ in fuse([["x"], ["a"]], [1, 1], 5)] == ["x", "a"]
    assert [key for key, _ in fuse([["x", "y"], ["y", "x"]], [1, 1], 5)] == ["x", "y"]


def test_fuse_counts_a_key_once_a_list_and_ignores_lists_without_weight() -> None:
    assert fuse([["a", "a", "b"]], [1], 5) == [("a", 1 / 61), ("b", 1 / 62)]
    assert fuse([["a"], ["b"]], [0, 1], 5) == [("b", 1 / 61)]
    assert fuse([], [], 5) == [] and fuse([["a"]], [1], 0) == []
    with pytest.raises(ValueError):
        fuse([["a"]], [1, 2], 5)
