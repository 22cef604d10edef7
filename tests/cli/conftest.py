"""Fixtures of the CLI tests."""

import pytest

from cli.agents.hooked_agent import Agent


@pytest.fixture
def agent(tmp_path):
    return Agent(tmp_path / "ada")
