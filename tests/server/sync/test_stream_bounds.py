"""Limits of streams: their number, and the size of each stream's queue.

Beyond a limit, the server rejects or closes a stream, but it never omits an event.
"""

import asyncio
import json
import socket
from contextlib import ExitStack

import httpx
import pytest

from property.rows import block, document, fact
from property.sync_wire import send, seqs
from server.listening_server import StreamClient, listen, run_over_network
from server.sync.test_quotas import small
from vademecum.services.sync.stream import CLOSED, EVENT_BYTES
from wait_until import soon


def slow_client(url, person):
    """Return a client with a small receive buffer, because filling a default buffer takes megabytes."""
    little = httpx.AsyncHTTPTransport(socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)])
    headers = {"Authorization": person.client.headers["Authorization"]}
    return httpx.AsyncClient(transport=little, base_url=url, headers=headers, timeout=30)


@pytest.mark.parametrize(
    "bound",
    [{"stream_queue": 4, "stream_queue_bytes": 10**9}, {"stream_queue_bytes": 2_000_000}],
    ids=["events", "bytes"],
)
def test_stream_of_slow_client_is_closed_and_client_pulls_all_rows(tmp_path, bound):
    """The client has received the first of the written rows without a gap when its stream is closed."""

    async def scenario(h, url, ada):
        async with (
            slow_client(url, ada) as client,
            client.stream("GET", "/v1/sync/facts/0/pullStream") as answer,
        ):
            for number in range(24):
                rows = [fact(f"f{number}-{n}", value="x" * 50_000) for n in range(10)]
                assert await send(ada, "facts", *((row, None) for row in rows)) == []
            stream = StreamClient(answer)
            await asyncio.wait_for(stream.ended.wait(), 60)
        heard = [row["id"] for row in stream.rows()]
        assert len(heard) < 240, "the stream must have been closed before the last row"
        ids = [row["id"] for row in await ada.pull("facts")]
        assert len(ids) == 240 and heard == ids[: len(heard)]

    run_over_network(tmp_path, scenario, **bound)


def large(count, prefix="f"):
    return [(fact(f"{prefix}{number}", value="x" * 100_000), None) for number in range(count)]


