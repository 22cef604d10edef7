"""Kill -9 at any moment while turns are extracted: every turn is, in the end, and no row is there twice.

The server is a real process and so is its language model, by script. `SEED` repeats the choices of a run, though not its
timing.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import httpx

from faults.server_process import Served
from property.rows import episode, project, session
from server.scripted_llm import MODEL, Model, Rule, speaking

ROUNDS = 40 if os.environ.get("SOAK") else 6
TURNS = 5  # a round
DONE_S = 120.0
MADE = ("entities", "relationships", "memories", "facts")


def rules(count: int) -> list[Rule]:
    """A reply of its own for each turn; what it says of the mill is the same for all."""
    found = []
    for number in range(count):
        said = {
            "entities": [
                {"name": "Old Mill", "type": "place"},
                {"name": f"Person {number}", "type": "person"},
            ],
            "relationships": [{"from": f"Person {number}", "to": "Old Mill", "label": "visits"}],
            "memories": [f"Person {number} visits the Old Mill.", "The Old Mill is old."],
            "facts": [{"key": f"friend.{number}", "value": f"Person {number}", "confidence": 0.5}],
        }
        found.append(Rule(when=f"turn {number}.", say=[json.dumps(said)], first_s=0.05))
    return found


def test_kills_while_turns_are_extracted_lose_none_and_store_nothing_twice(tmp_path):
    asyncio.run(besiege(tmp_path))


async def besiege(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED", time.time_ns()))
    print(f"SEED={seed}")
    rng = Random(seed)
    async with speaking(*rules(ROUNDS * TURNS)) as model:
        settings = {"assistant_url": model.url, "assistant_model": MODEL}
        served = Served(tmp_path / "data", tmp_path / "no-models", settings)
        try:
            half_way = await kill_again_and_again(served, model, rng)
        finally:
            served.kill()
    print(f"killed {ROUNDS} times, {half_way} with turns half-way")
    assert half_way > ROUNDS / 3, "the kills came when nothing was half-way"


async def kill_again_and_again(served: Served, model: Model, rng: Random) -> int:
    """How many kills cut off what was under way. Each comes when some of a round's turns have been asked about, and not
    after a time: how many are done by then would be the machine's choice."""
    client = await served.start()
    _, token = await served.add_user("ada@example.org")
    headers = {"Authorization": f"Bearer {token}"}
    await push(client, headers, "projects", project("p1"))
    half_way = 0
    for number in range(ROUNDS):
        first = number * TURNS
        numbers = range(first, first + TURNS)  # a conversation each: one has so many memories and no more
        await push(client, headers, "sessions", *(session(f"s{n}", projectId="p1") for n in numbers))
        turns = [episode(f"e{n}", f"s{n}", userMessage=f"turn {n}.") for n in numbers]
        await push(client, headers, "episodes", *turns)
        await model_heard(model, first + rng.randrange(TURNS))
        await asyncio.sleep(rng.uniform(0.0, 0.06))
        asked = turns_heard(model)
        served.kill()
        await client.aclose()
        half_way += asked < first + TURNS
        client = await served.start()
    await settled(client, headers, served)
    await check(client, headers, model)
    await client.aclose()
    return half_way


def turns_heard(model: Model) -> int:
    """About how many turns the model was asked. A kill has some asked twice."""
    return len({one.question for one in model.asked})


async def model_heard(model: Model, count: int) -> None:
    """Of at least so many turns, or it has been silent for too long."""
    end = time.monotonic() + DONE_S
    while turns_heard(model) < count:
        assert time.monotonic() < end, f"the model was asked about {turns_heard(model)} turns of {count}"
        await asyncio.sleep(0.005)


async def push(client: httpx.AsyncClient, headers: dict[str, str], name: str, *rows: dict[str, Any]) -> None:
    batch = [{"newDocumentState": row} for row in rows]
    answer = await client.post(f"/v1/sync/{name}/0/push", json=batch, headers=headers)
    assert answer.status_code == 200 and answer.json() == [], answer.text


async def settled(client: httpx.AsyncClient, headers: dict[str, str], served: Served) -> None:
    """All turns are extracted, and their jobs say so."""
    end = time.monotonic() + DONE_S
    while True:
        found = (await client.get("/v1/jobs?limit=1000", headers=headers)).json()
        if found["counts"] == {"waiting": 0, "running": 0, "failed": 0, "done": ROUNDS * TURNS}:
            return
        assert time.monotonic() < end, f"{found['counts']}\n{served.tail()}"
        await asyncio.sleep(0.05)


async def check(client: httpx.AsyncClient, headers: dict[str, str], model: Model) -> None:
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in MADE:
        page = (await client.get(f"/v1/sync/{name}/0/pull?lwt=0&limit=1000", headers=headers)).json()
        rows[name] = [row for row in page["documents"] if not row["_deleted"]]
    count = ROUNDS * TURNS
    people = [f"Person {number}" for number in range(count)]
    names = {row["id"]: row["name"] for row in rows["entities"]}
    assert sorted(names.values()) == sorted(["Old Mill", *people])
    edges = [(names[row["fromId"]], names[row["toId"]]) for row in rows["relationships"]]
    assert sorted(edges) == sorted((person, "Old Mill") for person in people)
    memories = ["The Old Mill is old.", *(f"{person} visits the Old Mill." for person in people)]
    assert sorted(row["text"] for row in rows["memories"]) == sorted(memories)
    assert sorted(row["value"] for row in rows["facts"]) == sorted(people)
    asked = Counter(one.question for one in model.asked)
    assert len(asked) == count and sum(asked.values()) <= count + ROUNDS, "a kill costs one question at most"
