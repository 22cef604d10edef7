"""One coding agent's connection, from its first call to its last.

The data folder is taken for each call and given back after it, so that a server can be started meanwhile and other
agents come to their turn. While a server runs, a call is a request to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp.server.stdio import stdio_server

from vademecum.cli.agents.workspace import identity_of, work_in
from vademecum.cli.api_client import ApiClient, use_client_in_turn
from vademecum.model.agents.project_identity import FolderIdentity
from vademecum.model.schema.collections import Json
from vademecum.services.agents.mcp.server import Context, serve
from vademecum.services.agents.mcp.tools import Call, Workplace
from vademecum.settings import Settings


class Agent:
    """`folder`: where it works. What it is, is found at the first call; which project that means is asked again when the
    one it meant is not to be had, for projects are merged and deleted."""

    def __init__(self, settings: Settings, email: str, folder: Path) -> None:
        self._settings = settings
        self._email = email
        self._folder = folder
        self._identity: FolderIdentity | None = None
        self._work: Workplace | None = None

    async def serve(self) -> None:
        server = serve(self._who)
        async with stdio_server() as (requests, answers):
            await server.run(requests, answers, server.create_initialization_options())

    async def _who(self, _: Context, missed: Workplace | None) -> tuple[Call, Workplace | None]:
        self._identity = self._identity or identity_of(self._folder)
        if self._work is None or self._work == missed:
            self._work = await work_in(self._identity, self._call)
        return self._call, self._work

    async def _call(self, method: str, path: str, **more: Any) -> Json:
        async def work(client: ApiClient) -> Json:
            answer: Json | None = await client.call(method, path, self._email, **more)
            return answer or {}

        return await use_client_in_turn(self._settings, work)
