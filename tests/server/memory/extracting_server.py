"""A whole server that extracts memory with a scripted model, and a reply of that model."""

import asyncio
import json
from contextlib import asynccontextmanager

from property.rows import episode, project, session
from server.chat.assistant_server import serve_with_llm
from server.in_process_server import run

FOUND = {
    "entities": [
        {"name": "Ada Brook", "type": "person", "notes": "the miller"},
        {"name": "Old Mill", "type": "place"},
        {"name": "user", "type": "person"},
        {"name": "Tuesday", "type": "weekday"},
    ],
    "relationships": [{"from": "Ada Brook", "to": "Old Mill", "label": "runs"}],
    "memories": ["Ada Brook runs the Old Mill."],
    "facts": [{"key": "user.city", "value": "Bern", "confidence": 0.8}],
}
REPLY = f"Here you are:\n```json\n{json.dumps(FOUND)}\n```"
MADE = ("entities", "relationships", "memories", "facts")


def reply(**found):
    """Return the `say` of a rule whose reply is this JSON."""
    return [json.dumps(found)]


def scenario_of(tmp_path, scenario, *rules, **settings):
    async def whole():
        async with serve_with_jobs(tmp_path, *rules, **settings) as (h, model):
            await scenario(h, model, await h.person())

    run(whole)


@asynccontextmanager
async def serve_with_jobs(tmp_path, *rules, **settings):
    async with serve_with_llm(tmp_path, *rules, **{"extraction_daily": 1000, **settings}) as (h, model):
        yield h, model


async def push_turns(person, *episodes, project_id="p1"):
    """Create the session s1 with these turns in this project."""
    if project_id:
        await person.push("projects", project(project_id))
    await person.push("sessions", session("s1", **({"projectId": project_id} if project_id else {})))
    assert await person.push("episodes", *(episodes or [episode("e1", "s1")])) == []


async def list_jobs(person):
    return (await person.call("GET", "/v1/jobs")).json()


async def wait_for_jobs(person, condition):
    """Wait until `wanted` is true for the job list, and return the list."""
    async with asyncio.timeout(60):
        while not condition(found := await list_jobs(person)):
            await asyncio.sleep(0.05)
    return found


async def wait_for_failed_attempt(person):
    """Wait until a job waits after a failed attempt, and return the job list.

    The error alone does not prove that the job waits, because it stays in the list during the next attempt.
    """
    return await wait_for_jobs(
        person,
        lambda found: any(job["error"] and job["state"] == "waiting" for job in found["jobs"]),
    )


async def wait_until_finished(person):
    """Wait until no job waits or runs."""
    return await wait_for_jobs(
        person, lambda found: not (found["counts"]["waiting"] + found["counts"]["running"])
    )


async def extracted_rows(person):
    """Map each collection that extraction writes to its live rows."""
    return {name: await person.live(name) for name in MADE}
