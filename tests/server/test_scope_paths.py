"""Every way to read memory × every scope: each shows what lies within the scope that was asked for, and nothing else;
and every way to change it × every scope: each changes what lies within it, and nothing else.

A new way to read is a line in READ_PATHS, a new way to change in WRITE_PATHS. What there is, is in `furnished`.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from property.rows import dead, entity, episode, memory, project, relationship, session, summary
from server.agents.acting import event, join, take
from server.house import House, Person, house, run

Params = dict[str, str]
Scope = dict[str, str]
Places = frozenset[str | None]

POOL: Scope = {"kind": "pool"}
P1: Scope = {"kind": "project", "projectId": "p1"}
P2: Scope = {"kind": "project", "projectId": "p2"}
ALL: Scope = {"kind": "all"}
HOMES: dict[str | None, tuple[Scope, str]] = {None: (POOL, "pool"), "p1": (P1, "p1"), "p2": (P2, "p2")}
SEEN: dict[str, set[str | None]] = {"pool": {None}, "p1": {"p1"}, "p2": {"p2"}, "all": {None, "p1", "p2"}}

# Where each session is; `MOVES` puts "moving" elsewhere while the conversation goes on.
SESSIONS: dict[str, str | None] = {"loose": None, "loose2": None, "in1": "p1", "in2": "p2", "moving": "p1"}
MOVES: list[str | None] = ["p1", None, "p2", "p1"]
ENTITIES = {"ada": "p1", "bea": "p1", "cleo": "p2", "dora": "p2"}
MEMORIES = {"of-pool": None, "of-p1": "p1", "of-p2": "p2"}
OBSERVATIONS = {"tea at p1": "p1", "tea at p2": "p2"}  # by what they say: their ids are made by the server
EDGES = {"ada-bea": "p1", "cleo-dora": "p2", "ada-cleo": "both"}  # a device pushed the last one
SUMMARIES: dict[str, dict[str, str]] = {
    "of-loose": {"sessionId": "loose"},
    "of-moving": {"sessionId": "moving"},
    "of-p1": {"projectId": "p1"},
    "of-p2": {"projectId": "p2"},
    "left-p1": {"sessionId": "moving", "projectId": "p1"},  # is where its session is, whatever it names
}


@dataclass(frozen=True)
class Shown:
    """What a way to read has answered: its statuses, the ids it showed and the scope that it said it used, if it did."""

    statuses: set[int]
    ids: set[str]
    scopes: list[Scope]


@dataclass(frozen=True)
class ReadPath:
    """`any_project` is false where the session alone says what is seen, and no project can be named; `any_session` where
    no session asks, for it is a program of the person."""

    kind: str
    route: str
    ask: Callable[[Person, Params], Awaitable[Shown]]
    any_project: bool = True
    any_session: bool = True

    def can_ask(self, scope: Params) -> bool:
        return self.any_project if "project" in scope else self.any_session


def listing(kind: str, route: str, ids: Iterable[str] = ("",), name: str = "", q: str = "") -> ReadPath:
    """An address, or one for each of `ids`, that lists rows under `name`, else the name of their kind."""

    async def ask(person: Person, scope: Params) -> Shown:
        asked = {**scope, "q": q} if q else scope
        answers = [await person.call("GET", route.format(id=i), params=asked) for i in ids]
        found = [answer.json() for answer in answers if answer.status_code == 200]
        shown = {row["id"] for page in found for row in page[name or kind]}
        return Shown({answer.status_code for answer in answers}, shown, [page["scope"] for page in found])

    return ReadPath(kind, route, ask)


def one_by_one(kind: str, route: str, ids: Iterable[str]) -> ReadPath:
    """An address for each row, which answers 404 where it is not to be seen."""

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
    """What is recalled into a prompt; the session's own turn is told there as its conversation."""
    answer = await person.call("POST", "/v1/context", json={"query": "Who likes tea?", **scope})
    made = answer.json()
    ids = {one["id"] for one in made["scope"]["recalled"]}
    own = {f"of-{scope['sessionId']}"} if "[CONVERSATION CONTEXT]" in made["prompt"] else set()
    return Shown({answer.status_code}, ids | own, [made["scope"]["memory"]])


