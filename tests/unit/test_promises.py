"""tests/PROMISES.md names an existing test for every promise."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROMISES = (ROOT / "tests" / "PROMISES.md").read_text(encoding="utf-8").splitlines()
LINES = [line for line in PROMISES if line.startswith("- ")]
LINE = re.compile(r"- (?P<promise>.+): `(?P<path>tests/[\w./]+)(?P<kind>::| > )(?P<test>[^`]+)`")
WORDS_MAX = 25


@cache
def source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("line", LINES)
def test_each_promise_names_an_existing_test(line: str) -> None:
    found = LINE.fullmatch(line)
    assert found, "expected '- promise: `path::test_name`' or '- promise: `path > title`'"
    assert len(found["promise"].split()) < WORDS_MAX
    if found["kind"] == "::":
        assert f"def {found['test']}(" in source(found["path"])
    else:
        assert found["path"].endswith(".test.ts") and found["test"] in source(found["path"])


def test_promises_has_sections_1_to_13() -> None:
    sections = [int(line.split()[1].rstrip(".")) for line in PROMISES if line.startswith("## ")]
    assert sections == list(range(1, 14))
