"""Server and browser let the same answers enter prompts: shared cases of tests/conformance/answers.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from vademecum.model.chat.answers import enters_prompts

CASES = json.loads((Path(__file__).parents[3] / "conformance" / "answers.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_prompt_inclusion_matches_shared_cases(case: dict[str, Any]) -> None:
    assert enters_prompts(case["model"] or "", case["aiResponse"]) is case["entersPrompts"]
