"""Serve one coding agent on standard input and output.

The data folder is locked only during a call, so that between calls a server can start and other agents can use the
folder. While a server is running, each call is a request to that server.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp.server.stdio import stdio_server

from vademecum.cli.agents.workspace import identify_folder, resolve_workspace
from vademecum.cli.api_client import ApiClient, use_client_in_turn
from vademecum.model.agents.project_identity import FolderIdentity
from vademecum.model.schema.collections import Json
from vademecum.services.agents.mcp.server import Caller, Context, create_server
from vademecum.services.agents.mcp.tools import Workspace
from vademecum.settings import Settings


class AgentSession:
    """A session of one agent in a folder. The first call resolves the project of the folder.

    If a later call does not find that project, the folder's project is resolved again, because projects can be merged
    and deleted.
    """

    def __init__(self, settings: Settings, email: str, folder: Path) -> None:
        self._settings = settings
        self._email = email
        self._folder = folder
        self._identity: FolderIdentity | None = None
        self._workspace: Workspace | None = None

    async def serve(self) -> None:
        server = create_server(self._resolve_caller)
        async with stdio_server() as (requests, answers):
            await server.run(requests, answers, server.create_initialization_options())

    async def _resolve_caller(self, _: Context, outdated: Workspace | None) -> Caller:
        self._identity = self._identity or identify_folder(self._folder)
        if self._workspace is None or self._workspace == outdated:
            self._workspace = await resolve_workspace(self._identity, self._call)
        return self._call, self._workspace

    async def _call(self, method: str, path: str, **options: Any) -> Json:
        async def send(client: ApiClient) -> Json:
            answer: Json | None = await client.call(method, path, self._email, **options)
            return answer or {}

        return await use_client_in_turn(self._settings, send)
