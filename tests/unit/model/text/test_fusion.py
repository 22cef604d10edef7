"""Fusion of ranked lists and the boost of neighbors."""

from math import inf

import pytest

from vademecum.model.text.fusion import boost_found_neighbors, boost_neighbors, fuse, fuse_hybrid, rescale


def test_neighbors_of_a_group_share_scores() -> None:
    scores, session = [0.0, 8.0, 0.0, 0.0, 0.0, 4.0], [1, 1, 1, 1, 2, 2]
    assert boost_neighbors(scores, session) == [4.0, 8.0, 4.0, 2.0, 2.0, 4.0]
    assert boost_neighbors(scores[:1], session[:1]) == [0.0]
    assert boost_neighbors(scores[:0], session[:0]) == []


def test_score_of_minus_infinity_boosts_no_neighbor() -> None:
    assert boost_neighbors([1.0, -inf, 1.0], [1, 1, 1]) == [1.25, -inf, 1.25]


def test_only_rows_with_a_score_are_boosted() -> None:
    """The second of four turns is not found. It is not added, and its neighbors do not boost each other across it."""
    sessions = [["a", "b", "c", "d"], ["e"]]
    lifted = boost_found_neighbors({"a": 4.0, "c": 4.0, "d": 8.0, "e": 2.0, "m": 1.0}, sessions)
    assert lifted == pytest.approx({"a": 5 * 0.8, "c": 9 * 0.8, "d": 10 * 0.8, "e": 2 * 0.8})
    assert boost_found_neighbors({}, []) == {} and boost_found_neighbors({}, [["a"]]) == {}
    assert boost_found_neighbors({"a": 0.0}, [["a", "b"]]) == {"a": 0.0}


def test_rescaled_scores_range_from_0_to_1() -> None:
    assert rescale([("a", 0.9), ("b", 0.8), ("c", 0.7)]) == [("a", 1), ("b", pytest.approx(0.5)), ("c", 0)]
    assert rescale([("a", 8.0), ("b", 2.0)], zero=0.0) == [("a", 1), ("b", 0.25)]
    assert rescale([("a", 0.9)]) == [("a", 1)] and rescale([]) == []


def test_fuse_scores_a_missing_key_as_0() -> None:
    assert fuse([[("a", 1.0), ("b", 0.5)], [("b", 1.0)]], [3, 1], 3) == [("a", 0.75), ("b", 0.625)]
    assert [key for key, _ in fuse([[("a", 1.0)], [("b", 1.0)]], [1, 2], 2)] == ["b", "a"]
    assert [key for key, _ in fuse([[("a", 1.0)], [("b", 1.0)]], [1, 2], 1)] == ["b"]


def test_fuse_breaks_ties_by_first_occurrence() -> None:
    assert [key for key, _ in fuse([[("x", 1.0)], [("a", 1.0)]], [1, 1], 5)] == ["x", "a"]


def test_fuse_ignores_lists_without_weight() -> None:
    assert fuse([[("a", 1.0)], [("b", 1.0)]], [0, 1], 5) == [("b", 1.0)]
    assert fuse([], [], 5) == [] and fuse([[("a", 1.0)]], [1], 0) == []
    with pytest.raises(ValueError):
        fuse([[("a", 1.0)]], [1, 2], 5)


def test_hybrid_search_ranks_by_score_differences() -> None:
    """A clear keyword match outranks a slight lead in vector score. Fusion by ranks alone would reverse the order."""
    words, meaning = [("clear", 20.0), ("faint", 2.0)], [("faint", 0.82), ("clear", 0.81), ("far", 0.7)]
    assert [key for key, _ in fuse_hybrid(words, meaning, 2)] == ["clear", "faint"]
    words, meaning = [("a", 20.0), ("b", 19.0)], [("b", 0.9), ("a", 0.7)]
    assert [key for key, _ in fuse_hybrid(words, meaning, 2)] == ["b", "a"]


def test_hybrid_search_is_independent_of_the_cosine_range() -> None:
    words, meaning = [("a", 5.0), ("b", 4.0)], [("b", 0.6), ("c", 0.4), ("a", 0.2)]
    squeezed = [(key, 0.7 + score * 0.3) for key, score in meaning]
    assert fuse_hybrid(words, meaning, 3) == [
        (key, pytest.approx(score)) for key, score in fuse_hybrid(words, squeezed, 3)
    ]
