"""Which documents a message names: as search folds words, so that a name is found however it is typed."""

import json
from pathlib import Path
from typing import Any

import pytest

from vademecum.model.documents.filename_match import asked_about, match

CASES = json.loads((Path(__file__).parents[3] / "conformance" / "filename_match.json").read_text())


@pytest.mark.parametrize(
    ("message", "filename"),
    [
        ("what does LEASE.PDF say?", "lease.pdf"),
        ("smorrebrod", "Smørrebrød.pdf"),
        ("STRASSE", "Straße.pdf"),
        ("resume", "résumé.docx"),
        ("résumé", "re\u0301sume\u0301.docx"),
        ("ﬁles", "files.txt"),
        ("한국어", "한국어.pdf"),
    ],
)
def test_a_name_is_found_whatever_its_case_accents_and_extension(message: str, filename: str) -> None:
    assert match(message, [("d", filename)]) == ["d"]


def test_a_voiced_kana_is_another_letter() -> None:
    assert match("カス", [("d", "ガス.pdf")]) == []


def test_a_character_that_came_after_unicode_14_parts_words() -> None:
    assert match("b", [("d", "a\U0001ccd6b.pdf")]) == ["d"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_question_is_about_the_documents_whose_names_are_in_it(case: dict[str, Any]) -> None:
    filenames = {name: name for name in case["filenames"]}
    assert asked_about(case["message"], filenames) == (set(case["askedAbout"]), case["surely"])
