"""Memories lose score with age unless they are pinned, and relevance counts more than recency."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model.memory.recency import HALF_LIFE_DAYS, RECENCY, RELEVANCE, freshness, score_candidates

relevance = st.floats(-1, 100)
days = st.floats(0, 20_000)
candidates = st.lists(st.tuples(relevance, days, st.booleans()), max_size=30)


def test_score_weighs_relevance_and_recency() -> None:
    assert score_candidates(
        [0.9, 0.7, 0.8], [0, HALF_LIFE_DAYS, HALF_LIFE_DAYS], [False] * 3
    ) == pytest.approx([1.0, RECENCY / 2, RELEVANCE / 2 + RECENCY / 2])


def test_rescaling_lets_small_relevance_differences_outweigh_age() -> None:
    fits, newest = score_candidates([0.84, 0.80], [365, 0], [False, False])
    assert fits > newest


def test_equally_relevant_candidates_differ_only_by_age() -> None:
    assert score_candidates([0.5], [0], [False]) == [1.0]
    assert score_candidates([0.5, 0.5], [0, HALF_LIFE_DAYS], [False, False]) == pytest.approx(
        [1.0, 1 - RECENCY / 2]
    )
    assert score_candidates([], [], []) == []


def test_pinned_memory_does_not_lose_score() -> None:
    assert score_candidates([1.0, 1.0], [10_000, 0], [True, False]) == [1.0, 1.0]


def test_future_timestamp_counts_as_now() -> None:
    assert freshness(-10_000_000) == 1.0


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        score_candidates([1.0, 2.0], [0], [False, False])


@given(candidates)
def test_every_score_lies_between_0_and_1(some: list[tuple[float, float, bool]]) -> None:
    scores = score_candidates(*([c[i] for c in some] for i in range(3)))  # type: ignore[misc]
    assert len(scores) == len(some) and all(0 <= score <= 1 + 1e-9 for score in scores)


@given(candidates, days)
def test_aging_never_raises_a_score_or_affects_others(
    some: list[tuple[float, float, bool]], more: float
) -> None:
    relevances, ages, pinned = ([c[i] for c in some] for i in range(3))
    before = score_candidates(relevances, ages, pinned)  # type: ignore[arg-type]
    for at in range(len(some)):
        older = [*ages[:at], ages[at] + more, *ages[at + 1 :]]
        after = score_candidates(relevances, older, pinned)  # type: ignore[arg-type]
        assert after[at] <= before[at] and (after[at] == before[at] or not pinned[at])
        assert after[:at] + after[at + 1 :] == before[:at] + before[at + 1 :]


@given(candidates, st.floats(0.01, 10), st.floats(-5, 5))
def test_scores_ignore_scale_and_offset_of_relevance(
    some: list[tuple[float, float, bool]], scale: float, shift: float
) -> None:
    relevances, ages, pinned = ([round(c[0], 3) for c in some], [c[1] for c in some], [c[2] for c in some])
    moved = [scale * r + shift for r in relevances]
    assert score_candidates(moved, ages, pinned) == pytest.approx(
        score_candidates(relevances, ages, pinned), abs=1e-6
    )
