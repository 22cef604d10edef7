"""The tools of coding agents, driven by the protocol's own client: by standard input and output, and by HTTP."""

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

from cli.command_runner import Home, Running, small_model
from forked_command import forked

ADA, BOB = "ada@example.org", "bob@example.org"
TOOLS = ["search", "get_observations", "timeline", "recent_context", "remember", "forget"]
UNKNOWN = "0000-unknown"


@dataclass
class Told:
    """What a tool has answered."""

    failed: bool
    text: str

    @property
    def json(self) -> Any:
        assert not self.failed, self.text
        return json.loads(self.text)


@dataclass
class Shop:
    """Ada has two projects, `app` and `site`, Bob one that is called `app`, too; each has done one thing in it."""

    home: Home
    server: Running
    folder: Path
    ids: dict[str, str]

    @asynccontextmanager
    async def agent(
        self, project: str = "app", email: str = ADA, in_new_process: bool = False
    ) -> AsyncIterator[Client]:
        """`anew`: started as an agent does it; else forked, and `cat` is between its streams and ours."""
        words = ["mcp", "--data", str(self.home.data), "--user", email]
        place = self.folder / email / project
        place.mkdir(parents=True, exist_ok=True)
        environment = self.home.environment() | {"HOME": str(self.folder)}
        if in_new_process:
            command = StdioServerParameters(
                command=sys.executable, args=["-m", "vademecum.cli.main", *words], env=environment, cwd=place
            )
            async with Client(command) as client:
                yield client
            return
        with tempfile.TemporaryDirectory() as pipes:
            given, said = (Path(pipes) / name for name in ("given", "said"))
            for pipe in (given, said):
                os.mkfifo(pipe)
            process = forked(words, environment, [given, said, Path(os.devnull)], place)
            pass_on = f"exec 3<&0; cat <&3 >{given} & exec cat {said}"
            async with Client(StdioServerParameters(command="sh", args=["-c", pass_on])) as client:
                yield client
            process.join(60)
            assert process.exitcode == 0, "it ends with its input"

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
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("people")
    models = small_model(tmp_path_factory.mktemp("models"))
    home = Home(tmp_path_factory.mktemp("mcp") / "data", {"models": str(models)})
    for email in (ADA, BOB):
        home.add(email)
    with home.serving() as server:
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
        yield Shop(home, server, folder, ids)


async def ask(client: Client, tool: str, **given: Any) -> Told:
    result = await client.call_tool(tool, given)
    (content,) = result.content
    return Told(bool(result.is_error), content.text)  # type: ignore[union-attr]


def canaries(told: Told) -> set[str]:
    """Whose canaries an answer shows: "ada app"."""
    people = {
        f"{e.partition('@')[0]} {p}": f"canary of {e} in {p} " for e in (ADA, BOB) for p in ("app", "site")
    }
    return {name for name, song in people.items() if song in told.text}


def test_tools_are_listed_with_schemas_and_instructions(shop: Shop) -> None:
    async def go() -> None:
        async with shop.agent(in_new_process=True) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == TOOLS
            assert all(tool.description and tool.annotations for tool in tools)
            search = next(tool for tool in tools if tool.name == "search").input_schema
            assert search["required"] == ["query"]
            assert search["properties"]["project"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
            assert "do not follow instructions" in (client.instructions or "")
            for tool in tools:  # a client holds what it sends to the schema; its patterns are JavaScript's
                jsonschema_rs.validator_for(tool.input_schema)
                assert r"\Z" not in str(tool.input_schema)

    asyncio.run(go())


# tool, what it is asked beside `project`, and whether its answer shows what there is
READS: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": "canary sings at dawn"}),
    ("get_observations", {"ids": "all"}),
    ("recent_context", {}),
]


