"""`vademecum forget`: erase all data of a user or a project and print a receipt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from vademecum.cli.api_client import ApiClient, run_with_client
from vademecum.cli.options import data_option, json_option, settings_for
from vademecum.errors import BadRequest, Conflict, NotFound
from vademecum.model.schema.json_values import FORGET_EVERYTHING
from vademecum.model.text.tokenize import fold


async def find_project(client: ApiClient, email: str, project: str) -> str:
    """Return the id of the project with this id or name.

    Raises NotFound if there is none, and Conflict if several projects have the name.
    """
    projects: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await client.call("GET", "/v1/projects", email, params={"limit": 1000, "cursor": cursor})
        projects += page["projects"]
        cursor = page["next"]
    if any(one["id"] == project for one in projects):
        return project
    ids = [one["id"] for one in projects if fold(one["name"].strip()) == fold(project.strip())]
    if not ids:
        raise NotFound(f"{email} has no project {project}. Nothing was changed.")
    if len(ids) > 1:
        raise Conflict(
            f"{len(ids)} projects have the name {project}. Use an id: {', '.join(sorted(ids)[:5])}."
        )
    return str(ids[0])


@click.command()
@click.option("--user", "email", required=True, help="Email of the account whose data is erased.")
@click.option("--project", help="Erase only this project: its id or its name.")
@click.option(
    "--sessions",
    is_flag=True,
    help="With --project: delete its chats, too. By default they stay, without a project.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@data_option
@json_option
def forget(email: str, project: str | None, sessions: bool, yes: bool, data: Path, as_json: bool) -> None:
    """Erase everything of a user: all documents, chats, facts and memories, on the server and on all devices.

    With --project, erase only the memories, observations, entities and summaries of that project. Documents stay.

    \b
    Example: vademecum forget --user ada@example.org --project thesis
    """
    if sessions and project is None:
        raise BadRequest("--sessions requires --project. Without it, everything is erased.")
    subject = f"All data of {email}" if project is None else f"The project {project} of {email}"
    confirmation = FORGET_EVERYTHING if project is None else "forget project"
    if not yes and click.prompt(f'{subject} will be erased. Type "{confirmation}"') != confirmation:
        raise click.Abort

    async def work(client: ApiClient) -> Any:
        if project is None:
            return await client.call("POST", "/v1/forget", email, json={"confirm": FORGET_EVERYTHING})
        project_id = await find_project(client, email, project)
        options = {"forget": "now", "sessions": "delete" if sessions else "keep"}
        return await client.call("DELETE", f"/v1/projects/{project_id}", email, params=options)

    receipt = run_with_client(settings_for(data), work)
    if as_json:
        click.echo(msgspec.json.encode(receipt).decode())
        return
    click.echo(
        f"Erased {receipt['rows']} rows, {receipt['files']} files, {receipt['bytes']} bytes of content at {receipt['at']}. "
        f"Then searched the disk for {receipt['checked']} pieces of it and found {receipt['leftovers']}. {receipt['note']}"
    )
