"""`vademecum claim`: a person says that a folder is a project which was there before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vademecum.cli.agents.workspace import identity_of, work_in
from vademecum.cli.api_client import ApiClient, run_with_client
from vademecum.cli.options import data_option, folder_option, owner_option, settings_for
from vademecum.model.schema.collections import Json
from vademecum.model.text.sanitize import one_line

Two = tuple[Json, Json]


@click.command()
@click.argument("project", required=False)
@data_option
@owner_option
@folder_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def claim(project: str | None, data: Path, email: str, folder: Path, yes: bool) -> None:
    """Join a folder with a project that was there before: the one it is called as, or PROJECT (a name or an id).

    Agents that work in the folder see that project's memory from then on, and what was noted for the folder goes over to
    it. This cannot be undone.
    """
    settings = settings_for(data)
    found = identity_of(folder)

    async def both(client: ApiClient) -> Two:
        async def call(method: str, path: str, **more: Any) -> Json:
            answer: Json = await client.call(method, path, email, **more)
            return answer

        async def called(name: str) -> Json:
            answer = await call("GET", "/v1/agents/projects", params={"project": name})
            scope: Json = answer["scope"]["project"]
            return scope

        wanted = await called(found.name if project is None else project)
        return await called((await work_in(found, call)).project_id), wanted

    own, wanted = run_with_client(settings, both, wait=True)
    name = one_line(wanted["name"])
    if own["id"] != wanted["id"]:
        if not yes:
            click.confirm(
                f"Make “{one_line(own['name'])}” with all that is in it a part of “{name}”?", abort=True
            )
        path, into = f"/v1/projects/{own['id']}/merge", {"into": wanted["id"]}
        run_with_client(settings, lambda client: client.call("POST", path, email, json=into), wait=True)
    click.echo(f"{folder} is “{name}”.")
