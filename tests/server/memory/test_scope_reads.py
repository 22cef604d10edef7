"""Every read path returns exactly the rows of the requested scope, for every scope.

Add a new read path to READ_PATHS. The rows are in `scoped_rows`.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from server.in_process_server import Person, serve
from server.memory.scoped_rows import (
    ALL,
    ASKED,
    ENTITIES,
    HOMES,
    MEMORIES,
    MOVES,
    OBSERVATIONS,
    P1,
    REFUSED,
    SEEN,
    Params,
    Scope,
    create_scoped_rows,
    visible_ids,
)


@dataclass(frozen=True)
class Shown:
    """The result of a read path: the statuses, the ids of the returned rows, and the reported scopes, if any."""

    statuses: set[int]
    ids: set[str]
    scopes: list[Scope]


@dataclass(frozen=True)
class ReadPath:
    """A way to read memory.

    `any_project`: whether a request may name a project. If not, its session alone decides the scope.
    `any_session`: whether a request may name a session. Routes for agents do not accept one.
    """

    kind: str
    route: str
    ask: Callable[[Person, Params], Awaitable[Shown]]
    any_project: bool = True
    any_session: bool = True

    def can_ask(self, scope: Params) -> bool:
        return self.any_project if "project" in scope else self.any_session


def listing(kind: str, route: str, ids: Iterable[str] = ("",), name: str = "", q: str = "") -> ReadPath:
    """Return a read path that lists rows by one URL, or by one URL per id. `name`: the list's key in responses."""

    async def ask(person: Person, scope: Params) -> Shown:
        asked = {**scope, "q": q} if q else scope
        answers = [await person.call("GET", route.format(id=i), params=asked) for i in ids]
        found = [answer.json() for answer in answers if answer.status_code == 200]
        shown = {row["id"] for page in found for row in page[name or kind]}
        return Shown({answer.status_code for answer in answers}, shown, [page["scope"] for page in found])

    return ReadPath(kind, route, ask)


def one_by_one(kind: str, route: str, ids: Iterable[str]) -> ReadPath:
    """Return a read path with one URL per row, which returns 404 for rows out of scope."""

    async def ask(person: Person, scope: Params) -> Shown:
        answers = {i: await person.call("GET", route.format(id=i), params=scope) for i in ids}
        ids_seen = {i for i, answer in answers.items() if answer.status_code == 200}
        assert all(answers[i].json()["id"] == i for i in ids_seen)
        told = [json.loads(answers[i].headers["X-Vademecum-Scope"]) for i in ids_seen]
        return Shown({answer.status_code for answer in answers.values()}, ids_seen, told)

    return ReadPath(kind, route, ask)


async def search_memories(person: Person, scope: Params) -> Shown:
    asked = {name: None if value == "*" else value for name, value in scope.items()}
    answer = await person.call("POST", "/v1/memories/search", json={"query": "tea", **asked})
    found = answer.json() if answer.status_code == 200 else {"results": []}
    ids = {hit["memory"]["id"] for hit in found["results"]}
    return Shown({answer.status_code}, ids, [found["scope"]] if "scope" in found else [])


async def make_context(person: Person, scope: Params) -> Shown:
    """Return the ids of memory in a prompt: recalled rows, and the session's own turn in the conversation section."""
    answer = await person.call("POST", "/v1/context", json={"query": "Who likes tea?", **scope})
    made = answer.json()
    ids = {one["id"] for one in made["scope"]["recalled"]}
    own = {f"of-{scope['sessionId']}"} if "[CONVERSATION CONTEXT]" in made["prompt"] else set()
    return Shown({answer.status_code}, ids | own, [made["scope"]["memory"]])


def reported_scope(answer: dict[str, Any]) -> list[Scope]:
    """Return the scope of a response to an agent, in the format of all other responses."""
    if "scope" not in answer:
        return []
    project = answer["scope"]["project"]
    return [ALL if project is None else {"kind": "project", "projectId": project["id"]}]


