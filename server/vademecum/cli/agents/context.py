"""`vademecum context`: print a briefing for the next session of an agent in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from vademecum.cli.agents.workspace import identify_folder, resolve_workspace
from vademecum.cli.api_client import ApiClient, run_with_client
from vademecum.cli.options import data_option, folder_option, json_option, owner_option, settings_for
from vademecum.model.schema.collections import Json
from vademecum.model.text.sanitize import sanitize_line


@click.command()
@data_option
@owner_option
@folder_option
@click.option(
    "--tokens",
    type=click.IntRange(100, 20_000),
    default=2000,
    show_default=True,
    help="Maximum length in tokens.",
)
@json_option
def context(data: Path, email: str, folder: Path, tokens: int, as_json: bool) -> None:
    """Print a briefing about the project of a folder: its decisions, recent work and memories.

    Pinned entries come first, then the newest. Add the command to an agent's SessionStart hook to start each session with it.

    \b
    Example: vademecum context --folder ~/src/thesis --tokens 1000
    """

    async def fetch(client: ApiClient) -> Json:
        async def call(method: str, path: str, **options: Any) -> Json:
            answer: Json = await client.call(method, path, email, **options)
            return answer

        project_id = (await resolve_workspace(identify_folder(folder), call)).project_id
        return await call("GET", "/v1/agents/context", params={"project": project_id, "tokens": tokens})

    answer = run_with_client(settings_for(data), fetch, wait=True)
    if as_json:
        click.echo(msgspec.json.encode(answer).decode())
        return
    click.echo(answer["text"])
    if answer["notice"]:
        # To standard output, because agents ignore the standard error of hooks.
        click.echo(sanitize_line(answer["notice"]))
