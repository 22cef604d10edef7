"""A scripted language model: an OpenAI-compatible endpoint over real HTTP on the loopback.

A test runs it by `async with start_llm(Rule(say=["Yes."])) as model:` and uses `model.url`. It can also run in its own
process, where it prints its address and reads its rules from a JSON file (a list of objects with the fields of `Rule`):

    PYTHONPATH=tests python -m server.scripted_llm [--port 0] [rules.json]

The first rule whose `when` occurs in the question provides the answer. Without a matching rule, the answer repeats the
question. `GET /asked` returns all requests received so far, for a test that runs in another process.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

MODEL = "scripted"


class Rule(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The answer to questions that contain `when` and whose request body lacks the field named by `without`.

    `say`: the pieces of the answer. {question} is replaced by the last message, {system} by the first.
    `think`: the reasoning that is sent before the answer.
    `finish`: the finish reason that ends a complete answer.
    `status`: the HTTP status. A status other than 200 is sent with `raw`, or with an empty body.
    `headers`: additional response headers.
    `first_s`: the delay in seconds before the response. `pause_s`: the delay before each piece.
    `raw`: a response body to send instead of an answer in pieces.
    `cut`: the number of bytes per write, so that lines and characters arrive in parts.
    `ends`: "done" sends [DONE], "broken" closes the connection early, "silent" keeps it open without sending, and
    "never" repeats the pieces without end.
    `held`: the answer to each question starts only after one call of `Model.release_answer`.
    """

    when: str = ""
    without: str = ""
    say: list[str] = msgspec.field(default_factory=lambda: ["You asked: {question}"])
    think: str = ""
    finish: str = "stop"
    ends: Literal["done", "broken", "silent", "never"] = "done"
    raw: str | None = None
    status: int = 200
    headers: dict[str, str] = {}
    held: bool = False
    first_s: float = 0
    pause_s: float = 0
    cut: int = 0


class Request(msgspec.Struct):
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def question(self) -> str:
        return self.body["messages"][-1]["content"]

    @property
    def system(self) -> str:
        return self.body["messages"][0]["content"]


class Model:
    """The scripted model. `disconnects` counts questions whose client closed the connection before the answer was complete."""

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.models = [MODEL]
        self.requests: list[Request] = []
        self.disconnects = 0
        self._held = asyncio.Semaphore(0)
        self.url = ""

    def release_answer(self) -> None:
        """Let one held question be answered: the oldest that waits, or the next to arrive if none waits."""
        self._held.release()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close the connection."""
        try:
            request = await _request(reader)
            if request.path == "/asked":
                await _write(writer, 200, {}, "application/json", msgspec.json.encode(self.requests))
                return
            self.requests.append(request)
            if request.path.endswith("/models"):
                rule = next((one for one in self.rules if one.when == "/models"), Rule())
                listing = {"object": "list", "data": [{"id": name} for name in self.models]}
                body = rule.raw.encode() if rule.raw is not None else msgspec.json.encode(listing)
                await _write(writer, rule.status, rule.headers, "application/json", body)
            elif request.path.endswith("/chat/completions"):
                await self._answer(request, reader, writer)
            else:
                await _write(writer, 404, {}, "text/plain", b"no such page")
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        default = Rule()
        fitting = (
            one for one in self.rules if one.when in request.question and one.without not in request.body
        )
        rule = next(fitting, default)
        speaking = asyncio.create_task(self._speak(rule, request, writer))
        leaving = asyncio.create_task(reader.read())  # completes when the client closes the connection
        try:
            await asyncio.wait({speaking, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not speaking.done() or speaking.exception() is not None:
                self.disconnects += 1
        finally:
            for task in (speaking, leaving):
                task.cancel()
            await asyncio.gather(speaking, leaving, return_exceptions=True)

    async def _speak(self, rule: Rule, request: Request, writer: asyncio.StreamWriter) -> None:
        if rule.held:
            await self._held.acquire()
        await _speak(rule, request, writer)


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    path = first.split(" ")[1]
    return Request(path, headers, msgspec.json.decode(body) if body else None)


async def _speak(rule: Rule, request: Request, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(rule.first_s)
    if rule.status != 200 or rule.raw is not None:
        await _write(writer, rule.status, rule.headers, "text/event-stream", (rule.raw or "").encode())
        return
    await _write(writer, 200, rule.headers, "text/event-stream", b"")
    if rule.think:
        await _event(
            writer, rule, {"delta": {"role": "assistant", "content": "", "reasoning_content": rule.think}}
        )
    while True:
        for piece in rule.say:
            await asyncio.sleep(rule.pause_s)
            text = piece.replace("{question}", request.question).replace("{system}", request.system)
            await _event(writer, rule, {"delta": {"content": text}, "finish_reason": None})
        if rule.ends != "never":
            break
    if rule.ends == "silent":
        await asyncio.sleep(3600)
    if rule.ends == "done":
        await _event(writer, rule, {"delta": {}, "finish_reason": rule.finish})
        await _bytes(writer, rule, b"data: [DONE]\n\n")


async def _event(writer: asyncio.StreamWriter, rule: Rule, choice: dict[str, Any]) -> None:
    chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]}
    await _bytes(writer, rule, b"data: " + msgspec.json.encode(chunk) + b"\n\n")


async def _bytes(writer: asyncio.StreamWriter, rule: Rule, data: bytes) -> None:
    step = rule.cut or len(data)
    for start in range(0, len(data), step):
        writer.write(data[start : start + step])
        await writer.drain()
        await asyncio.sleep(0)


async def _write(
    writer: asyncio.StreamWriter, status: int, headers: dict[str, str], media: str, body: bytes
) -> None:
    """Write a response whose body ends when the connection is closed."""
    fields = {"Content-Type": media, "Connection": "close", **headers}
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in fields.items())]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    await writer.drain()


@asynccontextmanager
async def start_llm(*rules: Rule, port: int = 0) -> AsyncIterator[Model]:
    model = Model(list(rules))
    server = await asyncio.start_server(model.serve, "127.0.0.1", port)
    model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield model


async def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("rules", nargs="?", type=Path)
    given = parser.parse_args(words)
    rules = msgspec.json.decode(given.rules.read_bytes(), type=list[Rule]) if given.rules else []
    async with start_llm(*rules, port=given.port) as model:
        print(model.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
