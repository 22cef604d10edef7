"""Kill the server at random moments during extraction. All turns are extracted in the end, and no row is stored twice.

The language model is scripted. `SEED` repeats the choices of a run, but not its timing.
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

from faults.server_process import ServerProcess
from property.rows import episode, project, session, sync_path
from server.scripted_llm import MODEL, Model, Rule, start_llm

ROUNDS = 40 if os.environ.get("SOAK") else 6
TURNS = 5  # number of new turns per round
TIMEOUT_S = 120.0
EXTRACTED = ("entities", "relationships", "memories", "facts")


def rules(count: int) -> list[Rule]:
    """Return one rule per turn. All replies contain the same entity and the same memory about the mill."""
    result = []
    for number in range(count):
        reply = {
            "entities": [
                {"name": "Old Mill", "type": "place"},
                {"name": f"Person {number}", "type": "person"},
            ],
            "relationships": [{"from": f"Person {number}", "to": "Old Mill", "label": "visits"}],
            "memories": [f"Person {number} visits the Old Mill.", "The Old Mill is old."],
            "facts": [{"key": f"friend.{number}", "value": f"Person {number}", "confidence": 0.5}],
        }
        result.append(Rule(when=f"turn {number}.", say=[json.dumps(reply)], first_s=0.05))
    return result


def test_server_kills_during_extraction_lose_no_turn_and_duplicate_no_row(tmp_path):
    asyncio.run(extract_under_kills(tmp_path))


async def extract_under_kills(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED", time.time_ns()))
    print(f"SEED={seed}")
    rng = Random(seed)
    async with start_llm(*rules(ROUNDS * TURNS)) as model:
        settings = {"assistant_url": model.url, "assistant_model": MODEL}
        server = ServerProcess(tmp_path / "data", tmp_path / "no-models", settings)
        try:
            interrupted = await kill_repeatedly(server, model, rng)
        finally:
            server.kill()
    print(f"{interrupted} of {ROUNDS} kills interrupted extraction")
    assert interrupted > ROUNDS / 3, "too few kills interrupted extraction"


async def kill_repeatedly(server: ServerProcess, model: Model, rng: Random) -> int:
    """Start and kill the server repeatedly. Return how many kills interrupted extraction.

    Each kill comes after a number of requests, not after a time, so the result does not depend on the machine's speed.
    """
    client = await server.start()
    _, token = await server.add_user("ada@example.org")
    headers = {"Authorization": f"Bearer {token}"}
    await push(client, headers, "projects", project("p1"))
    interrupted = 0
    for number in range(ROUNDS):
        first = number * TURNS
        # One session per turn, because the memories of a session are limited.
        numbers = range(first, first + TURNS)
        await push(client, headers, "sessions", *(session(f"s{n}", projectId="p1") for n in numbers))
        turns = [episode(f"e{n}", f"s{n}", userMessage=f"turn {n}.") for n in numbers]
        await push(client, headers, "episodes", *turns)
        await wait_for_requests(model, first + rng.randrange(TURNS))
        await asyncio.sleep(rng.uniform(0.0, 0.06))
        requested = count_requested_turns(model)
        server.kill()
        await client.aclose()
        interrupted += requested < first + TURNS
        client = await server.start()
    await wait_until_extracted(client, headers, server)
    await check_rows(client, headers, model)
    await client.aclose()
    return interrupted


def count_requested_turns(model: Model) -> int:
    """Return the number of turns in the model's requests. Count turns, because a kill may cause a repeated request."""
    return len({request.question for request in model.requests})


async def wait_for_requests(model: Model, count: int) -> None:
    """Wait until the model was called for at least `count` turns."""
    end = time.monotonic() + TIMEOUT_S
    while (requested := count_requested_turns(model)) < count:
        assert time.monotonic() < end, f"the model was called for {requested} of {count} turns"
        await asyncio.sleep(0.005)


async def push(client: httpx.AsyncClient, headers: dict[str, str], name: str, *rows: dict[str, Any]) -> None:
    batch = [{"newDocumentState": row} for row in rows]
    response = await client.post(f"{sync_path(name)}/push", json=batch, headers=headers)
    assert response.status_code == 200 and response.json() == [], response.text


async def wait_until_extracted(
    client: httpx.AsyncClient, headers: dict[str, str], server: ServerProcess
) -> None:
    end = time.monotonic() + TIMEOUT_S
    while True:
        counts = (await client.get("/v1/jobs?limit=1000", headers=headers)).json()["counts"]
        if counts == {"waiting": 0, "running": 0, "failed": 0, "done": ROUNDS * TURNS}:
            return
        assert time.monotonic() < end, f"{counts}\n{server.log_tail()}"
        await asyncio.sleep(0.05)


async def check_rows(client: httpx.AsyncClient, headers: dict[str, str], model: Model) -> None:
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in EXTRACTED:
        page = (await client.get(f"{sync_path(name)}/pull?lwt=0&limit=1000", headers=headers)).json()
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
    requests = Counter(request.question for request in model.requests)
    assert len(requests) == count and sum(requests.values()) <= count + ROUNDS, (
        "a kill caused more than one repeated request"
    )
