"""Rows that sing their own ids, and what a prompt says of them."""

import re
from typing import Any

from property.rows import entity, episode, memory, project, session
from server.in_process_server import Person

Row = dict[str, Any]
QUESTION = "Where does the canary sing?"
SESSIONS: dict[str, str | None] = {
    "loose": None,
    "loose2": None,
    "in1": "p1",
    "in1b": "p1",
    "in2": "p2",
    "moving": "p1",
}
MEMORIES: dict[str, str | None] = {"mpool": None, "mp1": "p1", "mp2": "p2"}
ENTITIES = {"np1": "p1", "np2": "p2"}
SECTION = re.compile(r"\[MEMORY CONTEXT\]\n(.*?)\[END MEMORY CONTEXT\]\n*", re.DOTALL)


def song(row_id: str) -> str:
    return f"The canary_{row_id} sings: canary."


def placed(where: str | None) -> Row:
    return {"projectId": where} if where else {}


async def furnished(person: Person, mark: str = "") -> None:
    """Rows of every kind in two projects and in the pool; each sings its own id, with the `mark` of whose it is."""
    await person.add("projects", project("p1", name="Mill"), project("p2", name="Bakery"))
    await person.add("sessions", *(session(i, externalId=i, **placed(p)) for i, p in SESSIONS.items()))
    turns = [episode(f"of{i}", i, userMessage=song(f"{mark}of{i}"), aiResponse="") for i in SESSIONS]
    await person.add("episodes", *turns)
    await person.add("memories", *(memory(i, text=song(mark + i), **placed(p)) for i, p in MEMORIES.items()))
    await person.add("entities", *(entity(i, p, name=song(mark + i)) for i, p in ENTITIES.items()))


async def told(person: Person, session_id: str = "s1", query: str = QUESTION, **more: Any) -> Row:
    body = {"query": query, "sessionId": session_id, **more}
    answer = await person.call("POST", "/v1/context", json=body)
    assert answer.status_code == 200, answer.text
    made: Row = answer.json()
    return made


def recalled(made: Row) -> list[str]:
    return [one["id"] for one in made["scope"]["recalled"]]


def lines(made: Row) -> list[str]:
    """Of the memory section."""
    found = SECTION.search(made["prompt"])
    return found[1].splitlines() if found else []


def heard_of(made: Row) -> set[str]:
    return set(re.findall(r"canary_(\w+)", made["prompt"]))
