"""`vademecum mcp`: offer memory tools to a coding agent on standard input and output."""

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
    """Offer the memory of your projects as tools for a coding agent (Model Context Protocol).

    \b
    Claude Code:  claude mcp add vademecum -- vademecum mcp
    Any other:    {"command": "vademecum", "args": ["mcp"]}

    An agent sees the project of its folder, unless it asks for another project or for all. The command works with and
    without a running server.
    """
    from vademecum.cli.agents.mcp_session import AgentSession  # deferred: the MCP library is slow to import

    asyncio.run(AgentSession(settings_for(data), email, folder).serve())
