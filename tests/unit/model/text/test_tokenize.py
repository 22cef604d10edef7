"""Text is folded, split into terms, and words are reduced to stems."""

import random
import time
import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model.text.bm25 import count_terms
from vademecum.model.text.tokenize import duplicate_key, fold, stem, tokenize, tokenize_query


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
def test_fold_removes_case_and_accents(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    "marks", ["\u0301\u0323", "\u0f72\u0f71", "\u0f72\uff9e", "\u0f72\u0f71" * 14 + "\u00ad"]
)
def test_fold_takes_linear_time_on_mark_runs(marks: str) -> None:
    """Unicode normalization sorts a run of combining marks in quadratic time.

    100,000 marks would take half a minute.
    """
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
def test_texts_and_queries_have_the_expected_terms(text: str, indexed: list[str], asked: list[str]) -> None:
    assert tokenize(text) == indexed
    assert tokenize_query(text) == asked


@given(st.text())
def test_query_terms_are_indexed_terms(text: str) -> None:
    assert set(tokenize_query(text)) <= set(tokenize(text))
    assert int(count_terms(text)["count"].sum()) == len(tokenize(text))


@given(st.text())
def test_folding_twice_changes_no_terms(text: str) -> None:
    assert tokenize(fold(text)) == tokenize(text)


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
def test_english_word_forms_share_a_stem(words: list[str], root: str) -> None:
    assert {stem(word) for word in words} == {root}


@pytest.mark.parametrize(
    "word", ["bus", "sing", "this", "x86", "http2s", "gas", "елки", "本", "virus", "red"]
)
def test_uninflected_words_are_not_stemmed(word: str) -> None:
    assert stem(word) == word


def test_query_of_stop_words_keeps_them() -> None:
    assert tokenize_query("to be or not to be") == ["not"]
    assert tokenize_query("To be, or to be?") == ["to", "be", "or"]


def test_duplicate_key_ignores_case_and_whitespace() -> None:
    assert duplicate_key(" The  FEE\nis due ") == duplicate_key("the fee is due")
    assert duplicate_key("the fee is 10") != duplicate_key("the fee is 11")


@pytest.mark.parametrize(
    "alphabet", [range(0x4E00, 0x9FF0), [0xFDFA, *range(0x627, 0x64B)]], ids=["dense", "long"]
)
def test_tokenizer_caches_stay_small(alphabet: Sequence[int]) -> None:
    """The texts never repeat. They have no spaces, or contain a character that folds to many letters."""
    chance = random.Random(1)
    texts = ["".join(map(chr, chance.choices(alphabet, k=32))) for _ in range(9000)]
    tracemalloc.start()
    try:
        for text in texts:
            tokenize(text)
        assert tracemalloc.get_traced_memory()[0] < 20e6
    finally:
        tracemalloc.stop()
