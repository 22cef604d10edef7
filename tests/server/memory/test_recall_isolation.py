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
from server.in_process_server import House, Person
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


async def furnish(h: House, number: int) -> Books:
    books = Books(await h.person(), f"u{number}")
    books.projects = {f"p{n}" for n in range(PROJECTS)}
    assert await books.person.push("projects", *map(project, sorted(books.projects))) == []
    homes = [*sorted(books.projects), None, None]
    books.sessions = {
        f"s{n}": session(f"s{n}", **({"projectId": home} if home else {})) for n, home in enumerate(homes)
    }
    assert await books.person.push("sessions", *books.sessions.values()) == []
    for home in homes:
        await remember(books, home)
    return books


async def remember(books: Books, home: str | None) -> None:
    number = len(books.memories) + len(books.entities)
    row = memory(f"m{number}", text=books.text(f"m{number}"), **({"projectId": home} if home else {}))
    assert await books.person.push("memories", row) == []
    books.memories[row["id"]] = home
    if home:
        found = entity(f"n{number}", home, name=books.text(f"n{number}"))
        assert await books.person.push("entities", found) == []
        books.entities[found["id"]] = home


async def talk(books: Books, rng: Random) -> None:
    where, turn = rng.choice(sorted(books.sessions)), f"e{len(books.turns)}-{rng.getrandbits(32):x}"
    row = episode(turn, where, userMessage=books.text(turn), aiResponse=rng.choice(("Yes.", "Why?", "")))
    assert await books.person.push("episodes", row) == []
    books.turns[turn] = where


async def move(books: Books, rng: Random) -> None:
    where = rng.choice(sorted(books.sessions))
    home = rng.choice([*sorted(books.projects), None])
    moved = session(where, **({"projectId": home} if home else {}))
    assert await books.person.push("sessions", moved, assumed=books.sessions[where]) == []
    books.sessions[where] = moved


async def forget_turn(books: Books, rng: Random) -> None:
    if books.turns:
        turn = rng.choice(sorted(books.turns))
        assert await books.person.push("episodes", dead(episode(turn, books.turns.pop(turn)))) == []


async def delete_project(books: Books, rng: Random) -> None:
    if len(books.projects) > 2:
        gone = rng.choice(sorted(books.projects))
        assert (await books.person.call("DELETE", f"/v1/projects/{gone}")).status_code == 200
        books.projects.remove(gone)
        books.sessions = {
            row_id: session(row_id) if row.get("projectId") == gone else row
            for row_id, row in books.sessions.items()
        }
        books.entities = {i: home for i, home in books.entities.items() if home != gone}
        books.memories = {i: home for i, home in books.memories.items() if home != gone}


async def ask(h: House, books: Books, rng: Random) -> int:
    """Search all kinds of rows in one session, and check that all results are in its scope.

    Return the number of results.
    """
    asker = rng.choice(sorted(books.sessions))
    home = books.home(asker)
    expected = {
        "episodes": books.turns_of(home),
        "entities": {i for i, where in books.entities.items() if where == home},
    }
    count = 0
    for kind, ids in expected.items():
        params: dict[str, Any] = {"q": QUESTION, "sessionId": asker, "limit": 100}
        answer = await books.person.call("GET", f"/v1/{kind}/search", params=params)
        assert answer.status_code == 200, answer.text
        check(books, answer.json()["results"], ids, (kind, home))
        count += len(ids)
    scope = InProject(home) if home else Pool()
    found = await h.services.recall.search(books.person.id, scope, QUESTION, frozenset({"memories"}), 100)
    ids = {i for i, where in books.memories.items() if where == home}
    check(books, [{"id": one.id, "text": one.text} for one in found], ids, ("memories", home))
    return count + len(ids)


def check(books: Books, results: list[Row], ids: set[str], place: tuple[str, str | None]) -> None:
    assert {result["id"] for result in results} == ids, (books.name, place)
    assert all(books.text(result["id"]).split()[2] in result["text"] for result in results)


async def test_recall_never_crosses_projects_or_users(tmp_path: Path, installed: Path) -> None:
    seed = int(os.environ.get("SEED", time.time_ns()))
    print(f"SEED={seed}")
    rng = Random(seed)
    heard = 0
    async with opened(tmp_path, installed, search_wait_s=60) as h:
        people = [await furnish(h, number) for number in range(USERS)]
        for _ in range(STEPS * len(people)):
            books = rng.choice(people)
            step = rng.choices((talk, move, forget_turn, delete_project), (8, 3, 1, 0.3))[0]
            await step(books, rng)
            if rng.random() < 0.3:
                heard += await ask(h, books, rng)
        for books in people:
            heard += await ask(h, books, rng)
    assert heard > 5 * len(people), "too few results for a meaningful test"
