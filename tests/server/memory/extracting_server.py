"""A whole server that extracts memory with a scripted model, and what is in its replies."""

import asyncio
import json
from contextlib import asynccontextmanager

from property.rows import episode, project, session
from server.chat.assistant_server import answering
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
    """What a rule says: this JSON."""
    return [json.dumps(found)]


def scenario_of(tmp_path, scenario, *rules, **settings):
    async def whole():
        async with extracting(tmp_path, *rules, **settings) as (h, model):
            await scenario(h, model, await h.person())

    run(whole)


@asynccontextmanager
async def extracting(tmp_path, *rules, **settings):
    async with answering(tmp_path, *rules, **{"extraction_daily": 1000, **settings}) as (h, model):
        yield h, model


async def talk(person, *episodes, project_id="p1"):
    """A session of this project with these turns."""
    if project_id:
        await person.push("projects", project(project_id))
    await person.push("sessions", session("s1", **({"projectId": project_id} if project_id else {})))
    assert await person.push("episodes", *(episodes or [episode("e1", "s1")])) == []


async def listed(person):
    return (await person.call("GET", "/v1/jobs")).json()


async def until(person, wanted):
    """Wait for this of the list of jobs, and return the list."""
    async with asyncio.timeout(60):
        while not wanted(found := await listed(person)):
            await asyncio.sleep(0.05)
    return found


async def put_off(person):
    """Wait until the job waits after an attempt that failed, and return the list. What it failed with is no sign of that
    alone: it stays while the job is tried again."""
    return await until(
        person,
        lambda found: any(job["error"] and job["state"] == "waiting" for job in found["jobs"]),
    )


async def finished(person):
    """Wait until no job waits or runs."""
    return await until(person, lambda found: not (found["counts"]["waiting"] + found["counts"]["running"]))


async def made(person):
    """What was extracted: collection -> live rows."""
    return {name: await person.live(name) for name in MADE}