def scope_told(answer: dict[str, Any]) -> list[Scope]:
    """The scope of an agent's answer, said as elsewhere."""
    if "scope" not in answer:
        return []
    project = answer["scope"]["project"]
    return [ALL if project is None else {"kind": "project", "projectId": project["id"]}]


async def observation_ids(person: Person) -> dict[str, str]:
    """What each says, by its id."""
    rows = (await person.call("GET", "/v1/observations?project=*")).json()["observations"]
    assert len(rows) == len(OBSERVATIONS)
    return {row["id"]: row["content"] for row in rows}


async def list_observations(person: Person, scope: Params) -> Shown:
    answer = await person.call("GET", "/v1/observations", params=scope)
    rows = answer.json().get("observations", [])
    return Shown({answer.status_code}, {row["content"] for row in rows}, scope_told(answer.json()))


async def read_observations(person: Person, scope: Params) -> Shown:
    ids = await observation_ids(person)
    asked = {name: value for name, value in scope.items() if name == "project"}
    answer = await person.call("POST", "/v1/observations/read", json={"ids": list(ids), **asked})
    told = answer.json()
    shown = {row["content"] for row in told.get("observations", [])}
    assert answer.status_code != 200 or {ids[i] for i in told["missing"]} == set(OBSERVATIONS) - shown
    return Shown({answer.status_code}, shown, scope_told(told))


async def see_timelines(person: Person, scope: Params) -> Shown:
    shown, scopes, statuses = set(), [], set()
    for row_id, said in (await observation_ids(person)).items():
        answer = await person.call("GET", f"/v1/observations/{row_id}/timeline", params=scope)
        rows = answer.json().get("observations", [])
        assert answer.status_code != 200 or said in [row["content"] for row in rows]
        shown |= {row["content"] for row in rows}
        scopes += scope_told(answer.json())
        statuses.add(answer.status_code)
    return Shown(statuses, shown, scopes)


async def search_observations(person: Person, scope: Params) -> Shown:
    asked = {name: value for name, value in scope.items() if name == "project"}
    answer = await person.call("POST", "/v1/observations/search", json={"query": "tea", **asked})
    hits = answer.json().get("results", [])
    shown = {hit["observation"]["content"] if "observation" in hit else hit["memory"]["id"] for hit in hits}
    return Shown({answer.status_code}, shown, scope_told(answer.json()))


async def brief_agent(person: Person, scope: Params) -> Shown:
    answer = await person.call("GET", "/v1/agents/context", params=scope)
    told = answer.json()
    text = told.get("text", "")
    return Shown({answer.status_code}, {i for i in (*OBSERVATIONS, *MEMORIES) if i in text}, scope_told(told))


async def list_agent_projects(person: Person, scope: Params) -> Shown:
    answer = await person.call("GET", "/v1/agents/projects", params=scope)
    projects = answer.json().get("projects", [])
    shown = {f"tea at {one['project']['id']}" for one in projects if one["observations"] == 1}
    return Shown({answer.status_code}, shown, scope_told(answer.json()))


async def list_agent_sessions(person: Person, scope: Params) -> Shown:
    answer = await person.call("GET", "/v1/agents/sessions", params=scope)
    sessions = answer.json().get("sessions", [])
    return Shown({answer.status_code}, {one["agentSession"] for one in sessions}, scope_told(answer.json()))


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

