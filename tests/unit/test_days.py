"""Days that questions name, and those of rows: the shared cases (tests/conformance/days.json), for the browser as well."""

import json
from pathlib import Path

import pytest

from vademecum.model import days

CASES = json.loads((Path(__file__).parents[1] / "conformance" / "days.json").read_text())


@pytest.mark.parametrize(("question", "marks"), CASES["asked"])
def test_the_days_that_a_question_names(question: str, marks: str) -> None:
    assert days.asked(question) == marks


@pytest.mark.parametrize(("moment", "marks"), CASES["moments"])
def test_the_day_of_a_row(moment: str, marks: str) -> None:
    assert days.of_moment(moment) == marks
    assert set(days.asked(f"on {moment[:10]}").split()) < set(marks.split())
