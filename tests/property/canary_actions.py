"""Random changes of a person's memory by HTTP or push. Each is recorded in the expected memory (`ExpectedMemory`)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from property import rows as make
from property.expected_memory import Entry, ExpectedMemory, Home, canaries_in
from server.agents import agent_events
from server.in_process_server import Harness
from server.memory.memory_rows import post
from server.scripted_llm import Model, Rule
from vademecum.model.memory.extraction import SESSION_MEMORIES_MAX
from vademecum.services.runtime.clock import now_iso

PROJECTS = 5
ACTS = ("command", "edit", "prompt", "decision")
FIELD = {"episodes": "userMessage", "memories": "text", "entities": "name", "summaries": "content"}
Step = Callable[[ExpectedMemory, Random, Model], Awaitable[None]]
Json = dict[str, Any]


def project_field(home: Home) -> Json:
    return {"projectId": home} if home else {}


async def push_row(memory: ExpectedMemory, collection: str, row: Json, assumed: Json | None = None) -> None:
    """Push a row. A new row gets a creation time after any "forget everything", so that the server accepts it."""
    sent = row if assumed else {**row, "createdAt": make.NEW, "updatedAt": make.NEW}
    assert await memory.person.push(collection, sent, assumed=assumed) == []


async def create_memory(h: Harness, number: int, model: Model) -> ExpectedMemory:
    memory = ExpectedMemory(await h.person(), number)
    await create_initial_rows(memory, Random(number), model)
    return memory


async def create_initial_rows(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    """Create five projects, sessions inside and outside of projects, and rows of each kind.

    Rows that are pushed get the same IDs for every person.
    """
    while len(memory.projects) < PROJECTS:
        project = (await post(memory.person, "projects", name=f"Project {len(memory.projects)}"))["id"]
        memory.projects.append(project)
    for home in (*memory.projects[:3], None, None):
        await make_session(memory, rng, home)
    for session in list(memory.sessions):
        await store_turn(memory, rng, session, model)
        await remember(memory, rng, model)
        await create_entity(memory, rng, model)
        await send_event(memory, rng, model)
        await supersede_memory(memory, rng, model)


async def open_session(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    await make_session(memory, rng, rng.choice([*memory.projects, None]))


async def make_session(memory: ExpectedMemory, rng: Random, home: Home) -> None:
    canary = memory.canary()
    external = f"x-{memory.count}"
    if rng.random() < 0.5:
        row = await post(memory.person, "sessions", externalId=external, title=canary, **project_field(home))
    else:
        row = make.session(f"s{memory.count}", externalId=external, title=canary, **project_field(home))
        await push_row(memory, "sessions", row)
    memory.sessions[row["id"]] = home
    memory.external[row["id"]] = external
    memory.entries[canary] = Entry("sessions", row["id"], row["id"])


async def move(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    if not memory.sessions:
        return
    session, home = rng.choice(list(memory.sessions)), rng.choice([*memory.projects, None])
    path = f"/v1/sessions/by-external/{memory.external[session]}"
    if rng.random() < 0.5:
        answer = await memory.person.call("PATCH", path, json={"projectId": home})
        assert answer.status_code == 200, answer.text
    else:
        before = (await memory.person.call("GET", path)).json()
        after = {name: value for name, value in before.items() if name != "projectId"} | project_field(home)
        await push_row(memory, "sessions", after, before)
    memory.sessions[session] = home


async def add_turn(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    """Add a turn to a session in which the server may still extract memories, which are limited per session."""
    open_ones = [session for session in memory.sessions if memory.turns[session] < SESSION_MEMORIES_MAX]
    if open_ones:
        await store_turn(memory, rng, rng.choice(open_ones), model)


async def store_turn(memory: ExpectedMemory, rng: Random, session: str, model: Model) -> None:
    """Store a turn and script the model's extraction of a memory and an entity, each with its own canary.

    Extracted rows stay in the scope that the session has now, even if the session moves.
    """
    canary, extracted, entity = memory.canary(), memory.canary(), memory.canary()
    memory.turns[session] += 1
    home = memory.sessions[session]
    found = {
        "memories": [f"{extracted} was heard."],
        "entities": [{"name": entity, "type": "person", "notes": entity}],
    }
    model.rules.insert(0, Rule(when=f"{canary} sings", say=[json.dumps(found)]))
    del model.rules[50:]
    text = f"{canary} sings in the garden"
    if rng.random() < 0.5:
        row = await post(memory.person, "episodes", sessionId=session, userMessage=text, aiResponse="Why?")
    else:
        row = make.episode(f"e{memory.count}", session, userMessage=text, aiResponse="Why?")
        await push_row(memory, "episodes", row)
    memory.entries[canary] = Entry("episodes", row["id"], session)
    memory.entries[extracted] = Entry("memories", "", project=home)
    if home:
        memory.entries[entity] = Entry("entities", "", project=home)


async def record_extracted_rows(memory: ExpectedMemory) -> None:
    """Record the IDs of the extracted rows. Fails if an expected row was not extracted."""
    for collection in ("memories", "entities"):
        unnamed = {canary: entry for canary, entry in memory.of(collection).items() if not entry.id}
        if not unnamed:
            continue
        for row in (await memory.person.live(collection)).values():
            for canary in canaries_in(row[FIELD[collection]]) & unnamed.keys():
                unnamed[canary].id = row["id"]
        assert all(entry.id for entry in unnamed.values()), "an expected row was not extracted"


async def remember(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    canary, home = memory.canary(), rng.choice([*memory.projects, None])
    text = f"{canary} likes tea."
    inside = [session for session, where in memory.sessions.items() if where == home]
    if inside and rng.random() < 0.5:
        stored = await post(memory.person, "memories", text=text, sessionId=rng.choice(inside))
        row_id = stored["memory"]["id"]
    else:
        row_id = f"m{memory.count}"
        row = make.memory(row_id, text=text, sessionIds=inside[:1], **project_field(home))
        await push_row(memory, "memories", row)
    memory.entries[canary] = Entry("memories", row_id, project=home)


async def supersede_memory(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    """Push a new memory that claims to supersede another memory of any project."""
    known = memory.of("memories")
    canary, home = memory.canary(), rng.choice([*memory.projects, None])
    older = rng.choice(sorted(one for one, entry in known.items() if entry.id))
    row = make.memory(
        f"m{memory.count}", text=f"{canary} likes tea.", supersedes=known[older].id, **project_field(home)
    )
    await push_row(memory, "memories", row)
    memory.entries[canary] = Entry("memories", row["id"], project=home, older=older)


async def create_entity(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    if not memory.projects:
        return
    canary, project = memory.canary(), rng.choice(memory.projects)
    fields = {"name": canary, "type": "person", "notes": f"{canary} is a miller"}
    if rng.random() < 0.5:
        row_id = (await post(memory.person, "entities", projectId=project, **fields))["id"]
    else:
        row_id = f"n{memory.count}"
        await push_row(memory, "entities", make.entity(row_id, project, **fields))
    memory.entries[canary] = Entry("entities", row_id, project=project)


async def send_event(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    """Send an agent event from a folder of the project. Its text and its agent session id contain the canary."""
    canary, project = memory.canary(), rng.choice(memory.projects)
    name = (await memory.person.live("projects"))[project]["name"]
    sent = {"kind": rng.choice(ACTS), "session": canary, "at": now_iso()}
    folder = {"name": name, "root": f"~/{name}", "source": "git"}
    if (await agent_events.identify(memory.person, **folder))["project"]["id"] != project:
        await agent_events.join_project(memory.person, project, folder)
    assert (
        await agent_events.send_events(
            memory.person, agent_events.event(f"{canary} is mended", project=folder, **sent)
        )
        == 1
    )
    (row_id,) = [
        row["id"]
        for row in await agent_events.list_observations(memory.person)
        if row["agentSession"] == canary
    ]
    memory.entries[canary] = Entry("observations", row_id, project=project)


async def delete_event(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    done = memory.of("observations")
    if done:
        canary = rng.choice(sorted(done))
        path = f"/v1/observations/{done[canary].id}"
        answer = await memory.person.call("DELETE", path, params={"project": done[canary].project})
        assert answer.status_code == 200, answer.text
        memory.drop([canary])


async def connect(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    """Link two entities. If they are of different projects, push the relationship: neither project may see it."""
    known = [entry for entry in memory.of("entities").values() if entry.id]
    if len(known) < 2:
        return
    one, other = rng.sample(known, 2)
    canary = memory.canary()
    if one.project == other.project and rng.random() < 0.5:
        row_id = (
            await post(memory.person, "relationships?project=*", fromId=one.id, toId=other.id, label=canary)
        )["id"]
    else:
        row_id = f"r{memory.count}"
        await push_row(memory, "relationships", make.relationship(row_id, one.id, other.id, label=canary))
    place = one.project if one.project == other.project else "between"
    memory.entries[canary] = Entry("relationships", row_id, project=place, ends=(one.id, other.id))


async def summarise(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    canary = memory.canary()
    of_session = bool(memory.sessions) and rng.random() < 0.6
    if not of_session and not memory.projects:
        return
    owner = rng.choice(list(memory.sessions) if of_session else memory.projects)
    fields = {"sessionId" if of_session else "projectId": owner, "content": f"{canary} in short"}
    if rng.random() < 0.5:
        row_id = (await post(memory.person, "summaries", **fields))["id"]
    else:
        row_id = f"u{memory.count}"
        await push_row(memory, "summaries", make.summary(row_id, **fields))
    place = Entry("summaries", row_id, owner) if of_session else Entry("summaries", row_id, project=owner)
    memory.entries[canary] = place


async def state_fact(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    canary = memory.canary()
    await push_row(memory, "facts", make.fact(f"f{memory.count}", key="garden.canary", value=canary))
    memory.entries[canary] = Entry("facts", f"f{memory.count}")


async def delete_row(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    mortal = memory.of("episodes", "memories", "entities", "summaries", "relationships", "facts")
    if not mortal:
        return
    canary = rng.choice(sorted(mortal))
    entry = mortal[canary]
    row = (await memory.person.live(entry.collection))[entry.id]
    await push_row(memory, entry.collection, make.dead(row), row)
    memory.drop([canary])


async def delete_session(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    if len(memory.sessions) > 2:
        session = rng.choice(list(memory.sessions))
        assert (await memory.person.call("DELETE", f"/v1/sessions/{session}")).status_code == 200
        memory.drop_session(session)


async def delete_project(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    if len(memory.projects) > 2:
        project, choice = rng.choice(memory.projects), rng.choice(["keep", "delete"])
        path = f"/v1/projects/{project}"
        assert (await memory.person.call("DELETE", path, params={"sessions": choice})).status_code == 200
        memory.drop_project(project, with_sessions=choice == "delete")


async def forget_everything(memory: ExpectedMemory, rng: Random, model: Model) -> None:
    receipt = await memory.person.call("POST", "/v1/forget", json={"confirm": "forget everything"})
    assert receipt.json()["leftovers"] == 0
    memory.projects, memory.sessions, memory.external, memory.entries = [], {}, {}, {}
    await create_initial_rows(memory, rng, model)


# The weight of each action in the random choice of a step.
STEPS: dict[Step, float] = {
    open_session: 8,
    move: 20,
    add_turn: 20,
    remember: 10,
    supersede_memory: 3,
    create_entity: 8,
    connect: 8,
    summarise: 10,
    state_fact: 3,
    send_event: 8,
    delete_event: 2,
    delete_row: 8,
    delete_session: 2,
    delete_project: 2,
    forget_everything: 0.5,
}
