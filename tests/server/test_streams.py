"""Both streams over a real socket: in order, without a gap, closed rather than skipped."""

import asyncio
import json
import os
import socket
from contextlib import ExitStack, asynccontextmanager

import httpx
import pytest
import uvicorn

from property.rows import block, document, fact, session
from property.wire import page, send, seqs
from server.house import house, run
from server.test_limits import small
from vademecum.services.follow import CLOSED, EVENT_BYTES


@asynccontextmanager
async def listening(app):
    """The app behind uvicorn on a port of its own. Yields its URL."""
    config = uvicorn.Config(app, port=0, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


class Ear:
    """What comes down a stream: events as JSON, and everything as it was written."""

    def __init__(self, answer):
        self.answer = answer
        self.text = ""
        self.events = []
        self.ended = asyncio.Event()
        self.task = asyncio.create_task(self._listen())

    async def _listen(self):
        try:
            async for line in self.answer.aiter_lines():
                self.text += line + "\n"
                if line.startswith("data: "):
                    self.events.append(json.loads(line[6:]))
        except httpx.HTTPError:
            pass
        self.ended.set()

    def rows(self, collection=None):
        return [
            row
            for e in self.events
            if e.get("collection", collection) == collection
            for row in e["documents"]
        ]

    async def until(self, holds):
        async with asyncio.timeout(20):
            while not holds():
                await asyncio.sleep(0.01)


@asynccontextmanager
async def listen(url, person, path):
    headers = {"Authorization": person.client.headers["Authorization"]}
    async with (
        httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as client,
        client.stream("GET", path) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        ear = Ear(answer)
        try:
            yield ear
        finally:
            ear.task.cancel()


def that_reads_late(url, person):
    """A client for which the system keeps little: all else would take some megabytes more to fill."""
    little = httpx.AsyncHTTPTransport(socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)])
    headers = {"Authorization": person.client.headers["Authorization"]}
    return httpx.AsyncClient(transport=little, base_url=url, headers=headers, timeout=30)


def on_the_wire(tmp_path, scenario, **settings):
    async def whole():
        async with house(tmp_path, **settings) as h, listening(h.app) as url:
            await scenario(h, url, await h.person())

    run(whole)


def test_what_is_written_after_the_headers_arrives(tmp_path):
    async def scenario(h, url, ada):
        for number in range(20 if os.environ.get("SOAK") else 6):
            async with listen(url, ada, "/v1/sync/facts/0/pullStream") as ear:
                row = fact(f"f{number}")
                await send(ada, "facts", (row, None))
                await ear.until(lambda ear=ear: ear.events)
                assert ear.events[0]["documents"] == [row]
                assert ear.events[0]["checkpoint"] == (await page(ada, "facts"))["checkpoint"]

    on_the_wire(tmp_path, scenario)


def test_one_connection_carries_all_collections_in_the_order_of_seq(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream") as ear:
            await asyncio.gather(
                *(send(ada, "sessions", (session(f"s{i}"), None)) for i in range(60)),
                *(send(ada, "facts", *((fact(f"f{i}-{n}"), None) for n in range(5))) for i in range(60)),
            )
            await send(ada, "sessions", ({**session("s0"), "_deleted": True}, None))
            await ear.until(lambda: any(row["_deleted"] for row in ear.rows("sessions")))
            seqs = [event["checkpoint"]["lwt"] for event in ear.events]
            assert seqs == sorted(seqs)
            for collection in ("sessions", "facts"):
                pulled = (await page(ada, collection))["documents"]
                newest = {row["id"]: row for row in ear.rows(collection)}
                assert newest == {row["id"]: row for row in pulled}
            assert sum(len(event["documents"]) for event in ear.events) == 60 + 300 + 1
            assert "RESYNC" not in ear.text

    on_the_wire(tmp_path, scenario)


def test_an_event_says_when_everything_was_forgotten_and_none_before_does(tmp_path):
    async def scenario(h, url, ada):
        async with (
            listen(url, ada, "/v1/sync/facts/0/pullStream") as one,
            listen(url, ada, "/v1/sync/stream") as all_,
        ):
            await send(ada, "facts", (fact("f"), None))
            receipt = (await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})).json()
            for ear in (one, all_):
                await ear.until(lambda ear=ear: len(ear.events) == 2)
                before, after = ear.events
                assert "forgottenAt" not in before and after["forgottenAt"] == receipt["at"]

    on_the_wire(tmp_path, scenario)


