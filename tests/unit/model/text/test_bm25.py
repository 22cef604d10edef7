"""BM25 scores, and the postings that they are computed from."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model.text.bm25 import TERM_DTYPE, Postings, bm25_scores, hash_term, top_k_with_ties
from vademecum.model.text.tokenize import tokenize, tokenize_query


@pytest.mark.parametrize(
    ("asked", "right", "wrong"),
    [
        ("What is in 1.10?", "Release 1.10: faster.", "May 1 of 10, or 10 of 1."),
        ("PASS_MAX_DAYS", "PASS_MAX_DAYS is 90.", "Pass at most, max, a pass in days, max 90 days."),
        ("--no-store", "Say no-store for that.", "There is no store, no store at all."),
        ("an email", "Write an e-mail.", "Write an E, or by mail."),
        ("4,294,967,296 bytes", "4294967296 bytes", "4 bytes, or 5 bytes"),
    ],
)
def test_compound_ranks_above_its_words(asked: str, right: str, wrong: str) -> None:
    postings = Postings.of_texts([wrong, right, "Something else."])
    (scores,) = bm25_scores([(postings, np.ones(3, np.bool_))], tokenize_query(asked))
    assert scores[1] > scores[0]


def test_term_hash_is_stable() -> None:
    """Hashes are stored on disk, so a change of the hash function requires a new layout version."""
    assert hash_term("lease") == 8432223190212403530


def plain_bm25(texts: list[str], query: str) -> list[float]:
    """Return the BM25 scores by the textbook formula."""
    rows = [tokenize(text) for text in texts]
    average = sum(map(len, rows)) / len(rows) or 1
    scores = []
    for row in rows:
        score = 0.0
        for term in tokenize_query(query):
            n, f = sum(term in other for other in rows), row.count(term)
            idf = math.log(1 + (len(rows) - n + 0.5) / (n + 0.5))
            score += idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * len(row) / average))
        scores.append(score)
    return scores


WORDS = st.lists(st.sampled_from(["red", "green", "blue", "猫犬", "é"]), max_size=12).map(" ".join)


@given(st.lists(WORDS, min_size=1, max_size=8), WORDS, st.integers(0, 8))
def test_scores_match_the_formula_however_rows_are_split(texts: list[str], query: str, cut: int) -> None:
    parts = [Postings.of_texts(some) for some in (texts[:cut], texts[cut:])]
    masks = [np.ones(len(part.lengths), np.bool_) for part in parts]
    got = np.concatenate(bm25_scores(list(zip(parts, masks, strict=True)), tokenize_query(query)))
    assert np.allclose(got, plain_bm25(texts, query))


@given(st.lists(st.tuples(WORDS, st.booleans()), min_size=1, max_size=8), WORDS)
def test_masked_rows_neither_score_nor_count(rows: list[tuple[str, bool]], query: str) -> None:
    mask = np.array([seen for _, seen in rows])
    (got,) = bm25_scores([(Postings.of_texts([text for text, _ in rows]), mask)], tokenize_query(query))
    seen = [text for text, shown in rows if shown]
    assert not got[~mask].any()
    assert np.allclose(got[mask], plain_bm25(seen, query) if seen else [])


def test_postings_rebuild_from_their_entries() -> None:
    texts = ["a b a", "", "b c", "a"]
    once = Postings.of_texts(texts)
    again = Postings.build(*once.entries(), once.lengths)
    for name in ("keys", "starts", "rows", "counts", "lengths"):
        assert np.array_equal(getattr(once, name), getattr(again, name))
    assert once.lengths.tolist() == [3, 0, 2, 1]
    assert [part.tolist() for part in once.find(hash_term("a"))] == [[0, 3], [2, 1]]
    assert once.find(hash_term("unknown"))[0].size == 0
    assert Postings.of_texts([]).find(hash_term("a"))[0].size == 0


def test_postings_separate_terms_that_differ_in_low_bits():
    entries = np.zeros(4, TERM_DTYPE)
    entries["term"] = [7, 5, 6, 5]
    entries["count"] = [1, 2, 3, 4]
    postings = Postings.build(entries, np.array([0, 0, 1, 1], np.int32), np.array([3.0, 7.0]))
    assert [part.tolist() for part in postings.find(5)] == [[0, 1], [2, 4]]
    assert [part.tolist() for part in postings.find(6)] == [[1], [3]]
    assert [part.tolist() for part in postings.find(7)] == [[0], [1]]


def test_top_k_includes_ties_with_the_lowest_score() -> None:
    scores = np.array([0.5, 0.9, 0.7, 0.7 + 1e-9, 0.0])
    assert sorted(top_k_with_ties(scores, 2).tolist()) == [1, 2, 3]
    assert sorted(top_k_with_ties(scores, 9, 0.0).tolist()) == [0, 1, 2, 3]
    assert top_k_with_ties(np.full(3, -np.inf), 2).size == 0
