"""The search for documents whose file names occur in a message."""

import json
from pathlib import Path
from typing import Any

import pytest

from vademecum.model.documents.filename_match import find_named_documents, match_filenames

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
def test_name_matches_without_case_accents_and_extension(message: str, filename: str) -> None:
    assert match_filenames(message, [("d", filename)]) == ["d"]


def test_voiced_kana_does_not_match_unvoiced_kana() -> None:
    assert match_filenames("カス", [("d", "ガス.pdf")]) == []


def test_unassigned_character_splits_words() -> None:
    assert match_filenames("b", [("d", "a\U0001ccd6b.pdf")]) == ["d"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_filename_matches_equal_the_shared_cases(case: dict[str, Any]) -> None:
    filenames = {name: name for name in case["filenames"]}
    assert find_named_documents(case["message"], filenames) == (set(case["named"]), case["isCertain"])
