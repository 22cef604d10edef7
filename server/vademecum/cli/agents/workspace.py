"""Where an agent works: the project of its folder, as this user's server knows it."""

from __future__ import annotations

from pathlib import Path

from vademecum.engines.workspace import identify, machine
from vademecum.model.agents.project_identity import FolderIdentity
from vademecum.services.agents.mcp.tools import Call, Workplace


def identity_of(folder: Path) -> FolderIdentity:
    """Raises BadRequest for a folder that cannot be a project."""
    return identify(str(folder), str(Path.home()))


async def work_in(found: FolderIdentity, call: Call) -> Workplace:
    answer = await call(
        "POST", "/v1/agents/identify", json={**found._asdict(), "machine": machine(str(Path.home()))}
    )
    return Workplace(answer["project"]["id"], answer["notice"])