async def observation_ids(person: Person) -> dict[str, str]:
    """Map each observation's id to its content."""
    rows = (await person.call("GET", "/v1/observations?project=*")).json()["observations"]
    assert len(rows) == len(OBSERVATIONS)
    return {row["id"]: row["content"] for row in rows}


async def list_observations(person: Person, scope: Params) -> Shown:
    answer = await person.call("GET", "/v1/observations", params=scope)
    rows = answer.json().get("observations", [])
    return Shown({answer.status_code}, {row["content"] for row in rows}, reported_scope(answer.json()))


async def read_observations(person: Person, scope: Params) -> Shown:
    ids = await observation_ids(person)
    asked = {name: value for name, value in scope.items() if name == "project"}
    answer = await person.call("POST", "/v1/observations/read", json={"ids": list(ids), **asked})
    told = answer.json()
    shown = {row["content"] for row in told.get("observations", [])}
    assert answer.status_code != 200 or {ids[i] for i in told["missing"]} == set(OBSERVATIONS) - shown
    return Shown({answer.status_code}, shown, reported_scope(told))


async def see_timelines(person: Person, scope: Params) -> Shown:
    shown, scopes, statuses = set(), [], set()
    for row_id, said in (await observation_ids(person)).items():
        answer = await person.call("GET", f"/v1/observations/{row_id}/timeline", params=scope)
        rows = answer.json().get("observations", [])
        assert answer.status_code != 200 or said in [row["content"] for row in rows]
        shown |= {row["content"] for row in rows}
        scopes += reported_scope(answer.json())
        statuses.add(answer.status_code)
    return Shown(statuses, shown, scopes)


async def search_observations(person: Person, scope: Params) -> Shown:
    asked = {name: value for name, value in scope.items() if name == "project"}
    answer = await person.call("POST", "/v1/observations/search", json={"query": "tea", **asked})
    hits = answer.json().get("results", [])
    shown = {hit["observation"]["content"] if "observation" in hit else hit["memory"]["id"] for hit in hits}
    return Shown({answer.status_code}, shown, reported_scope(answer.json()))


async def brief_agent(person: Person, scope: Params) -> Shown:
    answer = await person.call("GET", "/v1/agents/context", params=scope)
    told = answer.json()
    text = told.get("text", "")
    return Shown(
        {answer.status_code}, {i for i in (*OBSERVATIONS, *MEMORIES) if i in text}, reported_scope(told)
    )


async def list_agent_projects(person: Person, scope: Params) -> Shown:
    answer = await person.call("GET", "/v1/agents/projects", params=scope)
    projects = answer.json().get("projects", [])
    shown = {f"tea at {one['project']['id']}" for one in projects if one["observations"] == 1}
    return Shown({answer.status_code}, shown, reported_scope(answer.json()))


async def list_agent_sessions(person: Person, scope: Params) -> Shown:
    answer = await person.call("GET", "/v1/agents/sessions", params=scope)
    sessions = answer.json().get("sessions", [])
    return Shown(
        {answer.status_code}, {one["agentSession"] for one in sessions}, reported_scope(answer.json())
    )


def for_agents(kind: str, route: str, ask: Callable[[Person, Params], Awaitable[Shown]]) -> ReadPath:
    return ReadPath(kind, route, ask, any_session=False)


