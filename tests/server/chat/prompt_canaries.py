"""Rows whose text contains their own id, and helpers that find these ids in a prompt."""

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


def canary_text(row_id: str) -> str:
    return f"The canary_{row_id} sings: canary."


def placed(where: str | None) -> Row:
    return {"projectId": where} if where else {}


async def create_canaries(person: Person, mark: str = "") -> None:
    """Create rows of every kind in two projects and in the pool. Each text contains `mark` followed by the row's id."""
    await person.add("projects", project("p1", name="Mill"), project("p2", name="Bakery"))
    await person.add("sessions", *(session(i, externalId=i, **placed(p)) for i, p in SESSIONS.items()))
    turns = [episode(f"of{i}", i, userMessage=canary_text(f"{mark}of{i}"), aiResponse="") for i in SESSIONS]
    await person.add("episodes", *turns)
    await person.add(
        "memories", *(memory(i, text=canary_text(mark + i), **placed(p)) for i, p in MEMORIES.items())
    )
    await person.add("entities", *(entity(i, p, name=canary_text(mark + i)) for i, p in ENTITIES.items()))


async def read_context(person: Person, session_id: str = "s1", query: str = QUESTION, **more: Any) -> Row:
    body = {"query": query, "sessionId": session_id, **more}
    answer = await person.call("POST", "/v1/context", json=body)
    assert answer.status_code == 200, answer.text
    made: Row = answer.json()
    return made


def recalled_ids(made: Row) -> list[str]:
    return [one["id"] for one in made["scope"]["recalled"]]


def memory_lines(made: Row) -> list[str]:
    """Return the lines of the prompt's memory section."""
    found = SECTION.search(made["prompt"])
    return found[1].splitlines() if found else []


def canaries_in(made: Row) -> set[str]:
    return set(re.findall(r"canary_(\w+)", made["prompt"]))
