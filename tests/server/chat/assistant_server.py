"""Helpers to ask questions on a whole server whose assistant is a scripted model."""

import json
from contextlib import asynccontextmanager

import httpx

from server.in_process_server import run, serve
from server.scripted_llm import MODEL, start_llm
from vademecum.settings import Secret

KEY = "sk-canary-0123456789"
CANARY = "Zanzibarquokka"


@asynccontextmanager
async def serve_with_llm(tmp_path, *rules, **settings):
    """Run a server and a scripted model as its assistant. Yield both."""
    async with (
        start_llm(*rules) as model,
        serve(
            tmp_path,
            **{
                "assistant_url": model.url,
                "assistant_model": MODEL,
                "assistant_key": Secret(KEY),
                "extraction_daily": 0,  # so that the model receives only the requests of the test
                **settings,
            },
        ) as h,
    ):
        yield h, model


async def ask(person, query="What is the rent?", session_id="s1", **more):
    return await person.call("POST", "/v1/answer", json={"query": query, "sessionId": session_id, **more})


def events_of(text):
    """Return the name and data of each server-sent event. Comments are skipped."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


async def read_answer(person, query="What is the rent?", **more):
    """Ask a question, check the order of the events in the answer, and return them."""
    answer = await ask(person, query, **more)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = events_of(answer.text)
    assert [name for name, _ in events[:1]] == ["context"]
    assert {name for name, _ in events[1:-1]} <= {"delta", "restart"} and events[-1][0] in ("done", "failed")
    return events


@asynccontextmanager
async def stream_answer(url, person, query="go on"):
    """Ask a question over a real connection. Yield the lines of the answer as they arrive."""
    headers = {"Authorization": person.client.headers["Authorization"]}
    body = {"query": query, "sessionId": "s1"}
    async with (
        httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as client,
        client.stream("POST", "/v1/answer", json=body) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        yield answer.aiter_lines()


async def wait_for_first_word(lines):
    async for line in lines:
        if line.startswith('data: {"text"'):
            return


async def last_event(lines):
    return events_of("\n".join([line async for line in lines]).strip())[-1]


def text_of(events):
    starts = [at for at, (name, _) in enumerate(events) if name == "restart"]
    return "".join(data["text"] for name, data in events[max(starts, default=0) :] if name == "delta")


def scenario_of(tmp_path, scenario, *rules, **settings):
    async def whole():
        async with serve_with_llm(tmp_path, *rules, **settings) as (h, model):
            await scenario(h, model, await h.person())

    run(whole)