READ_PATHS = {
    "the list of observations": for_agents("observations", "/v1/observations", list_observations),
    "observations by their ids": for_agents("observations", "/v1/observations/read", read_observations),
    "what was done around one": for_agents("observations", "/v1/observations/{id}/timeline", see_timelines),
    "what an agent is told first": for_agents("done", "/v1/agents/context", brief_agent),
    "the projects agents work in": for_agents("observations", "/v1/agents/projects", list_agent_projects),
    "the sessions of agents": for_agents("observations", "/v1/agents/sessions", list_agent_sessions),
    "the search of observations": for_agents("done", "/v1/observations/search", search_observations),
    "the search of memories": ReadPath("memories", "/v1/memories/search", search_memories),
    "a memory by its id": one_by_one("memories", "/v1/memories/{id}", MEMORIES),
    "what a memory said before": listing("memories", "/v1/memories/{id}/history", MEMORIES),
    "the turns within a scope": listing("episodes", "/v1/episodes"),
    "the search of turns": listing("episodes", "/v1/episodes/search", name="results", q="what that"),
    "the search of entities": listing("entities", "/v1/entities/search", name="results", q="person"),
    "entities by type": listing("entities", "/v1/entities/by-type/person"),
    "an entity by its id": one_by_one("entities", "/v1/entities/{id}", ENTITIES),
    "what leaves an entity": listing("relationships", "/v1/entities/{id}/relationships", ENTITIES),
    "the prompt": ReadPath("recalled", "/v1/context", make_context, any_project=False),
}


async def test_every_scoped_read_route_is_in_the_table(tmp_path: Path) -> None:
    """The test finds routes that have a scope in the query, and names those that have it in the body.

    It does not cover `/v1/sessions/…` and `/v1/projects/…`, whose path decides the scope.
    """
    async with serve(tmp_path) as h:
        paths = h.app.openapi_schema.to_schema()["paths"]
    routes = {
        re.sub(r"{\w+}", "{id}", path)
        for path, methods in paths.items()
        for parameter in methods.get("get", {}).get("parameters", [])
        if parameter["name"] == "project"
    }
    table = {path.route.replace("by-type/person", "by-type/{id}") for path in READ_PATHS.values()}
    searches = {"/v1/memories/search", "/v1/observations/search", "/v1/observations/read"}
    by_own_scope = {"/v1/episodes/{id}"}  # defaults to the turn's own scope, so test_memory_api.py tests it
    assert table == routes - by_own_scope | searches | {"/v1/context"}


async def test_each_read_path_shows_exactly_the_rows_of_its_scope(tmp_path: Path) -> None:
    """The session "moving" moves to another project between the rounds of requests."""
    async with serve(tmp_path, search_wait_s=60) as h:  # a busy test machine may need long
        ada = await create_scoped_rows(h)
        for moved_to in MOVES:
            change = {"projectId": moved_to}
            moved = await ada.call("PATCH", "/v1/sessions/by-external/moving", json=change)
            assert moved.status_code == 200
            own: tuple[Params, Scope, str] = ({"sessionId": "moving"}, *HOMES[moved_to])
            for (name, path), (asked, scope, seen) in product(READ_PATHS.items(), [*ASKED, own]):
                if not path.can_ask(asked):
                    continue
                shown = await path.ask(ada, asked)
                assert shown.ids == visible_ids(path.kind, SEEN[seen], moved_to), (name, asked, moved_to)
                assert all(used == scope for used in shown.scopes), (name, asked)


async def test_read_with_invalid_scope_is_rejected_instead_of_widened(
    tmp_path: Path,
) -> None:
    async with serve(tmp_path) as h:
        ada = await create_scoped_rows(h)
        for (name, path), (asked, status) in product(READ_PATHS.items(), REFUSED):
            if path.any_project and (not asked or path.can_ask(asked)):
                shown = await path.ask(ada, asked)
                assert (shown.statuses, shown.ids) == ({status}, set()), (name, asked)


async def test_entity_and_overview_responses_name_their_project(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await create_scoped_rows(h)
        new = {"projectId": "p1", "type": "person", "name": "Finn"}
        response = await ada.call("POST", "/v1/entities", json=new)
        overview = await ada.call("GET", "/v1/projects/p1/overview")
        for answer in (response, overview):
            assert json.loads(answer.headers["X-Vademecum-Scope"]) == P1
