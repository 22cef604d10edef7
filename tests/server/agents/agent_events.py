"""What an agent's hook writes, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from server.in_process_server import House, Person, browser
from vademecum.engines.workspace import compute_machine_id
from vademecum.services.runtime.ids import new_id

APP = {"name": "app", "root": "~/dev/app", "source": "git"}
SITE = {"name": "site", "root": "~/dev/site", "source": "git"}
Row = dict[str, Any]


def moment(second: int) -> str:
    return f"2026-06-01T10:{second // 60:02d}:{second % 60:02d}.000Z"


def event(content: str = "ls", second: int = 0, **more: Any) -> Row:
    return {"v": 1, "id": new_id(), "at": moment(second), "project": APP, "session": "s1", "kind": "command",
            "content": content, "redactions": 0, **more}  # fmt: skip


async def take(person: Person, *events: Row) -> int:
    answer = await person.call("POST", "/v1/observations", json={"events": list(events)})
    assert answer.status_code == 200, answer.text
    taken: int = answer.json()["taken"]
    return taken


async def listed(person: Person, project: str = "*", **more: Any) -> list[Row]:
    answer = await person.call("GET", "/v1/observations", params={"project": project, "limit": 1000, **more})
    assert answer.status_code == 200, answer.text
    rows: list[Row] = answer.json()["observations"]
    return rows


def commands(h: House, person: Person) -> Person:
    """The same user, through the door that this machine's own commands take."""
    client = browser(h)
    email = quote(h.services.accounts.accounts[person.id].email)
    client.headers.update({"Authorization": f"Local {h.services.local_secret}", "X-Vademecum-User": email})
    return Person(person.id, client)


def this_machine() -> str:
    return compute_machine_id(str(Path.home()))


async def join(person: Person, project_id: str, folder: Row) -> None:
    """The folder is this project, as its person says."""
    own = (await identify(person, **folder))["project"]["id"]
    answer = await person.call("POST", f"/v1/projects/{own}/merge", json={"into": project_id})
    assert answer.status_code == 200, answer.text


async def identify(person: Person, **identity: str) -> Row:
    answer = await person.call("POST", "/v1/agents/identify", json={**APP, **identity})
    assert answer.status_code == 200, answer.text
    found: Row = answer.json()
    return found


async def swept(h: House, person: Person) -> None:
    """What is over the time of its kind is gone."""
    h.services.background_jobs.jobs["retain"].run_now(person.id)
    await h.services.background_jobs.jobs["retain"]._tasks[person.id]
