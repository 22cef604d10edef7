"""Fixtures of the CLI tests."""

import pytest

from cli.agents.hooked_agent import Agent
from cli.command_runner import Home


@pytest.fixture
def agent(tmp_path):
    return Agent(tmp_path / "ada")


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "data")
