"""`vademecum mcp`: the tools of a coding agent on standard input and output."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from vademecum.cli.options import data_option, folder_option, owner_option, settings_for


@click.command("mcp")
@data_option
@owner_option
@folder_option
def mcp(data: Path, email: str, folder: Path) -> None:
    """The memory of your projects as tools for a coding agent (Model Context Protocol).

    \b
    Claude Code:  claude mcp add vademecum -- vademecum mcp
    Any other:    {"command": "vademecum", "args": ["mcp"]}

    An agent sees the project of the folder it works in, unless it asks for another one or for all. It works with and
    without a running server.
    """
    from vademecum.cli.agents.mcp_session import Agent  # the protocol's library is slow to load

    asyncio.run(Agent(settings_for(data), email, folder).serve())