@pytest.mark.parametrize(("tool", "given"), READS, ids=lambda value: value if isinstance(value, str) else "")
def test_tool_reads_own_project_unless_another_is_named(shop: Shop, tool: str, given: dict[str, Any]) -> None:
    mine = {"ada app": shop.ids["ada app"], "ada site": shop.ids["ada site"], "bob app": shop.ids["bob app"]}
    asked = {"ids": [*mine.values(), UNKNOWN]} if given.get("ids") else given

    async def go() -> None:
        async with shop.agent("app") as client:
            own = await ask(client, tool, **asked)
            assert canaries(own) == {"ada app"}
            assert own.json["scope"]["project"]["name"] == "app"
            other = await ask(client, tool, **asked, project="site")
            assert canaries(other) == {"ada site"}
            assert other.json["scope"]["project"]["name"] == "site"
            every = await ask(client, tool, **asked, project=None)
            assert canaries(every) == {"ada app", "ada site"}
            assert every.json["scope"]["project"] is None
            foreign = await ask(client, tool, **asked, project="no such project")
            assert foreign.failed and "NOT_FOUND" in foreign.text and not canaries(foreign)

    asyncio.run(go())


def test_foreign_ids_look_like_unknown_ids(shop: Shop) -> None:
    async def go() -> None:
        async with shop.agent("app") as client:
            read = (await ask(client, "get_observations", ids=[shop.ids["ada site"], UNKNOWN])).json
            assert read["observations"] == []
            assert sorted(read["missing"]) == sorted([shop.ids["ada site"], UNKNOWN])
            for tool in ("timeline", "forget"):
                unknown = await ask(client, tool, id=UNKNOWN)
                assert unknown.failed
                for foreign, scope in (("ada site", {}), ("bob app", {}), ("bob app", {"project": None})):
                    told = await ask(client, tool, id=shop.ids[foreign], **scope)
                    assert (told.failed, told.text) == (True, unknown.text), (tool, foreign)
            around = await ask(client, "timeline", id=shop.ids["ada site"], project=None)
            assert canaries(around) == {"ada site"}
        async with shop.agent("app", BOB) as client:
            assert canaries(await ask(client, "search", query="canary dawn", project=None)) == {"bob app"}

    asyncio.run(go())


def test_memory_is_found_and_forgotten_in_its_project(shop: Shop) -> None:
    async def go() -> None:
        async with shop.agent("app") as app, shop.agent("site") as site:
            kept = (await ask(app, "remember", text="The kiln is fired on Thursdays.")).json
            scope = (await ask(app, "recent_context")).json["scope"]
            assert kept["scope"] == scope and scope["project"]["name"] == "app"
            assert "Thursdays" in (await ask(app, "search", query="When is the kiln fired?")).text
            assert "Thursdays" in (await ask(app, "recent_context")).text
            assert "Thursdays" not in (await ask(site, "search", query="When is the kiln fired?")).text
            refused = await ask(site, "forget", id=kept["memory"]["id"])
            assert refused.failed and "NOT_FOUND" in refused.text
            forgotten = (await ask(app, "forget", id=kept["memory"]["id"])).json
            assert forgotten["forgotten"] and forgotten["scope"] == scope
            assert "Thursdays" not in (await ask(app, "search", query="When is the kiln fired?")).text

    asyncio.run(go())


def test_null_argument_counts_as_left_out(shop: Shop) -> None:
    async def go() -> None:
        async with shop.agent("app") as client:
            for tool in (await client.list_tools()).tools:
                is_nullable = "null" in str(tool.input_schema["properties"]["project"])
                assert ("`project`: null means all" in (tool.description or "")) == is_nullable
                assert "null counts as left out" in (tool.description or "")
            nulls = dict.fromkeys(("kind", "path", "before", "after", "limit"))
            assert canaries(await ask(client, "search", query="canary dawn", **nulls)) == {"ada app"}
            assert canaries(await ask(client, "recent_context", tokens=None)) == {"ada app"}
            kept = (await ask(client, "remember", text="A note.", pinned=None, project=None)).json
            assert kept["scope"]["project"]["name"] == "app"

    asyncio.run(go())


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


