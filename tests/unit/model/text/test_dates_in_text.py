"""Days that questions name, and those of rows: the shared cases (tests/conformance/days.json), for the browser as well."""

import json
from pathlib import Path

import pytest

from vademecum.model.text import dates_in_text

CASES = json.loads((Path(__file__).parents[3] / "conformance" / "days.json").read_text())
NOW = "2026-11-24T15:00:00.000Z"


@pytest.mark.parametrize(("question", "marks"), CASES["asked"])
def test_the_days_that_a_question_names(question: str, marks: str) -> None:
    assert dates_in_text.asked(question, NOW) == marks


@pytest.mark.parametrize(("moment", "marks"), CASES["moments"])
def test_the_day_of_a_row(moment: str, marks: str) -> None:
    assert dates_in_text.of_moment(moment) == marks
    assert set(dates_in_text.asked(f"on {moment[:10]}", NOW).split()) < set(marks.split())


@pytest.mark.parametrize(("question", "now", "marks"), CASES["fromNow"])
def test_days_that_are_told_from_now(question: str, now: str, marks: str) -> None:
    assert dates_in_text.asked(question, now) == marks
