"""Random changes of a person's memory by HTTP or push. Each is recorded in the expected memory (`Books`)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from property import rows as make
from property.expected_memory import Books, Entry, Home, canaries_in
from server.agents import agent_events
from server.in_process_server import House
from server.scripted_llm import Model, Rule
from vademecum.model.memory.extraction import SESSION_MEMORIES_MAX
from vademecum.services.runtime.clock import now_iso

PROJECTS = 5
ACTS = ("command", "edit", "prompt", "decision")
FIELD = {"episodes": "userMessage", "memories": "text", "entities": "name", "summaries": "content"}
Step = Callable[[Books, Random, Model], Awaitable[None]]
Json = dict[str, Any]


def in_project(home: Home) -> Json:
    return {"projectId": home} if home else {}


async def made(books: Books, path: str, **body: Any) -> Json:
    answer = await books.person.call("POST", f"/v1/{path}", json=body)
    assert answer.status_code in (200, 201), answer.text
    row: Json = answer.json()
    return row


async def pushed(books: Books, collection: str, row: Json, assumed: Json | None = None) -> None:
    """Push a row. A new row gets a creation time after any "forget everything", so that the server accepts it."""
    sent = row if assumed else {**row, "createdAt": make.NEW, "updatedAt": make.NEW}
    assert await books.person.push(collection, sent, assumed=assumed) == []


async def furnish(h: House, number: int, model: Model) -> Books:
    books = Books(await h.person(), number)
    await begin(books, Random(number), model)
    return books


async def begin(books: Books, rng: Random, model: Model) -> None:
    """Create five projects, sessions inside and outside of projects, and rows of each kind.

    Rows that are pushed get the same IDs for every person.
    """
    while len(books.projects) < PROJECTS:
        project = (await made(books, "projects", name=f"Project {len(books.projects)}"))["id"]
        books.projects.append(project)
    for home in (*books.projects[:3], None, None):
        await make_session(books, rng, home)
    for session in list(books.sessions):
        await keep_turn(books, rng, session, model)
        await remember(books, rng, model)
        await find_entity(books, rng, model)
        await act(books, rng, model)
        await take_over(books, rng, model)


async def open_session(books: Books, rng: Random, model: Model) -> None:
    await make_session(books, rng, rng.choice([*books.projects, None]))


async def make_session(books: Books, rng: Random, home: Home) -> None:
    canary = books.canary()
    external = f"x-{books.count}"
    if rng.random() < 0.5:
        row = await made(books, "sessions", externalId=external, title=canary, **in_project(home))
    else:
        row = make.session(f"s{books.count}", externalId=external, title=canary, **in_project(home))
        await pushed(books, "sessions", row)
    books.sessions[row["id"]] = home
    books.external[row["id"]] = external
    books.said[canary] = Entry("sessions", row["id"], row["id"])


async def move(books: Books, rng: Random, model: Model) -> None:
    if not books.sessions:
        return
    session, home = rng.choice(list(books.sessions)), rng.choice([*books.projects, None])
    path = f"/v1/sessions/by-external/{books.external[session]}"
    if rng.random() < 0.5:
        answer = await books.person.call("PATCH", path, json={"projectId": home})
        assert answer.status_code == 200, answer.text
    else:
        before = (await books.person.call("GET", path)).json()
        after = {name: value for name, value in before.items() if name != "projectId"} | in_project(home)
        await pushed(books, "sessions", after, before)
    books.sessions[session] = home


async def talk(books: Books, rng: Random, model: Model) -> None:
    """Add a turn to a session in which the server may still extract memories, which are limited per session."""
    open_ones = [session for session in books.sessions if books.turns[session] < SESSION_MEMORIES_MAX]
    if open_ones:
        await keep_turn(books, rng, rng.choice(open_ones), model)


async def keep_turn(books: Books, rng: Random, session: str, model: Model) -> None:
    """Store a turn and script the model's extraction of a memory and an entity, each with its own canary.

    Extracted rows stay in the scope that the session has now, even if the session moves.
    """
    canary, memory, entity = books.canary(), books.canary(), books.canary()
    books.turns[session] += 1
    home = books.sessions[session]
    found = {
        "memories": [f"{memory} was heard."],
        "entities": [{"name": entity, "type": "person", "notes": entity}],
    }
    model.rules.insert(0, Rule(when=f"{canary} sings", say=[json.dumps(found)]))
    del model.rules[50:]
    text = f"{canary} sings in the garden"
    if rng.random() < 0.5:
        row = await made(books, "episodes", sessionId=session, userMessage=text, aiResponse="Why?")
    else:
        row = make.episode(f"e{books.count}", session, userMessage=text, aiResponse="Why?")
        await pushed(books, "episodes", row)
    books.said[canary] = Entry("episodes", row["id"], session)
    books.said[memory] = Entry("memories", "", project=home)
    if home:
        books.said[entity] = Entry("entities", "", project=home)


async def heard_by_the_model(books: Books) -> None:
    """Record the IDs of the extracted rows. Fails if an expected row was not extracted."""
    for collection in ("memories", "entities"):
        unnamed = {canary: entry for canary, entry in books.of(collection).items() if not entry.id}
        if not unnamed:
            continue
        for row in (await books.person.live(collection)).values():
            for canary in canaries_in(row[FIELD[collection]]) & unnamed.keys():
                unnamed[canary].id = row["id"]
        assert all(entry.id for entry in unnamed.values()), "an expected row was not extracted"


async def remember(books: Books, rng: Random, model: Model) -> None:
    canary, home = books.canary(), rng.choice([*books.projects, None])
    text = f"{canary} likes tea."
    inside = [session for session, where in books.sessions.items() if where == home]
    if inside and rng.random() < 0.5:
        row_id = (await made(books, "memories", text=text, sessionId=rng.choice(inside)))["memory"]["id"]
    else:
        row_id = f"m{books.count}"
        row = make.memory(row_id, text=text, sessionIds=inside[:1], **in_project(home))
        await pushed(books, "memories", row)
    books.said[canary] = Entry("memories", row_id, project=home)


async def take_over(books: Books, rng: Random, model: Model) -> None:
    """Push a new memory that claims to supersede another memory of any project."""
    known = books.of("memories")
    canary, home = books.canary(), rng.choice([*books.projects, None])
    older = rng.choice(sorted(one for one, entry in known.items() if entry.id))
    row = make.memory(
        f"m{books.count}", text=f"{canary} likes tea.", supersedes=known[older].id, **in_project(home)
    )
    await pushed(books, "memories", row)
    books.said[canary] = Entry("memories", row["id"], project=home, older=older)


async def find_entity(books: Books, rng: Random, model: Model) -> None:
    if not books.projects:
        return
    canary, project = books.canary(), rng.choice(books.projects)
    fields = {"name": canary, "type": "person", "notes": f"{canary} is a miller"}
    if rng.random() < 0.5:
        row_id = (await made(books, "entities", projectId=project, **fields))["id"]
    else:
        row_id = f"n{books.count}"
        await pushed(books, "entities", make.entity(row_id, project, **fields))
    books.said[canary] = Entry("entities", row_id, project=project)


async def act(books: Books, rng: Random, model: Model) -> None:
    """Send an agent event from a folder of the project. Its text and its agent session id contain the canary."""
    canary, project = books.canary(), rng.choice(books.projects)
    name = (await books.person.live("projects"))[project]["name"]
    said = {"kind": rng.choice(ACTS), "session": canary, "at": now_iso()}
    folder = {"name": name, "root": f"~/{name}", "source": "git"}
    if (await agent_events.identify(books.person, **folder))["project"]["id"] != project:
        await agent_events.join_project(books.person, project, folder)
    assert (
        await agent_events.send_events(
            books.person, agent_events.event(f"{canary} is mended", project=folder, **said)
        )
        == 1
    )
    (row_id,) = [
        row["id"]
        for row in await agent_events.list_observations(books.person)
        if row["agentSession"] == canary
    ]
    books.said[canary] = Entry("observations", row_id, project=project)


async def delete_act(books: Books, rng: Random, model: Model) -> None:
    done = books.of("observations")
    if done:
        canary = rng.choice(sorted(done))
        path = f"/v1/observations/{done[canary].id}"
        answer = await books.person.call("DELETE", path, params={"project": done[canary].project})
        assert answer.status_code == 200, answer.text
        books.drop([canary])


async def connect(books: Books, rng: Random, model: Model) -> None:
    """Link two entities. If they are of different projects, push the relationship: neither project may see it."""
    known = [entry for entry in books.of("entities").values() if entry.id]
    if len(known) < 2:
        return
    one, other = rng.sample(known, 2)
    canary = books.canary()
    if one.project == other.project and rng.random() < 0.5:
        row_id = (await made(books, "relationships?project=*", fromId=one.id, toId=other.id, label=canary))[
            "id"
        ]
    else:
        row_id = f"r{books.count}"
        await pushed(books, "relationships", make.relationship(row_id, one.id, other.id, label=canary))
    place = one.project if one.project == other.project else "between"
    books.said[canary] = Entry("relationships", row_id, project=place, ends=(one.id, other.id))


async def summarise(books: Books, rng: Random, model: Model) -> None:
    canary = books.canary()
    of_session = bool(books.sessions) and rng.random() < 0.6
    if not of_session and not books.projects:
        return
    owner = rng.choice(list(books.sessions) if of_session else books.projects)
    fields = {"sessionId" if of_session else "projectId": owner, "content": f"{canary} in short"}
    if rng.random() < 0.5:
        row_id = (await made(books, "summaries", **fields))["id"]
    else:
        row_id = f"u{books.count}"
        await pushed(books, "summaries", make.summary(row_id, **fields))
    place = Entry("summaries", row_id, owner) if of_session else Entry("summaries", row_id, project=owner)
    books.said[canary] = place


async def state_fact(books: Books, rng: Random, model: Model) -> None:
    canary = books.canary()
    await pushed(books, "facts", make.fact(f"f{books.count}", key="garden.canary", value=canary))
    books.said[canary] = Entry("facts", f"f{books.count}")


async def delete_row(books: Books, rng: Random, model: Model) -> None:
    mortal = books.of("episodes", "memories", "entities", "summaries", "relationships", "facts")
    if not mortal:
        return
    canary = rng.choice(sorted(mortal))
    entry = mortal[canary]
    row = (await books.person.live(entry.collection))[entry.id]
    await pushed(books, entry.collection, make.dead(row), row)
    books.drop([canary])


async def delete_session(books: Books, rng: Random, model: Model) -> None:
    if len(books.sessions) > 2:
        session = rng.choice(list(books.sessions))
        assert (await books.person.call("DELETE", f"/v1/sessions/{session}")).status_code == 200
        books.drop_session(session)


async def delete_project(books: Books, rng: Random, model: Model) -> None:
    if len(books.projects) > 2:
        project, choice = rng.choice(books.projects), rng.choice(["keep", "delete"])
        path = f"/v1/projects/{project}"
        assert (await books.person.call("DELETE", path, params={"sessions": choice})).status_code == 200
        books.drop_project(project, with_sessions=choice == "delete")


async def forget_everything(books: Books, rng: Random, model: Model) -> None:
    receipt = await books.person.call("POST", "/v1/forget", json={"confirm": "forget everything"})
    assert receipt.json()["leftovers"] == 0
    books.projects, books.sessions, books.external, books.said = [], {}, {}, {}
    await begin(books, rng, model)


# The weight of each action in the random choice of a step.
STEPS: dict[Step, float] = {
    open_session: 8,
    move: 20,
    talk: 20,
    remember: 10,
    take_over: 3,
    find_entity: 8,
    connect: 8,
    summarise: 10,
    state_fact: 3,
    act: 8,
    delete_act: 2,
    delete_row: 8,
    delete_session: 2,
    delete_project: 2,
    forget_everything: 0.5,
}