ASKED: list[tuple[Params, Scope, str]] = [
    ({"sessionId": "loose"}, POOL, "pool"),
    ({"sessionId": "loose2"}, POOL, "pool"),
    ({"sessionId": "in1"}, P1, "p1"),
    ({"sessionId": "in2"}, P2, "p2"),
    ({"sessionId": "in1", "project": "p2"}, P2, "p2"),
    ({"sessionId": "loose", "project": "p1"}, P1, "p1"),
    ({"project": "p2"}, P2, "p2"),
    ({"project": "THE MILL"}, P1, "p1"),
    ({"project": "*"}, ALL, "all"),
    ({"sessionId": "loose", "project": "*"}, ALL, "all"),
]
REFUSED: list[tuple[Params, int]] = [
    ({}, 400),
    ({"sessionId": "unknown"}, 404),
    ({"sessionId": "deleted"}, 404),
    ({"sessionId": "evas"}, 404),
    ({"project": "evas-project"}, 404),
    ({"sessionId": "in1", "project": "nowhere"}, 404),
    ({"sessionId": "in1", "project": ""}, 404),
    ({"project": "twin"}, 409),
]


async def furnished(h: House) -> Person:
    """Ada, with rows in the pool and in two projects; and Eva, with rows of the same names, who comes once to a house."""
    ada = await h.person()
    names = {"p1": "The Mill", "p2": "The Bakery", "t1": "Twin", "t2": "twin"}
    await pushed(ada, "projects", [project(i, name=name) for i, name in names.items()])
    await pushed(ada, "sessions", [placed(i, where) for i, where in SESSIONS.items()])
    await pushed(ada, "sessions", [session("deleted")])
    await pushed(ada, "sessions", [dead(session("deleted"))])
    await pushed(ada, "episodes", [episode(f"of-{i}", i, userMessage="Tea?") for i in SESSIONS])
    await pushed(ada, "entities", [entity(i, where, notes="likes tea") for i, where in ENTITIES.items()])
    await pushed(ada, "relationships", [relationship(i, *i.split("-")) for i in EDGES])
    await pushed(
        ada,
        "memories",
        [memory(i, text=f"likes tea {i}", **({"projectId": p} if p else {})) for i, p in MEMORIES.items()],
    )
    mill, bakery = (
        {"name": name, "root": f"~/{name}", "source": "git"} for name in ("The Mill", "The Bakery")
    )
    await join(ada, "p1", mill)
    await join(ada, "p2", bakery)
    for said, where in {"tea at p1": mill, "tea at p2": bakery}.items():
        await take(ada, event(said, session=said, project=where))
    if len(h.parts.accounts.accounts) == 1:
        await neighbour(await h.person(), mill)
    return ada


async def neighbour(eva: Person, mill: dict[str, str]) -> None:
    await pushed(eva, "memories", [memory("evas-memory")])
    await pushed(eva, "projects", [project("evas-project", name="The Mill")])
    await pushed(eva, "sessions", [session("evas"), session("evas-inside", projectId="evas-project")])
    await pushed(eva, "episodes", [episode("evas-turn", "evas"), episode("evas-other", "evas-inside")])
    await pushed(eva, "entities", [entity("evas-entity", "evas-project")])
    await join(eva, "evas-project", mill)
    await take(eva, event("tea at Eva's", project=mill))


async def with_summaries(h: House) -> Person:
    ada = await furnished(h)
    await pushed(ada, "summaries", [summary(i, **owner) for i, owner in SUMMARIES.items()])
    return ada


def placed(row_id: str, where: str | None) -> dict[str, Any]:
    return session(row_id, externalId=row_id, **({"projectId": where} if where else {}))


async def pushed(person: Person, collection: str, rows: list[dict[str, Any]]) -> None:
    assert await person.push(collection, *rows) == []


def visible(kind: str, seen: set[str | None], moved_to: str | None) -> set[str]:
    """Ids of what must be shown of this kind while "moving" is there."""
    where = SESSIONS | {"moving": moved_to}
    places: dict[str, dict[str, set[str | None]]] = {
        "episodes": {f"of-{i}": {place} for i, place in where.items()},
        "entities": {i: {place} for i, place in ENTITIES.items()},
        "memories": {i: {place} for i, place in MEMORIES.items()},
        "relationships": {i: {"p1", "p2"} if place == "both" else {place} for i, place in EDGES.items()},
        "summaries": {
            i: {where[owner["sessionId"]] if "sessionId" in owner else owner["projectId"]}
            for i, owner in SUMMARIES.items()
        },
    }
    places["observations"] = {said: {place} for said, place in OBSERVATIONS.items()}
    places["done"] = places["observations"] | places["memories"]
    places["recalled"] = places["episodes"] | places["entities"] | places["memories"]
    return {row_id for row_id, needed in places[kind].items() if needed <= seen}


