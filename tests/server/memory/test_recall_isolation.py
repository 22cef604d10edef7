"""Recall never returns text of another project or user, while users chat, move and delete at random.

Every text contains a canary that names its user and its row. The test records to which project each row belongs. Turns
belong to the project of their session. `SEED` repeats a run, and `SOAK=1` runs a thousand users.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from property.rows import dead, entity, episode, memory, project, session
from server.in_process_server import Harness, Person
from server.models.model_change_server import opened
from vademecum.model.memory.scope import InProject, Pool

USERS = 1_000 if os.environ.get("SOAK") else 4
PROJECTS = 5
STEPS = 24
QUESTION = "what did the canary sing about the garden"
Row = dict[str, Any]


@dataclass
class Books:
    """The expected project of every row of one user. A home is the id of a project, or None for the pool."""

    person: Person
    name: str
    projects: set[str] = field(default_factory=set)
    sessions: dict[str, Row] = field(default_factory=dict)
    turns: dict[str, str] = field(default_factory=dict)  # maps turn to session
    entities: dict[str, str] = field(default_factory=dict)  # maps entity to project
    memories: dict[str, str | None] = field(default_factory=dict)

    def text(self, row_id: str) -> str:
        return f"The canary {self.name}-{row_id} sings in the garden."

    def home(self, session_id: str) -> str | None:
        return self.sessions[session_id].get("projectId")

    def turns_of(self, home: str | None) -> set[str]:
        return {turn for turn, where in self.turns.items() if self.home(where) == home}


async def furnish(h: Harness, number: int) -> Books:
    rows = Books(await h.person(), f"u{number}")
    rows.projects = {f"p{n}" for n in range(PROJECTS)}
    assert await rows.person.push("projects", *map(project, sorted(rows.projects))) == []
    homes = [*sorted(rows.projects), None, None]
    rows.sessions = {
        f"s{n}": session(f"s{n}", **({"projectId": home} if home else {})) for n, home in enumerate(homes)
    }
    assert await rows.person.push("sessions", *rows.sessions.values()) == []
    for home in homes:
        await remember(rows, home)
    return rows


async def remember(rows: Books, home: str | None) -> None:
    number = len(rows.memories) + len(rows.entities)
    row = memory(f"m{number}", text=rows.text(f"m{number}"), **({"projectId": home} if home else {}))
    assert await rows.person.push("memories", row) == []
    rows.memories[row["id"]] = home
    if home:
        found = entity(f"n{number}", home, name=rows.text(f"n{number}"))
        assert await rows.person.push("entities", found) == []
        rows.entities[found["id"]] = home


async def talk(rows: Books, rng: Random) -> None:
    where, turn = rng.choice(sorted(rows.sessions)), f"e{len(rows.turns)}-{rng.getrandbits(32):x}"
    row = episode(turn, where, userMessage=rows.text(turn), aiResponse=rng.choice(("Yes.", "Why?", "")))
    assert await rows.person.push("episodes", row) == []
    rows.turns[turn] = where


async def move(rows: Books, rng: Random) -> None:
    where = rng.choice(sorted(rows.sessions))
    home = rng.choice([*sorted(rows.projects), None])
    moved = session(where, **({"projectId": home} if home else {}))
    assert await rows.person.push("sessions", moved, assumed=rows.sessions[where]) == []
    rows.sessions[where] = moved


async def forget_turn(rows: Books, rng: Random) -> None:
    if rows.turns:
        turn = rng.choice(sorted(rows.turns))
        assert await rows.person.push("episodes", dead(episode(turn, rows.turns.pop(turn)))) == []


async def delete_project(rows: Books, rng: Random) -> None:
    if len(rows.projects) > 2:
        gone = rng.choice(sorted(rows.projects))
        assert (await rows.person.call("DELETE", f"/v1/projects/{gone}")).status_code == 200
        rows.projects.remove(gone)
        rows.sessions = {
            row_id: session(row_id) if row.get("projectId") == gone else row
            for row_id, row in rows.sessions.items()
        }
        rows.entities = {i: home for i, home in rows.entities.items() if home != gone}
        rows.memories = {i: home for i, home in rows.memories.items() if home != gone}


async def ask(h: Harness, rows: Books, rng: Random) -> int:
    """Search all kinds of rows in one session, and check that all results are in its scope.

    Return the number of results.
    """
    asker = rng.choice(sorted(rows.sessions))
    home = rows.home(asker)
    expected = {
        "episodes": rows.turns_of(home),
        "entities": {i for i, where in rows.entities.items() if where == home},
    }
    count = 0
    for kind, ids in expected.items():
        params: dict[str, Any] = {"q": QUESTION, "sessionId": asker, "limit": 100}
        answer = await rows.person.call("GET", f"/v1/{kind}/search", params=params)
        assert answer.status_code == 200, answer.text
        check(rows, answer.json()["results"], ids, (kind, home))
        count += len(ids)
    scope = InProject(home) if home else Pool()
    found = await h.services.recall.search(rows.person.id, scope, QUESTION, frozenset({"memories"}), 100)
    ids = {i for i, where in rows.memories.items() if where == home}
    check(rows, [{"id": one.id, "text": one.text} for one in found], ids, ("memories", home))
    return count + len(ids)


def check(rows: Books, results: list[Row], ids: set[str], place: tuple[str, str | None]) -> None:
    assert {result["id"] for result in results} == ids, (rows.name, place)
    assert all(rows.text(result["id"]).split()[2] in result["text"] for result in results)


async def test_recall_never_crosses_projects_or_users(tmp_path: Path, installed: Path) -> None:
    seed = int(os.environ.get("SEED", time.time_ns()))
    print(f"SEED={seed}")
    rng = Random(seed)
    heard = 0
    async with opened(tmp_path, installed, search_wait_s=60) as h:
        people = [await furnish(h, number) for number in range(USERS)]
        for _ in range(STEPS * len(people)):
            rows = rng.choice(people)
            step = rng.choices((talk, move, forget_turn, delete_project), (8, 3, 1, 0.3))[0]
            await step(rows, rng)
            if rng.random() < 0.3:
                heard += await ask(h, rows, rng)
        for rows in people:
            heard += await ask(h, rows, rng)
    assert heard > 5 * len(people), "too few results for a meaningful test"
