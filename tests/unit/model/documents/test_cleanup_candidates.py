"""Server and browser suggest the same deletions: shared cases of tests/conformance/cleanup_candidates.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from vademecum.model.documents.cleanup_candidates import Candidate, cleanup

CASES = json.loads((Path(__file__).parents[3] / "conformance" / "cleanup_candidates.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_cleanup_suggests_least_needed_documents_first(case: dict[str, Any]) -> None:
    documents = [
        Candidate(d["id"], bool(d["activeSessions"]), d["lastAccessedAt"], d["accessCount"])
        for d in case["documents"]
    ]
    assert cleanup(documents, case["count"]) == case["suggested"]