def test_every_route_that_reads_within_a_scope_is_in_the_table(tmp_path: Path) -> None:
    """Those whose body says it are named here. `/v1/sessions/…`, `/v1/projects/…` have theirs in the address."""

    async def scenario() -> None:
        async with house(tmp_path) as h:
            paths = h.app.openapi_schema.to_schema()["paths"]
        routes = {
            re.sub(r"{\w+}", "{id}", path)
            for path, methods in paths.items()
            for parameter in methods.get("get", {}).get("parameters", [])
            if parameter["name"] == "project"
        }
        table = {path.route.replace("by-type/person", "by-type/{id}") for path in READ_PATHS.values()}
        searches = {"/v1/memories/search", "/v1/observations/search", "/v1/observations/read"}
        assert table == routes | searches | {"/v1/context"}

    run(scenario)


def test_each_way_to_read_shows_what_is_within_the_scope_and_nothing_else(tmp_path: Path) -> None:
    """Also while a session moves in the middle of its conversation."""

    async def scenario() -> None:
        async with house(tmp_path, search_wait_s=60) as h:  # however busy the machine is
            ada = await furnished(h)
            for moved_to in MOVES:
                change = {"projectId": moved_to}
                moved = await ada.call("PATCH", "/v1/sessions/by-external/moving", json=change)
                assert moved.status_code == 200
                own: tuple[Params, Scope, str] = ({"sessionId": "moving"}, *HOMES[moved_to])
                for (name, path), (asked, scope, seen) in product(READ_PATHS.items(), [*ASKED, own]):
                    if not path.can_ask(asked):
                        continue
                    shown = await path.ask(ada, asked)
                    assert shown.ids == visible(path.kind, SEEN[seen], moved_to), (name, asked, moved_to)
                    assert all(used == scope for used in shown.scopes), (name, asked)

    run(scenario)


