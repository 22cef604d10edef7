"""How things fade: what is remembered counts by how well it fits and by how long ago it was last said.

Relevance is rescaled over the candidates first, for a model's cosines may lie in a narrow band (E5's in 0.7..1) and
age alone would decide then. The candidates are the best fits, not all that was found: the worse the worst of them, the
closer together are the best, and the more of their order is left to age (bench/recall_locomo.py). What is pinned is
always as fresh as if it were said now.
"""

from __future__ import annotations

from collections.abc import Sequence

RELEVANCE = 0.7
RECENCY = 0.3
HALF_LIFE_DAYS = 30.0  # so in web/src/core/memory/recency.ts, too
CANDIDATES = 20  # or as many as are asked for


def score_candidates(
    relevances: Sequence[float], ages_days: Sequence[float], pinned: Sequence[bool]
) -> list[float]:
    """The score of each candidate, 0..1. Where all fit equally well, or there is but one, only age tells them apart."""
    from vademecum.model.text.ranking import relative  # numpy: no command needs it

    rescaled = relative(list(enumerate(relevances)))
    return [
        RELEVANCE * relevance + RECENCY * freshness(0.0 if fixed else age)
        for (_, relevance), age, fixed in zip(rescaled, ages_days, pinned, strict=True)
    ]


def freshness(age_days: float) -> float:
    """1 now, half of it after each half-life. A time to come, by a clock that is ahead, is now."""
    return float(0.5 ** (max(age_days, 0.0) / HALF_LIFE_DAYS))
