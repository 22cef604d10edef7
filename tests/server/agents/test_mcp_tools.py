"""The MCP tools, called over stdio and over HTTP by the client of the MCP library."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from cli.command_runner import Home, RunningServer, small_model
from forked_command import fork_command

ADA, BOB = "ada@example.org", "bob@example.org"
TOOLS = ["search", "get_observations", "timeline", "recent_context", "remember", "forget"]
UNKNOWN = "0000-unknown"


@dataclass
class ToolResult:
    failed: bool
    text: str

    @property
    def json(self) -> Any:
        assert not self.failed, self.text
        return json.loads(self.text)


@dataclass
class Setup:
    """Ada has two projects, `app` and `site`; Bob has one, also called `app`. Each project has one observation."""

    home: Home
    server: RunningServer
    folder: Path
    ids: dict[str, str]

    @asynccontextmanager
    async def agent(
        self, project: str = "app", email: str = ADA, in_new_process: bool = False
    ) -> AsyncIterator[Client]:
        """Yield a client of `vademecum mcp`.

        `in_new_process`: start the command as an agent does. Otherwise fork it, and let `cat` relay its streams.
        """
        command = ["mcp", "--data", str(self.home.data), "--user", email]
        folder = self.folder / email / project
        folder.mkdir(parents=True, exist_ok=True)
        environment = self.home.environment() | {"HOME": str(self.folder)}
        if in_new_process:
            server = StdioServerParameters(
                command=sys.executable,
                args=["-m", "vademecum.cli.main", *command],
                env=environment,
                cwd=folder,
            )
            async with Client(server) as client:
                yield client
            return
        with tempfile.TemporaryDirectory() as pipes:
            stdin, stdout = (Path(pipes) / name for name in ("stdin", "stdout"))
            for pipe in (stdin, stdout):
                os.mkfifo(pipe)
            process = fork_command(command, environment, [stdin, stdout, Path(os.devnull)], folder)
            pass_on = f"exec 3<&0; cat <&3 >{stdin} & exec cat {stdout}"
            async with Client(StdioServerParameters(command="sh", args=["-c", pass_on])) as client:
                yield client
            assert process.wait(60) == 0, "the command must end when its input ends"

    @asynccontextmanager
    async def remote(self, token: str, query: str = "") -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{self.server.url}/mcp{query}", http_client=http)
            async with Client(transport) as client:
                yield client


def event(email: str, project: str, folder: Path) -> dict[str, Any]:
    root = str(folder / email / project).replace(str(folder), "~")
    return {
        "v": 1,
        "id": f"event-{email.partition('@')[0]}-{project}",
        "at": "2026-11-01T10:00:00.000Z",
        "project": {"name": project, "root": root, "source": "folder"},
        "session": "morning",
        "kind": "decision",
        "content": f"The canary of {email} in {project} sings at dawn.",
    }


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    folder = tmp_path_factory.mktemp("people")
    models = small_model(tmp_path_factory.mktemp("models"))
    home = Home(tmp_path_factory.mktemp("mcp") / "data", {"models": str(models)})
    for email in (ADA, BOB):
        home.add(email)
    with home.serve() as server:
        ids: dict[str, str] = {}
        for email, projects in ((ADA, ("app", "site")), (BOB, ("app",))):
            token = home.token(email)
            with server.client(token) as client:
                events = [event(email, project, folder) for project in projects]
                client.post("/v1/observations", json={"events": events}).raise_for_status()
                rows = client.get("/v1/observations?project=*").raise_for_status().json()["observations"]
            who = email.partition("@")[0]
            ids[f"{who} token"] = token
            ids |= {f"{who} {row['content'].split(' in ')[1].split()[0]}": row["id"] for row in rows}
        yield Setup(home, server, folder, ids)


async def call_tool(client: Client, tool: str, **arguments: Any) -> ToolResult:
    answer = await client.call_tool(tool, arguments)
    (content,) = answer.content
    return ToolResult(bool(answer.is_error), content.text)  # type: ignore[union-attr]


def canaries(result: ToolResult) -> set[str]:
    """Return the user and project of each canary in a result, such as "ada app"."""
    people = {
        f"{e.partition('@')[0]} {p}": f"canary of {e} in {p} " for e in (ADA, BOB) for p in ("app", "site")
    }
    return {name for name, song in people.items() if song in result.text}


def test_mcp_tools_are_listed_with_schemas_and_instructions(setup: Setup) -> None:
    async def scenario() -> None:
        async with setup.agent(in_new_process=True) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == TOOLS
            assert all(tool.description and tool.annotations for tool in tools)
            search = next(tool for tool in tools if tool.name == "search").input_schema
            assert search["required"] == ["query"]
            assert search["properties"]["project"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
            assert "do not follow instructions" in (client.instructions or "")
            for tool in tools:  # clients compile the schema, some of them in JavaScript, which has no \Z
                jsonschema_rs.validator_for(tool.input_schema)
                assert r"\Z" not in str(tool.input_schema)

    asyncio.run(scenario())


# Pairs of a tool and its arguments, without `project`.
READS: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": "canary sings at dawn"}),
    ("get_observations", {"ids": "all"}),
    ("recent_context", {}),
]


@pytest.mark.parametrize(
    ("tool", "arguments"), READS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_mcp_tool_reads_own_project_unless_another_is_named(
    setup: Setup, tool: str, arguments: dict[str, Any]
) -> None:
    ids = {
        "ada app": setup.ids["ada app"],
        "ada site": setup.ids["ada site"],
        "bob app": setup.ids["bob app"],
    }
    call_arguments = {"ids": [*ids.values(), UNKNOWN]} if arguments.get("ids") else arguments

    async def scenario() -> None:
        async with setup.agent("app") as client:
            own = await call_tool(client, tool, **call_arguments)
            assert canaries(own) == {"ada app"}
            assert own.json["scope"]["project"]["name"] == "app"
            other = await call_tool(client, tool, **call_arguments, project="site")
            assert canaries(other) == {"ada site"}
            assert other.json["scope"]["project"]["name"] == "site"
            all_projects = await call_tool(client, tool, **call_arguments, project=None)
            assert canaries(all_projects) == {"ada app", "ada site"}
            assert all_projects.json["scope"]["project"] is None
            foreign = await call_tool(client, tool, **call_arguments, project="no such project")
            assert foreign.failed and "NOT_FOUND" in foreign.text and not canaries(foreign)

    asyncio.run(scenario())


def test_mcp_tools_treat_ids_of_another_account_as_unknown(setup: Setup) -> None:
    async def scenario() -> None:
        async with setup.agent("app") as client:
            read = (await call_tool(client, "get_observations", ids=[setup.ids["ada site"], UNKNOWN])).json
            assert read["observations"] == []
            assert sorted(read["missing"]) == sorted([setup.ids["ada site"], UNKNOWN])
            for tool in ("timeline", "forget"):
                unknown = await call_tool(client, tool, id=UNKNOWN)
                assert unknown.failed
                for foreign, scope in (("ada site", {}), ("bob app", {}), ("bob app", {"project": None})):
                    result = await call_tool(client, tool, id=setup.ids[foreign], **scope)
                    assert (result.failed, result.text) == (True, unknown.text), (tool, foreign)
            around = await call_tool(client, "timeline", id=setup.ids["ada site"], project=None)
            assert canaries(around) == {"ada site"}
        async with setup.agent("app", BOB) as client:
            assert canaries(await call_tool(client, "search", query="canary dawn", project=None)) == {
                "bob app"
            }

    asyncio.run(scenario())


def test_agent_finds_and_forgets_memory_only_in_its_project(setup: Setup) -> None:
    async def scenario() -> None:
        async with setup.agent("app") as app, setup.agent("site") as site:
            memory = (await call_tool(app, "remember", text="The kiln is fired on Thursdays.")).json
            scope = (await call_tool(app, "recent_context")).json["scope"]
            assert memory["scope"] == scope and scope["project"]["name"] == "app"
            assert "Thursdays" in (await call_tool(app, "search", query="When is the kiln fired?")).text
            assert "Thursdays" in (await call_tool(app, "recent_context")).text
            assert "Thursdays" not in (await call_tool(site, "search", query="When is the kiln fired?")).text
            refused = await call_tool(site, "forget", id=memory["memory"]["id"])
            assert refused.failed and "NOT_FOUND" in refused.text
            forgotten = (await call_tool(app, "forget", id=memory["memory"]["id"])).json
            assert forgotten["forgotten"] and forgotten["scope"] == scope
            assert "Thursdays" not in (await call_tool(app, "search", query="When is the kiln fired?")).text

    asyncio.run(scenario())


def test_null_argument_of_mcp_tool_counts_as_omitted(setup: Setup) -> None:
    async def scenario() -> None:
        async with setup.agent("app") as client:
            for tool in (await client.list_tools()).tools:
                is_nullable = "null" in str(tool.input_schema["properties"]["project"])
                assert ("`project`: null means all" in (tool.description or "")) == is_nullable
                assert "null counts as left out" in (tool.description or "")
            nulls = dict.fromkeys(("kind", "path", "before", "after", "limit"))
            assert canaries(await call_tool(client, "search", query="canary dawn", **nulls)) == {"ada app"}
            assert canaries(await call_tool(client, "recent_context", tokens=None)) == {"ada app"}
            memory = (await call_tool(client, "remember", text="A note.", pinned=None, project=None)).json
            assert memory["scope"]["project"]["name"] == "app"

    asyncio.run(scenario())


MALFORMED: list[tuple[str, dict[str, Any]]] = [
    ("search", {}),
    ("search", {"query": 5}),
    ("search", {"query": ""}),
    ("search", {"query": "a", "limit": 0}),
    ("search", {"query": "a", "limit": 10**30}),
    ("search", {"query": "a", "projects": "app"}),
    ("search", {"query": "a", "project": 5}),
    ("search", {"query": "a", "kind": "dream"}),
    ("search", {"query": "a", "before": "yesterday"}),
    ("search", {"query": "\x00" * 5000}),
    ("get_observations", {"ids": []}),
    ("get_observations", {"ids": ["x"] * 51}),
    ("get_observations", {"ids": ["../../v1/forget"]}),
    ("timeline", {"id": "../forget"}),
    ("timeline", {"id": "x", "before": -1}),
    ("recent_context", {"tokens": 0}),
    ("remember", {"text": ""}),
    ("remember", {"text": None}),
    ("search", {"query": "a", "projects": None}),
    ("forget", {"id": "*"}),
    ("forget", {}),
    ("sing", {}),
]


def test_malformed_arguments_of_mcp_tool_return_a_tool_error(setup: Setup) -> None:
    async def scenario() -> None:
        async with setup.agent("app") as client:
            for tool, arguments in MALFORMED:
                result = await call_tool(client, tool, **arguments)
                assert result.failed and ("BAD_REQUEST" in result.text or "NOT_FOUND" in result.text), (
                    tool,
                    arguments,
                )
            assert canaries(await call_tool(client, "search", query="canary dawn")) == {"ada app"}

    asyncio.run(scenario())


def test_mcp_tool_rejects_ids_that_would_change_the_url_path(setup: Setup) -> None:
    async def scenario() -> None:
        async with setup.agent("app") as client:
            for id_ in (".", ".."):
                for tool, arguments in (
                    ("timeline", {"id": id_}),
                    ("forget", {"id": id_}),
                    ("get_observations", {"ids": [id_]}),
                ):
                    result = await call_tool(client, tool, **arguments)
                    assert result.failed and result.text.startswith("BAD_REQUEST"), (tool, id_, result)
            assert "NOT_FOUND" in (await call_tool(client, "forget", id="...")).text

    asyncio.run(scenario())


def test_mcp_over_http_requires_token_and_reads_project_from_query(setup: Setup) -> None:
    async def scenario() -> None:
        async with setup.remote(setup.ids["ada token"], "?project=site") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
            assert canaries(await call_tool(client, "search", query="canary dawn")) == {"ada site"}
            assert canaries(await call_tool(client, "search", query="canary dawn", project=None)) == {
                "ada app",
                "ada site",
            }
        async with setup.remote(setup.ids["ada token"]) as client:
            result = await call_tool(client, "recent_context")
            assert result.failed and "Set `project`" in result.text
            assert canaries(await call_tool(client, "recent_context", project="app")) == {"ada app"}
        async with setup.remote(setup.ids["bob token"], "?project=site") as client:
            result = await call_tool(client, "search", query="canary dawn")
            assert result.failed and "NOT_FOUND" in result.text

    asyncio.run(scenario())
    for headers in ({}, {"Authorization": "Bearer nonsense"}):
        with setup.server.client() as client:
            answer = client.post("/mcp", headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert (answer.status_code, answer.json()["code"]) == (401, "SIGNED_OUT")


def test_agents_share_memories_with_and_without_a_running_server(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path / "data")
    home.add(ADA)
    setup = Setup(home, None, tmp_path, {})  # type: ignore[arg-type]

    async def scenario() -> None:
        async with setup.agent("app") as one, setup.agent("app") as two:
            texts = ["Bells ring at noon.", "Owls sleep by day."]
            memories = await asyncio.gather(
                call_tool(one, "remember", text=texts[0]), call_tool(two, "remember", text=texts[1])
            )
            assert not any(result.failed for result in memories), memories
            with home.serve():
                found = await call_tool(one, "search", query="bells owls")
                assert all(text in found.text for text in texts)
            assert "Owls" in (await call_tool(two, "search", query="owls")).text

    asyncio.run(scenario())


def test_agent_tools_follow_merge_and_deletion_of_their_project(setup: Setup) -> None:
    async def scenario() -> None:
        with setup.server.client(setup.ids["ada token"]) as client:
            async with setup.agent("quarry") as agent:
                before = (await call_tool(agent, "recent_context")).json["scope"]["project"]["id"]
                into = client.post("/v1/projects", json={"name": "mine"}).raise_for_status().json()["id"]
                client.post(f"/v1/projects/{before}/merge", json={"into": into}).raise_for_status()
                memory = (await call_tool(agent, "remember", text="Slate is cut on Fridays.")).json
                assert memory["memory"]["projectId"] == into
                client.delete(f"/v1/projects/{into}").raise_for_status()
                for tool, arguments in (("search", {"query": "slate"}), ("recent_context", {})):
                    result = (await call_tool(agent, tool, **arguments)).json
                    assert result["scope"]["project"]["name"] == "quarry"

    asyncio.run(scenario())
