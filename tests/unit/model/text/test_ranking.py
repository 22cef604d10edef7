"""The pure part of ranking: folding, terms, BM25, fusion."""

import math
import random
import time
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model.text.ranking import (
    TERM,
    Postings,
    best,
    bm25,
    count_terms,
    fold,
    fuse,
    hybrid,
    lift,
    lift_found,
    query_terms,
    relative,
    same_text,
    stem,
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
    "marks", ["\u0301\u0323", "\u0f72\u0f71", "\u0f72\uff9e", "\u0f72\u0f71" * 14 + "\u00ad"]
)
def test_marks_out_of_order_are_folded_in_time_in_proportion(marks: str) -> None:
    """A hundred thousand of them take a moment; sorted in one run they took half a minute."""
    began = time.process_time()
    assert fold("é" + (marks * 120_000)[:120_000] + " mill").endswith(" mill")
    assert time.process_time() - began < 8


@pytest.mark.parametrize(
    ("text", "indexed", "asked"),
    [
        (
            "Don't panic: 3.14!",
            ["don", "t", "panic", "3", "14", "3.14"],
            ["don", "t", "panic", "3", "14", "3.14"],
        ),
        ("What was the fee?", ["what", "was", "the", "fee"], ["fee"]),
        ("The planned visits", ["the", "plan", "visit"], ["plan", "visit"]),
        (
            "snake_case a-b",
            ["snak", "cas", "snakecas", "a", "b", "ab"],
            ["snak", "cas", "snakecas", "b", "ab"],
        ),
        ("co\u2010workers", ["co", "worker", "coworker"], ["co", "worker", "coworker"]),
        (
            "1,250 or 1.250",
            ["1", "250", "1250", "or", "1", "250", "1.250"],
            ["1", "250", "1250", "1.250"],
        ),
        ("how-to", ["how", "to"], ["how", "to"]),
        ("--all, a--b.", ["all", "a", "b"], ["all", "b"]),
        ("図書-a", ["図", "書", "図書", "a"], ["図書"]),
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
def test_a_name_is_found_before_its_words(asked: str, right: str, wrong: str) -> None:
    postings = Postings.of_texts([wrong, right, "Something else."])
    (scores,) = bm25([(postings, np.ones(3, np.bool_))], query_terms(asked))
    assert scores[1] > scores[0]


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


def test_terms_whose_keys_differ_in_their_lower_bits_alone_stay_apart():
    entries = np.zeros(4, TERM)
    entries["term"] = [7, 5, 6, 5]
    entries["count"] = [1, 2, 3, 4]
    postings = Postings.build(entries, np.array([0, 0, 1, 1], np.int32), np.array([3.0, 7.0]))
    assert [part.tolist() for part in postings.find(5)] == [[0, 1], [2, 4]]
    assert [part.tolist() for part in postings.find(6)] == [[1], [3]]
    assert [part.tolist() for part in postings.find(7)] == [[0], [1]]


def test_best_keeps_all_that_tie_with_the_last() -> None:
    scores = np.array([0.5, 0.9, 0.7, 0.7 + 1e-9, 0.0])
    assert sorted(best(scores, 2).tolist()) == [1, 2, 3]
    assert sorted(best(scores, 9, 0.0).tolist()) == [0, 1, 2, 3]
    assert best(np.full(3, -np.inf), 2).size == 0


@pytest.mark.parametrize(
    ("words", "root"),
    [
        (["plan", "plans", "planned", "planning"], "plan"),
        (["party", "parties"], "parti"),
        (["hope", "hoped", "hoping", "hopes"], "hop"),
        (["class", "classes"], "class"),
        (["quick", "quickly"], "quick"),
        (["visit", "visits", "visited", "visiting"], "visit"),
    ],
)
def test_forms_of_an_english_word_share_a_stem(words: list[str], root: str) -> None:
    assert {stem(word) for word in words} == {root}


@pytest.mark.parametrize(
    "word", ["bus", "sing", "this", "x86", "http2s", "gas", "елки", "本", "virus", "red"]
)
def test_what_is_short_or_no_english_word_is_its_own_stem(word: str) -> None:
    assert stem(word) == word


def test_a_question_of_stop_words_alone_keeps_them() -> None:
    assert query_terms("to be or not to be") == ["not"]
    assert query_terms("To be, or to be?") == ["to", "be", "or"]


def test_turns_take_a_share_of_their_neighbours_within_a_session() -> None:
    scores, session = np.array([0.0, 8.0, 0.0, 0.0, 0.0, 4.0]), np.array([1, 1, 1, 1, 2, 2])
    assert lift(scores, session).tolist() == [4.0, 8.0, 4.0, 2.0, 2.0, 4.0]
    assert lift(scores[:1], session[:1]).tolist() == [0.0]
    assert lift(scores[:0], session[:0]).tolist() == []


def test_a_row_without_a_vector_lends_nothing_and_stays_out() -> None:
    assert lift(np.array([1.0, -np.inf, 1.0]), np.array([1, 1, 1])).tolist() == [1.25, -np.inf, 1.25]


def test_what_was_found_is_lifted_by_what_was_found_around_it_and_nothing_else() -> None:
    """Of a session of four the second is not found: it lends nothing, stays out, and keeps the others apart."""
    sessions = [["a", "b", "c", "d"], ["e"]]
    lifted = lift_found({"a": 4.0, "c": 4.0, "d": 8.0, "e": 2.0, "m": 1.0}, sessions)
    assert lifted == pytest.approx({"a": 5 * 0.8, "c": 9 * 0.8, "d": 10 * 0.8, "e": 2 * 0.8})
    assert lift_found({}, []) == {} and lift_found({}, [["a"]]) == {}
    assert lift_found({"a": 0.0}, [["a", "b"]]) == {"a": 0.0}


def test_relative_scores_reach_from_nought_to_one() -> None:
    assert relative([("a", 0.9), ("b", 0.8), ("c", 0.7)]) == [("a", 1), ("b", pytest.approx(0.5)), ("c", 0)]
    assert relative([("a", 8.0), ("b", 2.0)], zero=0.0) == [("a", 1), ("b", 0.25)]
    assert relative([("a", 0.9)]) == [("a", 1)] and relative([]) == []


def test_fuse_takes_the_weighted_mean_and_nought_where_a_list_lacks_a_key() -> None:
    assert fuse([[("a", 1.0), ("b", 0.5)], [("b", 1.0)]], [3, 1], 3) == [("a", 0.75), ("b", 0.625)]
    assert [key for key, _ in fuse([[("a", 1.0)], [("b", 1.0)]], [1, 2], 2)] == ["b", "a"]
    assert [key for key, _ in fuse([[("a", 1.0)], [("b", 1.0)]], [1, 2], 1)] == ["b"]


def test_fuse_breaks_ties_by_where_a_key_is_first_met() -> None:
    assert [key for key, _ in fuse([[("x", 1.0)], [("a", 1.0)]], [1, 1], 5)] == ["x", "a"]


def test_fuse_ignores_lists_without_weight() -> None:
    assert fuse([[("a", 1.0)], [("b", 1.0)]], [0, 1], 5) == [("b", 1.0)]
    assert fuse([], [], 5) == [] and fuse([[("a", 1.0)]], [1], 0) == []
    with pytest.raises(ValueError):
        fuse([[("a", 1.0)]], [1, 2], 5)


def test_hybrid_ranks_by_how_far_scores_lie_apart() -> None:
    """A clear match by words is not outvoted by a slight lead in meaning, as it would be if only places counted."""
    words, meaning = [("clear", 20.0), ("faint", 2.0)], [("faint", 0.82), ("clear", 0.81), ("far", 0.7)]
    assert [key for key, _ in hybrid(words, meaning, 2)] == ["clear", "faint"]
    words, meaning = [("a", 20.0), ("b", 19.0)], [("b", 0.9), ("a", 0.7)]
    assert [key for key, _ in hybrid(words, meaning, 2)] == ["b", "a"]


def test_hybrid_does_not_depend_on_where_a_models_cosines_lie() -> None:
    words, meaning = [("a", 5.0), ("b", 4.0)], [("b", 0.6), ("c", 0.4), ("a", 0.2)]
    squeezed = [(key, 0.7 + score * 0.3) for key, score in meaning]
    assert hybrid(words, meaning, 3) == [
        (key, pytest.approx(score)) for key, score in hybrid(words, squeezed, 3)
    ]


def test_texts_that_differ_in_blanks_and_case_only_are_the_same() -> None:
    assert same_text(" The  FEE\nis due ") == same_text("the fee is due")
    assert same_text("the fee is 10") != same_text("the fee is 11")


@pytest.mark.parametrize(
    "alphabet", [range(0x4E00, 0x9FF0), [0xFDFA, *range(0x627, 0x64B)]], ids=["dense", "long"]
)
def test_what_is_remembered_of_texts_stays_small(alphabet: Sequence[int]) -> None:
    """Words that never come again: of a language without spaces, or of signs that stand for many letters."""
    chance = random.Random(1)
    texts = ["".join(map(chr, chance.choices(alphabet, k=32))) for _ in range(9000)]
    tracemalloc.start()
    try:
        for text in texts:
            terms(text)
        assert tracemalloc.get_traced_memory()[0] < 20e6
    finally:
        tracemalloc.stop()
