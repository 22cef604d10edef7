"""Score memories by relevance and recency.

Relevances are rescaled over the candidates first, because the cosines of a model may lie in a narrow band (0.7 to 1 for
E5) and age alone would then decide. Candidates are only the most relevant results. With more candidates, the relevances
of the best ones lie closer together after rescaling, so age has more influence on their order (measured by
bench/recall_locomo.py). Pinned memories always have an age of 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from vademecum.model.text.fusion import rescale

RELEVANCE = 0.7
RECENCY = 0.3
HALF_LIFE_DAYS = 30.0  # the same value as in web/src/core/memory/recency.ts
CANDIDATES = 20  # the number of rescaled results, unless more results are requested


def score_candidates(
    relevances: Sequence[float], ages_days: Sequence[float], pinned: Sequence[bool]
) -> list[float]:
    """Return the score of each candidate, 0 to 1. If all have the same relevance, only their ages decide."""
    rescaled = rescale(list(enumerate(relevances)))
    return [
        RELEVANCE * relevance + RECENCY * freshness(0.0 if fixed else age)
        for (_, relevance), age, fixed in zip(rescaled, ages_days, pinned, strict=True)
    ]


def freshness(age_days: float) -> float:
    """Return 1 at age 0, halved with each half-life. A negative age, from a fast clock, counts as 0."""
    return float(0.5 ** (max(age_days, 0.0) / HALF_LIFE_DAYS))
