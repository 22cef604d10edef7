"""Identify the project of an agent's folder."""

from __future__ import annotations

from pathlib import Path

from vademecum.engines.workspace import compute_machine_id, identify
from vademecum.model.agents.project_identity import FolderIdentity
from vademecum.services.agents.mcp.tools import ApiCall, Workspace


def identify_folder(folder: Path) -> FolderIdentity:
    """Return the identity of a folder. Raises BadRequest for a folder that cannot be a project."""
    return identify(str(folder), str(Path.home()))


async def resolve_workspace(identity: FolderIdentity, call: ApiCall) -> Workspace:
    """Return the user's project for a folder, creating it if necessary."""
    body = {**identity._asdict(), "machine": compute_machine_id(str(Path.home()))}
    answer = await call("POST", "/v1/agents/identify", json=body)
    return Workspace(answer["project"]["id"], answer["notice"])