def test_a_cascade_reaches_every_collection_it_touches(tmp_path):
    async def scenario(h, url, ada):
        await send(ada, "sessions", (session("s"), None))
        await send(ada, "documents", (document(ada.id, "d", activeSessions=["s"]), None))
        async with listen(url, ada, "/v1/sync/stream?versions=documents:0,sessions:0") as ear:
            await ada.call("DELETE", "/v1/sessions/s")
            await ear.until(lambda: ear.rows("documents") and ear.rows("sessions"))
            assert ear.rows("documents")[0]["activeSessions"] == [] and ear.rows("sessions")[0]["_deleted"]

    on_the_wire(tmp_path, scenario)


def test_only_the_chosen_collections_come(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream?versions=facts:0") as ear:
            await send(ada, "sessions", (session("s"), None))
            await send(ada, "facts", (fact("f"), None))
            await ear.until(lambda: ear.events)
            assert [event["collection"] for event in ear.events] == ["facts"]

    on_the_wire(tmp_path, scenario)


def test_nobody_hears_another(tmp_path):
    async def scenario(h, url, ada):
        bob = await h.person()
        async with listen(url, bob, "/v1/sync/stream") as ear:
            await send(ada, "facts", (fact("f", value="canary of Ada"), None))
            await send(bob, "facts", (fact("g"), None))
            await ear.until(lambda: ear.rows("facts"))
            assert "canary" not in ear.text and [row["id"] for row in ear.rows("facts")] == ["g"]

    on_the_wire(tmp_path, scenario)


@pytest.mark.parametrize(
    "bound",
    [{"stream_queue": 4, "stream_queue_bytes": 10**9}, {"stream_queue_bytes": 2_000_000}],
    ids=["events", "bytes"],
)
def test_a_listener_that_falls_behind_is_closed_and_its_pull_finds_all(tmp_path, bound):
    """It never skips: what came is a prefix of what was written."""

    async def scenario(h, url, ada):
        async with (
            that_reads_late(url, ada) as client,
            client.stream("GET", "/v1/sync/facts/0/pullStream") as answer,
        ):
            for number in range(24):
                rows = [fact(f"f{number}-{n}", value="x" * 50_000) for n in range(10)]
                assert await send(ada, "facts", *((row, None) for row in rows)) == []
            ear = Ear(answer)
            await asyncio.wait_for(ear.ended.wait(), 30)
        heard = [row["id"] for row in ear.rows()]
        assert len(heard) < 240, "it was closed"
        ids = [row["id"] for row in await ada.pull("facts")]
        assert len(ids) == 240 and heard == ids[: len(heard)]

    on_the_wire(tmp_path, scenario, **bound)


def large(count, prefix="f"):
    return [(fact(f"{prefix}{number}", value="x" * 100_000), None) for number in range(count)]


def test_a_commit_larger_than_a_queue_closes_even_a_quick_listener_and_its_pull_finds_all(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream") as ear:
            assert await send(ada, "facts", *large(9, "small")) == []
            await ear.until(lambda: len(ear.rows("facts")) == 9)
            assert await send(ada, "facts", *large(11)) == []
            await asyncio.wait_for(ear.ended.wait(), 10)
            assert len(ear.rows("facts")) == 9 and len(await ada.pull("facts")) == 20

    on_the_wire(tmp_path, scenario, stream_queue_bytes=1_000_000)


def test_the_largest_batch_of_a_device_comes_down_a_stream_whole(tmp_path):
    """RxDB sends 100 rows; blocks with their vectors are the largest."""

    async def scenario(h, url, ada):
        await send(ada, "documents", (document(ada.id, "d"), None))
        chunks = [{"index": n, "start": n, "text": "x" * 8000, "tokens": 511} for n in range(16)]
        whole = {"dims": 384, "chunks": chunks, "embedding": "A" * 32_768}
        blocks = [block("d", number, **whole) for number in range(100)]
        async with listen(url, ada, "/v1/sync/stream") as ear:
            assert await send(ada, "vectorEmbeddings", *((row, None) for row in blocks)) == []
            await ear.until(lambda: len(ear.rows("vectorEmbeddings")) == 100)
            assert ear.rows("vectorEmbeddings") == blocks and not ear.ended.is_set()

    on_the_wire(tmp_path, scenario)


def test_a_listener_that_is_closed_holds_nothing_any_more(tmp_path):
    """Its client may keep the connection for long without reading."""

    async def scenario(h, url, ada):
        with h.parts.hub.subscribe(ada.id, frozenset({"facts"}), named=False) as stream:
            for number in range(3):
                assert await send(ada, "facts", *large(4, f"{number}-")) == []
            assert stream.closed and await stream.next() is CLOSED

    on_the_wire(tmp_path, scenario, stream_queue_bytes=1_000_000)


def test_what_was_read_makes_room_in_the_queue(tmp_path):
    async def scenario(h, url, ada):
        with h.parts.hub.subscribe(ada.id, frozenset({"facts"}), named=False) as stream:
            for number in range(5):
                assert await send(ada, "facts", *large(4, f"{number}-")) == []
                assert len(rows_of(await asyncio.wait_for(stream.next(), 10))) == 4

    on_the_wire(tmp_path, scenario, stream_queue_bytes=1_000_000, stream_queue=2)


def test_a_large_commit_comes_as_events_of_about_a_mebibyte_in_the_order_of_seq(tmp_path):
    async def scenario(h, url, ada):
        larger = fact("larger", value="€" * (EVENT_BYTES // 2))
        rows = [row for row, _ in [*large(25, "a"), (larger, None), *large(25, "c")]]
        async with (
            listen(url, ada, "/v1/sync/facts/0/pullStream") as plain,
            listen(url, ada, "/v1/sync/stream") as named,
        ):
            assert await send(ada, "facts", *((row, None) for row in rows)) == []
            at = await seqs(ada, "facts")
            for ear in (plain, named):
                await ear.until(lambda ear=ear: len(ear.rows("facts")) == len(rows))
                assert ear.rows("facts") == rows
                assert [len(event["documents"]) for event in ear.events] == [10, 10, 5, 1, 10, 10, 5]
                for event in ear.events:
                    assert event["checkpoint"]["lwt"] == at[f"facts/{event['documents'][-1]['id']}"]

    on_the_wire(tmp_path, scenario, **small(row_bytes=2 * EVENT_BYTES))


def rows_of(event):
    """The rows of a server-sent event without a name."""
    assert event.startswith(b"data: ") and event.endswith(b"\n\n")
    return json.loads(event.removeprefix(b"data: "))["documents"]


def test_a_commit_is_encoded_once_for_all_streams_that_want_it(tmp_path):
    async def scenario(h, url, ada):
        both, one = frozenset({"facts", "sessions"}), frozenset({"facts"})
        for named, wants in ((True, [both, one, both]), (False, [one, one])):
            with ExitStack() as stack:
                streams = [
                    stack.enter_context(h.parts.hub.subscribe(ada.id, want, named=named)) for want in wants
                ]
                await send(ada, "facts", (fact(f"f{named}"), None))
                first, *others = [await asyncio.wait_for(stream.next(), 10) for stream in streams]
                assert rows_of(first) == [fact(f"f{named}")]
                assert all(event is first for event in others)

    on_the_wire(tmp_path, scenario)


async def opens(person, url, path="/v1/sync/stream"):
    """Whether a stream can be had; it is left at once."""
    headers = {"Authorization": person.client.headers["Authorization"]}
    async with (
        httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as client,
        client.stream("GET", path) as answer,
    ):
        return answer.status_code == 200


async def opens_soon(person, url):
    """Well before the next heartbeat, which would find a dead connection too."""
    async with asyncio.timeout(5):
        while not await opens(person, url):
            await asyncio.sleep(0.01)


def test_one_stream_too_many_is_refused_and_nobody_else_feels_it(tmp_path):
    async def scenario(h, url, ada):
        bob = await h.person()
        async with listen(url, ada, "/v1/sync/stream") as ear, listen(url, ada, "/v1/sync/stream"):
            for path in ("/v1/sync/stream", "/v1/sync/facts/0/pullStream"):
                answer = await asyncio.wait_for(ada.call("GET", path), 10)
                assert answer.headers["content-type"] == "application/problem+json"
                problem = answer.json()
                assert (answer.status_code, problem["code"]) == (429, "STREAM_LIMIT")
                assert problem["error"] is True and "Nothing is lost" in problem["detail"]
                assert int(answer.headers["Retry-After"]) > 0
            assert h.parts.hub.count() == 2 and await opens(bob, url)
            await send(ada, "facts", (fact("f"), None))
            await ear.until(lambda: ear.rows("facts"))

    on_the_wire(tmp_path, scenario, streams_max=2)


def test_a_stream_that_ended_frees_its_place_at_once(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream"):
            assert not await opens(ada, url)
        await opens_soon(ada, url)
        async with listen(url, ada, "/v1/sync/stream") as ear:
            h.parts.hub.close_user(ada.id)
            await asyncio.wait_for(ear.ended.wait(), 10)
            await opens_soon(ada, url)

    on_the_wire(tmp_path, scenario, streams_max=1)


def test_a_client_that_never_read_and_left_frees_its_place_at_once(tmp_path):
    """The server is in the middle of sending to it."""

    async def scenario(h, url, ada):
        async with that_reads_late(url, ada) as client, client.stream("GET", "/v1/sync/stream"):
            for number in range(10):
                assert await send(ada, "facts", *large(9, f"{number}-")) == []
            assert not await opens(ada, url)
        await opens_soon(ada, url)

    on_the_wire(tmp_path, scenario, streams_max=1)


def test_silence_is_filled_with_comments_that_no_client_takes_for_events(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/facts/0/pullStream") as ear:
            await ear.until(lambda: ear.text.count(": hb") >= 3)
            assert ear.events == []

    on_the_wire(tmp_path, scenario, heartbeat_s=0.05)


def test_a_client_that_goes_away_is_forgotten(tmp_path):
    async def scenario(h, url, ada):
        for _ in range(5):
            async with listen(url, ada, "/v1/sync/stream"):
                assert h.parts.hub.count() >= 1
        async with asyncio.timeout(10):
            while h.parts.hub.count():
                await asyncio.sleep(0.05)

    on_the_wire(tmp_path, scenario, heartbeat_s=0.1)


def test_a_stream_of_another_schema_version_is_gated_like_a_pull(tmp_path):
    async def scenario(h, url, ada):
        for path, status in {
            "/v1/sync/facts/1/pullStream": 503,
            "/v1/sync/nothing/0/pullStream": 404,
            "/v1/sync/stream?versions=facts:1": 503,
            "/v1/sync/stream?versions=nothing:0": 404,
            "/v1/sync/stream?versions=facts": 400,
            "/v1/sync/stream?versions=facts:x": 400,
        }.items():
            answer = await ada.call("GET", path)
            assert answer.status_code == status and answer.json()["error"] is True, path
        assert h.parts.hub.count() == 0

    on_the_wire(tmp_path, scenario)


def test_streams_end_when_the_server_stops(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream") as ear:
            await send(ada, "facts", (fact("f"), None))
            await ear.until(lambda: ear.events)
            h.parts.hub.close()
            await asyncio.wait_for(ear.ended.wait(), 5)

    on_the_wire(tmp_path, scenario)