def test_commit_larger_than_the_stream_queue_closes_the_stream(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream") as stream:
            assert await send(ada, "facts", *large(9, "small")) == []
            await stream.wait_until(lambda: len(stream.rows("facts")) == 9)
            assert await send(ada, "facts", *large(11)) == []
            await asyncio.wait_for(stream.ended.wait(), 60)
            assert len(stream.rows("facts")) == 9 and len(await ada.pull("facts")) == 20

    run_over_network(tmp_path, scenario, stream_queue_bytes=1_000_000)


def test_largest_push_batch_fits_the_stream_queue(tmp_path):
    """RxDB sends 100 rows per batch. Blocks with vectors are the largest rows."""

    async def scenario(h, url, ada):
        await send(ada, "documents", (document(ada.id, "d"), None))
        chunks = [{"index": n, "start": n, "text": "x" * 8000, "tokens": 511} for n in range(16)]
        whole = {"dims": 384, "chunks": chunks, "embedding": "A" * 32_768}
        blocks = [block("d", number, **whole) for number in range(100)]
        async with listen(url, ada, "/v1/sync/stream") as stream:
            assert await send(ada, "vectorEmbeddings", *((row, None) for row in blocks)) == []
            await stream.wait_until(lambda: len(stream.rows("vectorEmbeddings")) == 100)
            assert stream.rows("vectorEmbeddings") == blocks and not stream.ended.is_set()

    run_over_network(tmp_path, scenario)


def test_closed_stream_frees_its_queued_events(tmp_path):
    """The client may keep the connection open for a long time without reading the remaining events."""

    async def scenario(h, url, ada):
        with h.services.hub.subscribe(ada.id, frozenset({"facts"}), named=False) as stream:
            for number in range(3):
                assert await send(ada, "facts", *large(4, f"{number}-")) == []
            assert stream.closed and await stream.next() is CLOSED

    run_over_network(tmp_path, scenario, stream_queue_bytes=1_000_000)


def test_events_read_by_client_free_space_in_the_stream_queue(tmp_path):
    async def scenario(h, url, ada):
        with h.services.hub.subscribe(ada.id, frozenset({"facts"}), named=False) as stream:
            for number in range(5):
                assert await send(ada, "facts", *large(4, f"{number}-")) == []
                assert len(rows_of(await asyncio.wait_for(stream.next(), 60))) == 4

    run_over_network(tmp_path, scenario, stream_queue_bytes=1_000_000, stream_queue=2)


def test_large_commit_is_split_into_several_stream_events(tmp_path):
    async def scenario(h, url, ada):
        larger = fact("larger", value="€" * (EVENT_BYTES // 2))
        rows = [row for row, _ in [*large(25, "a"), (larger, None), *large(25, "c")]]
        async with (
            listen(url, ada, "/v1/sync/facts/0/pullStream") as plain,
            listen(url, ada, "/v1/sync/stream") as named,
        ):
            assert await send(ada, "facts", *((row, None) for row in rows)) == []
            at = await seqs(ada, "facts")
            for stream in (plain, named):
                await stream.wait_until(lambda stream=stream: len(stream.rows("facts")) == len(rows))
                assert stream.rows("facts") == rows
                assert [len(event["documents"]) for event in stream.events] == [10, 10, 5, 1, 10, 10, 5]
                for event in stream.events:
                    assert event["checkpoint"]["lwt"] == at[f"facts/{event['documents'][-1]['id']}"]

    run_over_network(tmp_path, scenario, **small(row_bytes=2 * EVENT_BYTES))


def rows_of(event):
    """Return the rows of an unnamed server-sent event."""
    assert event.startswith(b"data: ") and event.endswith(b"\n\n")
    return json.loads(event.removeprefix(b"data: "))["documents"]


def test_commit_is_encoded_once_for_all_streams_of_an_account(tmp_path):
    async def scenario(h, url, ada):
        both, one = frozenset({"facts", "sessions"}), frozenset({"facts"})
        for named, wants in ((True, [both, one, both]), (False, [one, one])):
            with ExitStack() as stack:
                streams = [
                    stack.enter_context(h.services.hub.subscribe(ada.id, want, named=named)) for want in wants
                ]
                await send(ada, "facts", (fact(f"f{named}"), None))
                first, *others = [await asyncio.wait_for(stream.next(), 60) for stream in streams]
                assert rows_of(first) == [fact(f"f{named}")]
                assert all(event is first for event in others)

    run_over_network(tmp_path, scenario)


async def opens(person, url, path="/v1/sync/stream"):
    """Return whether the server accepts a stream. Close the stream at once."""
    headers = {"Authorization": person.client.headers["Authorization"]}
    async with (
        httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as client,
        client.stream("GET", path) as answer,
    ):
        return answer.status_code == 200


async def opens_soon(person, url):
    """Check that a stream opens soon: a dead connection must not be detected only by the next heartbeat."""
    async with asyncio.timeout(60):
        await soon(lambda: opens(person, url))


def test_stream_beyond_the_limit_is_rejected(tmp_path):
    async def scenario(h, url, ada):
        bob = await h.person()
        async with listen(url, ada, "/v1/sync/stream") as stream, listen(url, ada, "/v1/sync/stream"):
            for path in ("/v1/sync/stream", "/v1/sync/facts/0/pullStream"):
                answer = await asyncio.wait_for(ada.call("GET", path), 60)
                assert answer.headers["content-type"] == "application/problem+json"
                problem = answer.json()
                assert (answer.status_code, problem["code"]) == (429, "STREAM_LIMIT")
                assert problem["error"] is True and "Nothing is lost" in problem["detail"]
                assert int(answer.headers["Retry-After"]) > 0
            assert h.services.hub.count() == 2 and await opens(bob, url)
            await send(ada, "facts", (fact("f"), None))
            await stream.wait_until(lambda: stream.rows("facts"))

    run_over_network(tmp_path, scenario, streams_max=2)


def test_ended_stream_frees_its_slot_for_a_new_stream(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream"):
            assert not await opens(ada, url)
        await opens_soon(ada, url)
        async with listen(url, ada, "/v1/sync/stream") as stream:
            h.services.hub.close_user(ada.id)
            await asyncio.wait_for(stream.ended.wait(), 60)
            await opens_soon(ada, url)

    run_over_network(tmp_path, scenario, streams_max=1)


def test_stream_slot_is_freed_when_client_that_does_not_read_disconnects(tmp_path):
    """The client disconnects while the server is sending to it."""

    async def scenario(h, url, ada):
        async with slow_client(url, ada) as client, client.stream("GET", "/v1/sync/stream"):
            for number in range(10):
                assert await send(ada, "facts", *large(9, f"{number}-")) == []
            assert not await opens(ada, url)
        await opens_soon(ada, url)

    run_over_network(tmp_path, scenario, streams_max=1)
