"""Date terms of questions and rows match the shared cases (tests/conformance/dates_in_text.json)."""

import json
from pathlib import Path

import pytest

from vademecum.model.text.dates_in_text import date_terms, query_date_terms

CASES = json.loads((Path(__file__).parents[3] / "conformance" / "dates_in_text.json").read_text())
NOW = "2026-11-24T15:00:00.000Z"


@pytest.mark.parametrize(
    ("query", "now", "terms"),
    [*((query, NOW, terms) for query, terms in CASES["queries"]), *CASES["relative"]],
)
def test_query_date_terms_match_shared_cases(query: str, now: str, terms: str) -> None:
    assert query_date_terms(query, now) == terms


@pytest.mark.parametrize(("timestamp", "terms"), CASES["timestamps"])
def test_date_terms_include_those_of_a_day_query(timestamp: str, terms: str) -> None:
    assert date_terms(timestamp) == terms
    assert set(query_date_terms(f"on {timestamp[:10]}", NOW).split()) < set(terms.split())
