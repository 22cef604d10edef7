"""`vademecum claim`: assign a folder to an existing project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vademecum.cli.agents.workspace import identify_folder, resolve_workspace
from vademecum.cli.api_client import ApiClient, run_with_client
from vademecum.cli.options import data_option, folder_option, owner_option, settings_for
from vademecum.model.schema.collections import Json
from vademecum.model.text.sanitize import sanitize_line


@click.command()
@click.argument("project", required=False)
@data_option
@owner_option
@folder_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def claim(project: str | None, data: Path, email: str, folder: Path, yes: bool) -> None:
    """Assign a folder to the existing project PROJECT (a name or an id).

    Without PROJECT, the project with the same name as the folder is used.

    Agents that work in the folder then see that project's memory. Everything in the folder's current project moves to
    that project. This cannot be undone.

    \b
    Example: vademecum claim thesis --folder ~/src/thesis
    """
    settings = settings_for(data)
    identity = identify_folder(folder)

    async def find_projects(client: ApiClient) -> tuple[Json, Json]:
        """Return the folder's current project and the project to assign it to."""

        async def call(method: str, path: str, **options: Any) -> Json:
            answer: Json = await client.call(method, path, email, **options)
            return answer

        async def find_project(name: str) -> Json:
            answer = await call("GET", "/v1/agents/projects", params={"project": name})
            scope: Json = answer["scope"]["project"]
            return scope

        target = await find_project(identity.name if project is None else project)
        return await find_project((await resolve_workspace(identity, call)).project_id), target

    own, wanted = run_with_client(settings, find_projects, wait=True)
    name = sanitize_line(wanted["name"])
    if own["id"] != wanted["id"]:
        if not yes:
            click.confirm(f"Move everything from “{sanitize_line(own['name'])}” to “{name}”?", abort=True)
        path, into = f"/v1/projects/{own['id']}/merge", {"into": wanted["id"]}
        run_with_client(settings, lambda client: client.call("POST", path, email, json=into), wait=True)
    click.echo(f"{folder} belongs to “{name}”.")
