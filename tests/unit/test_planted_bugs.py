"""The list of planted bugs matches the current code, so `tests/plant.py` can plant each of them."""

from pathlib import Path

import pytest

from plant import Bug, read_bugs

ROOT = Path(__file__).parents[2]
BUGS = read_bugs()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.id)
def test_bug_can_be_planted(bug: Bug) -> None:
    source = (ROOT / bug.file).read_text(encoding="utf-8")
    assert source.count(bug.old) == 1 and bug.new != bug.old


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.id)
def test_bug_names_an_existing_test(bug: Bug) -> None:
    path, _, name = bug.test.partition("::" if "::" in bug.test else " > ")
    assert (ROOT / path).exists()
    if path.endswith(".py"):
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_enough_bugs_are_planted_in_server_and_web() -> None:
    assert len({bug.id for bug in BUGS}) == len(BUGS)
    assert sum(bug.file.startswith("server/") for bug in BUGS) >= 20
    assert sum(bug.file.startswith("web/") for bug in BUGS) >= 12
