"""Memory rows of two users in the pool and in projects, requests for a scope, and the rows that each scope contains."""

from typing import Any

from property.rows import dead, entity, episode, memory, project, relationship, session
from server.agents.agent_events import event, join_project, send_events
from server.in_process_server import Harness, Person

Params = dict[str, str]
Scope = dict[str, str]

POOL: Scope = {"kind": "pool"}
P1: Scope = {"kind": "project", "projectId": "p1"}
P2: Scope = {"kind": "project", "projectId": "p2"}
ALL: Scope = {"kind": "all"}
HOMES: dict[str | None, tuple[Scope, str]] = {None: (POOL, "pool"), "p1": (P1, "p1"), "p2": (P2, "p2")}
SEEN: dict[str, set[str | None]] = {"pool": {None}, "p1": {"p1"}, "p2": {"p2"}, "all": {None, "p1", "p2"}}

# Maps each session to its project. Tests move the session "moving" to each entry of MOVES in turn.
SESSIONS: dict[str, str | None] = {"loose": None, "loose2": None, "in1": "p1", "in2": "p2", "moving": "p1"}
MOVES: list[str | None] = ["p1", None, "p2", "p1"]
ENTITIES = {"ada": "p1", "bea": "p1", "cleo": "p2", "dora": "p2"}
MEMORIES = {"of-pool": None, "of-p1": "p1", "of-p2": "p2"}
# Keys are contents, because the server generates the ids.
OBSERVATIONS = {"tea at p1": "p1", "tea at p2": "p2"}
# Only a pushed relationship can connect two projects, which "both" stands for.
EDGES = {"ada-bea": "p1", "cleo-dora": "p2", "ada-cleo": "both"}
SUMMARIES: dict[str, dict[str, str]] = {
    "of-loose": {"sessionId": "loose"},
    "of-moving": {"sessionId": "moving"},
    "of-p1": {"projectId": "p1"},
    "of-p2": {"projectId": "p2"},
    "left-p1": {"sessionId": "moving", "projectId": "p1"},  # follows its session, although it names p1
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


async def create_scoped_rows(h: Harness) -> Person:
    """Create Ada's rows in the pool and in two projects, and return Ada.

    On the first call for a server, also create Eva, whose rows must never appear in Ada's results.
    """
    ada = await h.person()
    names = {"p1": "The Mill", "p2": "The Bakery", "t1": "Twin", "t2": "twin"}
    await ada.add("projects", *(project(i, name=name) for i, name in names.items()))
    await ada.add("sessions", *(placed(i, where) for i, where in SESSIONS.items()))
    await ada.add("sessions", session("deleted"))
    await ada.add("sessions", dead(session("deleted")))
    await ada.add("episodes", *(episode(f"of-{i}", i, userMessage="Tea?") for i in SESSIONS))
    await ada.add("entities", *(entity(i, where, notes="likes tea") for i, where in ENTITIES.items()))
    await ada.add("relationships", *(relationship(i, *i.split("-")) for i in EDGES))
    await ada.add(
        "memories",
        *(memory(i, text=f"likes tea {i}", **({"projectId": p} if p else {})) for i, p in MEMORIES.items()),
    )
    mill, bakery = (
        {"name": name, "root": f"~/{name}", "source": "git"} for name in ("The Mill", "The Bakery")
    )
    await join_project(ada, "p1", mill)
    await join_project(ada, "p2", bakery)
    for said, where in {"tea at p1": mill, "tea at p2": bakery}.items():
        await send_events(ada, event(said, session=said, project=where))
    if len(h.services.accounts.accounts) == 1:
        await create_neighbor(await h.person(), mill)
    return ada


async def create_neighbor(eva: Person, mill: dict[str, str]) -> None:
    await eva.add("memories", memory("evas-memory"))
    await eva.add("projects", project("evas-project", name="The Mill"))
    await eva.add("sessions", session("evas"), session("evas-inside", projectId="evas-project"))
    await eva.add("episodes", episode("evas-turn", "evas"), episode("evas-other", "evas-inside"))
    await eva.add("entities", entity("evas-entity", "evas-project"))
    await join_project(eva, "evas-project", mill)
    await send_events(eva, event("tea at Eva's", project=mill))


def placed(row_id: str, where: str | None) -> dict[str, Any]:
    return session(row_id, externalId=row_id, **({"projectId": where} if where else {}))


def visible_ids(kind: str, seen: set[str | None], moved_to: str | None) -> set[str]:
    """Return the ids of this kind that are visible in the projects `seen` while "moving" is in `moved_to`.

    None stands for the pool.
    """
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