def test_a_scope_that_is_missing_unknown_or_unclear_is_refused_and_never_widened(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with house(tmp_path) as h:
            ada = await furnished(h)
            for (name, path), (asked, status) in product(READ_PATHS.items(), REFUSED):
                if path.any_project and (not asked or path.can_ask(asked)):
                    shown = await path.ask(ada, asked)
                    assert (shown.statuses, shown.ids) == ({status}, set()), (name, asked)

    run(scenario)


def test_an_entity_that_is_kept_and_an_overview_say_their_project(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with house(tmp_path) as h:
            ada = await furnished(h)
            new = {"projectId": "p1", "type": "person", "name": "Finn"}
            kept = await ada.call("POST", "/v1/entities", json=new)
            overview = await ada.call("GET", "/v1/projects/p1/overview")
            for answer in (kept, overview):
                assert json.loads(answer.headers["X-Vademecum-Scope"]) == P1

    run(scenario)


@dataclass(frozen=True)
class WritePath:
    """A way to change or delete each of `ids`. `body` of an id: what is sent."""

    kind: str
    route: str
    ids: Iterable[str]
    body: Callable[[str], dict[str, str] | None] = lambda _: None

    async def ask(self, person: Person, row_id: str, scope: Params) -> int:
        method, path = self.route.split(" ")
        body = self.body(row_id)
        sent = {"json": body} if body is not None else {}
        return (await person.call(method, path.format(id=row_id), params=scope, **sent)).status_code


def edge_of(row_id: str) -> dict[str, str]:
    from_id, to_id = row_id.split("-")
    return {"fromId": from_id, "toId": to_id, "label": LABEL}


LABEL = relationship("", "", "")["label"]
TURNS = [f"of-{i}" for i in SESSIONS]
WRITE_PATHS = {  # done one after the other; the entities take their edges along, so they go last
    "deleting a memory": WritePath("memories", "DELETE /v1/memories/{id}", MEMORIES),
    "deleting a turn": WritePath("episodes", "DELETE /v1/episodes/{id}", TURNS),
    "connecting": WritePath(
        "relationships", "POST /v1/relationships", EDGES, lambda i: {**edge_of(i), "label": "anew"}
    ),
    "disconnecting": WritePath("relationships", "DELETE /v1/relationships", EDGES, edge_of),
    "changing a summary": WritePath(
        "summaries", "PATCH /v1/summaries/{id}", SUMMARIES, lambda _: {"content": "anew"}
    ),
    "deleting a summary": WritePath("summaries", "DELETE /v1/summaries/{id}", SUMMARIES),
    "deleting an entity": WritePath("entities", "DELETE /v1/entities/{id}", ENTITIES),
}
# Observations are no rows that devices have: tests/server/agents/test_observations.py asks these.
OF_AGENTS = {"PATCH /v1/observations/{id}", "DELETE /v1/observations/{id}"}
UNDO = "POST /v1/memories/{id}/undo"  # answers 409 within the scope: these memories took no other's place


def test_every_route_that_writes_within_a_scope_is_in_the_table(tmp_path: Path) -> None:
    """So is every other that changes or deletes a row of memory by its id."""

    async def scenario() -> None:
        async with house(tmp_path) as h:
            paths = h.app.openapi_schema.to_schema()["paths"]
        routes = {
            f"{method.upper()} " + re.sub(r"{\w+}", "{id}", path): {
                one["name"] for one in said.get("parameters", [])
            }
            for path, methods in paths.items()
            for method, said in methods.items()
            if method != "get"
        }
        scoped = {route for route, parameters in routes.items() if "project" in parameters}
        by_id = {
            route
            for route in routes
            if re.match(r"\w+ /v1/(memories|episodes|entities|summaries)/{id}", route)
        }
        assert {path.route for path in WRITE_PATHS.values()} | {UNDO} | OF_AGENTS == scoped | by_id

    run(scenario)


def test_each_way_to_write_changes_what_is_within_the_scope_and_nothing_else(tmp_path: Path) -> None:
    """What is not within it is answered as what is not there. The session has moved out of its project before."""

    async def scenario() -> None:
        async with house(tmp_path) as h:
            for asked, _, seen in ASKED:
                ada = await with_summaries(h)
                await ada.call("PATCH", "/v1/sessions/by-external/moving", json={"projectId": None})
                for name, path in WRITE_PATHS.items():
                    before = await ada.live(path.kind)
                    within = visible(path.kind, SEEN[seen], None)
                    assert within <= before.keys(), (name, "another way to write has taken it")
                    answers = {i: await path.ask(ada, i, asked) for i in path.ids}
                    after = await ada.live(path.kind)
                    unknown = {i for i, status in answers.items() if status == 404}
                    assert unknown == set(path.ids) - within, (name, asked)
                    if name == "connecting":  # not two of different projects, even if both are seen
                        new = {
                            f"{row['fromId']}-{row['toId']}" for i, row in after.items() if i not in before
                        }
                        assert new == within - {"ada-cleo"}, (name, asked)
                    else:
                        assert {i for i, row in before.items() if after.get(i) != row} == within, (
                            name,
                            asked,
                        )

    run(scenario)


def test_a_write_whose_scope_is_missing_unknown_or_unclear_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with house(tmp_path) as h:
            ada = await with_summaries(h)
            for name, path in WRITE_PATHS.items():
                before = await ada.live(path.kind)
                for asked, status in REFUSED:
                    assert {await path.ask(ada, i, asked) for i in path.ids} == {status}, (name, asked)
                assert await ada.live(path.kind) == before, name

    run(scenario)
