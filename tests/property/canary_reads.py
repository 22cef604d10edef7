"""Read memory in every way from every scope, and check that each answer contains exactly the expected canaries."""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from random import Random
from typing import Any

from property.expected_memory import ExpectedMemory, Home, canaries_in
from property.sync_wire import COLLECTIONS

MEMORY = ("episodes", "memories", "entities", "summaries")
SAMPLE = 1  # number of rows of each kind to read by ID from each scope
SESSIONS = 2  # number of sessions to read by ID, times `sample`
Scope = dict[str, str]


class Reader:
    """Read as one person.

    `sample`: the number of rows of each kind to read by ID.
    `seen`: maps the name of each way to read to the number of canaries that it has returned.
    """

    def __init__(self, memory: ExpectedMemory, rng: Random, sample: int) -> None:
        self.memory = memory
        self.rng = rng
        self.sample = sample
        self.seen: Counter[str] = Counter()

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, set[str]]:
        answer = await self.memory.person.call(method, path, **more)
        assert answer.status_code in (200, 404), answer.text
        return answer.status_code, canaries_in(answer.text)

    async def shows(self, way: str, expected: set[str], path: str, scope: Scope | None = None) -> None:
        """Check that the answer to a GET of this path contains exactly the expected canaries."""
        _, shown = await self.ask("GET", path, params={"limit": 1000, **(scope or {})})
        self.check(way, shown, expected)

    def check(self, way: str, shown: set[str], expected: set[str]) -> None:
        assert shown == expected, (way, self.memory.number, shown - expected, expected - shown)
        self.seen[way] += len(shown)

    async def scope(self, scope: Scope, homes: list[Home]) -> None:
        """Read in all ways that take a scope, except those of agents. `homes`: the partitions in the scope."""
        there = {kind: self.in_homes(homes, kind) for kind in (*MEMORY, "relationships")}
        await self.shows("turns", there["episodes"], "/v1/episodes", scope)
        await self.shows("entities of a type", there["entities"], "/v1/entities/by-type/person", scope)
        for kind, words in (("episodes", "sings garden why"), ("entities", "person")):
            request = {"q": words, "limit": 100, **scope}
            _, shown = await self.ask("GET", f"/v1/{kind}/search", params=request)
            self.check(f"search of {kind}", shown, there[kind])
        body = {name: None if value == "*" else value for name, value in scope.items()}
        for query in ("", "likes tea was heard"):
            request = {"query": query, "limit": 100, **body}
            _, shown = await self.ask("POST", "/v1/memories/search", json=request)
            self.check("search of memories", shown, there["memories"])
        await self.by_id(scope, there)

    def in_homes(self, homes: list[Home], kind: str) -> set[str]:
        places = [*homes, *(["between"] if len(homes) > 1 else [])]
        return {canary for place in places for canary in self.memory.in_home(place, kind)}

    async def by_id(self, scope: Scope, there: dict[str, set[str]]) -> None:
        by_kind = {"episodes": [""], "memories": ["", "/history"], "entities": ["", "/relationships"]}
        for kind, ways in by_kind.items():
            known = self.memory.of(kind)
            for canary in self.rng.sample(sorted(known), min(self.sample, len(known))):
                edges = {
                    edge
                    for edge, entry in self.memory.of("relationships").items()
                    if entry.ends and entry.ends[0] == known[canary].id and edge in there["relationships"]
                }
                for way in ways:
                    path = f"/v1/{kind}/{known[canary].id}{way}"
                    status, shown = await self.ask("GET", path, params=scope)
                    expected = edges if way == "/relationships" else {canary}
                    if way == "/history":
                        expected = self.history(canary, there[kind])
                    assert status == (200 if canary in there[kind] else 404), (path, scope)
                    self.check(f"{kind} by id{way}", shown, expected if status == 200 else set())

    def history(self, canary: str, there: set[str]) -> set[str]:
        """Return the expected history: the memory and its predecessors, up to the first one outside the scope."""
        known, found = self.memory.of("memories"), set[str]()
        while canary in there and canary not in found:
            found.add(canary)
            canary = known[canary].older
        return found

    async def agents(self, scope: Scope, homes: list[Home]) -> None:
        """Read in all ways that agents use. `homes`: the partitions in the scope."""
        done, known = self.in_homes(homes, "observations"), self.in_homes(homes, "memories")
        scope_field = {"project": None if scope["project"] == "*" else scope["project"]}
        await self.shows("observations", done, "/v1/observations", scope)
        await self.shows("sessions of agents", done, "/v1/agents/sessions", scope)
        body = {"query": "mended likes tea was heard", "limit": 100, **scope_field}
        _, shown = await self.ask("POST", "/v1/observations/search", json=body)
        self.check("search of agents", shown, done | known)
        _, shown = await self.ask("POST", "/v1/observations/search", json={**body, "pinned": False})
        self.check("search of observations", shown, done)
        every = self.memory.of("observations")
        ids = [entry.id for entry in every.values()]
        _, shown = await self.ask("POST", "/v1/observations/read", json={"ids": ids, **scope_field})
        self.check("observations by id", shown, done)
        _, shown = await self.ask("GET", "/v1/agents/context", params={"tokens": 20_000, **scope})
        self.check("context of agents", shown, done | known)
        listed = (await self.memory.person.call("GET", "/v1/agents/projects", params=scope)).json()[
            "projects"
        ]
        counts = {one["project"]["id"]: one["observations"] for one in listed}
        mine = {home: len(self.memory.in_home(home, "observations")) for home in homes if home}
        assert counts == mine, (scope, counts, mine)
        for canary in self.rng.sample(sorted(every), min(self.sample, len(every))):
            around = {"before": 50, "after": 50, **scope}
            path = f"/v1/observations/{every[canary].id}/timeline"
            status, shown = await self.ask("GET", path, params=around)
            assert status == (200 if canary in done else 404), (path, scope)
            same = self.memory.in_home(every[canary].project, "observations")
            self.check("timeline", shown, same if status == 200 else set())
        await self.tools(scope_field, ids, done, known)

    async def tools(
        self, body: dict[str, str | None], ids: list[str], done: set[str], known: set[str]
    ) -> None:
        """Read through the MCP tools, whose answers must contain the same canaries as the HTTP routes."""
        query = {"query": "mended likes tea was heard", "limit": 100}
        for name, given, expected in (
            ("search", query, done | known),
            ("get_observations", {"ids": ids[:50]}, done),
            ("recent_context", {"tokens": 20_000}, done | known),
        ):
            if name == "get_observations" and not ids:
                continue
            params = {"name": name, "arguments": {**given, **body}}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            headers = {"Accept": "application/json, text/event-stream"}
            _, shown = await self.ask("POST", "/mcp", json=call, headers=headers)
            self.check(f"the tool {name}", shown, expected)

    async def session(self, session: str) -> None:
        """Read in all ways that are specific to one session."""
        memory, home = self.memory, self.memory.sessions[session]
        for kind in ("episodes", "summaries"):
            sung = memory.of_session(session, kind)
            await self.shows(f"a session's {kind}", sung, f"/v1/sessions/{session}/{kind}")
        _, shown = await self.ask("GET", f"/v1/sessions/{session}/memories")
        assert shown <= memory.in_home(home, "memories"), session
        self.seen["a session's memories"] += len(shown)
        query = {"query": "What is the garden canary?", "sessionId": session}
        _, shown = await self.ask("POST", "/v1/context", json=query)
        mine = {canary for kind in MEMORY for canary in memory.in_home(home, kind)}
        # The prompt context also contains facts, and with each recalled text the title of its session.
        mine |= memory.in_home(home, "sessions") | memory.of("facts").keys()
        assert shown <= mine, [(canary, memory.entries.get(canary)) for canary in shown - mine]
        self.seen["context"] += len(shown)
        path = f"/v1/sessions/by-external/{memory.external[session]}"
        await self.shows("a session", memory.of_session(session, "sessions"), path)

    async def project(self, project: str) -> None:
        memory = self.memory
        for kind in ("sessions", "summaries"):
            await self.shows(
                f"a project's {kind}", memory.in_home(project, kind), f"/v1/projects/{project}/{kind}"
            )
        overviews = {canary for canary, entry in memory.of("summaries").items() if entry.project == project}
        _, shown = await self.ask("GET", f"/v1/projects/{project}/overview")
        assert shown <= overviews and bool(shown) == bool(overviews), project
        self.seen["overview"] += len(shown)

    async def account(self) -> None:
        """Check that the reads without a scope return exactly the rows of this person."""
        memory = self.memory
        await self.shows("sessions", set(memory.of("sessions")), "/v1/sessions")
        for name in COLLECTIONS:
            rows = await memory.person.pull(name)
            self.check(
                "pull", canaries_in(str([row for row in rows if not row["_deleted"]])), set(memory.of(name))
            )
            canaries = canaries_in(str([row for row in rows if row["_deleted"]]))
            assert not canaries, f"tombstones of {name} contain text"
        stats = (await memory.person.call("GET", "/v1/memories/stats")).json()
        assert stats["total"] == len(memory.of("memories"))
        answer = await memory.person.call("GET", "/v1/jobs?limit=1000")
        subjects = {job["subject"] for job in answer.json()["jobs"]}
        assert subjects <= {f"episodes/{entry.id}" for entry in memory.of("episodes").values()}
        self.seen["jobs"] += len(subjects)
        assert not canaries_in(answer.text)
        archive = zipfile.ZipFile(io.BytesIO((await memory.person.call("GET", "/v1/export")).content))
        shown = {c for name in archive.namelist() for c in canaries_in(archive.read(name).decode())}
        self.check("export", shown, set(memory.entries))


async def read_everywhere(memory: ExpectedMemory, rng: Random, sample: int = SAMPLE) -> Counter[str]:
    """Read in all ways from all scopes. Map the name of each way to the number of canaries that it returned."""
    reader = Reader(memory, rng, sample)
    homes: list[Home] = [*memory.projects, None]
    for home in homes:
        inside = [session for session, where in memory.sessions.items() if where == home]
        if inside:
            await reader.scope({"sessionId": rng.choice(inside)}, [home])
        elif home is not None:
            await reader.scope({"project": home}, [home])
        if home is not None:
            await reader.agents({"project": home}, [home])
    await reader.scope({"project": "*"}, homes)
    await reader.agents({"project": "*"}, homes)
    for session in rng.sample(sorted(memory.sessions), min(SESSIONS * sample, len(memory.sessions))):
        await reader.session(session)
    for project in memory.projects:
        await reader.project(project)
    await reader.account()
    return reader.seen
