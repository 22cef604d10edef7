"""Build hook events and send them as an agent does."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from server.in_process_server import Harness, Person, browser
from vademecum.engines.workspace import compute_machine_id
from vademecum.services.runtime.ids import new_id

APP = {"name": "app", "root": "~/dev/app", "source": "git"}
SITE = {"name": "site", "root": "~/dev/site", "source": "git"}
Row = dict[str, Any]


def timestamp(second: int) -> str:
    return f"2026-06-01T10:{second // 60:02d}:{second % 60:02d}.000Z"


def event(content: str = "ls", second: int = 0, **more: Any) -> Row:
    return {"v": 1, "id": new_id(), "at": timestamp(second), "project": APP, "session": "s1", "kind": "command",
            "content": content, "redactions": 0, **more}  # fmt: skip


async def send_events(person: Person, *events: Row) -> int:
    answer = await person.call("POST", "/v1/observations", json={"events": list(events)})
    assert answer.status_code == 200, answer.text
    new_events: int = answer.json()["taken"]
    return new_events


async def list_observations(person: Person, project: str = "*", **more: Any) -> list[Row]:
    answer = await person.call("GET", "/v1/observations", params={"project": project, "limit": 1000, **more})
    assert answer.status_code == 200, answer.text
    rows: list[Row] = answer.json()["observations"]
    return rows


def as_local_command(h: Harness, person: Person) -> Person:
    """Return the same user, authenticated as a command on this machine."""
    client = browser(h)
    email = quote(h.services.accounts.accounts[person.id].email)
    client.headers.update({"Authorization": f"Local {h.services.local_secret}", "X-Vademecum-User": email})
    return Person(person.id, client)


def this_machine() -> str:
    return compute_machine_id(str(Path.home()))


async def join_project(person: Person, project_id: str, folder: Row) -> None:
    """Merge the project that the server created for the folder into `project_id`."""
    own = (await identify(person, **folder))["project"]["id"]
    answer = await person.call("POST", f"/v1/projects/{own}/merge", json={"into": project_id})
    assert answer.status_code == 200, answer.text


async def identify(person: Person, **identity: str) -> Row:
    answer = await person.call("POST", "/v1/agents/identify", json={**APP, **identity})
    assert answer.status_code == 200, answer.text
    result: Row = answer.json()
    return result


async def run_retention(h: Harness, person: Person) -> None:
    """Run the retention job and wait for it."""
    h.services.background_jobs.jobs["retain"].run_now(person.id)
    await h.services.background_jobs.jobs["retain"]._tasks[person.id]