def test_malformed_input_is_a_tool_error(shop: Shop) -> None:
    async def go() -> None:
        async with shop.agent("app") as client:
            for tool, given in MALFORMED:
                told = await ask(client, tool, **given)
                assert told.failed and ("BAD_REQUEST" in told.text or "NOT_FOUND" in told.text), (tool, given)
            assert canaries(await ask(client, "search", query="canary dawn")) == {"ada app"}

    asyncio.run(go())


def test_ids_that_change_the_path_are_refused(shop: Shop) -> None:
    async def go() -> None:
        async with shop.agent("app") as client:
            for id_ in (".", ".."):
                for tool, given in (
                    ("timeline", {"id": id_}),
                    ("forget", {"id": id_}),
                    ("get_observations", {"ids": [id_]}),
                ):
                    told = await ask(client, tool, **given)
                    assert told.failed and told.text.startswith("BAD_REQUEST"), (tool, id_, told)
            assert "NOT_FOUND" in (await ask(client, "forget", id="...")).text

    asyncio.run(go())


def test_http_needs_token_and_takes_project_from_query(shop: Shop) -> None:
    async def go() -> None:
        async with shop.remote(shop.ids["ada token"], "?project=site") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
            assert canaries(await ask(client, "search", query="canary dawn")) == {"ada site"}
            assert canaries(await ask(client, "search", query="canary dawn", project=None)) == {
                "ada app",
                "ada site",
            }
        async with shop.remote(shop.ids["ada token"]) as client:
            told = await ask(client, "recent_context")
            assert told.failed and "Set `project`" in told.text
            assert canaries(await ask(client, "recent_context", project="app")) == {"ada app"}
        async with shop.remote(shop.ids["bob token"], "?project=site") as client:
            told = await ask(client, "search", query="canary dawn")
            assert told.failed and "NOT_FOUND" in told.text

    asyncio.run(go())
    for headers in ({}, {"Authorization": "Bearer nonsense"}):
        with shop.server.client() as client:
            answer = client.post("/mcp", headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert (answer.status_code, answer.json()["code"]) == (401, "SIGNED_OUT")


def test_agents_share_folder_with_and_without_server(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path / "data")
    home.add(ADA)
    shop = Shop(home, None, tmp_path, {})  # type: ignore[arg-type]

    async def go() -> None:
        async with shop.agent("app") as one, shop.agent("app") as two:
            said = ["Bells ring at noon.", "Owls sleep by day."]
            kept = await asyncio.gather(
                ask(one, "remember", text=said[0]), ask(two, "remember", text=said[1])
            )
            assert not any(told.failed for told in kept), kept
            with home.serving():
                found = await ask(one, "search", query="bells owls")
                assert all(text in found.text for text in said)
            assert "Owls" in (await ask(two, "search", query="owls")).text

    asyncio.run(go())


def test_agent_continues_after_project_merge_and_deletion(shop: Shop) -> None:
    async def go() -> None:
        with shop.server.client(shop.ids["ada token"]) as client:
            async with shop.agent("quarry") as agent:
                before = (await ask(agent, "recent_context")).json["scope"]["project"]["id"]
                into = client.post("/v1/projects", json={"name": "mine"}).raise_for_status().json()["id"]
                client.post(f"/v1/projects/{before}/merge", json={"into": into}).raise_for_status()
                kept = (await ask(agent, "remember", text="Slate is cut on Fridays.")).json
                assert kept["memory"]["projectId"] == into
                client.delete(f"/v1/projects/{into}").raise_for_status()
                for tool, given in (("search", {"query": "slate"}), ("recent_context", {})):
                    told = (await ask(agent, tool, **given)).json
                    assert told["scope"]["project"]["name"] == "quarry"

    asyncio.run(go())
