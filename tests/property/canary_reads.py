"""Read memory in every way from every scope, and check that each answer contains exactly the expected canaries."""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from random import Random
from typing import Any

from property.expected_memory import Books, Home, canaries_in
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

    def __init__(self, books: Books, rng: Random, sample: int) -> None:
        self.books = books
        self.rng = rng
        self.sample = sample
        self.seen: Counter[str] = Counter()

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, set[str]]:
        answer = await self.books.person.call(method, path, **more)
        assert answer.status_code in (200, 404), answer.text
        return answer.status_code, canaries_in(answer.text)

    async def shows(self, way: str, expected: set[str], path: str, scope: Scope | None = None) -> None:
        """Check that the answer to a GET of this path contains exactly the expected canaries."""
        _, told = await self.ask("GET", path, params={"limit": 1000, **(scope or {})})
        self.check(way, told, expected)

    def check(self, way: str, told: set[str], expected: set[str]) -> None:
        assert told == expected, (way, self.books.number, told - expected, expected - told)
        self.seen[way] += len(told)

    async def scope(self, scope: Scope, homes: list[Home]) -> None:
        """Read in all ways that take a scope, except those of agents. `homes`: the partitions in the scope."""
        there = {kind: self.within(homes, kind) for kind in (*MEMORY, "relationships")}
        await self.shows("turns", there["episodes"], "/v1/episodes", scope)
        await self.shows("entities of a type", there["entities"], "/v1/entities/by-type/person", scope)
        for kind, words in (("episodes", "sings garden why"), ("entities", "person")):
            asked = {"q": words, "limit": 100, **scope}
            _, told = await self.ask("GET", f"/v1/{kind}/search", params=asked)
            self.check(f"search of {kind}", told, there[kind])
        body = {name: None if value == "*" else value for name, value in scope.items()}
        for query in ("", "likes tea was heard"):
            asked = {"query": query, "limit": 100, **body}
            _, told = await self.ask("POST", "/v1/memories/search", json=asked)
            self.check("search of memories", told, there["memories"])
        await self.by_id(scope, there)

    def within(self, homes: list[Home], kind: str) -> set[str]:
        places = [*homes, *(["between"] if len(homes) > 1 else [])]
        return {canary for place in places for canary in self.books.within(place, kind)}

    async def by_id(self, scope: Scope, there: dict[str, set[str]]) -> None:
        by_kind = {"episodes": [""], "memories": ["", "/history"], "entities": ["", "/relationships"]}
        for kind, ways in by_kind.items():
            known = self.books.of(kind)
            for canary in self.rng.sample(sorted(known), min(self.sample, len(known))):
                edges = {
                    edge
                    for edge, entry in self.books.of("relationships").items()
                    if entry.ends and entry.ends[0] == known[canary].id and edge in there["relationships"]
                }
                for way in ways:
                    path = f"/v1/{kind}/{known[canary].id}{way}"
                    status, told = await self.ask("GET", path, params=scope)
                    shown = edges if way == "/relationships" else {canary}
                    if way == "/history":
                        shown = self.history(canary, there[kind])
                    assert status == (200 if canary in there[kind] else 404), (path, scope)
                    self.check(f"{kind} by id{way}", told, shown if status == 200 else set())

    def history(self, canary: str, there: set[str]) -> set[str]:
        """Return the expected history: the memory and its predecessors, up to the first one outside the scope."""
        known, found = self.books.of("memories"), set[str]()
        while canary in there and canary not in found:
            found.add(canary)
            canary = known[canary].older
        return found

    async def agents(self, scope: Scope, homes: list[Home]) -> None:
        """Read in all ways that agents use. `homes`: the partitions in the scope."""
        done, known = self.within(homes, "observations"), self.within(homes, "memories")
        said = {"project": None if scope["project"] == "*" else scope["project"]}
        await self.shows("observations", done, "/v1/observations", scope)
        await self.shows("sessions of agents", done, "/v1/agents/sessions", scope)
        body = {"query": "mended likes tea was heard", "limit": 100, **said}
        _, told = await self.ask("POST", "/v1/observations/search", json=body)
        self.check("search of agents", told, done | known)
        _, told = await self.ask("POST", "/v1/observations/search", json={**body, "pinned": False})
        self.check("search of observations", told, done)
        every = self.books.of("observations")
        ids = [entry.id for entry in every.values()]
        _, told = await self.ask("POST", "/v1/observations/read", json={"ids": ids, **said})
        self.check("observations by id", told, done)
        _, told = await self.ask("GET", "/v1/agents/context", params={"tokens": 20_000, **scope})
        self.check("context of agents", told, done | known)
        told_of = (await self.books.person.call("GET", "/v1/agents/projects", params=scope)).json()[
            "projects"
        ]
        counts = {one["project"]["id"]: one["observations"] for one in told_of}
        mine = {home: len(self.books.within(home, "observations")) for home in homes if home}
        assert counts == mine, (scope, counts, mine)
        for canary in self.rng.sample(sorted(every), min(self.sample, len(every))):
            around = {"before": 50, "after": 50, **scope}
            path = f"/v1/observations/{every[canary].id}/timeline"
            status, told = await self.ask("GET", path, params=around)
            assert status == (200 if canary in done else 404), (path, scope)
            same = self.books.within(every[canary].project, "observations")
            self.check("timeline", told, same if status == 200 else set())
        await self.tools(said, ids, done, known)

    async def tools(
        self, said: dict[str, str | None], ids: list[str], done: set[str], known: set[str]
    ) -> None:
        """Read through the MCP tools, whose answers must contain the same canaries as the HTTP routes."""
        asked = {"query": "mended likes tea was heard", "limit": 100}
        for name, given, expected in (
            ("search", asked, done | known),
            ("get_observations", {"ids": ids[:50]}, done),
            ("recent_context", {"tokens": 20_000}, done | known),
        ):
            if name == "get_observations" and not ids:
                continue
            params = {"name": name, "arguments": {**given, **said}}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            headers = {"Accept": "application/json, text/event-stream"}
            _, told = await self.ask("POST", "/mcp", json=call, headers=headers)
            self.check(f"the tool {name}", told, expected)

    async def session(self, session: str) -> None:
        """Read in all ways that are specific to one session."""
        books, home = self.books, self.books.sessions[session]
        for kind in ("episodes", "summaries"):
            sung = books.sung_in(session, kind)
            await self.shows(f"a session's {kind}", sung, f"/v1/sessions/{session}/{kind}")
        _, told = await self.ask("GET", f"/v1/sessions/{session}/memories")
        assert told <= books.within(home, "memories"), session
        self.seen["a session's memories"] += len(told)
        asked = {"query": "What is the garden canary?", "sessionId": session}
        _, told = await self.ask("POST", "/v1/context", json=asked)
        mine = {canary for kind in MEMORY for canary in books.within(home, kind)}
        # The prompt context also contains facts, and with each recalled text the title of its session.
        mine |= books.within(home, "sessions") | books.of("facts").keys()
        assert told <= mine, [(canary, books.said.get(canary)) for canary in told - mine]
        self.seen["context"] += len(told)
        path = f"/v1/sessions/by-external/{books.external[session]}"
        await self.shows("a session", books.sung_in(session, "sessions"), path)

    async def project(self, project: str) -> None:
        books = self.books
        for kind in ("sessions", "summaries"):
            await self.shows(
                f"a project's {kind}", books.within(project, kind), f"/v1/projects/{project}/{kind}"
            )
        overviews = {canary for canary, entry in books.of("summaries").items() if entry.project == project}
        _, told = await self.ask("GET", f"/v1/projects/{project}/overview")
        assert told <= overviews and bool(told) == bool(overviews), project
        self.seen["overview"] += len(told)

    async def account(self) -> None:
        """Check that the reads without a scope return exactly the rows of this person."""
        books = self.books
        await self.shows("sessions", set(books.of("sessions")), "/v1/sessions")
        for name in COLLECTIONS:
            rows = await books.person.pull(name)
            self.check(
                "pull", canaries_in(str([row for row in rows if not row["_deleted"]])), set(books.of(name))
            )
            canaries = canaries_in(str([row for row in rows if row["_deleted"]]))
            assert not canaries, f"tombstones of {name} contain text"
        stats = (await books.person.call("GET", "/v1/memories/stats")).json()
        assert stats["total"] == len(books.of("memories"))
        answer = await books.person.call("GET", "/v1/jobs?limit=1000")
        subjects = {job["subject"] for job in answer.json()["jobs"]}
        assert subjects <= {f"episodes/{entry.id}" for entry in books.of("episodes").values()}
        self.seen["jobs"] += len(subjects)
        assert not canaries_in(answer.text)
        archive = zipfile.ZipFile(io.BytesIO((await books.person.call("GET", "/v1/export")).content))
        told = {c for name in archive.namelist() for c in canaries_in(archive.read(name).decode())}
        self.check("export", told, set(books.said))


async def read_everywhere(books: Books, rng: Random, sample: int = SAMPLE) -> Counter[str]:
    """Read in all ways from all scopes. Map the name of each way to the number of canaries that it returned."""
    reader = Reader(books, rng, sample)
    homes: list[Home] = [*books.projects, None]
    for home in homes:
        inside = [session for session, where in books.sessions.items() if where == home]
        if inside:
            await reader.scope({"sessionId": rng.choice(inside)}, [home])
        elif home is not None:
            await reader.scope({"project": home}, [home])
        if home is not None:
            await reader.agents({"project": home}, [home])
    await reader.scope({"project": "*"}, homes)
    await reader.agents({"project": "*"}, homes)
    for session in rng.sample(sorted(books.sessions), min(SESSIONS * sample, len(books.sessions))):
        await reader.session(session)
    for project in books.projects:
        await reader.project(project)
    await reader.account()
    return reader.seen
